"""The queue of recommendations over HTTP: the API's figures with the evidence, a look before several
prices are accepted, and the forms of one row.
"""

from __future__ import annotations

import re

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.recommendations.generate import RECOMMENDATIONS

PATH = "/recommendations"
HOSTILE = '<b onclick="x">A & B</b>'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


@pytest.fixture
async def shop(a_seller):
    """Three cards whose market stands at 14.00, 15.00 and 16.00, and the owner."""
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
        assert one["evidence"]["reason"] in page
        assert one["evidence"]["would_change"] in page
    assert (await browser.get(f"{PATH}?page=9")).text.count("There are not so many pages") == 1


async def test_estimates_are_told_in_whole_cents(shop):
    _, browser = shop
    first, *_ = await listed(browser)
    assert len(first["expected_value"].partition(".")[2]) == 2
    query = {"take": take(first)}
    for page in (await browser.get(PATH), await browser.get(f"{PATH}/accept", params=query)):
        assert not re.search(r"\$\d+\.\d{3}", page.text)


async def test_chosen_prices_are_looked_at_and_accepted(shop):
    seller, browser = shop
    first, second, third = await listed(browser)
    query = {"take": [take(first), take(second), f"{third['id']}@2026-01-01T00:00:00.000000Z"]}
    page = (await browser.get(f"{PATH}/accept", params=query)).text
    assert "Some of the chosen recommendations have changed" in page
    assert re.findall(r'name="take" value="([^"]*)"', page) == [take(first), take(second)]
    assert f"${first['proposed_price']}" in page
    assert (await listed(browser)) == [first, second, third]
    answer = await browser.form(f"{PATH}/accept", take=[take(first), take(second), "x"])
    assert answer.status_code == 422
    answer = await browser.form(f"{PATH}/accept", take=[take(first), take(second), take(second)])
    assert answer.status_code == 303, answer.text
    after = (await browser.get(answer.headers["location"])).text
    assert "2 prices are accepted. 1 was decided or changed since you looked." in after
    assert [one["id"] for one in await listed(browser)] == [third["id"]]
    targets = sorted(str(card["target_price"]) for card in await seller.cards())
    assert targets == ["10.0000", "15.0000", "16.0000"]


async def test_a_chosen_price_is_found_wherever_the_queue_has_it_by_now(shop):
    _, browser = shop
    first, *_ = await listed(browser)
    query = {"take": take(first), "page": 2}
    page = (await browser.get(f"{PATH}/accept", params=query)).text
    assert re.findall(r'name="take" value="([^"]*)"', page) == [take(first)]
    assert "have changed" not in page


async def test_one_row_is_snoozed_or_dismissed(shop):
    _, browser = shop
    first, second, third = await listed(browser)
    for one, answer in ((first, "snoozed"), (second, "dismissed")):
        path = f"{PATH}/{one['id']}/settle"
        told = await browser.form(path, revision=one["revision"], answer=answer)
        assert told.status_code == 303, told.text
    assert [one["id"] for one in await listed(browser)] == [third["id"]]
    again = await browser.form(path, revision=second["revision"], answer="dismissed")
    assert (again.status_code, "is dismissed" in again.text) == (409, True)


async def test_a_form_without_its_token_is_refused(shop):
    _, browser = shop
    [one, *_] = await listed(browser)
    for path in (f"{PATH}/accept", f"{PATH}/{one['id']}/settle"):
        answer = await browser.http.post(path, data={"take": take(one)})
        assert answer.status_code == 403
    assert len(await listed(browser)) == 3


async def test_staff_sees_no_button_and_is_refused(shop):
    seller, browser = shop
    staff = await joined(seller, f"staff-{seller.email}")
    page = (await staff.get(PATH)).text
    [one, *_] = await listed(browser)
    assert f"${one['proposed_price']}" in page
    for button in ("Accept", "Snooze", "Dismiss", 'name="take"'):
        assert button not in page
    for path, fields in (
        (f"{PATH}/accept", {"take": take(one)}),
        (f"{PATH}/{one['id']}/settle", {"revision": one["revision"]}),
    ):
        assert (await staff.form(path, **fields)).status_code == 403
    assert (await staff.get(f"{PATH}/outcomes")).status_code == 403
    assert len(await listed(browser)) == 3


async def test_an_empty_queue_and_no_outcomes_say_what_comes_next(a_seller):
    browser = await signed_in(await a_seller())
    assert "No price waits for a look" in (await browser.get(PATH)).text
    page = (await browser.get(f"{PATH}/outcomes")).text
    assert "No recommendation was accepted yet" in page


async def test_outcomes_say_that_sales_do_not_suffice(shop):
    _, browser = shop
    [one, *_] = await listed(browser)
    await browser.form(f"{PATH}/accept", take=take(one))
    page = (await browser.get(f"{PATH}/outcomes")).text
    assert "not enough sales to say" in page
    assert "The market stands higher" in page
