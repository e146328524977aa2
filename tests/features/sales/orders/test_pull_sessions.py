"""Pull sessions: a fixed snapshot of the orders to pull, walked through in work order, whatever
happens to the orders meanwhile.
"""

import asyncio
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from cardsync.platform import clock
from orders_builder import an_item, an_order, change_order


async def opened(seller, **body):
    answer = await seller.post("/api/pull_sessions", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def read(seller, session_id):
    answer = await seller.get(f"/api/pull_sessions/{session_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def way(seller, session_id):
    return [order["id"] for order in (await read(seller, session_id))["orders"]]


def step(session_id, order_id, what):
    return f"/api/pull_sessions/{session_id}/orders/{order_id}/{what}"


async def done(seller, path):
    answer = await seller.post(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(seller, path, **options):
    answer = await seller.post(path, **options)
    assert set(answer.json()) == {"error", "code"}, answer.text
    return answer.status_code, answer.json()["code"]


async def feed(seller):
    rows = await seller.service.sql(
        seller.id,
        "SELECT actor, action, summary FROM activity WHERE seller_id = :id"
        " AND action <> 'upload.accepted' ORDER BY id",
        id=seller.id,
    )
    assert {row["actor"].split()[0] for row in rows} <= {"key"}
    return [(row["action"], row["summary"]) for row in rows]


async def test_the_story_of_a_session(a_seller):
    seller = await a_seller()
    letter = await an_order(
        seller, order_number="LETTER", shipping_type="pwe", order_date=date(2026, 11, 2)
    )
    parcel = await an_order(
        seller, order_number="PARCEL", shipping_type="tracked", order_date=date(2026, 11, 3)
    )
    urgent = await an_order(
        seller, order_number="URGENT", status="Completed - Paid", shipping_type="expedited",
        buyer_name="Ann",
        order_date=date(2026, 11, 4), shipping_item_count=7,
    )  # fmt: skip
    old = await an_order(
        seller,
        order_number="OLD",
        status="Processing",
        shipping_type="pwe",
        order_date=date(2026, 11, 1),
    )
    first = await an_item(
        seller,
        urgent,
        product_name="Ash",
        quantity=3,
        set_name="Aetherdrift",
        condition="Near Mint",
    )
    await an_item(seller, urgent, product_name="Birch")
    await an_item(seller, letter, quantity=2)

    pulls = await opened(seller)
    assert pulls | {"opened_at": None} == {
        "id": pulls["id"], "status": "open", "opened_at": None, "completed_at": None,
        "order_count": 4, "item_count": 9, "pulled_count": 0, "review_count": 0,
    }  # fmt: skip
    assert abs(clock.now() - datetime.fromisoformat(pulls["opened_at"])) < timedelta(minutes=1)

    whole = await read(seller, pulls["id"])
    orders = whole.pop("orders")
    assert whole == pulls
    assert [order["order_number"] for order in orders] == ["URGENT", "PARCEL", "OLD", "LETTER"]
    assert [item["product_name"] for item in orders[0]["items"]] == ["Ash", "Birch"]
    assert orders[0] | {"items": None} == {
        "id": urgent, "order_number": "URGENT", "buyer_name": "Ann", "order_date": "2026-11-04",
        "status": "Completed - Paid",
        "shipping_type": "expedited", "item_count": 7, "shipped_marked_at": None, "pulled_at": None,
        "missing_at": None, "deferred": False,
        "in_review": False, "changed": [], "needs_review": False, "items": None,
    }  # fmt: skip
    assert orders[0]["items"][0] == {
        "id": first, "product_name": "Ash", "product_line": "magic", "condition": "Near Mint",
        "set_name": "Aetherdrift",
        "rarity": None, "quantity": 3, "main_photo_url": None, "location_code": None,
    }  # fmt: skip

    assert (await done(seller, step(pulls["id"], urgent, "pulled")))["pulled_count"] == 1
    await done(seller, step(pulls["id"], parcel, "defer"))
    assert await way(seller, pulls["id"]) == [urgent, old, letter, parcel]
    assert (await done(seller, step(pulls["id"], old, "unassign")))["order_count"] == 3
    assert (await done(seller, f"/api/orders/{letter}/dismiss"))["pull_dismissed_at"]
    assert await way(seller, pulls["id"]) == [urgent, parcel]
    assert (await done(seller, f"/api/orders/{urgent}/mark_shipped"))[
        "marked_shipped_pending"
    ] is True

    ended = await done(seller, f"/api/pull_sessions/{pulls['id']}/complete")
    assert ended["status"] == "completed"
    assert ended["completed_at"]
    assert (ended["order_count"], ended["pulled_count"]) == (2, 1)

    number = pulls["id"]
    assert await feed(seller) == [
        ("pull_session.opened", f"pull {number} opened with 4 orders"),
        ("pull_session.pulled", f"order URGENT pulled in pull {number}"),
        ("pull_session.deferred", f"order PARCEL pushed to the end of pull {number}"),
        ("pull_session.unassigned", f"order OLD removed from pull {number}"),
        ("order.dismissed", "order LETTER skipped in pulls"),
        ("order.marked_shipped", "order URGENT marked shipped"),
        ("pull_session.completed", f"pull {number} completed"),
    ]
    # One of the four is marked shipped and one is set aside.
    again = await opened(seller)
    assert await way(seller, again["id"]) == [parcel, old]


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "Shipped - In Transit"},
        {"status": "Canceled"},
        {"status": "Pending"},
        {"status": None},
        {"refund_amt": Decimal(0)},
        {"shipped_marked_at": datetime(2026, 11, 1, tzinfo=UTC)},
        {"pull_dismissed_at": datetime(2026, 11, 1, tzinfo=UTC)},
    ],
    ids=lambda columns: "-".join(map(str, columns.items())),
)
async def test_what_can_not_be_pulled_is_left_out_even_when_it_is_named(a_seller, columns):
    seller = await a_seller()
    good, bad = await an_order(seller), await an_order(seller, **columns)
    everything = await opened(seller)
    assert await way(seller, everything["id"]) == [good]
    await done(seller, f"/api/pull_sessions/{everything['id']}/cancel")
    assert await way(seller, (await opened(seller, order_ids=[bad, good]))["id"]) == [good]


async def test_a_session_takes_the_named_orders_of_the_seller_alone(a_seller):
    seller, other = await a_seller(), await a_seller()
    mine, left = await an_order(seller), await an_order(seller)
    foreign = await an_order(other)
    body = {"order_ids": [mine, foreign]}
    assert await refused(seller, "/api/pull_sessions", json=body) == (422, "invalid_payload")
    pulls = await opened(seller, order_ids=[mine, mine])
    assert await way(seller, pulls["id"]) == [mine]
    assert left != mine


async def test_naming_none_selects_none(a_seller):
    seller = await a_seller()
    await an_order(seller)
    assert (await opened(seller, order_ids=[]))["order_count"] == 0


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"shipping_type": "expedited"}, ["URGENT"]),
        ({"status": "Processing"}, ["OLD"]),
        ({"status": ["Processing", "Ready to Ship"]}, ["OLD", "LETTER"]),
        ({"status": "all", "date_from": "2026-11-02"}, ["URGENT", "LETTER"]),
        ({"date_to": "2026-11-02"}, ["OLD", "LETTER"]),
        ({"search": "let"}, ["LETTER"]),
        ({"search": "null"}, []),
        ({"search": 404}, []),
        ({"product_line": "Magic"}, ["LETTER"]),
        ({"unfeedbacked": True, "shipping_type": "pwe"}, ["OLD", "LETTER"]),
        ({"refund": True}, []),
        ({"ship_mark": "pending"}, []),
        ({"pull_session": "none"}, ["URGENT", "OLD", "LETTER"]),
        ({"pull_session": "dismissed"}, []),
        ({"page": 9, "per_page": 1, "sort": "number"}, ["URGENT", "OLD", "LETTER"]),
    ],
    ids=str,
)
async def test_a_session_takes_what_the_filters_of_the_list_leave_and_can_be_pulled(
    a_seller, filters, expected
):
    seller = await a_seller()
    await an_order(
        seller,
        order_number="URGENT",
        status="Paid",
        shipping_type="expedited",
        order_date=date(2026, 11, 3),
    )
    letter = await an_order(seller, order_number="LETTER", order_date=date(2026, 11, 2))
    await an_order(seller, order_number="OLD", status="Processing", order_date=date(2026, 11, 1))
    await an_order(
        seller,
        order_number="GONE",
        status="Shipped",
        shipping_type="expedited",
        refund_amt=Decimal(1),
    )
    await an_item(seller, letter)
    pulls = await opened(seller, **filters)
    assert [
        order["order_number"] for order in (await read(seller, pulls["id"]))["orders"]
    ] == expected
    if filters.keys() <= {"shipping_type", "search", "date_to", "refund"}:
        listed = (
            await seller.get(
                "/api/orders", params={name: str(value) for name, value in filters.items()}
            )
        ).json()
        assert set(expected) == {order["order_number"] for order in listed["orders"]} - {"GONE"}


async def test_a_session_takes_what_an_earlier_one_left_and_of_named_orders_what_the_filter_leaves(
    a_seller,
):
    seller = await a_seller()
    pulled, left = await an_order(seller), await an_order(seller, shipping_type="tracked")
    first = (await opened(seller))["id"]
    await done(seller, f"/api/pull_sessions/{first}/complete")
    again = (
        await opened(seller, pull_session=first, order_ids=[pulled, left], shipping_type="tracked")
    )["id"]
    assert await way(seller, again) == [left]


@pytest.mark.parametrize(
    "body",
    [
        {"shipping_type": "pigeon"}, {"date_from": "yesterday"}, {"pull_session": 10**9},
        {"pull_session": "mine"},
        {"refund": "perhaps"}, {"search": ["a"]}, {"status": [1.5]}, {"status": ["a"] * 101},
    ],
)  # fmt: skip
async def test_a_filter_that_can_not_be_read_opens_nothing(a_seller, body):
    seller = await a_seller()
    await an_order(seller)
    assert await refused(seller, "/api/pull_sessions", json=body) == (422, "invalid_payload")
    assert (await opened(seller))["order_count"] == 1


async def test_without_a_body_everything_is_pulled(a_seller):
    seller = await a_seller()
    order = await an_order(seller)
    answer = await seller.post("/api/pull_sessions")
    assert await way(seller, answer.json()["id"]) == [order]


@pytest.mark.parametrize(
    "body",
    [{"order_ids": "one"}, {"order_ids": [0]}, {"order_ids": [2**63]}, {"order_ids": [1.5]}, []],
)
async def test_a_body_of_the_wrong_shape_is_refused(a_seller, body):
    seller = await a_seller()
    assert await refused(seller, "/api/pull_sessions", json=body) == (422, "invalid_payload")


async def test_orders_that_are_not_there_open_nothing_and_are_named(a_seller):
    seller, other = await a_seller(), await a_seller()
    own, theirs = await an_order(seller), await an_order(other)
    unknown = [theirs, 10**15, 10**15 + 1]
    answer = await seller.post("/api/pull_sessions", json={"order_ids": [own, *unknown]})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert answer.json()["error"] == (
        f"order_ids: orders {', '.join(map(str, sorted(unknown)))} do not exist"
    )
    many = await seller.post(
        "/api/pull_sessions", json={"order_ids": [*range(2**60, 2**60 + 1_500)]}
    )
    assert many.json()["error"].endswith(f"{2**60 + 99} and 1,400 more do not exist")
    assert (await opened(seller, order_ids=[own]))["order_count"] == 1


async def test_the_snapshot_stays_whatever_uploads_do(a_seller):
    seller = await a_seller()
    orders = [await an_order(seller, order_date=date(2026, 11, n)) for n in range(1, 6)]
    shipped, cancelled, refunded, changed, untouched = orders
    pulls = await opened(seller)
    await change_order(seller, shipped, status="Shipped - Delivered")
    await change_order(seller, cancelled, status="Canceled")
    await change_order(seller, refunded, refund_amt=Decimal("0.00"))
    await change_order(seller, changed, buyer_name="Somebody Else")
    await an_order(seller, order_date=date(2026, 10, 1))

    whole = await read(seller, pulls["id"])
    assert [order["id"] for order in whole["orders"]] == orders
    marked = {order["id"] for order in whole["orders"] if order["in_review"]}
    assert marked == {shipped, cancelled, refunded}
    assert (whole["order_count"], whole["review_count"]) == (5, 3)
    # They can still be pulled or taken out, as whoever looks at them decides.
    assert (await done(seller, step(pulls["id"], cancelled, "pulled")))["review_count"] == 3
    assert (await done(seller, step(pulls["id"], refunded, "unassign")))["review_count"] == 2
    assert untouched in await way(seller, pulls["id"])


def a_line(number="A-1", **fields):
    row = {
        "order_number": number, "sku_id": 7, "product_name": "Ash", "product_line": "magic",
        "condition": "Near Mint",
        "set_name": "Aetherdrift", "rarity": "C", "quantity": 2,
        "main_photo_url": "https://photos.invalid/1",
    }  # fmt: skip
    return row | fields


LOOSE = {"sku_id": None, "product_name": "Birch", "quantity": 1}


async def a_shop_with_two_orders(a_seller):
    seller = await a_seller()
    await seller.orders(
        [
            {
                "order_number": n,
                "status": "Ready to Ship",
                "total_amt": 9,
                "order_date": "2026-11-01",
            }
            for n in ("A-1", "A-2")
        ]
    )
    await seller.items([a_line(), a_line(**LOOSE), a_line("A-2")])
    return seller


@pytest.mark.day
async def test_items_and_quantities_are_those_of_the_moment_it_was_opened(a_seller):
    seller = await a_shop_with_two_orders(a_seller)
    pulls = await opened(seller)
    before = await read(seller, pulls["id"])
    # One more of the first card, another card, and other lines without a SKU in place of the one.
    lines = [
        a_line(quantity=3),
        a_line(sku_id=8, product_name="Cedar"),
        a_line(**LOOSE | {"product_name": "Beech"}),
    ]
    await seller.items(lines)
    await seller.orders(
        [{"order_number": "A-1", "status": "Processing", "order_date": "2026-11-02"}]
    )
    await seller.shipping([{"order_number": "A-1", "tracking_number": "9400"}])

    after = await read(seller, pulls["id"])
    [first, second] = after["orders"]
    assert first == before["orders"][0] | {
        "changed": ["status", "shipping_type", "order_date", "item_count", "items"],
        "needs_review": True,
    }  # fmt: skip
    assert [(item["product_name"], item["quantity"]) for item in first["items"]] == [
        ("Ash", 2),
        ("Birch", 1),
    ]
    assert second == before["orders"][1]
    assert after["item_count"] == before["item_count"] == 5
    # It can still be pulled: nobody cancelled it.
    assert (first["in_review"], before["review_count"], after["review_count"]) == (False, 0, 1)
    [listed] = [
        each
        for each in (await seller.get("/api/orders")).json()["pull_sessions"]
        if each["id"] == pulls["id"]
    ]
    assert listed["review_count"] == 1


@pytest.mark.night
async def test_what_becomes_again_what_it_was_is_not_told_as_changed(a_seller):
    seller = await a_shop_with_two_orders(a_seller)
    pulls = await opened(seller)
    for name, changed in (("Beech", ["items"]), ("Birch", [])):
        await seller.items([a_line(**LOOSE | {"product_name": name})])
        assert (await read(seller, pulls["id"]))["orders"][0]["changed"] == changed


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("path", "row", "changed"),
    [
        ("/orders", {"status": "Canceled"}, ["status"]),
        ("/orders", {"buyer_name": "Somebody Else"}, []),
        ("/order_refunds", {"refund_type": "partial"}, ["refund_amt"]),
        ("/orders/shipping", {"item_count": 9}, ["item_count"]),
        ("/orders/shipping", {"city": "Testville"}, []),
        ("/order_items", a_line(quantity=1), ["item_count", "items"]),
        ("/order_items", a_line(condition="Damaged"), ["items"]),
        ("/order_items", a_line(main_photo_url="https://photos.invalid/2"), []),
        ("/order_items", a_line(unit_price="1.00"), []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_each_change_of_an_upload_is_named(a_seller, path, row, changed):
    seller = await a_shop_with_two_orders(a_seller)
    pulls = await opened(seller)
    assert (await seller.send(path, [{"order_number": "A-1", **row}])).status_code == 202
    await seller.service.run_jobs()
    [first, second] = (await read(seller, pulls["id"]))["orders"]
    assert (first["changed"], first["needs_review"]) == (changed, bool(changed))
    assert (second["changed"], second["needs_review"]) == ([], False)


@pytest.mark.night
async def test_an_ended_session_keeps_what_was_changed_in_the_end(a_seller):
    seller = await a_shop_with_two_orders(a_seller)
    pulls = await opened(seller)
    await seller.items([a_line(quantity=3)])
    assert (await done(seller, f"/api/pull_sessions/{pulls['id']}/complete"))["review_count"] == 1
    await seller.items([a_line(), a_line("A-2", quantity=9)])
    # Nor do the orders' next session's changes count for it.
    again = await opened(seller)
    await seller.items([a_line("A-2", quantity=8)])
    for session, expected in (
        (pulls["id"], [["item_count", "items"], []]),
        (again["id"], [[], ["item_count", "items"]]),
    ):
        whole = await read(seller, session)
        assert [order["changed"] for order in whole["orders"]] == expected
        assert whole["review_count"] == 1
    quantities = {
        order["id"]: [item["quantity"] for item in order["items"]] for order in whole["orders"]
    }
    assert sorted(quantities.values()) == [[2, 1], [9]]


@pytest.mark.night
async def test_what_is_taken_out_takes_its_lines_along(a_seller):
    seller = await a_shop_with_two_orders(a_seller)
    pulls = await opened(seller)
    first, second = await way(seller, pulls["id"])
    await done(seller, step(pulls["id"], first, "unassign"))
    await done(seller, f"/api/orders/{second}/dismiss")
    assert (
        await seller.service.sql(
            seller.id, "SELECT 1 FROM pull_session_item WHERE seller_id = :id", id=seller.id
        )
        == []
    )


@pytest.mark.day
async def test_a_session_that_is_opened_while_an_upload_is_written_is_of_one_moment(a_seller):
    seller = await a_seller()
    numbers = [f"A-{n}" for n in range(40)]
    await seller.orders([{"order_number": number, "status": "Ready to Ship"} for number in numbers])
    await seller.items([a_line(number) for number in numbers])
    for quantity in (5, 3, 6, 4):
        await seller.send("/order_items", [a_line(number, quantity=quantity) for number in numbers])
        _, pulls = await asyncio.gather(seller.service.run_jobs(), opened(seller))
        whole = await read(seller, pulls["id"])
        found = {(order["item_count"], order["items"][0]["quantity"]) for order in whole["orders"]}
        assert len(found) == 1
        [(count, taken)] = found
        assert count == taken
        assert whole["review_count"] == (0 if taken == quantity else 40)
        await done(seller, f"/api/pull_sessions/{pulls['id']}/cancel")


async def test_an_ended_session_keeps_its_reviews_and_gets_no_new_ones(a_seller):
    seller = await a_seller()
    early, late = await an_order(seller), await an_order(seller)
    pulls = await opened(seller)
    await change_order(seller, early, status="Canceled")
    assert (await done(seller, f"/api/pull_sessions/{pulls['id']}/complete"))["review_count"] == 1
    await change_order(seller, early, status="Ready to Ship")
    await change_order(seller, late, status="Shipped - In Transit")
    whole = await read(seller, pulls["id"])
    assert {order["id"]: order["in_review"] for order in whole["orders"]} == {
        early: True,
        late: False,
    }
    assert whole["review_count"] == 1


async def test_a_shipment_that_its_seller_marked_is_not_for_review(a_seller):
    seller = await a_seller()
    order = await an_order(seller)
    pulls = await opened(seller)
    await done(seller, f"/api/orders/{order}/mark_shipped")
    await change_order(seller, order, status="Shipped - In Transit")
    assert (await read(seller, pulls["id"]))["review_count"] == 0
    assert (await done(seller, f"/api/orders/{order}/mark_shipped"))[
        "marked_shipped_pending"
    ] is False


async def test_a_shipped_mark_is_taken_back_and_the_order_can_be_pulled_again(a_seller):
    seller = await a_seller()
    order = await an_order(seller, order_number="BACK")
    await done(seller, f"/api/orders/{order}/mark_shipped")
    assert (await opened(seller))["order_count"] == 0
    unmarked = {
        "id": order,
        "shipped_marked_at": None,
        "marked_shipped_pending": False,
        "pull_dismissed_at": None,
    }
    # Two callers at once take it back once.
    both = await asyncio.gather(
        *(done(seller, f"/api/orders/{order}/unmark_shipped") for _ in range(2))
    )
    assert both == [unmarked, unmarked]
    assert [action for action, _ in await feed(seller)].count("order.unmarked_shipped") == 1
    [pulls] = (await seller.get("/api/orders", params={"pull_session": "none"})).json()["orders"]
    assert (pulls["id"], pulls["marked_shipped_pending"]) == (order, False)
    assert await refused(seller, "/api/orders/999999999/unmark_shipped") == (404, "not_found")


async def test_what_an_upload_says_was_shipped_stays_so_without_the_mark(a_seller):
    seller = await a_seller()
    order = await an_order(seller)
    await done(seller, f"/api/orders/{order}/mark_shipped")
    await change_order(seller, order, status="Shipped - In Transit")
    assert (await done(seller, f"/api/orders/{order}/unmark_shipped"))["shipped_marked_at"] is None
    assert (await opened(seller))["order_count"] == 0


async def test_orders_pushed_to_the_end_stand_there_in_turn(a_seller):
    seller = await a_seller()
    a, b, c = [await an_order(seller, order_date=date(2026, 11, n)) for n in (1, 2, 3)]
    session_id = (await opened(seller))["id"]
    for order, expected in ((a, [b, c, a]), (b, [c, a, b]), (a, [c, b, a]), (a, [c, b, a])):
        await done(seller, step(session_id, order, "defer"))
        assert await way(seller, session_id) == expected
    assert [order["deferred"] for order in (await read(seller, session_id))["orders"]] == [
        False,
        True,
        True,
    ]
    assert len(await feed(seller)) == 1 + 3


async def test_every_step_may_be_taken_twice_and_is_told_once(a_seller):
    seller = await a_seller()
    pulled, taken_out = await an_order(seller), await an_order(seller)
    session_id = (await opened(seller))["id"]
    first = await done(seller, step(session_id, pulled, "pulled"))
    at = (await read(seller, session_id))["orders"][0]["pulled_at"]
    for path in (
        step(session_id, taken_out, "unassign"),
        f"/api/orders/{pulled}/mark_shipped",
        f"/api/orders/{taken_out}/dismiss",
    ):
        once = await done(seller, path)
        clock.shift(timedelta(hours=1))
        assert await done(seller, path) == once
    assert (
        (await done(seller, step(session_id, pulled, "pulled")))["pulled_count"]
        == first["pulled_count"]
        == 1
    )
    assert (await read(seller, session_id))["orders"][0]["pulled_at"] == at
    back = await done(seller, f"/api/orders/{taken_out}/undismiss")
    assert back["pull_dismissed_at"] is None
    assert await done(seller, f"/api/orders/{taken_out}/undismiss") == back
    ended = await done(seller, f"/api/pull_sessions/{session_id}/complete")
    assert await done(seller, f"/api/pull_sessions/{session_id}/complete") == ended
    told = Counter(action for action, _ in await feed(seller))
    assert set(told.values()) == {1}
    assert len(told) == 7


@pytest.mark.parametrize(("end", "other"), [("complete", "cancel"), ("cancel", "complete")])
async def test_an_ended_session_takes_no_further_step(a_seller, end, other):
    seller = await a_seller()
    order = await an_order(seller)
    session_id = (await opened(seller))["id"]
    await done(seller, f"/api/pull_sessions/{session_id}/{end}")
    for what in ("pulled", "defer", "unassign"):
        assert await refused(seller, step(session_id, order, what)) == (
            409,
            "pull_session_not_open",
        )
    assert await refused(seller, f"/api/pull_sessions/{session_id}/{other}") == (
        409,
        "pull_session_not_open",
    )
    # A dismissal later on leaves the ended session as it was.
    await done(seller, f"/api/orders/{order}/dismiss")
    assert await way(seller, session_id) == [order]


async def test_a_second_session_waits_for_the_first_to_end(a_seller):
    seller, other = await a_seller(), await a_seller()
    await an_order(seller)
    session_id = (await opened(seller))["id"]
    assert await refused(seller, "/api/pull_sessions") == (409, "pull_session_open")
    assert (await opened(other))["order_count"] == 0
    cancelled = await done(seller, f"/api/pull_sessions/{session_id}/cancel")
    assert (cancelled["status"], cancelled["completed_at"]) == ("cancelled", None)
    assert (await opened(seller))["order_count"] == 1


async def test_unknown_and_foreign_sessions_and_orders_are_not_found(a_seller):
    seller, other = await a_seller(), await a_seller()
    foreign = await an_order(other)
    foreign_session = (await opened(other))["id"]
    mine, left_out = await an_order(seller), await an_order(seller)
    session_id = (await opened(seller, order_ids=[mine]))["id"]
    gone = (404, "not_found")
    for unknown in (foreign_session, 10**9, 10**40):
        assert (await seller.get(f"/api/pull_sessions/{unknown}")).json()["code"] == "not_found"
        for what in (
            "complete",
            "cancel",
            f"orders/{mine}/pulled",
            f"orders/{mine}/defer",
            f"orders/{mine}/unassign",
        ):
            assert await refused(seller, f"/api/pull_sessions/{unknown}/{what}") == gone
    for unknown in (foreign, 10**9, 10**40):
        for what in ("pulled", "defer", "unassign"):
            assert await refused(seller, step(session_id, unknown, what)) == gone
        for what in ("dismiss", "undismiss", "mark_shipped"):
            assert await refused(seller, f"/api/orders/{unknown}/{what}") == gone
    for what in ("pulled", "defer"):
        assert await refused(seller, step(session_id, left_out, what)) == gone
    assert (await read(other, foreign_session))["order_count"] == 1
    assert len(await feed(seller)) == 1


async def test_of_many_that_open_at_once_one_does(a_seller):
    seller = await a_seller()
    for _ in range(3):
        await an_order(seller)
    answers = await asyncio.gather(*(seller.post("/api/pull_sessions") for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    assert [action for action, _ in await feed(seller)] == ["pull_session.opened"]


async def test_an_order_pulled_by_two_at_once_is_pulled_once(a_seller):
    seller = await a_seller()
    order = await an_order(seller)
    session_id = (await opened(seller))["id"]
    answers = await asyncio.gather(
        *(seller.post(step(session_id, order, "pulled")) for _ in range(4))
    )
    assert [(answer.status_code, answer.json()["pulled_count"]) for answer in answers] == [
        (200, 1)
    ] * 4
    assert len(await feed(seller)) == 2


@pytest.mark.parametrize("end", ["complete", "cancel"])
async def test_what_is_pulled_while_the_session_ends_is_in_its_count_or_refused(a_seller, end):
    seller = await a_seller()
    orders = [await an_order(seller) for _ in range(4)]
    session_id = (await opened(seller))["id"]
    paths = [step(session_id, order, "pulled") for order in orders]
    paths.insert(2, f"/api/pull_sessions/{session_id}/{end}")
    answers = await asyncio.gather(*map(seller.post, paths))
    assert answers[2].status_code == 200
    pulled = [answer for answer in answers[:2] + answers[3:] if answer.status_code == 200]
    late = [answer.json()["code"] for answer in answers if answer.status_code != 200]
    assert set(late) <= {"pull_session_not_open"}
    assert (
        answers[2].json()["pulled_count"]
        == len(pulled)
        == (await read(seller, session_id))["pulled_count"]
    )


async def test_an_order_dismissed_while_a_session_opens_is_in_none(a_seller):
    seller = await a_seller()
    for _ in range(5):
        order, other = await an_order(seller), await an_order(seller)
        answers = await asyncio.gather(
            seller.post("/api/pull_sessions"), seller.post(f"/api/orders/{order}/dismiss")
        )
        session_id = answers[0].json()["id"]
        found = await way(seller, session_id)
        assert order not in found
        assert other in found
        await done(seller, f"/api/pull_sessions/{session_id}/cancel")


async def test_orders_pushed_to_the_end_at_once_each_get_a_turn(a_seller):
    seller = await a_seller()
    orders = [await an_order(seller, order_date=date(2026, 11, n)) for n in (1, 2, 3, 4)]
    session_id = (await opened(seller))["id"]
    await asyncio.gather(*(seller.post(step(session_id, order, "defer")) for order in orders[:3]))
    assert (await way(seller, session_id))[0] == orders[3]
    turns = (
        "SELECT deferred_turn FROM pull_session_order"
        " WHERE seller_id = :id AND deferred_turn IS NOT NULL ORDER BY 1"
    )
    assert [
        row["deferred_turn"] for row in await seller.service.sql(seller.id, turns, id=seller.id)
    ] == [1, 2, 3]
