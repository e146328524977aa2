"""The pages of lists over HTTP: counts, cards, and the forms that make, rename, delete, fill and
empty one.
"""

from __future__ import annotations

import csv
import html
import io
import re

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop
from cards_builder import card_ids

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


@pytest.fixture
async def shop(a_seller):
    rows = [a_row(id, name=f"Bolt {id}", price=f"{id}.00") for id in range(1, 6)]
    return await a_shop(
        a_seller, *rows, a_row(6, name=HOSTILE), a_row(7, name="Gone Bolt", quantity=0)
    )


async def made(browser, name="Binder"):
    answer = await browser.form("/lists", name=name)
    assert answer.status_code == 303, answer.text
    return int(re.match(r"/lists/(\d+)", answer.headers["location"])[1])


async def on(browser, list_id):
    """The ids of the cards that the list's page shows, which are those that its search finds."""
    page = (await browser.get(f"/lists/{list_id}")).text
    query = (await browser.get(f"/api/lists/{list_id}")).json()["query"]
    cards = await browser.get("/api/cards", params={"search": query, "status": "all"})
    found = [card["id"] for card in cards.json()["cards"]]
    assert [int(id) for id in re.findall(r'<a class="who" href="/cards/(\d+)"', page)] == found
    return sorted(found)


async def test_a_list_is_made_filled_renamed_emptied_and_deleted(shop):
    browser = await signed_in(shop)
    assert "No lists yet" in (await browser.get("/lists")).text
    list_id = await made(browser, HOSTILE)
    page = await browser.get(f"/lists/{list_id}/add", params={"search": "bolt", "status": "all"})
    assert "all 6 cards" in page.text
    answer = await browser.form(
        f"/lists/{list_id}/add", scope="all", search="bolt", game="", status="all"
    )
    assert answer.status_code == 303, answer.text
    assert "6 cards added to the list." in (await browser.get(answer.headers["location"])).text
    cards = await on(browser, list_id)
    assert len(cards) == 6
    page = (await browser.get("/lists")).text
    assert ESCAPED in page
    assert "<b onclick" not in page
    [told] = (await browser.get("/api/lists")).json()["lists"]
    assert (told["card_count"], told["active_count"], told["gone_count"]) == (6, 5, 1)
    assert re.search(r'data-label="Cards">6<', page)
    assert re.search(r'data-label="In stock"><a [^>]*>5<', page)
    assert re.search(r'data-label="Out of stock"><a [^>]*>1<', page)

    await browser.form(f"/lists/{list_id}/remove", card_id=str(cards[0]))
    await browser.form(f"/lists/{list_id}/remove", card_ids=[str(id) for id in cards[1:3]])
    assert await on(browser, list_id) == cards[3:]

    answer = await browser.form(f"/lists/{list_id}/rename", name="Other")
    assert "Other" in (await browser.get(answer.headers["location"])).text
    answer = await browser.form(f"/lists/{list_id}/delete")
    assert answer.headers["location"].startswith("/lists?done=")
    assert (await browser.get("/api/lists")).json()["lists"] == []
    assert (await browser.get(f"/lists/{list_id}")).status_code == 404


async def test_a_name_that_is_refused_stands_beside_its_field(shop):
    browser = await signed_in(shop)
    await made(browser, "Binder")
    for name, why in (("binder", "There is already a list"), ("", "1 to 100 characters")):
        answer = await browser.form("/lists", name=f"{name} ")
        page = answer.text.replace("name: ", "")
        assert answer.status_code == 422
        assert why.lower() in page.lower()
        assert 'aria-invalid="true"' in page
    other = await made(browser, "Other")
    answer = await browser.form(f"/lists/{other}/rename", name="Binder")
    assert answer.status_code == 422


async def test_the_add_cards_url_of_the_api_opens_the_page_that_adds(shop):
    staff = await joined(shop, f"staff-{shop.id}@example.invalid")
    list_id = await made(staff)
    [told] = (await staff.get("/api/lists")).json()["lists"]
    answer = await staff.get(told["add_cards_url"], params={"search": "bolt price>2"})
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/lists/{list_id}/add?search=bolt+price%3E2"
    page = await staff.get(answer.headers["location"])
    assert "all 3 cards" in page.text
    answer = await staff.form(f"/lists/{list_id}/add", scope="all", search="bolt price>2")
    assert len(await on(staff, list_id)) == 3


async def test_whoever_is_signed_out_signs_in_and_comes_back(shop):
    list_id = await made(await signed_in(shop))
    stranger = shop.service.client()
    address = f"/api/lists/{list_id}/cards"
    asked = await stranger.get(address, params={"search": "bolt price>2"})
    assert asked.status_code == 303
    form = await stranger.get(asked.headers["location"])
    fields = {"email": shop.email, "password": shop.password}
    fields["next"] = html.unescape(form.text.split('name="next" value="')[1].split('"')[0])
    back = await stranger.post("/sign-in", data=fields)
    assert back.status_code == 303
    opened = await stranger.get(back.headers["location"])
    assert opened.headers["location"] == f"/lists/{list_id}/add?search=bolt+price%3E2"


async def test_staff_makes_and_fills_a_list_and_does_no_more(shop):
    owner, staff = await signed_in(shop), await joined(shop, f"staff-{shop.id}@example.invalid")
    list_id = await made(staff)
    ids = await card_ids(shop)
    await staff.form("/cards/add", list_id=str(list_id), scope="rows", card_ids=str(ids[1]))
    assert await on(staff, list_id) == [ids[1]]
    for button in ("rename", "delete", "remove"):
        assert f"/lists/{list_id}/{button}" in (await owner.get(f"/lists/{list_id}")).text
        assert f"/lists/{list_id}/{button}" not in (await staff.get(f"/lists/{list_id}")).text
        fields = {"name": "Mine", "card_id": str(ids[1])}
        answer = await staff.form(f"/lists/{list_id}/{button}", **fields)
        assert answer.status_code == 403
        assert "owner" in answer.text
    assert await on(staff, list_id) == [ids[1]]


async def test_rows_a_page_or_all_that_match_go_onto_a_list_and_into_a_file(shop):
    browser = await signed_in(shop)
    assert 'href="/lists"' in (await browser.get("/cards")).text
    ids = await card_ids(shop)
    bolts = sorted(ids[number] for number in range(1, 6))
    for fields, expected in (
        ({"scope": "rows", "card_ids": [str(ids[1]), str(ids[6])]}, sorted([ids[1], ids[6]])),
        ({"scope": "page", "page_ids": f"{ids[2]},{ids[3]}"}, sorted([ids[2], ids[3]])),
        ({"scope": "all", "search": "bolt", "game": "", "status": "active"}, bolts),
        ({"scope": "all", "search": "", "status": ""}, sorted([*bolts, ids[6]])),
    ):
        list_id = await made(browser, str(expected))
        answer = await browser.form("/cards/add", list_id=str(list_id), **fields)
        assert answer.status_code == 303, answer.text
        assert await on(browser, list_id) == expected
        answer = await browser.form("/cards/export.csv", **fields)
        assert answer.status_code == 303, answer.text
        file = await browser.get(answer.headers["location"])
        assert file.headers["content-type"].startswith("text/csv")
        assert "cards.csv" in file.headers["content-disposition"]
        lines = csv.DictReader(io.StringIO(file.text))
        assert [int(line["id"]) for line in lines] == expected
    page = (await browser.get("/cards", params={"search": "bolt"})).text
    assert 'formaction="/cards/add"' in page
    assert 'name="list_id"' in page


async def test_a_selection_that_is_none_or_no_list_is_refused(shop):
    browser = await signed_in(shop)
    list_id = await made(browser)
    for path, fields in (
        ("/cards/add", {"list_id": str(list_id), "scope": "rows"}),
        ("/cards/add", {"list_id": str(list_id), "scope": "rows", "card_ids": "x"}),
        ("/cards/add", {"scope": "all", "search": "bolt"}),
        ("/cards/export.csv", {"scope": "page", "page_ids": ""}),
        (f"/lists/{list_id}/remove", {}),
    ):
        assert (await browser.form(path, **fields)).status_code == 422, (path, fields)
    wrong = await browser.get("/cards/export.csv", params={"search": "prise>1"})
    assert wrong.status_code == 422
    answer = await browser.form("/cards/add", list_id="999999", scope="all", search="bolt")
    assert answer.status_code == 404


async def test_forms_without_a_token_are_refused(shop):
    browser = await signed_in(shop)
    list_id = await made(browser)
    paths = ["/lists", "/cards/add", "/cards/export.csv"]
    paths += [f"/lists/{list_id}/{what}" for what in ("add", "remove", "rename", "delete")]
    for path in paths:
        assert (await browser.http.post(path, data={"name": "x"})).status_code == 403, path


async def test_staff_exports_and_strangers_do_not(shop):
    staff = await joined(shop, f"staff-{shop.id}@example.invalid")
    assert (await staff.get("/cards/export.csv")).status_code == 200
    answer = await shop.service.client().get("/cards/export.csv")
    assert answer.status_code == 303
