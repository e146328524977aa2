"""The pages of pricing over HTTP: what the owner sees and does without a script."""

from __future__ import annotations

import html
import json
import re
from urllib.parse import unquote_plus

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row

HOSTILE = '<b onclick="x">A & B</b>'
RULES = "/api/pricing/rules"


@pytest.fixture
async def shop(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(
            a_row(1, name="Black Lotus", price="5.00", market="9.00", quantity=2),
            a_row(2, name=HOSTILE, price="1.00", market="1.50"),
        )
    )
    return seller


async def sent(browser, path, **fields):
    data = {"csrf_token": browser.session["csrf_token"], **fields}
    return await browser.http.post(path, data=data)


async def rules_of(browser):
    return (await browser.get(RULES)).json()["rules"]


async def made(browser, **fields):
    answer = await browser.post(RULES, json={"name": "Mine"} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def hidden(browser, path):
    """Return the rule that the page's form was made from."""
    page = await browser.get(path)
    assert page.status_code == 200, page.text
    return html.unescape(re.search(r'name="was" value="([^"]*)"', page.text)[1])


def told(answer):
    assert answer.status_code == 303, answer.text
    return unquote_plus(answer.headers["location"])


async def test_the_rules_stand_in_their_order_with_the_counts_of_the_api(shop):
    browser = await signed_in(shop)
    rule = await made(browser, name=HOSTILE, query="price>2", adjust_bp=500, state="published")
    page = await browser.get("/pricing", params={"counts": 1})
    assert page.status_code == 200
    assert "<b onclick" not in page.text
    assert html.escape(HOSTILE).replace("&quot;", "&#34;") in page.text
    assert "Cards that match price&gt;2 ask 5 % above the market price" in page.text
    analysis = (await browser.get("/api/pricing/rules/analysis")).json()
    [found] = [each for each in analysis["rules"] if each["id"] == rule["id"]]
    assert f'data-label="Governs">{found["governs"]}</td>' in page.text
    places = [page.text.index(f'data-rule="{each["id"]}"') for each in await rules_of(browser)]
    assert places == sorted(places)


async def test_a_rule_moves_by_a_form_and_not_over_another_order(shop):
    browser = await signed_in(shop)
    one, two = await made(browser, name="One"), await made(browser, name="Two")
    shown = ",".join(str(rule["id"]) for rule in await rules_of(browser))
    ids = shown.replace(f"{one['id']},{two['id']}", f"{two['id']},{one['id']}")
    assert "new order" in told(await sent(browser, "/pricing/order", shown=shown, ids=ids))
    assert [rule["id"] for rule in await rules_of(browser)] == [int(id) for id in ids.split(",")]
    late = await sent(browser, "/pricing/order", shown=shown, ids=shown)
    assert late.status_code == 409
    assert "another order by now" in late.text


async def test_a_rule_is_written_published_switched_off_and_deleted(shop):
    browser = await signed_in(shop)
    was = await hidden(browser, "/pricing/rules/new")
    answer = await sent(
        browser,
        "/pricing/rules/new",
        was=was,
        face="form",
        name="Foils",
        query="lotus",
        price_source="low",
        fallback_sources="market",
        percent="-2.5",
        floor="0.50",
        rounding="x99",
        cap_up="10",
        action="save",
    )
    assert "The draft is saved" in told(answer)
    [rule] = [each for each in await rules_of(browser) if each["name"] == "Foils"]
    assert (rule["adjust_bp"], rule["floor"], rule["cap"]["up_bp"]) == (-250, "0.50", 1000)
    address = f"/pricing/rules/{rule['id']}"
    for what in ("publish", "disable", "enable", "draft", "delete"):
        told(await sent(browser, f"{address}/{what}"))
    assert rule["id"] not in [each["id"] for each in await rules_of(browser)]
    assert (await browser.get(address)).status_code == 404
    assert (await browser.get("/activity")).text.count("Foils") >= 1


async def test_the_text_is_the_same_rule(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus", market_gate={
        "min_listings": 1, "min_sales_30d": 1, "max_age_hours": 24, "undercut_bp": 100,
    })  # fmt: skip
    address = f"/pricing/rules/{rule['id']}"
    was = await hidden(browser, f"{address}?face=text")
    text = json.dumps(json.loads(was) | {"adjust_bp": 700})
    told(await sent(browser, address, was=was, face="text", text=text))
    stands = (await browser.get(f"{RULES}/{rule['id']}")).json()
    assert stands["adjust_bp"] == 700
    assert stands["market_gate"] == rule["market_gate"]
    wrong = await sent(browser, f"{address}?face=text", was=text, face="text", text="{ no")
    assert wrong.status_code == 422
    assert "{ no</textarea>" in wrong.text


async def test_the_later_of_two_is_shown_both_versions(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus")
    address = f"/pricing/rules/{rule['id']}"
    was = await hidden(browser, address)
    text = json.dumps(json.loads(was) | {"name": "Second"})
    await browser.send("PATCH", f"/api/pricing/rules/{rule['id']}", json={"name": "First"})
    late = await sent(browser, address, was=was, face="text", text=text)
    assert late.status_code == 409
    assert "<bdi>First</bdi>" in late.text
    assert "<bdi>Second</bdi>" in late.text
    again = html.unescape(re.search(r'name="was" value="([^"]*)"', late.text)[1])
    told(await sent(browser, address, was=again, face="text", text=text))
    assert (await browser.get(f"{RULES}/{rule['id']}")).json()["name"] == "Second"


async def test_the_draft_shows_the_figures_of_the_api(shop):
    browser = await signed_in(shop)
    was = await hidden(browser, "/pricing/rules/new")
    fields = {
        "was": was,
        "face": "form",
        "name": "Lotus",
        "query": "lotus",
        "price_source": "market",
        "rounding": "cent",
        "percent": "0",
    }
    part = await sent(browser, "/pricing/draft", **fields)
    assert part.status_code == 200, part.text
    answer = await browser.post(
        "/api/pricing/preview/draft",
        json={"rule": {"query": "lotus", "fallback_sources": []}},
    )
    found = answer.json()
    for name in ("selects", "governs", "up", "down", "held"):
        assert f"<dt>{name.title()}</dt>\n  <dd>{found[name]}</dd>" in part.text
    assert "Black Lotus" in part.text
    assert "<html" not in part.text
    whole = await sent(browser, "/pricing/rules/new", action="preview", **fields)
    assert "Black Lotus" in whole.text
    wrong = await sent(browser, "/pricing/draft", **fields | {"query": "prise>1"})
    assert wrong.status_code == 422
    assert "rule.query" in wrong.text or "Rule.query" in wrong.text


async def test_red_tests_hold_a_rule_back_until_a_reason_is_given(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus")
    test = {"name": HOSTILE, "search": "lotus", "expectation": "never moves"}
    told(await sent(browser, "/pricing/tests", **test))
    checked = await browser.get("/pricing/tests", params={"check": 1})
    assert "1 test is red" in checked.text
    assert "<b onclick" not in checked.text
    address = f"/pricing/rules/{rule['id']}/publish"
    held = await sent(browser, address)
    assert held.status_code == 409
    assert 'name="override_reason"' in held.text
    assert "<b onclick" not in held.text
    assert "live from the next run" in told(
        await sent(browser, address, override_reason="The market moved.")
    )
    assert "The market moved." in (await browser.get("/activity")).text
    [row] = (await browser.get("/api/pricing/rule_tests")).json()["rule_tests"]
    wrong = await sent(browser, "/pricing/tests", **test | {"expectation": "flies"})
    assert wrong.status_code == 422
    assert 'value="flies"' in wrong.text
    told(await sent(browser, f"/pricing/tests/{row['id']}", action="delete"))
    assert "There are no rule tests yet" in (await browser.get("/pricing/tests")).text


async def test_a_preset_is_chosen(shop):
    browser = await signed_in(shop)
    page = await browser.get("/pricing/presets")
    assert page.status_code == 200
    assert "Black Lotus" in page.text
    told(await sent(browser, "/pricing/presets", preset="buy-box"))
    assert [rule["name"] for rule in await rules_of(browser)] == ["Buy box"]


OWNERS = ("/pricing/rules/new", "/pricing/tests", "/pricing/presets")


async def test_staff_is_refused_what_owners_do_and_forms_need_their_token(shop):
    staff = await joined(shop, "rules-staff@example.invalid")
    for path in OWNERS:
        assert (await staff.get(path)).status_code == 403, path
    assert (await staff.get("/pricing")).headers["location"] == "/pricing/runs"
    owner = await signed_in(shop)
    rule = (await rules_of(owner))[0]
    for path in (f"/pricing/rules/{rule['id']}/delete", "/pricing/order", "/pricing/presets"):
        assert (await sent(staff, path, shown="1", ids="1", preset="move")).status_code == 403
        assert (await owner.http.post(path, data={})).status_code == 403
