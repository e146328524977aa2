"""The pages of shelves and counts over HTTP: the API's figures, putting away, moving, and a count
from its beginning to its end.
"""

from __future__ import annotations

import asyncio
import re

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop
from cards_builder import card_ids, on_shelf

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


async def begun(browser, **fields):
    answer = await browser.form("/counts", **fields)
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"]
    assert re.fullmatch(r"/counts/\d+", path)
    return path


@pytest.fixture
async def shop(a_seller):
    """The owner's browser, and the ids of three cards, three of each on hand; two lie in box 1."""
    rows = [a_row(number, name=HOSTILE, quantity=3, price="2.00") for number in (1, 2, 3)]
    seller = await a_shop(a_seller, *rows)
    browser, ids = await signed_in(seller), await card_ids(seller)
    for number in (1, 2):
        fields = {"card_id": ids[number], "box": 1, "slot": number, "quantity": 3}
        answer = await browser.form("/shelves/put", **fields)
        assert answer.headers["location"].startswith(f"/shelves/put?box=1&slot={number}")
    return seller, browser, ids


async def test_an_empty_shelf_says_what_to_do(a_seller):
    browser = await signed_in(await a_seller())
    for path in ("/shelves", "/shelves/7"):
        page = await browser.get(path)
        assert page.status_code == 200
        assert "Put cards away" in page.text
    assert (await browser.get("/shelves/box?box=7")).headers["location"] == "/shelves/7"
    assert (await browser.get("/shelves/box?box=A 1")).headers["location"] == "/shelves/A%201"
    assert (await browser.get("/shelves/box?box=box")).headers["location"] == "/shelves/Box"
    assert (await browser.get("/shelves/box?box=")).status_code == 422


async def test_boxes_and_their_cards_are_those_of_the_api(shop):
    _, browser, _ = shop
    [box] = (await browser.get("/api/shelves")).json()["boxes"]
    page = (await browser.get("/shelves")).text
    told = f"{box['quantity']} copies of {box['cards']} cards in {box['slots']} slots"
    assert told in page
    [each] = (await browser.get("/api/counts/suggested")).json()["boxes"]
    assert f"${each['value']}" in (await browser.get("/counts")).text
    page = (await browser.get("/shelves/1")).text
    for card in (await browser.get("/api/shelves/1")).json()["cards"]:
        assert f"<strong>{card['code']}</strong>" in page
        assert f'href="/cards/{card["card_id"]}"' in page
    assert "<b onclick" not in page
    assert ESCAPED in page
    assert ">drift<" not in page


async def test_a_place_takes_cards_one_after_the_other(shop):
    seller, browser, ids = shop
    staff = await joined(seller, f"staff-{seller.email}")
    page = (await staff.get("/shelves/put?box=1&slot=9&search=right")).text
    assert "Put in box 1, slot 9" in page
    assert "<b onclick" not in page
    fields = {"card_id": ids[3], "box": 1, "slot": 9, "quantity": 4}
    answer = await staff.form("/shelves/put", **fields)
    page = (await staff.get(answer.headers["location"])).text
    assert "4 copies are now in 1-9." in page
    assert ">drift<" in (await browser.get("/shelves/1")).text.replace("</svg>", ">")
    assert (await on_shelf(browser))[ids[3], 9] == 4
    for wrong, told in (
        ({"slot": ""}, "Slot: a number from 1"),
        ({"quantity": "-1"}, "Quantity: a number from 1"),
        ({"card_id": "x"}, "Card id: choose a card."),
    ):
        answer = await browser.form("/shelves/put", **(fields | wrong))
        assert (answer.status_code, told in answer.text) == (422, True)
    assert (await browser.form("/shelves/put", **(fields | {"card_id": 9**9}))).status_code == 404
    assert (await browser.http.post("/shelves/put", data=fields)).status_code == 403
    assert "cannot be" not in (await browser.get("/shelves/put?search=prise>1")).text


async def test_a_card_is_moved_and_taken_off(shop):
    _, browser, ids = shop
    here = {"card_id": ids[1], "from_slot": 1}
    move = here | {"box": 2, "slot": 5, "quantity": 2}
    answers = await asyncio.gather(*(browser.form("/shelves/1/move", **move) for _ in range(2)))
    assert sorted(answer.status_code for answer in answers) == [303, 422]
    assert await on_shelf(browser, 2) == {(ids[1], 5): 2}
    answer = await browser.form("/shelves/1/move", **here, action="remove")
    assert "removed from 1-1." in (await browser.get(answer.headers["location"])).text
    assert await on_shelf(browser) == {(ids[2], 2): 3}
    assert (await browser.http.post("/shelves/1/move", data=move)).status_code == 403


async def test_a_count_is_begun_filled_in_and_settled(shop):
    _, browser, ids = shop
    path = await begun(browser, box=1)
    page = (await browser.get(path)).text
    count = (await browser.get(f"/api{path}")).json()
    for card in count["cards"]:
        assert f'name="seen-{card["card_id"]}-{card["slot"]}"' in page
    assert "<b onclick" not in page
    assert "by member" not in page
    listed = (await browser.get("/counts")).text
    assert f'href="{path}">' in listed
    assert "Continue count" in listed
    assert ">member" not in listed
    assert (await browser.form("/counts", box=1)).status_code == 409
    empty = await browser.form(f"{path}/seen", **{f"seen-{ids[1]}-1": ""})
    assert "Quantity: enter how many copies you see" in empty.text
    wrong = await browser.form(f"{path}/seen", **{f"seen-{ids[1]}-1": "x"})
    assert (wrong.status_code, "Quantity: a number from 0" in wrong.text) == (422, True)
    seen = {f"seen-{ids[1]}-1": "3", f"seen-{ids[2]}-2": "1"}
    assert (await browser.form(f"{path}/seen", **seen)).status_code == 303
    # A card that is not expected here is picked among those that a search finds.
    found = (await browser.get(path, params={"find": "right"})).text
    for card_id in ids.values():
        assert f'type="radio" name="card_id" value="{card_id}"' in found
    assert "No cards found" in (await browser.get(f"{path}?find=nowhere")).text
    other = {"card_id": ids[3], "slot": 9, "quantity": 2}
    assert (await browser.form(f"{path}/seen", **other)).status_code == 303
    assert (await browser.http.post(f"{path}/end", data={"action": "keep"})).status_code == 403
    assert (await browser.form(f"{path}/end", action="else")).status_code == 422
    ended = await browser.form(f"{path}/end", action="missing")
    page = (await browser.get(ended.headers["location"])).text
    assert "Locations updated to match your count." in page
    told = (await browser.get(f"/api{path}")).json()
    assert told["state"] == "settled"
    assert f"{told['trust'] * 100:.0f}%" in page
    assert await on_shelf(browser) == {(ids[1], 1): 3, (ids[2], 2): 1, (ids[3], 9): 2}
    assert path in (await browser.get("/counts")).text
    assert (await browser.form(f"{path}/end", action="keep")).status_code == 409


async def test_a_count_is_cancelled(shop):
    _, browser, ids = shop
    path = await begun(browser, box=1, slot=2)
    await browser.form(f"{path}/seen", **{f"seen-{ids[2]}-2": "0"})
    ended = await browser.form(f"{path}/end", action="cancel")
    page = await browser.get(ended.headers["location"])
    assert "Count canceled. Nothing changed." in page.text
    assert await on_shelf(browser) == {(ids[1], 1): 3, (ids[2], 2): 3}
