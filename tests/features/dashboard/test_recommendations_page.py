"""The page of suggestions over HTTP: the API's figures with the evidence, and the answers for one
row, for the ticked ones, and for all under an amount.
"""

from __future__ import annotations

import re

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.prices.recommendations.generate import RECOMMENDATIONS

PATH = "/recommendations"
HOSTILE = '<b onclick="x">A & B</b>'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


@pytest.fixture
async def shop(a_seller):
    """Three cards whose market is at 14.00, 15.00 and 16.00, and the owner."""
    seller = await a_seller()
    rule = {"name": HOSTILE, "state": "published", "price_source": "current"}
    assert (await seller.post("/api/pricing/rules", json=rule)).status_code == 201
    rows = [
        a_row(n, name=f"{HOSTILE} {n}", price="10.00", market=f"{13 + n}.00") for n in (1, 2, 3)
    ]
    await seller.import_csv(a_csv(*rows))
    await seller.service.run_jobs()
    await RECOMMENDATIONS.work_off(seller.service.work, seller.id)
    return seller, await signed_in(seller)


async def listed(browser):
    return (await browser.get("/api/recommendations")).json()["recommendations"]


def take(one):
    return f"{one['id']}@{one['revision']}"


async def test_the_queue_shows_the_apis_figures_and_evidence(shop):
    _, browser = shop
    page = (await browser.get(PATH)).text
    assert "<b onclick" not in page
    assert ESCAPED in page
    for one in await listed(browser):
        assert f'value="{take(one)}"' in page
        assert f'href="/cards/{one["card"]["id"]}"' in page
        assert f"${one['proposed_price']}" in page
        for words in ("reason", "would_change"):
            said = re.sub(r"\d+\.\d\d\b(?!%)", r"$\g<0>", one["evidence"][words])
            assert said in page
    assert (await browser.get(f"{PATH}?page=9")).text.count("That page does not exist") == 1


async def test_estimates_are_told_in_whole_cents(shop):
    _, browser = shop
    first, *_ = await listed(browser)
    assert len(first["expected_value"].partition(".")[2]) == 2
    assert not re.search(r"\$\d+\.\d{3}", (await browser.get(PATH)).text)


async def test_the_ticked_prices_are_approved_and_what_changed_keeps_none_back(shop):
    seller, browser = shop
    first, second, third = await listed(browser)
    old = f"{third['id']}@2026-01-01T00:00:00.000000Z"
    assert (await browser.form(PATH, take=[take(first), "x"], answer="accepted")).status_code == 422
    assert (await browser.form(PATH, take=take(first), answer="gone")).status_code == 422
    answer = await browser.form(PATH, take=[take(first), take(second), old], answer="accepted")
    assert answer.status_code == 303, answer.text
    after = (await browser.get(answer.headers["location"])).text
    assert "2 prices approved. 1 was decided or changed since you last looked." in after
    assert [one["id"] for one in await listed(browser)] == [third["id"]]
    targets = sorted(str(card["target_price"]) for card in await seller.cards())
    assert targets == ["10.0000", "15.0000", "16.0000"]
    nothing = await browser.form(PATH, answer="accepted")
    assert "No prices selected." in (await browser.get(nothing.headers["location"])).text


async def test_all_under_an_amount_are_approved_with_one_button(shop):
    seller, browser = shop
    await seller.import_csv(
        a_csv(
            *(a_row(n, price="10.00", market=f"{13 + n}.00") for n in (1, 2, 3)),
            a_row(4, name="Dear", price="18.00", market="30.00"),
        )
    )
    await RECOMMENDATIONS.work_off(seller.service.work, seller.id)
    [dear] = [one for one in await listed(browser) if one["card"]["product_name"] == "Dear"]
    assert f'action="{PATH}/under"' in (await browser.get(PATH)).text
    answer = await browser.form(f"{PATH}/under")
    assert "3 prices approved." in (await browser.get(answer.headers["location"])).text
    assert [one["id"] for one in await listed(browser)] == [dear["id"]]
    answer = await browser.form(f"{PATH}/under")
    assert (
        "No prices under $20.00 are waiting."
        in (await browser.get(answer.headers["location"])).text
    )


async def test_one_row_is_snoozed_dismissed_or_approved(shop):
    _, browser = shop
    first, second, third = await listed(browser)
    for one, answer, said in (
        (first, "snoozed", "1 suggestion snoozed"),
        (second, "dismissed", "1 suggestion dismissed for 30 days."),
    ):
        told = await browser.form(PATH, one=f"{answer} {take(one)}", take=take(third))
        assert told.status_code == 303, told.text
        assert said in (await browser.get(told.headers["location"])).text
    assert [one["id"] for one in await listed(browser)] == [third["id"]]
    again = await browser.form(PATH, one=f"dismissed {take(second)}")
    assert (again.status_code, "is dismissed" in again.text) == (409, True)
    told = await browser.form(PATH, one=f"accepted {take(third)}")
    assert "1 price approved." in (await browser.get(told.headers["location"])).text


async def test_the_old_page_of_approval_leads_to_the_queue(shop):
    _, browser = shop
    answer = await browser.get(f"{PATH}/accept?take=1@2026-01-01T00:00:00.000000Z")
    assert (answer.status_code, answer.headers["location"]) == (303, PATH)


async def test_a_form_without_its_token_is_refused(shop):
    _, browser = shop
    [one, *_] = await listed(browser)
    for path in (PATH, f"{PATH}/under"):
        answer = await browser.http.post(path, data={"one": f"accepted {take(one)}"})
        assert answer.status_code == 403
    assert len(await listed(browser)) == 3


async def test_staff_sees_no_button_and_is_refused(shop):
    seller, browser = shop
    staff = await joined(seller, f"staff-{seller.email}")
    page, owned = (await staff.get(PATH)).text, (await browser.get(PATH)).text
    [one, *_] = await listed(browser)
    assert f"${one['proposed_price']}" in page
    for button in ("<span>Approve", "<span>Snooze", "<span>Dismiss", 'name="take"'):
        assert button in owned
        assert button not in page
    assert (await staff.form(PATH, one=f"accepted {take(one)}")).status_code == 403
    assert (await staff.form(PATH, one=f"dismissed {take(one)}")).status_code == 403
    assert (await staff.form(f"{PATH}/under")).status_code == 403
    assert (await staff.get(f"{PATH}/outcomes")).status_code == 403
    assert len(await listed(browser)) == 3


async def test_an_empty_queue_and_no_outcomes_say_what_comes_next(a_seller):
    browser = await signed_in(await a_seller())
    assert "No suggestions" in (await browser.get(PATH)).text
    page = (await browser.get(f"{PATH}/outcomes")).text
    assert "No suggestions approved yet" in page


async def test_outcomes_say_that_sales_do_not_suffice(shop):
    _, browser = shop
    [one, *_] = await listed(browser)
    await browser.form(PATH, one=f"accepted {take(one)}")
    page = (await browser.get(f"{PATH}/outcomes")).text
    assert "not enough sales to tell" in page
    assert "The market is higher" in page
