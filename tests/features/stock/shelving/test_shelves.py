"""The shelves: cards put into slots, moved and taken out by members; how many are on hand never
changes.
"""

import asyncio

import pytest
from sqlalchemy import text

from browsers import Browser, joined, signed_in
from builders import Seller, a_csv, a_row, a_shop
from cards_builder import card_ids, found
from cardsync.platform.database.locks import Lock, locked
from orders_builder import an_item, an_order


@pytest.fixture
async def shop(a_seller) -> tuple[Seller, Browser, dict[int, int]]:
    """A seller with three cards, three of each on hand; its owner's browser; row ids by
    marketplace id.
    """
    seller = await a_shop(a_seller, *(a_row(number, quantity=3) for number in (1, 2, 3)))
    return seller, await signed_in(seller), await card_ids(seller)


async def put(browser: Browser, card_id: int, box: int, slot: int, quantity: int = 1):
    return await browser.post(
        "/api/shelves/put",
        json={"card_id": card_id, "box": box, "slot": slot, "quantity": quantity},
    )


def at(box: int, slot: int) -> dict[str, int]:
    return {"box": box, "slot": slot}


def locations(answer) -> dict[str, int]:
    assert answer.status_code == 200, answer.text
    return {place["code"]: place["quantity"] for place in answer.json()["locations"]}


async def lying(seller: Seller) -> dict[tuple[int, str], int]:
    rows = await seller.service.sql(
        seller.id, "SELECT * FROM card_location WHERE seller_id = :id", id=seller.id
    )
    return {(row["card_id"], f"{row['box']}-{row['slot']}"): row["quantity"] for row in rows}


@pytest.mark.night
async def test_a_card_lies_in_several_slots_with_quantities(shop):
    seller, browser, ids = shop
    await put(browser, ids[1], 10, 1, 1)
    answer = await put(browser, ids[1], 2, 7, 1)
    assert answer.json() == {
        "card_id": ids[1],
        "locations": [
            {"box": 2, "slot": 7, "code": "2-7", "quantity": 1},
            {"box": 10, "slot": 1, "code": "10-1", "quantity": 1},
        ],
        "location_code": "2-7",
        "unshelved_quantity": 1,
        "drift": False,
    }
    assert locations(await put(browser, ids[1], 2, 7, 1)) == {"2-7": 2, "10-1": 1}
    [card] = [c for c in (await seller.get("/api/cards")).json()["cards"] if c["id"] == ids[1]]
    assert (card["location_code"], card["unshelved_quantity"], card["quantity"]) == ("2-7", 0, 3)


@pytest.mark.night
async def test_more_than_are_on_hand_is_drift_and_changes_no_quantity(shop):
    seller, browser, ids = shop
    before = await seller.cards()
    answer = await put(browser, ids[1], 1, 1, 4)
    assert (answer.json()["drift"], answer.json()["unshelved_quantity"]) == (True, 0)
    assert await found(seller, "is:location-drift") == [1]
    assert await found(seller, "is:unshelved") == [2, 3]
    assert await seller.cards() == before


@pytest.mark.night
async def test_moving_all_or_some(shop):
    _, browser, ids = shop
    await put(browser, ids[1], 1, 1, 3)
    some = {"card_id": ids[1], "from": at(1, 1), "to": at(2, 2), "quantity": 1}
    assert locations(await browser.post("/api/shelves/move", json=some)) == {"1-1": 2, "2-2": 1}
    rest = {"card_id": ids[1], "from": at(1, 1), "to": at(2, 2)}
    assert locations(await browser.post("/api/shelves/move", json=rest)) == {"2-2": 3}
    nowhere = {"card_id": ids[1], "from": at(2, 2), "to": at(2, 2)}
    assert locations(await browser.post("/api/shelves/move", json=nowhere)) == {"2-2": 3}


@pytest.mark.night
async def test_removing_all_or_some(shop):
    _, browser, ids = shop
    await put(browser, ids[1], 1, 1, 3)
    some = {"card_id": ids[1], **at(1, 1), "quantity": 2}
    assert locations(await browser.post("/api/shelves/remove", json=some)) == {"1-1": 1}
    assert (
        locations(await browser.post("/api/shelves/remove", json={"card_id": ids[1], **at(1, 1)}))
        == {}
    )


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("remove", {**at(1, 2)}, (404, "not_found")),
        ("remove", {**at(1, 1), "quantity": 4}, (422, "invalid_payload")),
        ("move", {"from": at(1, 2), "to": at(1, 3)}, (404, "not_found")),
        ("move", {"from": at(1, 1), "to": at(1, 3), "quantity": 4}, (422, "invalid_payload")),
        ("put", {**at(1, 1), "quantity": 1_000_000}, (422, "invalid_payload")),
        ("put", {**at(1, 1), "quantity": 0}, (422, "invalid_payload")),
        ("put", {**at(1, 1), "quantity": 1_000_001}, (422, "invalid_payload")),
        ("put", {**at(0, 1), "quantity": 1}, (422, "invalid_payload")),
        ("put", {**at(1, 1_000_001), "quantity": 1}, (422, "invalid_payload")),
        ("put", {"box": 1, "quantity": 1}, (422, "invalid_payload")),
    ],
)
@pytest.mark.night
async def test_what_cannot_be_is_refused_and_changes_nothing(shop, path, body, expected):
    seller, browser, ids = shop
    await put(browser, ids[1], 1, 1, 3)
    answer = await browser.post(f"/api/shelves/{path}", json={"card_id": ids[1], **body})
    assert (answer.status_code, answer.json()["code"]) == expected
    assert await lying(seller) == {(ids[1], "1-1"): 3}


@pytest.mark.parametrize("whose", ["another's", "nobody's"])
async def test_a_card_of_another_seller_is_not_found(shop, a_seller, whose):
    _, browser, ids = shop
    stranger = await signed_in(await a_seller())
    card = ids[1] if whose == "another's" else 2**62
    caller = stranger if whose == "another's" else browser
    bodies = {
        "put": {"card_id": card, **at(1, 1), "quantity": 1},
        "move": {"card_id": card, "from": at(1, 1), "to": at(1, 2)},
        "remove": {"card_id": card, **at(1, 1)},
    }
    for path, body in bodies.items():
        answer = await caller.post(f"/api/shelves/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert f"card {card}" in answer.json()["error"]


@pytest.mark.night
async def test_the_shelves_and_a_box_are_read_in_the_order_of_the_way(shop):
    _, browser, ids = shop
    for card, box, slot, quantity in ((1, 10, 2, 1), (1, 9, 1, 1), (2, 10, 10, 2), (3, 10, 2, 5)):
        await put(browser, ids[card], box, slot, quantity)
    assert (await browser.get("/api/shelves")).json() == {
        "boxes": [
            {"box": 9, "slots": 1, "cards": 1, "quantity": 1},
            {"box": 10, "slots": 2, "cards": 3, "quantity": 8},
        ]
    }
    page = (await browser.get("/api/shelves/10")).json()
    told = [
        (card["code"], card["card_id"], card["quantity"], card["drift"]) for card in page["cards"]
    ]
    assert told == [
        ("10-2", ids[1], 1, False),
        ("10-2", ids[3], 5, True),
        ("10-10", ids[2], 2, False),
    ]
    assert {name: page[name] for name in page if name != "cards"} == {
        "box": 10, "total": 3, "page": 1, "per_page": 100, "total_pages": 1,
    }  # fmt: skip
    second = (await browser.get("/api/shelves/10", params={"page": 2, "per_page": 2})).json()
    assert ([card["card_id"] for card in second["cards"]], second["total_pages"]) == ([ids[2]], 2)
    assert (await browser.get("/api/shelves/11")).json()["cards"] == []
    assert (await browser.get(f"/api/shelves/{10**11}")).json()["total"] == 0
    assert (await browser.get(f"/api/shelves/{10**30}")).status_code == 422
    assert (await browser.get("/api/shelves/10", params={"per_page": 501})).status_code == 422
    none = (await browser.get("/api/shelves/red")).json()
    assert (none["box"], none["cards"]) == ("red", [])


async def test_each_seller_has_shelves_of_its_own(shop, a_seller):
    _, browser, ids = shop
    await put(browser, ids[1], 1, 1)
    stranger = await signed_in(await a_seller())
    assert (await stranger.get("/api/shelves")).json() == {"boxes": []}
    assert (await stranger.get("/api/shelves/1")).json()["total"] == 0


@pytest.mark.night
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/1"),
        ("POST", "/put"),
        ("POST", "/put_many"),
        ("POST", "/move"),
        ("POST", "/remove"),
    ],
)
async def test_keys_have_no_business_here(shop, method, path):
    seller, _, _ = shop
    answer = await seller.http.request(method, f"/api/shelves{path}")
    assert (answer.status_code, answer.json()["code"]) == (403, "session_required")


async def test_staff_shelves_too(shop):
    seller, _, ids = shop
    bea = await joined(seller, f"bea-{seller.email}")
    assert (await put(bea, ids[1], 1, 1)).status_code == 200
    query = "SELECT actor, summary FROM activity WHERE seller_id = :id AND action = 'shelf.put'"
    [told] = await seller.service.sql(seller.id, query, id=seller.id)
    assert told["actor"] == f"member {bea.member_id}"
    assert told["summary"].startswith("1 copy of ")


async def test_what_many_do_at_once_adds_up(shop):
    seller, browser, ids = shop
    await asyncio.gather(*(put(browser, ids[1], 1, 1) for _ in range(8)))
    there = {"card_id": ids[1], "from": at(1, 1), "to": at(1, 2), "quantity": 1}
    back = {"card_id": ids[1], "from": at(1, 2), "to": at(1, 1), "quantity": 1}
    told = await asyncio.gather(
        *(browser.post("/api/shelves/move", json=there if n % 2 else back) for n in range(12)),
        *(
            browser.post("/api/shelves/remove", json={"card_id": ids[1], **at(1, 1), "quantity": 1})
            for _ in range(3)
        ),
    )
    assert {answer.status_code for answer in told} <= {200, 404}
    assert [answer.status_code for answer in told[12:]] == [200, 200, 200]
    assert sum((await lying(seller)).values()) == 5


async def put_many(browser: Browser, **body):
    answer = await browser.post(
        "/api/shelves/put_many", json={"box": 5, "start_slot": 2, "per_slot": 4, **body}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.night
async def test_many_are_put_slot_by_slot_and_the_same_again_puts_nothing(shop):
    seller, browser, ids = shop
    await put(browser, ids[2], 1, 1, 1)
    told = await put_many(browser, card_ids=[ids[3], ids[1], ids[2]])
    assert told == {
        "cards": 3,
        "quantity": 8,
        "requested": 3,
        "truncated": False,
        "first": "5-2",
        "last": "5-3",
    }
    laid = {
        (ids[3], "5-2"): 3,
        (ids[1], "5-2"): 1,
        (ids[1], "5-3"): 2,
        (ids[2], "5-3"): 2,
        (ids[2], "1-1"): 1,
    }
    assert await lying(seller) == laid
    again = await put_many(browser, card_ids=[ids[3], ids[1], ids[2]])
    assert again == {
        "cards": 0,
        "quantity": 0,
        "requested": 3,
        "truncated": False,
        "first": None,
        "last": None,
    }
    assert await lying(seller) == laid
    assert await found(seller, "is:unshelved or is:location-drift") == []


async def undo_newest(browser: Browser):
    """Undo the newest entry of the feed that can be undone."""
    entries = (await browser.get("/api/v1/agent/activity")).json()["activity"]
    newest = next(entry for entry in entries if entry["undoable"])
    return await browser.post(f"/api/v1/agent/activity/{newest['id']}/undo")


async def test_what_was_put_moved_and_taken_out_is_undone_step_by_step(shop):
    seller, browser, ids = shop
    states = [await lying(seller)]
    await put(browser, ids[2], 5, 3, 1)
    states.append(await lying(seller))
    await put_many(browser, card_ids=[ids[3], ids[1], ids[2]])
    states.append(await lying(seller))
    body = {"card_id": ids[1], "from": at(5, 2), "to": at(9, 9)}
    assert (await browser.post("/api/shelves/move", json=body)).status_code == 200
    states.append(await lying(seller))
    body = {"card_id": ids[3], "box": 5, "slot": 2, "quantity": 2}
    assert (await browser.post("/api/shelves/remove", json=body)).status_code == 200
    for before in states[::-1]:
        answer = await undo_newest(browser)
        assert answer.status_code == 200, answer.text
        assert await lying(seller) == before


async def test_pieces_that_went_elsewhere_since_are_not_taken_back(shop):
    seller, browser, ids = shop
    told = await put_many(browser, card_ids=[ids[1]])
    assert told["quantity"] == 3
    entries = (await browser.get("/api/v1/agent/activity")).json()["activity"]
    body = {"card_id": ids[1], "box": 5, "slot": 2, "quantity": 1}
    await browser.post("/api/shelves/remove", json=body)
    answer = await browser.post(f"/api/v1/agent/activity/{entries[0]['id']}/undo")
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")
    assert await lying(seller) == {(ids[1], "5-2"): 2}


@pytest.mark.night
async def test_a_search_selects_what_is_put(shop):
    seller, browser, ids = shop
    told = await put_many(
        browser, search="is:unshelved", selected_ids=[ids[1], ids[2]], per_slot=1, start_slot=1
    )
    assert (told["cards"], told["quantity"], told["first"], told["last"]) == (2, 6, "5-1", "5-6")
    assert await found(seller, "is:unshelved") == [3]
    by_sku = await put_many(browser, marketplace_ids=[3, 99], start_slot=1)
    assert (by_sku["cards"], by_sku["requested"]) == (1, 1)


@pytest.mark.night
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"search": " "},
        {"search": "is:nonsense"},
        {"search": "card", "per_slot": 0},
        {"search": "card", "box": 0},
    ],
)
async def test_a_selection_of_nothing_puts_nothing(shop, body):
    seller, browser, _ = shop
    answer = await browser.post(
        "/api/shelves/put_many", json={"box": 5, "start_slot": 2, "per_slot": 4, **body}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert await lying(seller) == {}


@pytest.mark.night
async def test_where_there_is_no_room_the_rest_is_told(shop):
    _, browser, ids = shop
    body = {"card_ids": list(ids.values()), "start_slot": 1_000_000}
    told = await put_many(browser, **body, per_slot=3)
    assert (told["cards"], told["truncated"], told["last"]) == (1, True, "5-1000000")
    answer = await browser.post("/api/shelves/put_many", json={"box": 5, "per_slot": 1, **body})
    assert answer.status_code == 422


async def test_two_who_put_the_same_at_once_put_it_once(shop):
    seller, browser, _ = shop
    told = await asyncio.gather(*(put_many(browser, search="card") for _ in range(4)))
    assert sorted(done["quantity"] for done in told) == [0, 0, 0, 9]
    assert sum((await lying(seller)).values()) == 9


@pytest.mark.night
async def test_putting_many_and_putting_one_at_once_take_turns(shop):
    """In either order the card that is put by hand is there, and `put_many` takes the cards that
    then are on no shelf.
    """
    seller, browser, ids = shop
    for turn in range(4):
        by_hand = [put(browser, ids[1], 9, 9, 1) for _ in range(2)]
        told = await asyncio.gather(
            *by_hand[: turn % 3], put_many(browser, search="card"), *by_hand[turn % 3 :]
        )
        many = told.pop(turn % 3)
        assert {answer.status_code for answer in told} == {200}
        laid = await lying(seller)
        assert laid[ids[1], "9-9"] == 2
        before = 9 - many["quantity"]
        # How many of the two had been put before: none of those is put again.
        assert before in (0, 1, 2)
        assert sum(laid.values()) == 2 + many["quantity"] == 11 - before
        assert sum(n for (card_id, _), n in laid.items() if card_id == ids[1]) == 2 + 3 - before
        for card_id, code in laid:
            box, slot = map(int, code.split("-"))
            await browser.post("/api/shelves/remove", json={"card_id": card_id, **at(box, slot)})
        assert await lying(seller) == {}


@pytest.mark.night
async def test_many_are_put_after_who_is_still_putting_one(shop):
    seller, browser, ids = shop
    async with seller.service.database.tenant(seller.id) as session:
        await locked(session, Lock.SHOP, seller.id)
        by_hand = text("INSERT INTO card_location VALUES (:seller, :card, 9, 9, 3)")
        await session.execute(by_hand, {"seller": seller.id, "card": ids[1]})
        many = asyncio.create_task(put_many(browser, search="card"))
        # Long enough for one that would not wait.
        await asyncio.wait([many], timeout=0.5)
    assert (await many)["quantity"] == 6
    assert (await lying(seller))[ids[1], "9-9"] == sum((await lying(seller)).values()) - 6 == 3


@pytest.mark.night
async def test_a_gone_card_keeps_its_place_and_is_drift(shop):
    seller, browser, ids = shop
    await put(browser, ids[1], 4, 4, 3)
    await seller.import_csv(a_csv(a_row(1, quantity=0), a_row(2, quantity=3), a_row(3, quantity=3)))
    [card] = (await browser.get("/api/shelves/4")).json()["cards"]
    assert (card["card_id"], card["on_hand"], card["drift"]) == (ids[1], 0, True)


@pytest.mark.night
async def test_orders_are_pulled_along_the_shelves(shop):
    seller, browser, ids = shop
    far = await an_order(seller, order_date="2026-11-01")
    near = await an_order(seller, order_date="2026-11-02")
    unshelved = await an_order(seller, order_date="2026-10-01")
    await an_item(seller, far, sku_id=1)
    await an_item(seller, near, sku_id=2)
    await an_item(seller, unshelved, sku_id=3)
    await put(browser, ids[1], 10, 1)
    await put(browser, ids[2], 9, 30)
    await put(browser, ids[2], 11, 1)
    opened = await browser.post("/api/pull_sessions")
    read = await browser.get(f"/api/pull_sessions/{opened.json()['id']}")
    assert [(order["id"],
             order["items"][0]["location_code"]) for order in read.json()["orders"]] == [
        (near, "9-30"), (far, "10-1"), (unshelved, None),
    ]  # fmt: skip
