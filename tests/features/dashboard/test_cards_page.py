"""The pages of cards over HTTP: what a signed-in member sees, without a script."""

from __future__ import annotations

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'


@pytest.fixture
async def shop(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(1, name="Black Lotus", price="5.00", market="9.00"), a_row(2, name=HOSTILE))
    )
    return seller


async def test_the_table_shows_what_the_api_answers(shop):
    browser = await signed_in(shop)
    page = await browser.get("/cards")
    answer = (await browser.get("/api/cards")).json()
    assert page.status_code == 200
    assert f"{answer['total']} cards" in page.text
    for card in answer["cards"]:
        assert f'href="/cards/{card["id"]}"' in page.text


async def test_names_are_shown_as_text(shop):
    browser = await signed_in(shop)
    page = await browser.get("/cards")
    assert "<b onclick" not in page.text
    assert "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;" in page.text


async def test_a_search_has_chips_and_an_error_stands_under_its_word(shop):
    browser = await signed_in(shop)
    page = await browser.get("/cards", params={"search": "lotus price>1"})
    assert "Black Lotus" in page.text
    assert 'href="/cards?search=price%3E1"' in page.text
    wrong = await browser.get("/cards", params={"search": "lotus prise>1"})
    assert wrong.status_code == 200
    assert 'aria-invalid="true"' in wrong.text


async def test_a_long_table_goes_on_with_the_same_search_and_order(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 62))))
    browser = await signed_in(seller)
    first = await browser.get("/cards", params={"search": "card", "sort": "price"})
    assert first.status_code == 200
    assert (
        'rel="next" class="button quiet" href="/cards?search=card&amp;sort=price&amp;page=2"'
        in (first.text)
    )
    second = await browser.get("/cards", params={"search": "card", "sort": "price", "page": 2})
    assert "page 2 of 2" in second.text
    assert 'rel="prev"' in second.text
    assert 'rel="next"' not in second.text


async def test_a_card_tells_why_it_asks_its_price(shop):
    browser = await signed_in(shop)
    card = (await browser.get("/api/cards", params={"search": "lotus"})).json()["cards"][0]
    page = await browser.get(f"/cards/{card['id']}")
    assert page.status_code == 200
    assert "Why this price" in page.text
    gone = await browser.get("/cards/999999")
    assert gone.status_code == 404
    assert "There is no card 999999." in gone.text


async def test_strangers_are_sent_to_the_sign_in_page(shop):
    answer = await shop.service.client().get("/cards")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=/cards"


async def test_staff_sees_no_settings_in_the_navigation(shop):
    staff = await joined(shop, "bea@example.invalid")
    page = await staff.get("/cards")
    assert page.status_code == 200
    assert 'href="/settings"' not in page.text
    owner = await signed_in(shop)
    assert 'href="/settings"' in (await owner.get("/cards")).text


async def test_files_keep_for_ever_and_others_are_not_there(shop):
    client = shop.service.client()
    browser = await signed_in(shop)
    page = (await browser.get("/cards")).text
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]
    style = await client.get(address)
    assert style.status_code == 200
    assert "immutable" in style.headers["cache-control"]
    assert (await client.get("/static/app.css")).status_code == 404
    assert (await client.get("/static/../shell.py")).status_code == 404
