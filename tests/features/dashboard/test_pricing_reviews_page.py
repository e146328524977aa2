"""Prices that wait for a look, as a page: the API's figures, one word for one or several, and the
limits of the settings and of a rule.
"""

from __future__ import annotations

import html
import re

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row

PATH = "/pricing/reviews"
HOSTILE = '<b onclick="x">A & B</b>'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


@pytest.fixture
async def shop(a_seller):
    """Three cards at 10.00 whose market is at 21.00, 22.00 and 23.00, and the owner."""
    seller = await a_seller()
    rule = {"name": HOSTILE, "state": "published", "priority": 1}
    assert (await seller.post("/api/pricing/rules", json=rule)).status_code == 201
    limits = {"review_up_bp": 5_000}
    assert (await seller.http.patch("/api/pricing/settings", json=limits)).status_code == 200
    rows = [
        a_row(n, name=f"{HOSTILE} {n}", price="10.00", market=f"{20 + n}.00") for n in (1, 2, 3)
    ]
    await seller.import_csv(a_csv(*rows))
    return seller, await signed_in(seller)


async def listed(browser):
    return (await browser.get("/api/pricing/reviews")).json()["reviews"]


async def after(browser, answer):
    assert answer.status_code == 303, answer.text
    return (await browser.get(answer.headers["location"])).text


def take(one):
    return f"{one['marketplace_id']}@{one['revision']}"


async def test_the_page_shows_what_waits_as_the_api_does(shop):
    _, browser = shop
    page = (await browser.get(PATH)).text
    assert "<b onclick" not in page
    assert ESCAPED in page
    for one in await listed(browser):
        assert f'value="{take(one)}"' in page
        assert f'href="/cards/{one["card_id"]}"' in page
        assert f"${one['proposed_price']}" in page
    assert "A rise beyond your limit." in page
    assert (await browser.get(f"{PATH}?page=9")).text.count("There are not so many pages") == 1
    told = (await browser.get("/api/today")).json()["conditions"]
    condition = next(one for one in told if one["kind"] == "prices_to_review")
    assert (condition["count"], condition["money"]) == (3, "36.00")
    assert (
        "3 prices are held for your review: the move is beyond your limits."
        in (await browser.get("/today")).text
    )


async def test_one_price_is_accepted_and_several_are_dismissed(shop):
    seller, browser = shop
    first, *others = await listed(browser)
    done = await browser.form(PATH, take=take(first), answer="accepted")
    assert "1 price is accepted." in await after(browser, done)
    done = await browser.form(PATH, take=[take(one) for one in others], answer="dismissed")
    assert "2 prices are dismissed." in await after(browser, done)
    assert await listed(browser) == []
    cards = (await seller.get("/api/cards?sort=name")).json()["cards"]
    assert [card["target_price"] for card in cards] == ["10.00", "10.00", "23.00"]
    assert "No price waits for you" in (await browser.get(PATH)).text


async def test_a_custom_listing_is_decided_beside_the_others(shop):
    seller, browser = shop
    photo = "https://example.invalid/1.jpg"
    own = a_row(77, title="My own", photo=photo, price="10.00", market="20.00", low="20.00")
    await seller.import_csv(a_csv(own, a_row(1, price="10.00", market="21.00")))
    asked = [take(one) for one in await listed(browser)]
    assert len(asked) == 2
    done = await browser.form(PATH, take=asked, answer="accepted")
    assert "2 prices are accepted." in await after(browser, done)


async def test_nothing_chosen_a_broken_choice_and_no_token_change_nothing(shop):
    _, browser = shop
    done = await browser.form(PATH, answer="accepted")
    assert "No price was chosen." in await after(browser, done)
    assert (await browser.form(PATH, take="1@then", answer="accepted")).status_code == 422
    assert (await browser.http.post(PATH, data={"answer": "accepted"})).status_code == 403
    assert len(await listed(browser)) == 3


async def test_staff_sees_what_waits_and_no_button(shop):
    seller, _ = shop
    staff = await joined(seller, f"reviews-{seller.email}")
    page = (await staff.get(PATH)).text
    assert ESCAPED in page
    assert 'action="/pricing/reviews"' not in page
    [one, *_] = await listed(staff)
    assert (await staff.form(PATH, take=take(one), answer="accepted")).status_code == 403


async def test_limits_are_set_in_per_cent(shop):
    seller, browser = shop
    page = (await browser.get("/pricing/settings")).text
    assert 'name="review_up_bp"' in page
    shown = {"was:review_up_bp": "50", "was:review_down_bp": ""}
    wanted = {"review_up_bp": "12.5", "review_down_bp": "30"}
    assert (await browser.form("/pricing/settings", **shown, **wanted)).status_code == 303
    told = (await seller.get("/api/pricing/settings")).json()
    assert (told["review_up_bp"], told["review_down_bp"]) == (1250, 3000)
    shown = {"was:review_up_bp": "12.5"}
    await browser.form("/pricing/settings", **shown, review_up_bp="")
    assert (await seller.get("/api/pricing/settings")).json()["review_up_bp"] is None


async def test_a_rule_has_limits_and_a_hold_out_of_its_own(shop):
    seller, browser = shop
    [rule, *_] = (await seller.get("/api/pricing/rules")).json()["rules"]
    path = f"/pricing/rules/{rule['id']}"
    page = (await browser.get(path)).text
    assert 'name="review_own"' in page
    [was] = re.findall(r'name="was" value="([^"]*)"', page)
    form = {
        "name": "Own limits",
        "query": "",
        "price_source": "market",
        "fallback_sources": "market",
        "percent": "0",
        "adjust_amount": "0",
        "rounding": "cent",
        "review_own": "true",
        "review_up": "25",
        "review_first": "true",
        "holdout": "5",
        "action": "save",
        "face": "form",
        "was": html.unescape(was),
    }
    done = await browser.form(path, **form)
    assert done.status_code == 303, done.text
    told = (await seller.get(f"/api/pricing/rules/{rule['id']}")).json()
    assert told["review"] == {"up_bp": 2500, "down_bp": None, "first_price": True}
    assert told["holdout_bp"] == 500
    page = (await browser.get("/pricing")).text
    assert "A rise of more than 25 % and a first price wait for your review." in page
    assert "5 % of the cards, drawn every thirty days, stay at their old price." in page
