"""A price that somebody typed is shown, searched and exported from the same moment on: the API's
card and explanation, the row, the drawer and the card's page say the same, through runs that come
after it or write at the same time, and its undo puts all back.
"""

from __future__ import annotations

import asyncio

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop
from cards_builder import card_ids, explained, found
from cardsync.prices.runs.reprice import work_off_one
from rollbacks_builder import a_rule, repriced
from stopped_workers import stopped
from world import exported, targets


@pytest.fixture
async def seller(a_seller):
    """Two cards at 4.00 for which the rules ask 4.95."""
    rows = [a_row(n, market="5.00", price="4.00", name=f"Card {n}") for n in (1, 2)]
    return await a_shop(a_seller, *rows)


async def in_file(seller):
    """The prices of the file that the marketplace gets."""
    return {number: float(price) for number, price in (await exported(seller)).items()}


async def said(browser, number, id):
    """What the API's card and explanation, its row, its drawer and its page say of a card."""
    card = (await browser.get(f"/api/cards/{id}")).json()
    why = (await browser.get(f"/api/v1/pricing/explain/{number}")).json()
    row = (await browser.get("/cards/more", params={"ids": id})).text
    drawer = (await browser.get("/cards/peek", params={"card": id})).text
    page = (await browser.get(f"/cards/{id}")).text
    assert card["target_price"] == why["target_price"]
    assert card["pinned_price"] == (why["pin"] and why["pin"]["price"])
    return card, why, row, drawer, page


async def is_pinned(browser, number, id, price, by="You"):
    card, why, row, drawer, page = await said(browser, number, id)
    assert (card["target_price"], card["pinned_price"]) == (price, price)
    assert (why["stale"], why["blockers"], why["steps"]) == (None, [], [])
    badge = f'title="Pinned at ${price}'
    for shown in (row, drawer, page):
        assert badge in shown
        assert f"${price}" in shown
    for shown in (drawer, page):
        assert f'<bdi>{by}</bdi> pinned <span class="money">${price}</span>' in shown
        assert "It goes live with the next sync." in shown
        assert "No rule prices this card" not in shown
    assert "/cards/unpin" in drawer
    assert "Pin at" not in drawer
    # The values from which the menu of the rows is filled.
    assert 'data-act="unpin"' in row
    assert 'data-act="pin"' not in row


async def is_free(browser, number, id, target="4.95"):
    card, why, row, drawer, page = await said(browser, number, id)
    assert (card["target_price"], card["pinned_price"], why["pin"]) == (target, None, None)
    assert why["steps"]
    for shown in (row, drawer, page):
        assert "Pinned at $" not in shown
    assert "/cards/unpin" not in drawer
    assert "Pin at $4.00" in drawer
    assert 'data-act="pin" data-price="$4.00"' in row


async def test_a_price_typed_in_its_cell_is_what_all_pages_show_until_it_is_undone(seller):
    browser, ids = await signed_in(seller), await card_ids(seller)
    await is_free(browser, 1, ids[1])
    back = f"/cards/more?ids={ids[1]}"
    answer = await browser.form(f"/cards/{ids[1]}/pin", price="299", back=back)
    row = await browser.get(answer.headers["location"])
    assert "Pinned at $299.00. It goes live with the next sync." in row.text
    await is_pinned(browser, 1, ids[1], "299.00")
    assert await found(seller, "target>200") == [1]
    assert await found(seller, "is:pinned") == [1]
    assert await in_file(seller) == {1: 299, 2: 4.95}
    await repriced(seller)
    await is_pinned(browser, 1, ids[1], "299.00")
    await seller.import_csv(a_csv(*(a_row(n, market="5.00", price="4.00") for n in (1, 2))))
    await is_pinned(browser, 1, ids[1], "299.00")
    newest = (
        await browser.get("/api/v1/agent/activity", params={"action": "pricing.pinned"})
    ).json()
    entry = newest["activity"][0]["id"]
    assert (await browser.post(f"/api/v1/agent/activity/{entry}/undo")).status_code == 200
    await is_free(browser, 1, ids[1])
    assert await in_file(seller) == {1: 4.95, 2: 4.95}


async def test_many_pinned_and_unpinned_show_it_too(seller):
    browser, ids = await signed_in(seller), await card_ids(seller)
    await browser.form("/cards/pin", scope="all", search="")
    assert await targets(seller) == {1: "4.0000", 2: "4.0000"}
    assert await in_file(seller) == {}
    await browser.form("/cards/unpin", card_id=str(ids[1]))
    await is_free(browser, 1, ids[1])
    assert await targets(seller) == {1: "4.9500", 2: "4.0000"}


async def test_another_member_and_another_tab_see_who_typed_it(seller):
    owner, ids = await signed_in(seller), await card_ids(seller)
    other = await joined(seller, "other@example.invalid", role="owner", name="Bea")
    assert (await other.form(f"/cards/{ids[1]}/pin", price="6.50")).status_code == 303
    await is_pinned(owner, 1, ids[1], "6.50", by="Bea")
    await is_pinned(other, 1, ids[1], "6.50")
    both = [
        browser.form(f"/cards/{ids[2]}/pin", price=price)
        for browser, price in ((owner, "7.00"), (other, "8.00"))
    ]
    assert [answer.status_code for answer in await asyncio.gather(*both)] == [303, 303]
    card, why, *_ = await said(owner, 2, ids[2])
    assert card["target_price"] == why["pin"]["price"] in ("7.00", "8.00")


async def test_a_promotion_that_ends_takes_no_pin_along(seller):
    ids = await card_ids(seller)
    sale = {"name": "Sale", "adjust_bp": -1000, "starts_at": "2020-01-01T00:00:00Z",
            "ends_at": "2099-01-01T00:00:00Z", "enabled": True}  # fmt: skip
    made = await seller.post("/api/pricing/sales", json=sale)
    assert made.status_code == 201, made.text
    await repriced(seller)
    reduced = (await in_file(seller))[2]
    assert reduced < 4.95
    await seller.http.put("/api/pricing/pins/1", json={"price": "9.00"})
    ended = await seller.http.delete(f"/api/pricing/sales/{made.json()['id']}")
    assert ended.status_code == 200
    assert (await in_file(seller))[1] == 9
    assert (await explained(seller, 1))["target_price"] == "9.00"
    assert ids


ROWS, SLAB = 300, 50


async def test_who_pins_and_unpins_while_a_run_writes_has_the_last_word(a_seller):
    """A second, for the moment in which a worker stands between two slabs: only there could a run
    write over what was typed after it read the pins.
    """
    seller = await a_seller()
    rows = (a_row(n, market="1.20", price="1.00") for n in range(1, ROWS + 1))
    await seller.import_csv(a_csv(*rows))
    for number in (3, 203):
        await seller.http.put(f"/api/pricing/pins/{number}", json={"price": "8.00"})
    await a_rule(seller, name="Dearer", adjust_bp=1000)
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    # One of each slab that comes next; pinned cards are not written.
    firsts = [2 * SLAB + 20, 3 * SLAB + 20]
    work = work_off_one(seller.service.work, seller.id)
    async with stopped(seller, work, firsts, 2 * SLAB):
        for number in (4, 204):
            answer = await seller.http.put(f"/api/pricing/pins/{number}", json={"price": "9.00"})
            assert answer.status_code == 200
        for number in (3, 203):
            assert (await seller.http.delete(f"/api/pricing/pins/{number}")).status_code == 200
    now = await targets(seller)
    assert [now[number] for number in (3, 203, 5, 205)] == ["1.3200"] * 4
    assert [now[number] for number in (4, 204)] == ["9.0000"] * 2
    file = await in_file(seller)
    assert [file[number] for number in (4, 204, 203)] == [9, 9, 1.32]
