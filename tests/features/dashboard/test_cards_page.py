"""The pages of cards over HTTP: what a signed-in member sees, without a script."""

from __future__ import annotations

import asyncio
import html
import re
from datetime import timedelta
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop
from cardsync.platform import clock
from lots_builder import add, settle
from orders_builder import an_item, an_order
from rollbacks_builder import repriced

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'


@pytest.fixture
async def shop(a_seller):
    return await a_shop(
        a_seller, a_row(1, name="Black Lotus", price="5.00", market="9.00"), a_row(2, name=HOSTILE)
    )


@pytest.mark.night
async def test_the_table_shows_what_the_api_answers(shop):
    browser = await signed_in(shop)
    page = await browser.get("/cards")
    answer = (await browser.get("/api/cards")).json()
    assert page.status_code == 200
    assert f"{answer['total']} cards" in page.text
    for card in answer["cards"]:
        assert f'href="/cards/{card["id"]}?at=' in page.text


@pytest.mark.night
async def test_a_target_that_is_the_price_and_one_that_is_not_there_are_told_in_words(a_seller):
    same = a_row(1, price="1.00", market="1.00", low="")
    seller = await a_shop(a_seller, same, a_row(2, price="1.00", market="", low="", quantity=3))
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    path = f"/api/pricing/rules/{rule['id']}"
    body = {"adjust_bp": 0, "undercut_up_bp": None, "fallback_sources": []}
    assert (await seller.http.patch(path, json=body)).status_code == 200
    await repriced(seller)
    cards = {card["marketplace_id"]: card for card in await all_cards(seller)}
    assert (cards[1]["target_price"], cards[2]["target_price"]) == ("1.00", None)
    page = (await (await signed_in(seller)).get("/cards?sort=quantity")).text
    targets = re.findall(r'data-label="Target">(.*?)</td>', page)
    changes = re.findall(r'data-label="Change">(.*?)</td>', page)
    assert ["$1.00" in target for target in targets] == [True, False]
    assert ["none" in target for target in targets] == [False, True]
    assert ["on target" in change for change in changes] == [True, False]
    assert ["no target" in change for change in changes] == [False, True]


@pytest.mark.night
async def test_names_are_shown_as_text(shop):
    browser = await signed_in(shop)
    page = await browser.get("/cards")
    assert "<b onclick" not in page.text
    assert "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;" in page.text


@pytest.mark.night
async def test_a_search_has_chips_and_an_error_stands_under_its_word(shop):
    browser = await signed_in(shop)
    page = await browser.get("/cards", params={"search": "lotus price>1"})
    assert "Black Lotus" in page.text
    assert 'href="/cards?search=price%3E1"' in page.text
    wrong = await browser.get("/cards", params={"search": "lotus prise>1"})
    assert wrong.status_code == 200
    assert 'aria-invalid="true"' in wrong.text


@pytest.mark.night
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
    assert "page <span data-page-now>2</span> of" in second.text
    assert 'rel="prev"' in second.text
    assert 'rel="next"' not in second.text


@pytest.mark.night
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


async def all_cards(browser):
    return (await browser.get("/api/cards", params={"status": "all"})).json()["cards"]


@pytest.mark.night
async def test_a_wrong_word_is_marked_where_it_stands(shop):
    browser = await signed_in(shop)
    page = await browser.get("/cards", params={"search": "lotus prise>1 foil"})
    assert "<bdi>lotus </bdi><mark><bdi>prise&gt;1</bdi></mark><bdi> foil</bdi>" in page.text
    # The word that was meant is a link, and nothing says that the search found nothing.
    [meant] = re.findall(r'Did you mean <a\s+href="([^"]+)"><bdi>price</bdi></a>\?', page.text)
    assert meant == "/cards?search=lotus+price%3E1+foil"
    assert "No cards match" not in page.text
    nothing = await browser.get("/cards", params={"search": "nothing-is-so"})
    assert "No cards match" in nothing.text


@pytest.mark.night
async def test_one_card_is_one_card(shop):
    browser = await signed_in(shop)
    page = await browser.get("/cards", params={"search": "lotus"})
    assert "1 card<" in page.text


@pytest.mark.night
async def test_columns_stand_in_the_address_and_are_kept(shop):
    browser = await signed_in(shop)
    page = await browser.get(
        "/cards", params={"columns": "low,marketplace_id,nonsense", "edit": "columns"}
    )
    heads = page.text.split("<thead")[1].split("</thead>")[0]
    assert "SKU" in heads
    assert "Market" not in heads
    assert 'href="/cards?columns=marketplace_id%2Clow&amp;edit=columns"' in page.text
    assert "sort=price&amp;direction" not in page.text
    kept = await browser.form("/cards/columns", columns="low,marketplace_id", whose="shop")
    assert kept.status_code == 303
    staff = await joined(shop, "columns-of-cards@example.invalid")
    assert "SKU" in (await staff.get("/cards")).text.split("<thead")[1].split("</thead>")[0]
    assert 'value="shop"' not in (await staff.get("/cards?edit=columns")).text
    refused = await staff.form("/cards/columns", columns="low", whose="shop")
    assert refused.status_code == 403
    assert (await staff.form("/cards/columns", columns="price", whose="me")).status_code == 303
    assert "SKU" not in (await staff.get("/cards")).text.split("<thead")[1].split("</thead>")[0]
    assert (await browser.form("/cards/columns", columns="secret")).status_code == 422


async def test_a_search_is_saved_renamed_moved_and_deleted(shop):
    browser = await signed_in(shop)
    for name, search in ((HOSTILE, "price>1"), ("Foils", "is:foil or lotus")):
        done = await browser.form("/cards/searches", name=name, search=search, game="magic")
        assert done.status_code == 303, done.text
    page = await browser.get(done.headers["location"])
    assert "<b onclick" not in page.text
    first, second = (await browser.get("/api/saved_searches")).json()["saved_searches"]
    assert (first["query"], second["query"]) == (
        "price>1 pl:magic",
        "(is:foil or lotus) pl:magic",
    )
    await browser.form(f"/cards/searches/{second['id']}", action="1")
    await browser.form(f"/cards/searches/{second['id']}", action="rename", name="Shiny")
    names = [
        one["name"] for one in (await browser.get("/api/saved_searches")).json()["saved_searches"]
    ]
    assert names == ["Shiny", HOSTILE.replace("\u202e", "")]
    assert "<bdi>Shiny</bdi>" in (await browser.get("/cards")).text
    await browser.form(f"/cards/searches/{first['id']}", action="delete")
    assert len((await browser.get("/api/saved_searches")).json()["saved_searches"]) == 1
    taken = await browser.form("/cards/searches", name="SHINY", search="a")
    assert (taken.status_code, "already" in taken.text) == (422, True)
    wrong = await browser.form("/cards/searches", name="Other", search="prise>1", game="magic")
    assert wrong.status_code == 422


async def test_the_selected_are_shelved_pinned_and_unpinned(shop):
    browser = await signed_in(shop)
    cards = await all_cards(browser)
    page = ",".join(str(card["id"]) for card in cards)
    shelved = await browser.form(
        "/cards/shelve", scope="page", page_ids=page, box="3", start_slot="1", per_slot="2"
    )
    assert shelved.headers["location"].startswith("/cards?done=")
    assert {place["box"] for card in await all_cards(browser) for place in card["locations"]} == {3}
    wrong = await browser.form("/cards/shelve", scope="page", page_ids=page, box="0")
    assert "Box must be 1 or more" in wrong.text
    await browser.form("/cards/pin", scope="all", search="price>0")
    pinned = (await browser.get("/api/cards", params={"search": "is:pinned"})).json()["total"]
    assert pinned == 2
    await browser.form("/cards/unpin", scope="rows", card_ids=str(cards[0]["id"]))
    pinned = (await browser.get("/api/cards", params={"search": "is:pinned"})).json()["total"]
    assert pinned == 1


async def test_two_callers_who_pin_and_unpin_the_same_cards_both_come_to_their_end(shop):
    browser = await signed_in(shop)
    body = {"search": "price>0"}
    for pair in (
        ("pin_many", "pin_many"),
        ("unpin_many", "unpin_many"),
        ("pin_many", "unpin_many"),
    ):
        answers = await asyncio.gather(
            *(browser.post(f"/api/pricing/pins/{path}", json=body) for path in pair)
        )
        assert [answer.status_code for answer in answers] == [200, 200]
        changed = [answer.json()["changed"] for answer in answers]
        if pair[0] == pair[1]:
            assert sorted(changed) == [0, 2], pair
    left = (await browser.get("/api/cards", params={"search": "is:pinned"})).json()["total"]
    assert left in (0, 2)


async def test_many_pins_are_undone_together_while_they_stand(shop):
    browser = await signed_in(shop)
    await browser.send("PUT", "/api/pricing/pins/1", json={"price": "8.00"})
    done = await browser.post("/api/pricing/pins/pin_many", json={"search": "price>0"})
    assert done.json() == {"changed": 2, "requested": 2, "truncated": False}
    [entry, *_] = (await browser.get("/api/v1/agent/activity")).json()["activity"]
    undo = f"/api/v1/agent/activity/{entry['id']}/undo"
    await browser.send("DELETE", "/api/pricing/pins/2")
    assert (await browser.post(undo)).json()["code"] == "changed_since"
    price = next(card["price"] for card in await all_cards(browser) if card["marketplace_id"] == 2)
    await browser.send("PUT", "/api/pricing/pins/2", json={"price": price})
    assert (await browser.post(undo)).status_code == 200
    told = (await browser.get("/api/v1/pricing/explain/1")).json()["inputs"]["pin"]
    assert told == "8.00"
    pinned = (await browser.get("/api/cards", params={"search": "is:pinned"})).json()["total"]
    assert pinned == 1


async def test_staff_pins_nothing_and_no_form_goes_without_its_token(shop):
    staff = await joined(shop, "pinning@example.invalid")
    page = await staff.get("/cards")
    assert "/cards/pin" not in page.text
    for path in ("/cards/pin", "/cards/unpin"):
        assert (await staff.form(path, scope="all", search="price>0")).status_code == 403
    for path in ("pin", "unpin", "shelve", "publish", "searches", "columns", "searches/1"):
        answer = await staff.http.post(f"/cards/{path}", data={"scope": "all", "search": "a"})
        assert answer.status_code == 403, path


async def test_own_contributions_are_shown_to_everybody_together(shop):
    staff = await joined(shop, "showing@example.invalid")
    body = {"name": "Mine", "set": "Alpha", "game": "magic", "condition": "NM", "quantity": 1}
    made = [(await staff.post("/api/contributions", json=body)).json()["id"] for _ in range(2)]
    ids = ",".join(map(str, [*made, (await all_cards(staff))[0]["id"]]))
    await staff.form("/cards/publish", scope="page", page_ids=ids)
    owner = await signed_in(shop)
    assert {card["id"] for card in await all_cards(owner)} >= set(made)


@pytest.mark.night
async def test_all_own_contributions_that_match_are_shown_to_everybody(shop):
    staff = await joined(shop, "matching@example.invalid")
    other = await joined(shop, "beside@example.invalid")
    body = {"name": "Matching", "set": "Alpha", "game": "magic", "condition": "NM", "quantity": 1}
    mine = [(await staff.post("/api/contributions", json=body)).json()["id"] for _ in range(2)]
    [others] = [(await other.post("/api/contributions", json=body)).json()["id"]]
    answer = await staff.form("/cards/publish", scope="all", search="matching")
    assert "done=many_published.2" in answer.headers["location"]
    again = await staff.form("/cards/publish", scope="all", search="matching")
    assert "done=many_published.0" in again.headers["location"]
    seen = {card["id"] for card in await all_cards(await signed_in(shop))}
    assert seen >= set(mine)
    assert others not in seen


async def test_scrolling_asks_for_the_rows_of_any_place(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, price=f"{n % 7 + 1}.00") for n in range(1, 62))))
    browser = await signed_in(seller)
    query = {"search": "card", "sort": "price", "direction": "desc"}
    page = await browser.get("/cards", params=query | {"columns": "low"})
    order, more = (
        html.unescape(re.search(f'data-{name}="([^"]+)"', page.text)[1])
        for name in ("order", "more")
    )
    ids = (await browser.get(order)).json()
    whole = (await browser.get("/api/cards", params=query | {"per_page": 100})).json()
    assert ids == [card["id"] for card in whole["cards"]]
    asked = ids[55:45:-1]
    rows = await browser.get(f"{more}&page=2&ids={','.join(map(str, asked))}")
    assert re.findall(r'data-peek="(\d+)"', rows.text) == [str(one) for one in asked]
    assert 'data-label="Low"' in rows.text
    assert f'href="/cards/{asked[0]}?search=card&amp;sort=price' in rows.text
    assert "at=51" in rows.text
    for wrong in ("x", "", ",".join(map(str, range(1, 300)))):
        assert (await browser.get("/cards/more", params={"ids": wrong})).status_code == 422
    assert (await browser.get("/cards/order?search=prise>1")).status_code == 422
    other = await signed_in(await a_seller())
    nothing = await other.get("/cards/more", params={"ids": str(ids[0])})
    assert "data-peek" not in nothing.text


async def test_a_place_is_changed_where_it_is_shown(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, quantity=3)))
    staff = await joined(seller, f"shelving-{seller.email}")
    [card] = await all_cards(staff)
    path = f"/cards/{card['id']}/place"
    assert f'data-edit="{path}"' in (await staff.get("/cards")).text
    rows = f"/cards/more?ids={card['id']}&page=1"
    put = await staff.form(path, place="3-12", back=rows)
    assert put.headers["location"].startswith(f"/cards/more?ids={card['id']}&page=1&done=")
    shown = (await staff.get(put.headers["location"])).text
    assert "3 copies are now in 3-12." in shown
    assert 'data-value="3-12"' in shown
    # Somebody else moved it meanwhile: the later one is refused.
    owner = await signed_in(seller)
    moved = await owner.form(path, **{"from": "3-12", "place": "4 1"})
    assert moved.headers["location"].startswith(f"/cards/{card['id']}?done=")
    assert "Undo" in (await owner.get(moved.headers["location"])).text
    late = await staff.form(path, **{"from": "3-12", "place": "5-1"})
    assert late.status_code == 404
    assert "is not in 3-12" in late.text
    assert "a box and a slot, like 3-12" in (await staff.form(path, place="shelf")).text
    assert "every copy is on a shelf" in (await staff.form(path, place="5-1")).text
    form = (await owner.get(f"/cards/{card['id']}")).text
    assert f'action="{path}"' in form
    assert "3 copies in 4-1" in form
    await owner.form(path, **{"from": "4-1", "place": ""})
    assert [one["locations"] for one in await all_cards(owner)] == [[]]


async def test_a_typed_term_joins_the_search_and_the_sum_is_that_of_all_that_match(a_seller):
    seller = await a_seller()
    rows = [a_row(n, name=f"Card {n}", price="2.00", quantity=3) for n in range(1, 61)]
    await seller.import_csv(a_csv(*rows, a_row(99, name="Lotus", price="9.00", quantity=1)))
    browser = await signed_in(seller)
    assert "61 cards ·" in (page := (await browser.get("/cards")).text)
    assert "$369.00 listed" in page
    typed = await browser.get("/cards", params={"search": "price>1", "term": "lotus"})
    assert typed.status_code == 303
    assert typed.headers["location"] == "/cards?search=price%3E1+lotus"
    found = (await browser.get(typed.headers["location"])).text
    assert "1 card ·" in found
    assert "$9.00 listed" in found
    wrong = await browser.get("/cards?search=price%3E1&term=prise%3E2", follow_redirects=True)
    assert 'value="price&gt;1 prise&gt;2"' in wrong.text
    staff = await joined(seller, f"staff-{seller.email}")
    assert "listed" not in (await staff.get("/cards")).text


async def test_a_card_beside_the_table_is_the_one_that_the_address_names(shop):
    browser = await signed_in(shop)
    [lotus] = (await browser.get("/api/cards", params={"search": "lotus"})).json()["cards"]
    address = f"/cards?search=price%3E0&card={lotus['id']}"
    page = (await browser.get(address)).text
    assert f'id="peek" aria-labelledby="peek-title" data-of="{lotus["id"]}"' in page
    assert f'href="/cards/{lotus["id"]}">Open the card</a>' in page
    pinned = await browser.form("/cards/pin", card_id=str(lotus["id"]), scope="all", search="")
    assert "many_pinned.1" in pinned.headers["location"]
    nothing = (await browser.get("/cards?card=999999")).text
    assert 'id="peek" hidden' in nothing


async def test_the_market_price_of_a_card_is_drawn_where_two_days_are_known(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="4.00")))
    clock.shift(timedelta(days=8))
    await seller.import_csv(a_csv(a_row(1, market="5.00"), a_row(2)))
    page = (await (await signed_in(seller)).get("/cards")).text
    assert 'aria-label="Market over 30 days: $4.00 to $5.00, up 25.0' in page
    assert page.partition("<main")[2].count("<polyline") == 1
    assert page.count("no history") == 1


async def a_lying_shop(a_seller):
    """Card 1 was sold 120 days ago, card 2 three days ago, card 3 never; cards 1 and 2 have a cost."""
    rows = [a_row(n, name=f"Card {n}", price="10.00", market="10.00") for n in (1, 2, 3)]
    seller = await a_shop(a_seller, *rows)
    for id, days in ((1, 120), (2, 3)):
        placed = (clock.now() - timedelta(days=days)).date()
        await an_item(seller, await an_order(seller, order_date=placed), sku_id=id, quantity=1)
    bought = (clock.now() - timedelta(days=200)).date()
    await add(seller, (1, 2, Decimal("8.00"), bought), (2, 2, Decimal("9.50"), bought))
    await settle(seller)
    return seller


async def test_what_has_not_sold_is_found_and_marked_down_or_promoted_with_its_effect(a_seller):
    """Cards → the view → tick the page → More → Start a promotion → Schedule: five clicks more."""
    seller = await a_lying_shop(a_seller)
    browser = await signed_in(seller)
    assert "search=unsold%3E90" in (await browser.get("/cards")).text
    found = (await browser.get("/api/cards", params={"search": "unsold>90"})).json()["cards"]
    assert [card["marketplace_id"] for card in found] == [1]
    ticked = {"card_ids": str(found[0]["id"])}
    for fields in (ticked, {"scope": "all", "search": "unsold>90"}):
        asked = await browser.form("/cards/promote", **fields)
        assert asked.status_code == 303, asked.text
        page = await browser.get(asked.headers["location"])
        assert page.status_code == 200
        assert "$10.00" in page.text  # listed now
        assert "Tick the box to lower" in page.text  # the rule never lowers a price
        query = parse_qs(urlsplit(asked.headers["location"]).query)["query"][0]
        promotion = {"query": query, "percent": "10", "lower_all": "true", "floor_cost": "0"}
        times = {"starts": "", "ends": "2130-01-01T08:00", "floor": "", "name": "Clear out"}
        page = await browser.form("/pricing/sales/new", **promotion | times, action="preview")
        assert "$9.00" in page.text
        asked = await browser.form("/cards/mark-down", **fields)
        page = await browser.get(asked.headers["location"])
        assert page.status_code == 200
        assert "Markdown" in page.text
        assert re.search(r'name="stale_after_days"[^>]*value="90"', page.text) or (
            'value="90"' in page.text
        )
        assert re.search(r"<dt>Matches</dt>\s*<dd>1\b", page.text)
    nothing = await browser.form("/cards/promote")
    assert nothing.status_code == 422
    many = await browser.form("/cards/promote", card_ids=[str(n) for n in range(1, 152)])
    assert many.status_code == 422
    assert "Select at most 150 cards" in many.text


async def test_cost_margin_rule_and_last_sale_are_columns_and_filters(a_seller):
    seller = await a_lying_shop(a_seller)
    browser = await signed_in(seller)
    address = "/cards?columns=cost,margin,rule,last_sold&sort=name"
    page = (await browser.get(address)).text
    told = {
        label: [
            " ".join(re.sub("<[^>]*>", " ", cell).split())
            for cell in re.findall(rf'data-label="{label}">(.*?)</td>', page, re.DOTALL)
        ]
        for label in ("Cost", "Margin", "Rule", "Last sold")
    }
    assert told["Cost"] == ["$8.00", "$9.50", "unknown"]
    assert told["Margin"] == ["20.0%", "5.0%", "unknown"]
    assert told["Last sold"][2] == "never sold"
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    assert told["Rule"] == [rule["name"]] * 3
    staff = await joined(seller, f"staff-{seller.email}")
    shown = (await staff.get(address)).text
    assert "$8.00" not in shown
    assert "never sold" in shown
    form = await browser.get("/cards?edit=filters")
    assert 'name="margin_under"' in form.text
    fields = {"price_from": "5", "margin_under": "15", "in_rule": rule["name"], "unsold_over": "1"}
    sent = await browser.get("/cards", params=fields | {"in_set": "", "in_cond": ""})
    assert sent.status_code == 303
    search = parse_qs(urlsplit(sent.headers["location"]).query)["search"][0]
    assert search == f'rule:"{rule["name"]}" price>=5 margin<15 unsold>1'
    found = (await browser.get("/api/cards", params={"search": search})).json()
    assert (found["query_errors"], [card["marketplace_id"] for card in found["cards"]]) == ([], [2])
