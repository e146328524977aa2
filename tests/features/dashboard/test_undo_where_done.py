"""The page that a form leads to offers to undo what the form did, and only that."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop, an_order
from cards_builder import a_place, card_ids

SHIPPED = re.compile(r'formaction="(/orders/\d+/mark_shipped)"')
TO = re.compile(r'action="/pulls">.*?name="back"\s+value="([^"]*)"', re.DOTALL)
BACK = re.compile(r'action="/activity/(\d+)/undo".*?name="back" value="([^"]*)"', re.DOTALL)


@pytest.fixture
async def shop(a_seller):
    """A card at 10.00, and the owner's browser."""
    seller = await a_shop(a_seller, a_row(1, price="10.00", market="20.00"))
    return seller, await signed_in(seller)


async def card_of(browser):
    return (await browser.get("/api/cards")).json()["cards"][0]


async def is_pinned(browser):
    return (await browser.get("/api/cards?search=is:pinned")).json()["total"] == 1


async def pinned(browser):
    """Pin the card by its page's form; returns where that led."""
    card = await card_of(browser)
    sent = await browser.form(f"/cards/{card['id']}/pin", price="12.00")
    assert sent.status_code == 303, sent.text
    return sent.headers["location"]


async def test_what_a_form_did_is_undone_from_the_page_it_leads_to(shop):
    _, browser = shop
    address = await pinned(browser)
    shown = (await browser.get(address)).text
    [(entry, back)] = BACK.findall(shown)
    assert back == urlsplit(address).path
    assert await is_pinned(browser)
    undone = await browser.form(f"/activity/{entry}/undo", back=back)
    assert undone.status_code == 303
    to = urlsplit(undone.headers["location"])
    assert (to.path, list(parse_qs(to.query))) == (back, ["done"])
    assert not await is_pinned(browser)
    after = (await browser.get(undone.headers["location"])).text
    assert "Undone." in after
    assert not BACK.search(after)


async def test_an_order_is_shipped_in_its_row_and_taken_back_there(shop):
    seller, browser = shop
    await seller.orders(
        [an_order("A-1", status="Ready to Ship"), an_order("A-2", status="Shipped")]
    )
    order = (await seller.stored_order("A-1"))["id"]
    address = "/orders?search=A-"
    rows = (await browser.get(address)).text
    [action] = SHIPPED.findall(rows)
    back = TO.search(rows)[1]
    assert (action, back) == (f"/orders/{order}/mark_shipped", address)
    done = await browser.form(action, back=back)
    to = urlsplit(done.headers["location"])
    assert (done.status_code, to.path, parse_qs(to.query)["search"]) == (303, "/orders", ["A-"])
    shown = (await browser.get(done.headers["location"])).text
    assert "Shipped · not sent yet" in shown
    assert not SHIPPED.search(shown)
    [(entry, back)] = BACK.findall(shown)
    assert (await browser.form(f"/activity/{entry}/undo", back=back)).status_code == 303
    assert (await seller.stored_order("A-1"))["shipped_marked_at"] is None
    assert SHIPPED.search((await browser.get(address)).text)


async def test_a_card_is_moved_on_its_shelf_and_back(shop):
    seller, browser = shop
    [card] = (await card_ids(seller)).values()
    await a_place(seller, card, 3, 4, 1)
    form = {"card_id": str(card), "from_slot": "4", "quantity": "1", "box": "5", "slot": "6"}
    moved = await browser.form("/shelves/3/move", **form)
    assert moved.status_code == 303, moved.text
    assert (await card_of(browser))["location_code"] == "5-6"
    [(entry, back)] = BACK.findall((await browser.get(moved.headers["location"])).text)
    assert back == "/shelves/3"
    assert (await browser.form(f"/activity/{entry}/undo", back=back)).status_code == 303
    assert (await card_of(browser))["location_code"] == "3-4"


async def test_a_number_of_somebody_else_is_no_undo(shop, a_seller):
    _, browser = shop
    address = await pinned(browser)
    number = parse_qs(urlsplit(address).query)["undo"][0]
    other = await signed_in(await a_seller())
    page = urlsplit(address).path
    for query in (f"done=saved&undo={number[:-1]}x", "done=saved&undo=1", "done=saved&undo=x-y"):
        assert not BACK.search((await browser.get(f"{page}?{query}")).text), query
    assert not BACK.search((await other.get(f"/cards?done=saved&undo={number}")).text)
    assert BACK.search((await browser.get(f"/cards?done=saved&undo={number}")).text)


async def test_who_may_not_undo_is_not_offered_it(shop):
    seller, _ = shop
    staff = await joined(seller, "bea.of.undo@example.invalid")
    card = await card_of(staff)
    made = await staff.form("/lists", name="Con box")
    assert made.status_code == 303, made.text
    assert "undo=" not in made.headers["location"]
    assert card["id"]


@pytest.mark.parametrize(
    "back", ["https://elsewhere.example/", "//elsewhere.example/", "\\\\x", "x"]
)
async def test_an_undo_leads_back_to_a_page_of_ours_alone(shop, back):
    _, browser = shop
    shown = (await browser.get(await pinned(browser))).text
    [(entry, _)] = BACK.findall(shown)
    refused = await browser.form(f"/activity/{entry}/undo", back=back)
    assert refused.status_code == 400
    assert await is_pinned(browser)
