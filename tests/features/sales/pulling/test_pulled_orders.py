"""An order whose copies are pulled is to be shipped, and a card that was not found stays work until
somebody says what is done about it: over HTTP, at the desk and on phones.
"""

import asyncio
import itertools

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cards_builder import a_place, card_ids
from orders_builder import an_item, an_order, change_order

_marks = itertools.count(1)


@pytest.fixture
async def shop(a_seller):
    seller = await a_seller()
    rows = [a_row(n, name=f"Card {n}", quantity=5) for n in (1, 2)]
    rows.append(a_row(3, name="Card 1", number="1", quantity=1, condition="Lightly Played"))
    await seller.import_csv(a_csv(*rows))
    ids = await card_ids(seller)
    await a_place(seller, ids[1], 1, 4, 2)
    await a_place(seller, ids[1], 2, 7, 3)
    return seller


async def orders_with(seller, *names, number=1):
    """Orders with one card each. Returns their ids, and their items'."""
    ids = [await an_order(seller, total_amt=20, order_date=None) for _ in range(number)]
    return ids, [
        [await an_item(seller, id, sku_id=n, product_name=f"Card {n}", unit_price=7) for n in names]
        for id in ids
    ]


async def a_phone(owner, seller, session):
    body = {"session_id": session, "all_games": True}
    answer = await owner.post("/api/pull_links", json=body)
    assert answer.status_code == 201, answer.text
    [link] = answer.json()["links"]
    assert link["product_line"] is None
    path = link["url"][link["url"].index("/p/") :]
    http = seller.service.client()

    async def send(kind, item, **more):
        mark = {"id": f"of-phone-{next(_marks):04}", "kind": kind, "item_id": item, **more}
        body = {"device": "device-1", "person": "Joss", "marks": [mark]}
        answer = await http.post(f"{path}/marks", json=body)
        assert answer.status_code == 200, answer.text
        return mark["id"]

    return send


async def start(seller, ids=None):
    answer = await seller.post("/api/pull_sessions", json={"order_ids": ids} if ids else {})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def done(seller, path, **body):
    answer = await seller.post(path, json=body or None)
    assert answer.status_code == 200, (path, answer.text)
    return answer.json()


async def listed(seller, **query):
    answer = await seller.get("/api/orders", params=query)
    assert answer.status_code == 200, answer.text
    return sorted(order["id"] for order in answer.json()["orders"])


async def pulled(seller, session, *ids):
    for id in ids:
        await done(seller, f"/api/pull_sessions/{session}/orders/{id}/pulled")


async def work(owner):
    today = (await owner.get("/api/today")).json()
    kinds = {"orders_to_pull", "pull_under_way", "orders_to_ship", "cards_missing"}
    found = {one["kind"]: one["count"] for one in today["conditions"] if one["kind"] in kinds}
    return found, {name: today["to_ship"][name] for name in ("orders", "to_pull", "pulled")}


async def undo_last(owner, action):
    entries = (await owner.get("/api/v1/agent/activity", params={"action": action})).json()[
        "activity"
    ]
    answer = await owner.post(f"/api/v1/agent/activity/{entries[0]['id']}/undo")
    return answer.status_code


async def then(owner, path, **fields):
    """The page that a form leads to."""
    answer = await owner.form(path, **fields)
    assert answer.status_code == 303, answer.text
    return await owner.get(answer.headers["location"])


async def test_what_is_pulled_leaves_the_pulls_and_is_to_be_shipped(shop):
    owner = await signed_in(shop)
    ids, _ = await orders_with(shop, 1, number=3)
    session = await start(shop)
    await pulled(shop, session, *ids[:2])
    await done(shop, f"/api/pull_sessions/{session}/complete")
    assert await work(owner) == (
        {"orders_to_ship": 2, "orders_to_pull": 1},
        {"orders": 3, "to_pull": 1, "pulled": 2},
    )
    today = (await owner.get("/api/today")).json()
    [ship] = [one for one in today["conditions"] if one["kind"] == "orders_to_ship"]
    assert ship["next_step"]["label"] == "Ship 2 orders"
    page = await owner.get("/today")
    assert "Ship 2 orders" in page.text
    shown = await owner.get(ship["next_step"]["path"])
    assert shown.status_code == 200
    assert shown.text.count('name="order"') == 2
    assert await listed(shop, pull_session="pulled") == ids[:2]
    assert await listed(shop, pull_session="none") == [ids[2]]
    assert await listed(shop, state="to_ship") == ids
    [one] = [o for o in (await shop.get("/api/orders")).json()["orders"] if o["id"] == ids[0]]
    assert one["pulled_at"]
    # The next pull takes what is left alone.
    again = await start(shop)
    found = (await shop.get(f"/api/pull_sessions/{again}")).json()
    assert [order["id"] for order in found["orders"]] == [ids[2]]
    marked = await done(shop, "/api/orders/mark_shipped", order_ids=ids)
    assert marked == {"order_ids": ids, "left": 0, "missing": []}
    assert await listed(shop, state="to_ship") == []
    assert await listed(shop, state="on_the_way") == ids
    assert await done(shop, "/api/orders/mark_shipped", order_ids=ids) == {
        "order_ids": [],
        "left": 3,
        "missing": [],
    }
    assert await undo_last(owner, "order.many_marked_shipped") == 200
    assert await listed(shop, pull_session="pulled") == ids[:2]


async def test_an_order_is_pulled_again_if_its_seller_says_so(shop):
    owner = await signed_in(shop)
    [id], _ = await orders_with(shop, 1)
    session = await start(shop)
    await pulled(shop, session, id)
    await done(shop, f"/api/pull_sessions/{session}/complete")
    await done(shop, f"/api/orders/{id}/unmark_pulled")
    await done(shop, f"/api/orders/{id}/unmark_pulled")
    assert (await work(owner))[0] == {"orders_to_pull": 1}
    # In the open pull its copies are wanted again.
    session = await start(shop)
    send = await a_phone(owner, shop, session)
    [item] = [i["id"] for i in (await shop.get(f"/api/orders/{id}")).json()["items"]]
    await send("pulled", item)
    assert await listed(shop, pull_session="pulled") == [id]
    await done(shop, f"/api/orders/{id}/unmark_pulled")
    assert await listed(shop, pull_session="pulled") == []
    await send("pulled", item)
    assert await listed(shop, pull_session="pulled") == [id]


async def test_a_pull_that_is_given_up_leaves_its_orders_to_the_next(shop):
    ids, _ = await orders_with(shop, 1, number=2)
    session = await start(shop)
    await pulled(shop, session, *ids)
    await done(shop, f"/api/pull_sessions/{session}/cancel")
    assert await listed(shop, pull_session="none") == ids
    assert await listed(shop, pull_session="pulled") == []


async def test_the_end_of_a_pull_is_undone_until_another_begins(shop):
    owner = await signed_in(shop)
    ids, items = await orders_with(shop, 1, number=3)
    session = await start(shop)
    send = await a_phone(owner, shop, session)
    await pulled(shop, session, ids[0])
    await done(shop, f"/api/pull_sessions/{session}/complete")
    await done(shop, f"/api/orders/{ids[2]}/dismiss")
    assert await undo_last(owner, "pull_session.completed") == 200
    found = (await shop.get(f"/api/pull_sessions/{session}")).json()
    assert (found["status"], found["completed_at"]) == ("open", None)
    # What was set aside since is not in it, and the phone goes on.
    assert sorted(order["id"] for order in found["orders"]) == ids[:2]
    await send("pulled", items[1][0])
    assert await listed(shop, pull_session="pulled") == ids[:2]
    await done(shop, f"/api/pull_sessions/{session}/complete")
    await orders_with(shop, 1)
    await done(shop, f"/api/pull_sessions/{await start(shop)}/cancel")
    entries = (await owner.get("/api/v1/agent/activity")).json()["activity"]
    ended = [e for e in entries if e["action"] == "pull_session.completed"]
    answer = await owner.post(f"/api/v1/agent/activity/{ended[0]['id']}/undo")
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")


async def test_the_desk_asks_before_a_pull_with_copies_left_ends(shop):
    owner = await signed_in(shop)
    ids, _ = await orders_with(shop, 1, number=3)
    session = await start(shop)
    await pulled(shop, session, ids[0])
    page = await then(owner, f"/pulls/{session}/complete")
    assert "2 orders are not pulled" in page.text
    assert (await shop.get(f"/api/pull_sessions/{session}")).json()["status"] == "open"
    page = await then(owner, f"/pulls/{session}/complete", confirm="true")
    assert "1 order pulled" in page.text
    assert "Mark 1 shipped" in page.text
    assert (await shop.get(f"/api/pull_sessions/{session}")).json()["status"] == "completed"


async def missing(seller, **query):
    answer = await seller.get("/api/missing_cards", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["cards"]


@pytest.fixture
async def lost(shop):
    """An order of two cards, one of which a phone did not find, in a pull that has ended."""
    owner = await signed_in(shop)
    [id], [[first, second]] = await orders_with(shop, 1, 2)
    session = await start(shop)
    send = await a_phone(owner, shop, session)
    await send("pulled", second)
    await send("missing", first)
    return owner, session, id, first, send


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("outcome", ["found", "other_copy", "refund", "message"])
async def test_a_missing_card_is_work_until_a_way_out_is_chosen(shop, lost, outcome, ended):
    owner, session, id, item, _ = lost
    if ended:
        await done(shop, f"/api/pull_sessions/{session}/complete")
    [card] = await missing(shop)
    assert (card["order_id"], card["item_id"], card["missing_by"]) == (id, item, "Joss")
    assert (card["location_code"], card["unit_price"]) == ("1-4", "7.00")
    assert [(c["location_code"], c["same"]) for c in card["other_copies"]] == [
        ("2-7", True),
        (None, False),
    ]
    assert (await work(owner))[0].get("cards_missing") == 1
    assert await listed(shop, pull_session="missing") == [id]
    # It waits, and no other pull takes it.
    assert await listed(shop, pull_session="none") == []
    for page in (f"/pulls/{session}", f"/orders/{id}", "/pulls"):
        shown = (await owner.get(page)).text
        assert "Found it" in shown, page
        assert "Message buyer" in shown, page
    body = {"outcome": outcome} | ({"refund_amt": "7.00"} if outcome == "refund" else {})
    assert await done(shop, f"/api/orders/{id}/missing/{item}", **body) == {"cards": []}
    assert await done(shop, f"/api/orders/{id}/missing/{item}", **body) == {"cards": []}
    other = {"found": "message"}.get(outcome, "found")
    answer = await shop.post(f"/api/orders/{id}/missing/{item}", json={"outcome": other})
    assert (answer.status_code, answer.json()["code"]) == (409, "missing_settled")
    assert "cards_missing" not in (await work(owner))[0]
    assert await listed(shop, pull_session="pulled") == [id]
    assert await undo_last(owner, "order.missing_settled") == 200
    assert [c["item_id"] for c in await missing(shop)] == [item]
    assert await listed(shop, pull_session="pulled") == []


async def test_another_way_out_leaves_what_is_not_pulled_to_the_next_pull(shop):
    owner = await signed_in(shop)
    [id], [[first, _second]] = await orders_with(shop, 1, 2)
    session = await start(shop)
    send = await a_phone(owner, shop, session)
    await send("missing", first)
    await done(shop, f"/api/pull_sessions/{session}/complete")
    await done(shop, f"/api/orders/{id}/missing/{first}", outcome="found")
    assert await listed(shop, pull_session="none") == [id]
    assert await listed(shop, pull_session="pulled") == []


async def test_a_phone_that_takes_it_back_or_a_desk_that_has_all_ends_it(shop, lost):
    _, session, id, item, send = lost
    mark = await send("missing", item)
    await send("undo", item, undoes=mark)
    assert len(await missing(shop)) == 1
    await pulled(shop, session, id)
    assert await missing(shop) == []
    assert await listed(shop, pull_session="pulled") == [id]


async def test_a_settled_card_stays_settled_whatever_phones_send(shop, lost):
    _, _, id, item, send = lost
    await done(shop, f"/api/orders/{id}/missing/{item}", outcome="refund", refund_amt="7.00")
    await send("missing", item)
    assert await missing(shop) == []
    assert await listed(shop, pull_session="pulled") == [id]


async def test_a_canceled_order_misses_nothing_on_today(shop, lost):
    owner, _, id, _, _ = lost
    await change_order(shop, id, status="Canceled")
    assert "cards_missing" not in (await work(owner))[0]


async def test_an_order_with_a_missing_card_ships_only_if_its_seller_is_sure(shop, lost):
    _, _, id, item, _ = lost
    [other], _ = await orders_with(shop, 2)
    answer = await shop.post(f"/api/orders/{id}/mark_shipped")
    assert (answer.status_code, answer.json()["code"]) == (409, "card_missing")
    # In bulk the others ship, and this one is named.
    marked = await done(shop, "/api/orders/mark_shipped", order_ids=[other, id])
    assert marked == {"order_ids": [other], "left": 1, "missing": [id]}
    assert await listed(shop, state="to_ship") == [id]
    assert len(await missing(shop)) == 1
    marked = await done(shop, "/api/orders/mark_shipped", order_ids=[other, id], confirm=True)
    assert marked == {"order_ids": [id], "left": 1, "missing": []}
    # A mark that is set is no question.
    assert (await done(shop, f"/api/orders/{id}/mark_shipped"))["shipped_marked_at"]
    await done(shop, f"/api/orders/{id}/unmark_shipped")
    assert (await done(shop, f"/api/orders/{id}/mark_shipped?confirm=true"))["shipped_marked_at"]
    await done(shop, f"/api/orders/{id}/unmark_shipped")
    await done(shop, f"/api/orders/{id}/missing/{item}", outcome="message")
    assert (await done(shop, f"/api/orders/{id}/mark_shipped"))["shipped_marked_at"]


async def test_the_pages_ask_about_a_missing_card_before_they_ship(shop, lost):
    owner, session, id, item, _ = lost
    [other], _ = await orders_with(shop, 2)
    for path, fields in (
        (f"/orders/{id}/mark_shipped", {}),
        (f"/orders/{id}/mark_shipped", {"back": f"/orders?order={id}"}),
        ("/orders/mark_shipped", {"order": [str(id), str(other)], "back": f"/pulls/{session}"}),
    ):
        page = await then(owner, path, **fields)
        assert "1 card is missing" in page.text, path
        assert "Found it" in page.text
        assert "Mark shipped without it" in page.text
    assert "1 order marked shipped." in page.text
    assert await listed(shop, state="to_ship") == [id]
    where = f"/orders/ship?order={id}&back=%2Forders"
    page = await then(
        owner, f"/orders/{id}/missing/{item}", outcome="message", back=where, refund_amt=""
    )
    assert "1 order ready to ship" in page.text
    assert await undo_last(owner, "order.missing_settled") == 200
    sure = {"order": str(id), "confirm": "true", "back": f"/orders/{id}"}
    page = await then(owner, "/orders/mark_shipped", **sure)
    assert "1 order marked shipped." in page.text
    assert await listed(shop, state="on_the_way") == sorted([id, other])
    nobody = await owner.get("/orders/ship")
    assert "No orders selected" in nobody.text


async def test_two_who_ship_and_decide_at_once_ship_nothing_that_is_missing(shop, lost):
    """A missing card may be decided about between the question and the mark, and never after it."""
    _, _, id, item, _ = lost
    others, _ = await orders_with(shop, 2, number=3)
    ids = [*others, id]
    many = [shop.post("/api/orders/mark_shipped", json={"order_ids": ids}) for _ in range(2)]
    one = shop.post(f"/api/orders/{id}/mark_shipped")
    found = shop.post(f"/api/orders/{id}/missing/{item}", json={"outcome": "found"})
    *bulk, single, settled = await asyncio.gather(*many, one, found)
    assert settled.status_code == 200
    marked = [order for answer in bulk for order in answer.json()["order_ids"]]
    # Each of the whole orders was marked by one of the two.
    assert [order for order in sorted(marked) if order != id] == others
    assert single.status_code in (200, 409)
    by_single = single.status_code == 200 and id not in marked
    shipped = id in marked or by_single
    assert await listed(shop, state="to_ship") == ([] if shipped else [id])
    for answer in bulk:
        assert set(answer.json()["missing"]) <= {id}


async def test_two_people_who_decide_at_once_decide_once(shop, lost):
    _, _, id, item, _ = lost
    path = f"/api/orders/{id}/missing/{item}"
    ways = ("found", "message", "other_copy") * 2
    answers = await asyncio.gather(*(shop.post(path, json={"outcome": way}) for way in ways))
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [200, 200, 409, 409, 409, 409]


async def test_desk_and_phone_at_once_pull_an_order_once(shop):
    owner = await signed_in(shop)
    [id], [[first, second]] = await orders_with(shop, 1, 2)
    session = await start(shop)
    one, two = [await a_phone(owner, shop, session) for _ in range(2)]
    desk = shop.post(f"/api/pull_sessions/{session}/orders/{id}/pulled")
    end = shop.post(f"/api/pull_sessions/{session}/complete")
    await asyncio.gather(one("pulled", first), two("pulled", second), one("missing", second), desk)
    await end
    assert await listed(shop, pull_session="pulled") == [id]
    assert await missing(shop) == []


@pytest.mark.parametrize("given", ["0", "-1", "x", "1e9999"])
async def test_a_refund_that_is_no_amount_is_refused(shop, lost, given):
    _, _, id, item, _ = lost
    body = {"outcome": "refund", "refund_amt": given}
    answer = await shop.post(f"/api/orders/{id}/missing/{item}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert len(await missing(shop)) == 1


async def test_why_a_card_is_missing_is_told_at_the_desk_and_to_the_buyer(shop):
    owner = await signed_in(shop)
    [id], [items] = await orders_with(shop, 1, 2)
    session = await start(shop)
    send = await a_phone(owner, shop, session)
    await send("missing", items[0], reason="damaged")
    await send("missing", items[1], reason="other_card")
    # The first reason stays.
    await send("missing", items[0], reason="not_there")
    assert [card["reason"] for card in await missing(shop)] == ["damaged", "other_card"]
    page = (await owner.get(f"/orders/{id}")).text
    assert "Damaged, at 1-4" in page
    assert "Another card is there" in page
    assert "turned out to be damaged." in page
    assert page.count("find Card 2") == 1
    # The phone's form without a script says the same.
    [other], [[lost]] = await orders_with(shop, 2)
    await done(shop, f"/api/pull_sessions/{session}/complete")
    session = await start(shop)
    body = {"session_id": session, "all_games": True}
    [link] = (await owner.post("/api/pull_links", json=body)).json()["links"]
    phone = link["url"][link["url"].index("/p/") :]
    mark = {"kind": "missing", "item_id": lost, "id": "missing-form", "reason": "damaged"}
    http = shop.service.client()
    assert "Here, but damaged" in (await http.get(phone)).text
    assert (await http.post(phone, data=mark | {"reason": "none"})).status_code == 422
    assert (await http.post(phone, data=mark)).status_code == 303
    assert [card["reason"] for card in await missing(shop, order_id=other)] == ["damaged"]


async def test_the_copy_and_the_note_of_a_missing_card_stay_with_its_order(shop, lost):
    owner, _, id, item, _ = lost
    [card] = await missing(shop)
    page = (await owner.get(f"/orders/{id}")).text
    assert "Use the copy at 2-7" in page
    assert "LP" in page
    worse = card["other_copies"][1]
    assert worse["condition_label"] == "Lightly Played"
    way = f"/api/orders/{id}/missing/{item}"
    for refused in (
        {"outcome": "other_copy", "card_id": worse["card_id"], "location_code": "9-9"},
        {"outcome": "other_copy", "card_id": 2**40},
        {"outcome": "found", "card_id": worse["card_id"]},
        {"outcome": "refund", "note": "x" * 501},
    ):
        answer = await shop.post(way, json=refused)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), refused
    body = {"outcome": "other_copy", "card_id": worse["card_id"], "note": "Asked Ada first"}
    assert await done(shop, way, **body) == {"cards": []}
    assert await done(shop, way, **body) == {"cards": []}
    [settled] = (await shop.get(f"/api/orders/{id}")).json()["settled_cards"]
    assert settled.pop("settled_at")
    assert settled == {
        "item_id": item,
        "product_name": "Card 1",
        "condition": None,
        "reason": "not_there",
        "outcome": "other_copy",
        "refund_amt": None,
        "copy": "Lightly Played",
        "note": "Asked Ada first",
    }
    page = (await owner.get(f"/orders/{id}")).text
    assert "Asked Ada first" in page
    assert await undo_last(owner, "order.missing_settled") == 200
    assert (await shop.get(f"/api/orders/{id}")).json()["settled_cards"] == []


async def test_a_refund_is_noted_and_its_money_stays_at_the_marketplace(shop, lost):
    owner, _, id, item, _ = lost
    fields = {"outcome": "refund", "refund_amt": "7.00", "note": "Water on it"}
    page = await then(owner, f"/orders/{id}/missing/{item}", **fields)
    assert "Water on it" in page.text
    assert "TCGplayer shows no refund yet." in page.text
    order = (await shop.get(f"/api/orders/{id}")).json()
    assert order["refund_amt"] is None
    [settled] = order["settled_cards"]
    assert (settled["refund_amt"], settled["note"]) == ("7.00", "Water on it")
    # It is still to be shipped, and pulled.
    assert await listed(shop, pull_session="pulled") == [id]
    await change_order(shop, id, refund_amt=7, refund_type="Partial")
    page = await owner.get(f"/orders/{id}")
    assert "TCGplayer shows no refund yet." not in page.text


async def test_an_order_says_how_much_of_it_is_pulled_while_a_pull_is_under_way(shop):
    owner = await signed_in(shop)
    [id, rest], [[first, second], _] = await orders_with(shop, 1, 2, number=2)
    more = await an_item(shop, id, sku_id=3, product_name="Card 1", quantity=5)
    session = await start(shop)
    send = await a_phone(owner, shop, session)

    async def told(order):
        one = (await shop.get(f"/api/orders/{order}")).json()
        [row] = [o for o in (await shop.get("/api/orders")).json()["orders"] if o["id"] == order]
        found = [(o["copies_pulled"], o["copies_to_pull"]) for o in (one, row)]
        assert found[0] == found[1]
        return found[0]

    assert await told(id) == (0, 7)
    await send("pulled", first)
    mark = await send("pulled", more, quantity=3)
    await send("pulled", first)  # one more than the order wants
    assert await told(id) == (4, 7)
    assert await told(rest) == (0, 2)
    for page in ("/orders", f"/orders/{id}", f"/orders?order={id}"):
        assert "Pulled 4 of 7" in " ".join((await owner.get(page)).text.split()), page
    await send("undo", more, undoes=mark)
    assert await told(id) == (1, 7)
    await send("pulled", more, quantity=5)
    await send("pulled", second)
    assert await told(id) == (7, 7)
    assert "Pulled 7 of 7" not in (await owner.get("/orders")).text
    await done(shop, f"/api/pull_sessions/{session}/complete")
    assert await told(id) == (None, None)
