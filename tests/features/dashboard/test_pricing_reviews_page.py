"""Prices that wait for a look, as a page: the API's figures, one word for one or several, and the
limits of the settings and of a rule.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.asgi import create_app
from cardsync.platform import clock
from lots_builder import settle
from sent_statements import counting

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
    assert "Over your limit for increases." in page
    assert (await browser.get(f"{PATH}?page=9")).text.count("That page does not exist") == 1
    told = (await browser.get("/api/today")).json()["conditions"]
    condition = next(one for one in told if one["kind"] == "prices_to_review")
    assert (condition["count"], condition["money"]) == (3, "36.00")
    assert "3 price changes need approval" in (await browser.get("/today")).text


async def test_a_row_has_the_market_its_30_days_and_what_a_copy_leaves_and_one_reason_above(shop):
    seller, _ = shop
    clock.shift(timedelta(days=8))
    rows = [
        a_row(n, name=f"{HOSTILE} {n}", price="10.00", market=f"{30 + n}.00") for n in (1, 2, 3)
    ]
    await seller.import_csv(a_csv(*rows))
    lot = {"marketplace_id": 3, "quantity": 1, "cost": "12.00"}
    assert (await seller.post("/api/buying/lots", json={"lots": [lot]})).status_code == 201
    await settle(seller)
    browser = await signed_in(seller)
    page = (await browser.get(PATH)).text
    first, _, third = [
        {label: re.sub(r"<[^>]+>|\s+", " ", cell).strip()
         for label, cell in re.findall(r'<td[^>]*data-label="([^"]+)">(.*?)</td>', row, re.S)}
        for row in re.findall(r"<tr data-worth.*?</tr>", page, re.S)
    ]  # fmt: skip
    # 33.00 less 10.75% and 2.5% of it, 0.30 and the 12.00 that the copy cost.
    assert (first["Market"], first["Margin after fees"]) == ("$33.00", "$16.33")
    assert (third["Market"], third["Margin after fees"]) == ("$31.00", "cost unknown")
    assert page.count('aria-label="Market over 30 days: ') == 3
    assert page.count("Over your limit for increases.") == 1
    staff = await joined(seller, f"columns-{seller.email}")
    assert "Margin after fees" not in (await staff.get(PATH)).text


async def test_rows_that_the_browser_has_are_sent_without_cells_until_they_look_different(shop):
    _, browser = shop
    first, second, _ = await listed(browser)
    row = re.compile(r'<tr [^>]*id="waits-[^"]*" data-same="(\w+)".*?</tr>', re.S)
    token = re.compile(r'"[\w-]{60,}=*"')
    whole = (await browser.get(PATH)).text
    marks = row.findall(whole)
    assert len(set(marks)) == 3
    there = {"X-Rows-There": ",".join(marks)}
    page = (await browser.get(PATH, headers=there)).text
    assert row.findall(page) == marks
    assert "<td" not in "".join(one[0] for one in row.finditer(page))
    assert token.sub("", row.sub("", page)) == token.sub("", row.sub("", whole))
    await browser.form(PATH, one=f"dismissed {take(first)}")
    page = (await browser.get(PATH, headers={"X-Rows-There": ",".join(marks[:2])})).text
    assert row.findall(page) == marks[1:]
    cells = [one[0].count("<td") for one in row.finditer(page)]
    assert cells[0] == 0
    assert cells[1] > 0
    assert f"/cards/{second['card_id']}" not in page


async def test_one_price_is_accepted_and_several_are_dismissed(shop):
    seller, browser = shop
    first, *others = await listed(browser)
    done = await browser.form(PATH, take=take(first), answer="accepted")
    assert "1 price approved." in await after(browser, done)
    done = await browser.form(PATH, take=[take(one) for one in others], answer="dismissed")
    assert "2 prices dismissed." in await after(browser, done)
    assert await listed(browser) == []
    cards = (await seller.get("/api/cards?sort=name")).json()["cards"]
    assert [card["target_price"] for card in cards] == ["10.00", "10.00", "23.00"]
    assert "Nothing needs review" in (await browser.get(PATH)).text


@pytest.fixture
async def fresh(service, alive):
    """A web process whose one connection has sent nothing yet."""
    settings = service.settings.model_copy(update={"database_pool": 1})
    app = create_app(settings)
    async with alive(app):
        yield replace(service, settings=settings, app=app)


async def test_an_approval_takes_few_round_trips(shop, fresh):
    seller, _ = shop
    browser = await signed_in(replace(seller, service=fresh))
    first, second, _ = await listed(browser)
    # The first one queues the agent's task and the refresh of figures, which then wait.
    await browser.form(PATH, take=take(first), answer="accepted")
    async with counting(fresh.app.state.database) as sent:
        done = await browser.form(PATH, take=take(second), answer="accepted")
        assert "1 price approved." in await after(browser, done)
    [approval] = [one for one in sent.transactions if "pricing.review_accepted" in one.sent]
    assert approval.round_trips <= 14


async def test_a_script_gets_the_decided_rows_and_the_page_that_follows(shop):
    """A refused price keeps its row; without the script's header the form redirects."""
    _, browser = shop
    first, second, _ = await listed(browser)
    fields = {"csrf_token": browser.session["csrf_token"], "answer": "dismissed"}
    fields["take"] = [take(first), f"{second['marketplace_id']}@2026-11-21T08:00:00.000000Z"]
    done = await browser.http.post(PATH, data=fields, headers={"X-Rows-There": ""})
    assert done.status_code == 204
    assert done.headers["x-rows-done"] == f"waits-{take(first)}"
    page = (await browser.get(done.headers["x-follows"])).text
    assert "1 price dismissed." in page
    assert f'id="{done.headers["x-rows-done"]}"' not in page
    assert f'id="waits-{take(second)}"' in page
    assert "/undo" in page
    await after(browser, await browser.form(PATH, one=f"dismissed {take(second)}"))


async def test_a_custom_listing_is_decided_beside_the_others(shop):
    seller, browser = shop
    photo = "https://example.invalid/1.jpg"
    own = a_row(77, title="My own", photo=photo, price="10.00", market="20.00", low="20.00")
    await seller.import_csv(a_csv(own, a_row(1, price="10.00", market="21.00")))
    asked = [take(one) for one in await listed(browser)]
    assert len(asked) == 2
    done = await browser.form(PATH, take=asked, answer="accepted")
    assert "2 prices approved." in await after(browser, done)


async def test_a_snoozed_price_waits_until_its_figures_change(shop):
    _, browser = shop
    seller, _ = shop
    first, *_ = await listed(browser)
    done = await browser.form(PATH, one=f"snoozed {take(first)}")
    assert "1 price snoozed until the market data changes." in await after(browser, done)
    waits = [one["marketplace_id"] for one in await listed(browser)]
    assert first["marketplace_id"] not in waits
    assert len(waits) == 2
    markets = {1: "21.00", 2: "22.00", 3: "23.00"}

    async def seen() -> list[int]:
        rows = [a_row(n, price="10.00", market=market) for n, market in markets.items()]
        await seller.import_csv(a_csv(*rows))
        return sorted(one["marketplace_id"] for one in await listed(browser))

    assert await seen() == sorted(waits)
    markets[first["marketplace_id"]] = "24.00"
    assert await seen() == [1, 2, 3]


async def test_a_snooze_is_taken_back_where_it_was_done(shop):
    _, browser = shop
    first, *_ = await listed(browser)
    done = await browser.form(PATH, one=f"snoozed {take(first)}")
    [undo] = re.findall(r'action="(/activity/\d+/undo)"', await after(browser, done))
    assert (await browser.form(undo, back=PATH)).status_code == 303
    assert len(await listed(browser)) == 3


async def test_all_under_an_amount_are_approved_and_a_large_change_is_confirmed(a_limited_seller):
    seller = await a_limited_seller()
    browser = await signed_in(seller)
    limits = {"review_down_bp": 500, "review_up_bp": 500}
    assert (await browser.send("PATCH", "/api/pricing/settings", json=limits)).status_code == 200
    rule = {"name": "Market", "state": "published"}
    assert (await browser.post("/api/pricing/rules", json=rule)).status_code == 201
    assert "No prices under $20.00 are waiting." in await after(
        browser, await browser.form(f"{PATH}/under")
    )
    rows = [a_row(n, price="10.00", market="2.00") for n in (1, 2)]
    await seller.import_csv(a_csv(*rows, a_row(3, price="50.00", market="45.00")))
    assert len(await listed(browser)) == 3
    asked = await browser.form(f"{PATH}/under")
    assert asked.status_code == 422, asked.text
    assert "Confirm these prices" in asked.text
    assert len(await listed(browser)) == 3
    done = await browser.form(f"{PATH}/under", confirm="true")
    assert "2 prices approved." in await after(browser, done)
    [left] = await listed(browser)
    assert left["marketplace_id"] == 3


async def test_uploads_runs_and_plans_are_decided_on_the_same_page(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 41))))
    upload = (await seller.import_csv(a_csv(a_row(1, quantity=3))))["id"]
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    [condition] = (await owner.get("/api/today")).json()["conditions"]
    assert (condition["kind"], condition["next_step"]["path"]) == ("upload_in_review", PATH)
    page = (await owner.get(PATH)).text
    form = f"/sync/uploads/{upload}/review"
    assert f'action="{form}"' in page
    assert 'class="badge due">1<' in re.search(r'href="/pricing/reviews".*?</a>', page, re.S)[0]
    hidden = (await staff.get(PATH)).text
    assert form not in hidden
    assert "badge" not in re.search(r'href="/pricing/reviews".*?</a>', hidden, re.S)[0]
    assert (await staff.form(form, decision="discarded", back=PATH)).status_code == 403
    done = await owner.form(form, decision="discarded", back=PATH)
    assert "Upload discarded." in await after(owner, done)
    assert (await owner.form(form, decision="discarded", back="//elsewhere")).status_code in (
        400,
        409,
    )
    assert form not in (await owner.get(PATH)).text


async def test_nothing_chosen_a_broken_choice_and_no_token_change_nothing(shop):
    _, browser = shop
    done = await browser.form(PATH, answer="accepted")
    assert "No prices selected." in await after(browser, done)
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
    assert "Increases over 25% and first prices need your approval." in page
    assert "5% of cards, picked every 30 days, keep their old price as a control group." in page
