"""Cycle counts: which boxes to count, counting one, and settling what was seen; the marketplace's
quantity never changes.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop, undo_newest
from cards_builder import card_ids, on_shelf
from cardsync.stock.shelving.count_scores import BoxFacts, suggestions
from orders_builder import an_item, an_order

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
async def shop(a_seller):
    """A seller with three cards, three of each on hand, in box 1; the owner's browser; ids."""
    seller = await a_shop(
        a_seller, *(a_row(number, quantity=3, price="2.00") for number in (1, 2, 3))
    )
    browser, ids = await signed_in(seller), await card_ids(seller)
    for number in (1, 2, 3):
        body = {"card_id": ids[number], "box": 1, "slot": number, "quantity": 3}
        assert (await browser.post("/api/shelves/put", json=body)).status_code == 200
    return seller, browser, ids


async def begun(browser, box=1, **body):
    answer = await browser.post("/api/counts", json={"box": box, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def seen(browser, count, *cards):
    told = [dict(zip(("card_id", "slot", "quantity"), card, strict=True)) for card in cards]
    return await browser.post(f"/api/counts/{count['id']}/seen", json={"cards": told})


async def settled(browser, count, **body):
    answer = await browser.post(f"/api/counts/{count['id']}/settle", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_count_corrects_the_places_and_not_what_is_on_hand(shop):
    seller, browser, ids = shop
    before = await seller.cards()
    count = await begun(browser)
    assert (count["state"], count["lines"], count["trust"]) == ("open", 3, None)
    told = await seen(browser, count, (ids[1], 1, 3), (ids[2], 2, 1), (ids[1], 9, 2))
    assert told.status_code == 200, told.text
    again = await seen(browser, count, (ids[1], 1, 3), (ids[2], 2, 1), (ids[1], 9, 2))
    assert again.json() == told.json()
    done = await settled(browser, count)
    counted = {name: done[name] for name in ("lines", "correct", "wrong", "moved", "unseen")}
    assert counted == {"lines": 4, "correct": 1, "wrong": 2, "moved": 0, "unseen": 1}
    assert (done["state"], done["trust"]) == ("settled", 0.3333)
    assert await on_shelf(browser) == {
        (ids[1], 1): 3, (ids[1], 9): 2, (ids[2], 2): 1, (ids[3], 3): 3,
    }  # fmt: skip
    assert await seller.cards() == before
    full = (await browser.get(f"/api/counts/{count['id']}")).json()
    assert [(line["code"], line["outcome"], line["drift"], line["unshelved_quantity"])
            for line in full["cards"]] == [
        ("1-1", "correct", True, 0), ("1-2", "wrong", False, 2), ("1-3", "unseen", False, 0),
        ("1-9", "wrong", True, 0),
    ]  # fmt: skip


async def test_unseen_lines_are_missing_if_the_counter_says_so_and_all_is_undone(shop):
    seller, browser, ids = shop
    before = await on_shelf(browser)
    count = await begun(browser)
    await seen(browser, count, (ids[1], 1, 3))
    done = await settled(browser, count, unseen="missing")
    assert (done["correct"], done["wrong"], done["unseen"]) == (1, 2, 0)
    assert await on_shelf(browser) == {(ids[1], 1): 3}
    assert (await undo_newest(seller, "shelf.count_settled")).status_code == 200
    assert await on_shelf(browser) == before
    assert (await browser.get(f"/api/counts/{count['id']}")).json()["state"] == "undone"


async def test_a_correction_that_was_changed_since_is_not_undone(shop):
    seller, browser, ids = shop
    count = await begun(browser)
    await seen(browser, count, (ids[1], 1, 1))
    await settled(browser, count)
    body = {"card_id": ids[1], "box": 1, "slot": 1, "quantity": 1}
    await browser.post("/api/shelves/put", json=body)
    answer = await undo_newest(seller, "shelf.count_settled")
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")
    assert "1 places of box 1 changed in the meantime" in answer.json()["error"]


async def test_a_place_that_changed_meanwhile_is_left_alone(shop):
    _, browser, ids = shop
    count = await begun(browser)
    await browser.post("/api/shelves/remove", json={"card_id": ids[1], "box": 1, "slot": 1,
                                                    "quantity": 1})  # fmt: skip
    await seen(browser, count, (ids[1], 1, 3))
    done = await settled(browser, count)
    assert (done["moved"], done["wrong"], done["unseen"]) == (1, 0, 2)
    assert (await on_shelf(browser))[ids[1], 1] == 2


async def test_a_box_has_one_open_count_and_an_ended_one_takes_nothing_more(shop):
    seller, browser, ids = shop
    staff = await joined(seller, f"staff-{seller.email}")
    answers = await asyncio.gather(
        browser.post("/api/counts", json={"box": 1}),
        staff.post("/api/counts", json={"box": 1, "slot": 1}),
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    [refused] = [answer for answer in answers if answer.status_code == 409]
    assert refused.json()["code"] == "count_open"
    [count] = (await staff.get("/api/counts")).json()["counts"]
    assert (await staff.post(f"/api/counts/{count['id']}/cancel")).json()["state"] == "cancelled"
    for what in ("settle", "cancel"):
        answer = await staff.post(f"/api/counts/{count['id']}/{what}", json={})
        assert (answer.status_code, answer.json()["code"]) == (409, "count_not_open")
    assert (await seen(staff, count, (ids[1], 1, 1))).status_code == 409


async def test_a_slot_is_counted_alone_and_what_is_not_there_is_refused(shop):
    _, browser, ids = shop
    count = await begun(browser, slot=2)
    assert (count["slot"], count["lines"]) == (2, 1)
    other = await seen(browser, count, (ids[1], 1, 1))
    assert other.status_code == 422
    assert "slot: this is a count of 1-2" in other.json()["error"]
    unknown = await seen(browser, count, (999_999_999, 2, 1))
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert (await seen(browser, count, (ids[1], 2, -1))).status_code == 422
    assert (await browser.get("/api/counts/999999")).status_code == 404
    assert (await seen(browser, count, (ids[2], 2, 0))).status_code == 200
    await settled(browser, count)
    assert (ids[2], 2) not in await on_shelf(browser)


async def test_boxes_are_suggested_by_value_time_and_drops_without_a_sale(shop):
    seller, browser, ids = shop
    for box, number in ((2, 1), (3, 2)):
        body = {"card_id": ids[number], "box": box, "slot": 1, "quantity": 3}
        await browser.post("/api/shelves/put", json=body)
    order = await an_order(seller, order_date=date.today())
    await an_item(seller, order, sku_id=1, quantity=3)
    found = (await browser.get("/api/counts/suggested")).json()["boxes"]
    facts = {box["box"]: (box["cards"], box["value"], box["dropped"]) for box in found}
    # The pieces of card 1 in two places are explained by the sale, those of card 2 are not.
    assert facts == {1: (3, "18.00", 3), 2: (1, "6.00", 0), 3: (1, "6.00", 3)}
    assert [box["box"] for box in found] == [1, 3, 2]
    assert found[1]["reasons"] == [
        "Holds $6.00 worth of cards.",
        "The box has never been counted.",
        "3 copies are missing from TCGplayer without a sale.",
    ]
    await settled(browser, await begun(browser))
    again = (await browser.get("/api/counts/suggested?limit=2")).json()["boxes"]
    assert [box["box"] for box in again] == [3, 2]


def test_a_score_grows_with_value_time_and_drops():
    def facts(box, value=10_000, dropped=0, days=10):
        at = None if days is None else NOW - timedelta(days=days)
        return BoxFacts(box, 1, 1, value, dropped, at)

    boxes = [facts(1), facts(2, value=20_000), facts(3, dropped=2), facts(4, days=None)]
    found = suggestions(boxes, NOW, with_value=True)
    assert [(each.box, each.score) for each in found] == [
        (4, "365.00"),
        (3, "30.00"),
        (2, "20.00"),
        (1, "10.00"),
    ]
    [today] = suggestions([facts(1, days=0)], NOW, with_value=True)
    assert today.reasons[1] == "The box was counted today."


async def test_a_key_counts_nothing(a_seller):
    seller = await a_seller()
    answer = await seller.post("/api/counts", json={"box": 1})
    assert (answer.status_code, answer.json()["code"]) == (403, "session_required")
