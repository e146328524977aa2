"""A card that a cap keeps from its rule's price says so on every page, in searches and in counts, and
no cap is smaller than one step.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cards_builder import found
from cardsync.platform import clock
from cardsync.prices.engine.periods import week_start

# Of the first three, the daily cap of 15 % is less than a cent.
PENNIES = [
    a_row(1, name="Bulk common", price="0.06", market="0.30", low="0.30", quantity=4),
    a_row(2, name="Bulk uncommon", price="0.05", market="0.05", low="0.05"),
    a_row(3, name="Bulk token", price="0.02", market="0.09", low="0.09"),
    a_row(4, name="Dear card", price="100.00", market="100.00", low="100.00"),
]


@pytest.fixture
def at_noon():
    """Noon of a Wednesday in New York, so that hours later it is still that day."""
    there = clock.now()
    clock.shift(week_start(there, "America/New_York") + timedelta(days=9, hours=12) - there)
    yield
    clock.reset()


async def targets(seller):
    return [str(card["target_price"]) for card in await seller.cards()]


async def at_their_targets(seller):
    """The marketplace shows the prices that were asked, and the shop sends them again."""
    prices = await targets(seller)
    rows = [
        row | {"TCG Marketplace Price": f"{float(price):.2f}"}
        for row, price in zip(PENNIES, prices, strict=True)
    ]
    clock.shift(timedelta(hours=1))
    await seller.import_csv(a_csv(*rows))


def change_of(page, name):
    row = re.search(rf"<tr[^>]*>(?:(?!</tr>).)*{name}.*?</tr>", page, re.DOTALL)[0]
    return re.search(r'data-label="Change">(.*?)</td>', row, re.DOTALL)[1]


async def test_most_cheap_cards_move_by_a_step_a_day_until_they_are_where_they_belong(
    a_seller, at_noon
):
    seller = await a_seller(capped=True)
    await seller.import_csv(a_csv(*PENNIES))
    # One cent of 0.30 is under the market; "never lower" leaves the rest.
    assert await targets(seller) == ["0.1100", "0.0500", "0.0700", "100.0000"]
    await at_their_targets(seller)
    assert await targets(seller) == ["0.1100", "0.0500", "0.0700", "100.0000"]
    clock.shift(timedelta(days=1))
    await at_their_targets(seller)
    assert await targets(seller) == ["0.1600", "0.0500", "0.0900", "100.0000"]
    assert await found(seller, "is:capped") == [1]


async def test_a_limited_card_says_so_wherever_it_stands(a_seller, at_noon):
    seller = await a_seller(capped=True)
    await seller.import_csv(a_csv(*PENNIES))
    await at_their_targets(seller)
    browser = await signed_in(seller)
    cards = (await browser.get("/cards")).text
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    for name, asks in (("Bulk common", "$0.30"), ("Bulk token", "$0.09")):
        told = change_of(cards, name)
        assert "limited by daily cap" in told
        assert asks in told
        assert "on target" not in told
    assert "on target" in change_of(cards, "Bulk uncommon")
    for search in ("is:held", "is:capped"):
        assert await found(seller, search) == [1, 3]
    assert await found(seller, "is:stuck") == []
    [run, *_] = (await seller.get("/api/pricing/runs")).json()["runs"]
    preview = (await seller.post("/api/pricing/preview", json={})).json()
    assert (run["held"], preview["held"], preview["unchanged"]) == (2, 2, 2)
    draft = {"rule": {"cap": rule["cap"]}, "rule_id": rule["id"]}
    drafted = (await seller.post("/api/pricing/preview/draft", json=draft)).json()
    assert drafted["held"] == 2
    presets = (await seller.get("/api/pricing/presets")).json()["presets"]
    [competitive] = [one for one in presets if one["preset"] == "competitive"]
    assert competitive["preview"]["held"] == 2
    told = "are limited by the daily cap of 20% (15% below $5.00)."
    for path in ("/pricing/presets", "/set-up/presets", f"/pricing/rules/{rule['id']}"):
        page = re.sub(r"<[^>]*>|\s+", " ", (await browser.get(path)).text)
        assert f"2 cards {told}" in re.sub(" +", " ", page), path
    ran = (await browser.get(f"/pricing/runs/{run['id']}")).text
    assert "Limited by cap" in ran
    [card] = (await seller.get("/api/cards?search=common")).json()["cards"]
    page = (await browser.get(f"/cards/{card['id']}")).text
    assert "on target" not in page
    assert "limited by daily cap" in page
    drawer = (await browser.get(f"/cards?card={card['id']}")).text.partition('id="peek"')[2]
    assert "limited by daily cap" in drawer.partition("</aside>")[0]
    # It goes on by itself tomorrow, so it is nobody's work today.
    conditions = (await seller.get("/api/today")).json()["conditions"]
    assert "prices_held" not in {one["kind"] for one in conditions}


async def test_the_first_look_counts_what_a_cap_limits(a_seller, at_noon):
    seller = await a_seller(capped=True, sync_mode="read_only")
    upload = await seller.import_csv(a_csv(*PENNIES))
    browser = await signed_in(seller)
    page = (await browser.get(f"/set-up/uploads/{upload['id']}")).text
    assert "2 cards</a>" in page
    assert "are limited by a cap." in page


async def test_a_card_that_its_rule_holds_is_work_and_says_what_the_rule_asks(a_seller):
    seller = await a_seller()
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    cap = {"cap": {"mode": "hold", "up_bp": 1_000, "down_bp": 1_000, "period": "week"}}
    answer = await seller.http.patch(f"/api/pricing/rules/{rule['id']}", json=cap)
    assert answer.status_code == 200, answer.text
    await seller.import_csv(a_csv(a_row(1, price="10.00", market="20.00")))
    assert await found(seller, "is:stuck") == await found(seller, "is:held") == [1]
    [badge] = (await seller.get("/api/market_depth/badges?marketplace_id=1")).json()["cards"]
    held = badge["held"]
    assert (held["reason"], held["price"], held["cap_period"]) == ("cap", "19.80", "week")
    assert held["message"].endswith("so the price stays the same.")
    [one] = [
        each
        for each in (await seller.get("/api/today")).json()["conditions"]
        if each["kind"] == "prices_held"
    ]
    assert one["count"] == 1
    # The cap goes: the next run limits nothing.
    answer = await seller.http.patch(f"/api/pricing/rules/{rule['id']}", json={"cap": None})
    assert answer.status_code == 200, answer.text
    await seller.import_csv(a_csv(a_row(1, price="10.00", market="20.00")))
    assert await found(seller, "is:held") == []


async def test_the_least_step_is_a_setting_at_every_door(a_seller, at_noon):
    seller = await a_seller(capped=True)
    await seller.import_csv(a_csv(*PENNIES))

    async def changed(value, status=200):
        answer = await seller.http.patch("/api/pricing/settings", json={"minimum_cap_step": value})
        assert answer.status_code == status, answer.text
        return answer.json()

    settings = (await seller.get("/api/pricing/settings")).json()
    assert settings["minimum_cap_step"] == "0.05"
    for wrong in ("-0.01", "100.01", None, "much"):
        said = await changed(wrong, 422)
        assert "minimum_cap_step" in said["error"]
    assert (await changed("0.02"))["minimum_cap_step"] == "0.02"
    await seller.service.run_jobs()
    preview = (await seller.post("/api/pricing/preview", json={})).json()
    assert preview["held"] == 2
    browser = await signed_in(seller)
    form = {"was:minimum_cap_step": "0.02", "minimum_cap_step": "0.10"}
    assert (await browser.form("/pricing/settings", **form)).status_code in (302, 303)
    assert (await browser.get("/api/pricing/settings")).json()["minimum_cap_step"] == "0.10"
    told = await seller.get("/api/v1/pricing/explain/1")
    step = next(one for one in told.json()["steps"] if one["name"] == "cap")
    assert (step["minimum_cap_step"], step["seller_limit"]) == ("0.10", "0.16")
    [entry, *_] = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    undone = await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    assert undone.status_code == 200, undone.text
    assert (await seller.get("/api/pricing/settings")).json()["minimum_cap_step"] == "0.02"


async def test_the_limits_of_cheap_cards_are_edited_in_the_sentence(a_seller):
    seller = await a_seller(capped=True)
    browser = await signed_in(seller)
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    page = (await browser.get(f"/pricing/rules/{rule['id']}")).text
    fields = dict(re.findall(r'<input id="f-([a-z_]+)"\s+name="[a-z_]+" value="([^"]*)"', page))
    assert [fields[name] for name in ("small_below", "small_up", "small_down")] == [
        "5.00",
        "15",
        "15",
    ]
    was = {"csrf_token": browser.session["csrf_token"], "face": "form", "action": "save"}
    was |= {"was": re.search(r'name="was" value="([^"]*)"', page)[1].replace("&#34;", '"')}
    was |= fields | {"price_source": "market", "side": "under", "rounding": "cent"}
    was |= {"cap_period": "day", "cap_mode": "clamp", "never_lower": "true"}
    was |= {"fallback_sources": "low"}

    async def saved(status=303, **texts):
        answer = await browser.form(f"/pricing/rules/{rule['id']}", **was | texts)
        assert answer.status_code == status, answer.text
        [now] = (await seller.get("/api/pricing/rules")).json()["rules"]
        return answer.text, now["cap"]["small"]

    said, small = await saved(422, small_below="")
    assert "required when cheap cards have their own limits" in said
    assert small == rule["cap"]["small"]
    _, small = await saved(small_below="2.50", small_up="40", small_down="")
    assert small == {"below": "2.50", "up_bp": 4_000, "down_bp": None}


async def test_a_cap_that_still_holds_a_price_is_not_written_again(a_seller, at_noon):
    seller = await a_seller(capped=True)
    await seller.import_csv(a_csv(*PENNIES))
    stored = "SELECT marketplace_id, ctid::text, xmin::text, xmax::text FROM price_decision"
    stored += " WHERE seller_id = :id AND kind = 'cap' ORDER BY marketplace_id"
    before = await seller.service.sql(seller.id, stored, id=seller.id)
    assert [row["marketplace_id"] for row in before] == [1, 3]
    clock.shift(timedelta(hours=1))
    free = PENNIES[2] | {"TCG Market Price": "0.02", "TCG Low Price": "0.02"}
    await seller.import_csv(a_csv(PENNIES[0], PENNIES[1], free, PENNIES[3]))
    assert await seller.service.sql(seller.id, stored, id=seller.id) == before[:1]
