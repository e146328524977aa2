"""The pages of pricing over HTTP: what the owner sees and does without a script."""

from __future__ import annotations

import asyncio
import html
import json
import re
from urllib.parse import parse_qs

import pytest

from browsers import joined, signed_in
from builders import NO_AMOUNTS, a_csv, a_row, a_shop
from cardsync.dashboard.messages import sentences
from cardsync.dashboard.navigation import NAVIGATION
from cardsync.dashboard.pages.pricing import TABS, tabs_of
from cardsync.prices.rules.rule_forms import form_of

HOSTILE = '<b onclick="x">A & B</b>'
RULES = "/api/pricing/rules"


@pytest.fixture
async def shop(a_seller):
    return await a_shop(
        a_seller,
        a_row(1, name="Black Lotus", price="5.00", market="9.00", quantity=2),
        a_row(2, name=HOSTILE, price="1.00", market="1.50"),
    )


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
    path, _, query = answer.headers["location"].partition("?")
    return f"{path}?{sentences(parse_qs(query).get('done', [''])[0])}"


async def test_the_rules_stand_in_their_order_with_the_counts_of_the_api(shop):
    browser = await signed_in(shop)
    rule = await made(browser, name=HOSTILE, query="price>2", adjust_bp=500, state="published")
    page = await browser.get("/pricing", params={"counts": 1})
    assert page.status_code == 200
    assert "<b onclick" not in page.text
    assert html.escape(HOSTILE).replace("&quot;", "&#34;") in page.text
    assert "Cards that match price&gt;2: 5% above the market price" in page.text
    analysis = (await browser.get("/api/pricing/rules/analysis")).json()
    [found] = [each for each in analysis["rules"] if each["id"] == rule["id"]]
    assert f'data-label="Cards priced">{found["governs"]}</td>' in page.text
    places = [page.text.index(f'data-rule="{each["id"]}"') for each in await rules_of(browser)]
    assert places == sorted(places)


async def test_a_rule_moves_by_a_form_and_not_over_another_order(shop):
    browser = await signed_in(shop)
    one, two = await made(browser, name="One"), await made(browser, name="Two")
    shown = ",".join(str(rule["id"]) for rule in await rules_of(browser))
    ids = shown.replace(f"{one['id']},{two['id']}", f"{two['id']},{one['id']}")
    assert "reordered" in told(await browser.form("/pricing/order", shown=shown, ids=ids))
    assert [rule["id"] for rule in await rules_of(browser)] == [int(id) for id in ids.split(",")]
    late = await browser.form("/pricing/order", shown=shown, ids=shown)
    assert late.status_code == 409
    assert "a different order" in late.text


async def test_a_rule_is_written_published_switched_off_and_deleted(shop):
    browser = await signed_in(shop)
    was = await hidden(browser, "/pricing/rules/new")
    answer = await browser.form(
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
    assert "Draft saved" in told(answer)
    [rule] = [each for each in await rules_of(browser) if each["name"] == "Foils"]
    assert (rule["adjust_bp"], rule["floor"], rule["cap"]["up_bp"]) == (-250, "0.50", 1000)
    address = f"/pricing/rules/{rule['id']}"
    for what in ("publish", "disable", "enable", "draft", "delete"):
        told(await browser.form(f"{address}/{what}"))
    assert rule["id"] not in [each["id"] for each in await rules_of(browser)]
    assert (await browser.get(address)).status_code == 404
    assert (await browser.get("/activity")).text.count("Foils") >= 1


@pytest.mark.night
async def test_the_sentence_has_every_part_of_a_rule_and_its_fallbacks_in_their_order(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus", adjust_bp=-500, fallback_sources=["low", "current"])
    address = f"/pricing/rules/{rule['id']}"
    page = (await browser.get(address)).text
    sections = re.findall(r'<details class="part" id="(\w+)"(?: open)?>', page)
    assert sections == ["which", "price", "limits", "review", "advanced"]
    named = set(re.findall(r'<(?:input|select) id="f-[^"]*"\s+name="(\w+)"', page))
    assert named == set(form_of(rule))
    chosen = re.findall(r'<option value="(\w+)" selected>', page)
    assert chosen[:4] == ["under", "market", "low", "current"]
    fields = {"name": "Mine", "query": "lotus", "price_source": "market", "rounding": "cent"}
    fields |= {"was": await hidden(browser, address), "face": "form"}
    fields |= {"percent": "7.5", "side": "under"}
    for sent in (["current", "", "low", ""], "current, low"):
        told(await browser.form(address, **fields | {"fallback_sources": sent}))
        stored = (await browser.get(f"{RULES}/{rule['id']}")).json()
        assert (stored["adjust_bp"], stored["fallback_sources"]) == (-750, ["current", "low"])
        fields["was"] = await hidden(browser, address)
    for percent, side, bp in (("-2", "under", -200), ("-2", "above", -200), ("2", "above", 200)):
        part = await browser.form("/pricing/draft", **fields | {"percent": percent, "side": side})
        words = f"{abs(bp) // 100}% {'below' if bp < 0 else 'above'} the market price"
        assert words in part.text


async def test_a_draft_names_the_rules_before_it(shop):
    browser = await signed_in(shop)
    first = await made(browser, name="<b>First</b>", state="published", priority=1)
    fields = {"was": "{}", "face": "text", "text": json.dumps({"query": "lotus"})}
    part = (await browser.form("/pricing/draft", **fields)).text
    link = f'<a href="/pricing/rules/{first["id"]}"><bdi>&lt;b&gt;First&lt;/b&gt;</bdi></a>'
    assert link in " ".join(part.split())


def test_a_page_has_the_tabs_of_its_entry_of_the_navigation():
    names = {
        path: [name for _, name in tabs_of(path, owner=True)]
        for path in ("/pricing/rules/3", "/pricing/rollback/4", "/pricing/sales")
    }
    assert names == {
        "/pricing/rules/3": ["Rules", "Rule tests", "Pins", "Presets", "Limits and fees"],
        "/pricing/rollback/4": ["Runs", "Rollback", "Backtest"],
        "/pricing/sales": [],
    }
    assert tabs_of("/pricing/pins", owner=False) == []
    # Each tab beyond the first of a page has one name of its own.
    tabs = {name for group in TABS if len(group) > 1 for _, name, _ in group[1:]}
    assert tabs.isdisjoint(place.name for group in NAVIGATION for place in group.places)


async def test_what_differs_from_the_live_rule_is_marked(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus", state="published", floor="0.50")
    address = f"/pricing/rules/{rule['id']}"
    page = (await browser.get(address)).text
    assert 'class="differs"' not in page
    assert "differs from live" in page
    assert 'data-stored="0.50"' in page
    fields = {
        "was": await hidden(browser, address),
        "face": "form",
        "name": "Mine",
        "query": "lotus",
        "price_source": "market",
        "fallback_sources": "market",
        "rounding": "cent",
        "floor": "0.75",
    }
    part = (await browser.form(f"/pricing/draft/{rule['id']}", **fields)).text
    assert "Differs from the live rule" in part
    assert "<del><bdi>Never below $0.50.</bdi></del>" in part
    assert "<ins><bdi>Never below $0.75.</bdi></ins>" in part
    # Without a script, the page that shows the effect marks the field.
    page = (await browser.form(address, action="preview", **fields)).text
    marked = re.findall(r'name="(\w+)"[^>]*class="differs"', page)
    assert marked == ["floor"]
    assert page.count('id="in-short"') == part.count('id="in-short"') == 1
    draft = await made(browser, name="Later", query="lotus", state="draft")
    page = (await browser.get(f"/pricing/rules/{draft['id']}")).text
    assert "differs from live" not in page
    assert "draft, not live" in page


async def test_the_text_is_the_same_rule(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus", market_gate={
        "min_listings": 1, "min_sales_30d": 1, "max_age_hours": 24, "undercut_bp": 100,
    })  # fmt: skip
    address = f"/pricing/rules/{rule['id']}"
    was = await hidden(browser, f"{address}?face=text")
    text = json.dumps(json.loads(was) | {"adjust_bp": 700})
    told(await browser.form(address, was=was, face="text", text=text))
    stands = (await browser.get(f"{RULES}/{rule['id']}")).json()
    assert stands["adjust_bp"] == 700
    assert stands["market_gate"] == rule["market_gate"]
    wrong = await browser.form(f"{address}?face=text", was=text, face="text", text="{ no")
    assert wrong.status_code == 422
    assert "{ no</textarea>" in wrong.text


async def test_the_later_of_two_is_shown_both_versions(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus")
    address = f"/pricing/rules/{rule['id']}"
    was = await hidden(browser, address)
    text = json.dumps(json.loads(was) | {"name": "Second"})
    await browser.send("PATCH", f"/api/pricing/rules/{rule['id']}", json={"name": "First"})
    late = await browser.form(address, was=was, face="text", text=text)
    assert late.status_code == 409
    assert "<bdi>First</bdi>" in late.text
    assert "<bdi>Second</bdi>" in late.text
    again = html.unescape(re.search(r'name="was" value="([^"]*)"', late.text)[1])
    told(await browser.form(address, was=again, face="text", text=text))
    assert (await browser.get(f"{RULES}/{rule['id']}")).json()["name"] == "Second"


@pytest.mark.night
async def test_a_rule_shows_what_it_does_without_a_script(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus")
    page = (await browser.get(f"/pricing/rules/{rule['id']}")).text
    answer = await browser.post(
        "/api/pricing/preview/draft", json={"rule_id": rule["id"], "rule": {}}
    )
    effect = page.split('id="draft"')[1]
    assert f"<dt>Matches</dt> <dd>{answer.json()['selects']}</dd>" in effect
    assert "Black Lotus" in effect
    assert 'aria-label="How far prices move"' in effect
    # A script need not ask again for what is there.
    assert 'data-hx-trigger="input delay:250ms"' in page
    assert "Largest changes" in (await browser.get("/pricing/rules/new")).text


async def test_a_rule_that_cannot_be_read_can_be_mended(shop):
    browser = await signed_in(shop)
    made_list = (await browser.post("/api/lists", json={"name": "Gone away"})).json()["id"]
    rule = await made(browser, query="list:gone-away")
    assert (await browser.send("DELETE", f"/api/lists/{made_list}")).status_code == 200
    page = await browser.get(f"/pricing/rules/{rule['id']}")
    assert page.status_code == 200
    assert "gone-away" in page.text.split('id="draft"')[1]


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
    part = await browser.form("/pricing/draft", **fields)
    assert part.status_code == 200, part.text
    answer = await browser.post(
        "/api/pricing/preview/draft",
        json={"rule": {"query": "lotus", "fallback_sources": []}},
    )
    found = answer.json()
    shown = {
        "Matches": "selects",
        "Cards priced": "governs",
        "Up": "up",
        "Down": "down",
        "Limited": "held",
    }
    for label, name in shown.items():
        assert f"<dt>{label}</dt> <dd>{found[name]}</dd>" in part.text
    assert "Black Lotus" in part.text
    assert "Cards that match lotus: the market price." in part.text
    assert "<html" not in part.text
    whole = await browser.form("/pricing/rules/new", action="preview", **fields)
    assert "Black Lotus" in whole.text
    wrong = await browser.form("/pricing/draft", **fields | {"query": "prise>1"})
    assert wrong.status_code == 422
    assert "No filter called" in wrong.text


async def test_red_tests_hold_a_rule_back_until_a_reason_is_given(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus")
    test = {"name": HOSTILE, "search": "lotus", "expectation": "never moves"}
    told(await browser.form("/pricing/tests", **test))
    checked = await browser.get("/pricing/tests", params={"check": 1})
    assert "1 test is failing" in checked.text
    assert "<b onclick" not in checked.text
    address = f"/pricing/rules/{rule['id']}/publish"
    held = await browser.form(address)
    assert held.status_code == 409
    assert 'name="override_reason"' in held.text
    assert "<b onclick" not in held.text
    assert "Live from the next run" in told(
        await browser.form(address, override_reason="The market moved.")
    )
    assert "The market moved." in (await browser.get("/activity")).text
    [row] = (await browser.get("/api/pricing/rule_tests")).json()["rule_tests"]
    wrong = await browser.form("/pricing/tests", **test | {"expectation": "flies"})
    assert wrong.status_code == 422
    assert 'value="flies"' in wrong.text
    told(await browser.form(f"/pricing/tests/{row['id']}", action="delete"))
    assert "No rule tests yet" in (await browser.get("/pricing/tests")).text


async def test_a_preset_is_chosen(shop):
    browser = await signed_in(shop)
    page = await browser.get("/pricing/presets")
    assert page.status_code == 200
    assert "Black Lotus" in page.text
    told(await browser.form("/pricing/presets", preset="buy-box"))
    assert [rule["name"] for rule in await rules_of(browser)] == ["Lowest price"]


OWNERS = ("/pricing/rules/new", "/pricing/tests", "/pricing/presets")


async def test_staff_is_refused_what_owners_do_and_forms_need_their_token(shop):
    staff = await joined(shop, "rules-staff@example.invalid")
    for path in OWNERS:
        assert (await staff.get(path)).status_code == 403, path
    assert (await staff.get("/pricing")).headers["location"] == "/pricing/pins"
    assert 'aria-label="Pricing sections"' not in (await staff.get("/pricing/pins")).text
    owner = await signed_in(shop)
    rule = (await rules_of(owner))[0]
    for path in (f"/pricing/rules/{rule['id']}/delete", "/pricing/order", "/pricing/presets"):
        assert (await staff.form(path, shown="1", ids="1", preset="move")).status_code == 403
        assert (await owner.http.post(path, data={})).status_code == 403


async def test_of_two_at_once_one_is_saved_and_one_is_told(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus")
    address = f"/pricing/rules/{rule['id']}"
    was = await hidden(browser, address)
    answers = await asyncio.gather(
        *(
            browser.form(address, was=was, face="text", text=json.dumps({"adjust_bp": bp}))
            for bp in (100, 200)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [303, 409]


async def test_fields_that_cannot_be_read_are_refused_with_a_sentence(shop):
    browser = await signed_in(shop)
    rule = await made(browser, query="lotus")
    was = await hidden(browser, f"/pricing/rules/{rule['id']}")
    form = {"face": "form", "name": "A", "price_source": "market", "rounding": "cent"}
    text = {"face": "text", "was": was}
    for fields in (
        form | {"was": '{"cap": 5}'},
        form | {"was": "[1]"},
        form | {"was": was, "percent": "1e999999"},
        form | {"was": was, "percent": "nan"},
        form | {"was": was, "floor": "cheap"},
        form | {"was": was, "fallback_sources": "moon"},
        form | {"was": was, "stale_after_days": "9"},
        form | {"was": was, "price_source": ""},
        form | {"was": was, "name": ""},
        text | {"text": '{"adjust_bp": ' + "9" * 5000 + "}"},
        text | {"text": "[" * 50_000},
        text | {"text": '{"floor": NaN}'},
        text | {"text": '{"state": "published"}'},
    ):
        for path in (f"/pricing/rules/{rule['id']}", f"/pricing/draft/{rule['id']}"):
            answer = await browser.form(path, **fields)
            if fields.get("name") == "" and "draft" in path:
                assert answer.status_code == 200
                continue
            assert answer.status_code == 422, (path, fields)
            assert 'role="alert"' in answer.text
    assert (await browser.form("/pricing/order")).status_code == 409
    assert (await browser.form("/pricing/order", shown="x")).status_code == 422
    assert (await browser.form("/pricing/pins", number="9" * 30, price="1")).status_code == 422
    assert (await browser.form("/pricing/pins", number="9" * 18, price="1")).status_code == 404
    far = {"scope": "run_id", "value": "9" * 18}
    assert (await browser.get("/pricing/rollback", params=far)).status_code == 404
    zoned = {"scope": "since", "value": "2026-01-01T08:00:00+02:00"}
    assert (await browser.get("/pricing/rollback", params=zoned)).status_code == 200
    late = {"from": "2030-01-01", "to": "9999-12-31"}
    assert (await browser.get("/pricing/backtest", params=late)).status_code in (200, 422)


OF_OWNERS = ("/pricing/settings", "/pricing/rollback", "/pricing/backtest")


SALES = "/api/pricing/sales"
# The fields of a form that a browser sends of a promotion.
PROMOTION = {
    "name": "Clear out", "query": "lotus", "percent": "12.5", "floor": "", "floor_cost": "0",
    "lower_all": "true", "starts": "2130-01-01T08:00", "ends": "2130-01-02T08:00",
}  # fmt: skip


async def the_sale(browser):
    [sale] = (await browser.get(SALES)).json()["sales"]
    return sale


async def test_a_promotion_begins_as_a_draft_is_scheduled_ended_and_deleted(shop):
    browser = await signed_in(shop)
    assert "/pricing/sales/new?template=clear" in (await browser.get("/pricing/sales")).text
    page = await browser.get("/pricing/sales/new", params={"template": "clear"})
    assert 'value="Clearance"' in page.text
    fields = PROMOTION | {"name": HOSTILE}
    seen = await browser.form("/pricing/sales/new", **fields, action="preview")
    assert "Effect if scheduled" in seen.text
    assert "$10.00" in seen.text  # two copies, listed at 5.00
    assert (await browser.get(SALES)).json()["sales"] == []
    done = told(await browser.form("/pricing/sales/new", **fields, action="save"))
    sale = await the_sale(browser)
    address = f"/pricing/sales/{sale['id']}"
    assert done.startswith(f"{address}?Draft saved.")
    assert (sale["adjust_bp"], sale["enabled"]) == (-1250, False)
    assert (sale["floor_cost_bp"], sale["keep_never_lower"]) == (0, False)
    for path in ("/pricing/sales", address):
        page = await browser.get(path)
        assert "<b onclick" not in page.text
        assert "draft" in page.text
    assert "Schedule for January 1" in (await browser.get(address)).text
    done = told(await browser.form(address, **fields, action="schedule"))
    assert "Promotion scheduled." in done
    assert (await the_sale(browser))["enabled"]
    page = (await browser.get(address)).text
    assert "Save changes" in page
    assert "Save\n      draft" not in page
    told(await browser.form(address, **fields | {"percent": "20"}, action="schedule"))
    sale = await the_sale(browser)
    assert (sale["adjust_bp"], sale["enabled"]) == (-2000, True)
    assert "draft" in told(await browser.form(f"{address}/off"))
    assert not (await the_sale(browser))["enabled"]
    told(await browser.form(f"{address}/delete"))
    assert (await browser.get(SALES)).json()["sales"] == []


async def test_a_promotion_that_is_wrong_keeps_what_was_typed(shop):
    browser = await signed_in(shop)
    for ends in ("9999-12-31T23:59", "never", ""):
        wrong = await browser.form(
            "/pricing/sales/new", **PROMOTION | {"ends": ends, "name": "Kept"}, action="save"
        )
        assert wrong.status_code == 422
        assert "The end" in wrong.text
        assert 'value="Kept"' in wrong.text
    past = PROMOTION | {"starts": "2020-01-01T08:00", "ends": "2020-01-02T08:00"}
    wrong = await browser.form("/pricing/sales/new", **past, action="schedule")
    assert (wrong.status_code, "The end is in the past." in wrong.text) == (422, True)
    part = await browser.form("/pricing/sales/effect", **PROMOTION | {"percent": "none"})
    assert (part.status_code, "Percent " in part.text) == (422, True)
    assert (await browser.get(SALES)).json()["sales"] == []


async def test_a_large_promotion_asks_with_its_figures_before_it_starts(a_limited_seller):
    seller = await a_limited_seller()
    rows = (a_row(n, price="50.00", market="50.00") for n in range(1, 61))
    await seller.import_csv(a_csv(*rows))
    browser = await signed_in(seller)
    fields = PROMOTION | {"query": "", "percent": "20"}
    told(await browser.form("/pricing/sales/new", **fields, action="save"))
    address = f"/pricing/sales/{(await the_sale(browser))['id']}"
    asked = await browser.form(address, **fields, action="schedule")
    assert asked.status_code == 422
    assert all(word in asked.text for word in ("Confirm these prices", "60", "$600.00", "20%"))
    assert not (await the_sale(browser))["enabled"]
    # The API asks the same.
    body = {"enabled": True}
    refused = await browser.send("PATCH", f"/api{address}", json=body)
    assert refused.json()["code"] == "confirmation_needed"
    told(await browser.form(address, **fields, action="schedule", confirm="true"))
    assert (await the_sale(browser))["enabled"]
    again = await browser.send("PATCH", f"/api{address}", json=body | {"confirm": True})
    assert again.status_code == 200


async def test_a_promotion_leaves_out_unknown_costs_and_is_copied_as_a_draft(shop):
    browser = await signed_in(shop)
    fields = PROMOTION | {"unknown": "out"}
    told(await browser.form("/pricing/sales/new", **fields, action="save"))
    sale = await the_sale(browser)
    assert sale["query"] == "(lotus) has:cost"
    address = f"/pricing/sales/{sale['id']}"
    page = (await browser.get(address)).text
    assert re.search(r'name="query" value="lotus"', page)
    assert '<option value="out" selected>' in page
    assert "No cards in stock match" in page
    told(await browser.form(address, **PROMOTION, action="save"))
    assert (await the_sale(browser))["query"] == "lotus"
    copied = told(await browser.form(f"{address}/copy"))
    sales = {one["name"]: one for one in (await browser.get(SALES)).json()["sales"]}
    copy, sale = sales["Copy of Clear out"], sales["Clear out"]
    assert copied.startswith(f"/pricing/sales/{copy['id']}?The copy is a draft.")
    apart = {"id", "name", "priority", "created_at", "updated_at"}
    assert {k: v for k, v in copy.items() if k not in apart} == {
        k: v for k, v in sale.items() if k not in apart
    }
    assert not copy["enabled"]


async def test_settings_are_saved_and_not_over_anothers_change(shop):
    browser = await signed_in(shop)
    stands = (await browser.get("/api/pricing/settings")).json()
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str("" if value is None else value)
        for name, value in stands.items()
    }
    was = {f"was:{name}": text for name, text in texts.items()}
    page = await browser.get("/pricing/settings")
    for name, text in texts.items():
        assert f'name="was:{name}" value="{text}"' in page.text
    mine = {"minimum_move": "0.25", "hard_floor": "0.35", "repricing_scope": "games_with_rules"}
    told(await browser.form("/pricing/settings", **was, **texts | mine))
    now = (await browser.get("/api/pricing/settings")).json()
    assert {name: now[name] for name in mine} == mine
    late = await browser.form("/pricing/settings", **was, **texts | {"minimum_move": "0.75"})
    assert late.status_code == 409
    assert "<bdi>0.25</bdi>" in late.text
    assert 'value="0.75"' in late.text
    part = {"was:minimum_move": texts["minimum_move"], "minimum_move": "0.75"}
    assert (await browser.form("/pricing/settings", **part)).status_code == 409
    wrong = await browser.form("/pricing/settings", **was, **texts | {"max_age_hours": "old"})
    assert wrong.status_code == 422
    assert 'value="old"' in wrong.text
    for name in ("minimum_move", "hard_floor", "shipping_adder", "direct_minimum", "review_up_bp"):
        for amount in NO_AMOUNTS:
            given = {f"was:{name}": texts[name] if name not in mine else mine[name], name: amount}
            wrong = await browser.form("/pricing/settings", **given)
            assert (wrong.status_code, f'value="{amount}"' in wrong.text) == (422, True), amount


async def test_a_card_is_pinned_by_its_number_and_unpinned(shop):
    browser = await signed_in(shop)
    told(await browser.form("/pricing/pins", number="2", price="3.50"))
    page = await browser.get("/pricing/pins")
    assert "<b onclick" not in page.text
    assert "1 card" in page.text
    wrong = await browser.form("/pricing/pins", number="7", price="3.50")
    assert wrong.status_code == 404
    # The picker finds a card as the page of cards does, with its price to begin with.
    found = (await browser.get("/pricing/pins", params={"find": "Black Lotus"})).text
    assert 'name="number" value="1"' in found
    assert "No cards found" not in found
    assert "No cards found" in (await browser.get("/pricing/pins?find=nowhere")).text
    told(await browser.form("/pricing/pins", number="2", action="unpin"))
    assert "No pinned prices" in (await browser.get("/pricing/pins")).text


async def test_the_runs_show_the_figures_of_the_api(shop):
    browser = await signed_in(shop)
    address = told(await browser.form("/pricing/reprice"))
    await shop.service.run_jobs()
    runs = (await browser.get("/api/pricing/runs")).json()["runs"]
    page = await browser.get("/pricing/runs")
    for run in runs:
        assert f'href="/pricing/runs/{run["id"]}"' in page.text
        for label, count in (("Limited by cap", run["held"]), ("Needs review", run["reviewed"])):
            assert f'data-label="{label}">{count}</td>' in page.text
        assert f'data-label="New prices">{run["changed"]}</td>' in page.text
    one = await browser.get(address.split("?")[0])
    assert one.status_code == 200
    assert (await browser.get("/pricing/runs/999999")).status_code == 404
    again = await browser.form(f"/pricing/runs/{runs[0]['id']}/confirm")
    assert again.status_code == 409
    assert (await browser.get("/pricing/runs/export.csv")).text.startswith("id,trigger")


async def test_a_run_in_review_is_confirmed_or_discarded(a_seller):
    for what, state in (("confirm", "completed"), ("discard", "discarded")):
        seller = await a_seller()
        rows = [a_row(n, market="1.00", price="1.00") for n in range(1, 21)]
        await seller.import_csv(a_csv(*rows))
        report = await seller.import_csv(a_csv(*rows[:9], a_row(99)))
        assert report["state"] == "awaiting_review"
        browser = await signed_in(seller)
        run = (await browser.get("/api/pricing/runs")).json()["runs"][0]
        address = f"/pricing/runs/{run['id']}"
        page = (await browser.get(address)).text
        assert f"{address}/{what}" in page
        assert "<bdi>needs review</bdi>" in page
        assert re.search(r"Trigger:\s+sync", page)
        told(await browser.form(f"{address}/{what}"))
        await seller.service.run_jobs()
        assert (await browser.get(f"/api{address}")).json()["state"] == state


async def test_a_rollback_is_a_diff_first(shop):
    browser = await signed_in(shop)
    await made(browser, name="At the market", state="published")
    await browser.form("/pricing/reprice")
    await shop.service.run_jobs()
    run = (await browser.get("/api/pricing/runs")).json()["runs"][0]["id"]
    scope = {"scope": "run_id", "value": str(run)}
    page = await browser.get("/pricing/rollback", params=scope)
    dry = await browser.post("/api/pricing/rollbacks", json={"run_id": run, "dry_run": True})
    assert dry.json()["cards"] > 0
    assert f"{dry.json()['cards']} cards would go back" in page.text
    # The marketplace has the earlier price still: the change is from the price that is asked.
    assert "no change" not in page.text
    for card in dry.json()["diff"]:
        assert card["current_price"] == card["price"] != card["asked_price"]
        assert f'data-label="Target"><span class="money">${card["asked_price"]}<' in page.text
    assert "<b onclick" not in page.text
    assert (await browser.get("/api/pricing/rollbacks")).json()["rollbacks"] == []
    address = told(await browser.form("/pricing/rollback", **scope)).split("?")[0]
    assert "Black Lotus" in (await browser.get(address)).text
    told(await browser.form(f"{address}/cancel"))
    [rollback] = (await browser.get("/api/pricing/rollbacks")).json()["rollbacks"]
    assert rollback["state"] == "cancelled"
    page = (await browser.get(address)).text
    assert "<bdi>canceled</bdi>" in page
    assert ", ended" in page
    assert (await browser.form("/pricing/rollback", **scope | {"value": "x"})).status_code == 422
    unknown = {"scope": "list", "value": "nowhere"}
    assert (await browser.get("/pricing/rollback", params=unknown)).status_code == 404
    since = {"scope": "since", "value": "2020-01-01T08:00"}
    assert (await browser.get("/pricing/rollback", params=since)).status_code == 200


@pytest.mark.night
async def test_what_is_rolled_back_is_picked(shop):
    browser = await signed_in(shop)
    made = await browser.post("/api/lists", json={"name": "Binder"})
    page = (await browser.get("/pricing/rollback")).text
    [rule] = await rules_of(browser)
    runs = [
        run for run in (await browser.get("/api/pricing/runs")).json()["runs"] if run["changed"]
    ]
    assert runs
    choices = [f"list:{made.json()['id']}", f"rule_id:{rule['id']}"]
    choices += [f"run_id:{run['id']}" for run in runs]
    for choice in choices:
        assert f'<option value="{choice}">' in page
        picked = await browser.get("/pricing/rollback", params={"what": choice})
        assert picked.status_code == 200
        assert f'<option value="{choice}" selected>' in picked.text
    by_run = await browser.get("/pricing/rollback", params={"what": f"run_id:{runs[-1]['id']}"})
    told_apart = {"scope": "run_id", "value": str(runs[-1]["id"])}
    assert "would go back to an earlier price" in by_run.text
    assert (
        "would go back to an earlier price"
        in (await browser.get("/pricing/rollback", params=told_apart)).text
    )


async def test_a_backtest_shows_each_day(shop):
    browser = await signed_in(shop)
    page = await browser.get("/pricing/backtest")
    assert page.status_code == 200
    form = dict(re.findall(r'name="(from|to)" type="date" value="([^"]*)"', page.text))
    found = await browser.get("/pricing/backtest", params=form)
    rules = [rule for rule in await rules_of(browser) if rule["state"] == "published"]
    asked = await browser.post("/api/pricing/backtest", json=form | {"rules": rules})
    for day in asked.json()["days"]:
        assert day["date"] in found.text
    assert "Listed value by day" in found.text
    wrong = await browser.get("/pricing/backtest", params={"from": "soon", "to": "later"})
    assert wrong.status_code == 422


async def test_staff_reads_sales_pins_and_runs_only(shop):
    staff = await joined(shop, "prices-staff@example.invalid")
    for path in OF_OWNERS:
        assert (await staff.get(path)).status_code == 403, path
    for path in ("/pricing/sales", "/pricing/pins", "/pricing/runs"):
        page = await staff.get(path)
        assert page.status_code == 200, path
        assert 'method="post"' not in page.text
        assert "/pricing/settings" not in page.text
    owner = await signed_in(shop)
    sale = {"name": "A", "percent": "5", "ends": "2130-01-01T08:00"}
    for path in ("/pricing/sales/new", "/pricing/pins", "/pricing/rollback", "/pricing/reprice"):
        fields = sale | {"number": "1", "price": "1.00", "scope": "run_id", "value": "1"}
        assert (await staff.form(path, **fields)).status_code == 403, path
        assert (await owner.http.post(path, data=fields)).status_code == 403, path
