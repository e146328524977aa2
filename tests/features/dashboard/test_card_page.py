"""The page of one card over HTTP: what it shows, and the forms that pin it and settle its match."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop
from cardsync.dashboard.pages.card_charts import days_of, is_of
from cardsync.platform import clock
from cardsync.prices.receipts.in_short import binding_step
from orders_builder import an_item, an_order

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'
AT = r'class="who"\s+href="([^"]+)" data-peek'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


@pytest.fixture
async def shop(a_seller):
    return await a_shop(
        a_seller,
        a_row(1, name="Black Lotus", price="5.00", market="9.00"),
        a_row(2, name=HOSTILE),
        lines=["magic"],
    )


async def the_card(http, search="lotus"):
    return (await http.get("/api/cards", params={"search": search})).json()["cards"][0]


async def a_product(shop, name):
    async with shop.service.database.shared() as session:
        return await session.scalar(
            text("""
                INSERT INTO product (identity, game, set_name, product_name, number, language,
                                     name_key, set_key)
                VALUES (md5(random()::text), 'magic', 'Beta', :name, '7', 'English', 'x', 'beta')
                RETURNING id
            """),
            {"name": name},
        )


async def test_the_picture_of_the_card_waits_for_no_layout(shop):
    browser = await signed_in(shop)
    card = await the_card(browser)
    page = (await browser.get(f"/cards/{card['id']}")).text
    [large] = re.findall(r'<img class="pic medium"[^>]*>', page)
    assert "loading" not in large
    assert 'fetchpriority="high"' in large
    rows = re.findall(r'<img class="pic"[^>]*>', (await browser.get("/cards")).text)
    assert all('loading="lazy"' in row for row in rows)


async def test_it_tells_prices_reasons_match_and_orders(shop):
    browser = await signed_in(shop)
    card = await the_card(browser)
    for n in range(12):
        order = await an_order(shop, order_number=f"N-{n}", buyer_name=HOSTILE)
        await an_item(shop, order, sku_id=1)
    page = await browser.get(f"/cards/{card['id']}")
    assert page.status_code == 200
    for told in ("Price sources", "Market", "$9.00", "in use", "Why this price"):
        assert told in page.text
    explained = (await browser.get("/api/v1/pricing/explain/1")).json()
    for step in explained["steps"]:
        said = re.split(r"[,\d]", step["summary"])[0]
        assert said[:20] in page.text.replace("&#39;", "'")
    told = " ".join(re.sub(r"<[^>]*>", "", page.text).split())
    assert "Market $9.00 1% under decides the price −$0.09 $8.91 Target $8.91 " in told
    assert "limits " in told.split("$8.91 Target $8.91")[1][:20].lower()
    assert page.text.count("decides the price") >= 1
    assert "not in the catalog" in page.text
    assert ESCAPED in page.text
    assert "<b onclick" not in page.text
    told = (await browser.get(f"/api/cards/{card['id']}/orders?limit=10")).json()
    for order in told["orders"]:
        assert f'href="/orders/{order["order_id"]}"' in page.text
    older = await browser.get(f"/cards/{card['id']}", params={"sold_after": told["after"]})
    assert "N-0" in older.text
    assert 'rel="next"' not in older.text


async def test_the_receipt_and_the_scale_are_on_the_page_and_in_the_drawer(shop):
    browser = await signed_in(shop)
    card = await the_card(browser)
    rule = (await browser.get("/api/pricing/rules")).json()["rules"][0]["id"]
    path = f"/api/pricing/rules/{rule}"
    assert (await browser.send("PATCH", path, json={"floor": "8.95"})).status_code == 200
    for address in (f"/cards/{card['id']}", f"/cards?card={card['id']}"):
        page = " ".join((await browser.get(address)).text.split())
        told = " ".join(re.sub(r"<[^>]*>", "", page).split())
        told = told.replace("&#39;", "'")
        steps = (
            "Market $9.00 → 1% under: $8.91 → the rule's floor: "
            if "card=" in address
            else "1% under −$0.09 $8.91 the rule's floor decides the price +$0.04 $8.95 Target $8.95"
        )
        assert steps in told
        assert "Limits applied: the rule's floor" in told
        assert "<summary>All steps</summary>" in page
        scale = re.search(r'class="ladder" role="img" aria-label="([^"]*)"', page)[1]
        for said in ("Price $5.00", "Market $9.00", "Floor $8.95"):
            assert said in scale
            name, amount = said.rsplit(" ", 1)
            twin = rf'<th scope="row">{name}</th> <td class="number"><span class="money">\{amount}<'
            assert re.search(twin, page), said
        assert " style=" not in page


def test_the_last_step_that_moves_the_price_decides_it():
    steps = [{"input": a, "output": b} for a, b in (("1", "2"), ("2", "3"), ("3", "3"))]
    assert binding_step(steps) == 1
    assert binding_step(steps[2:]) is None


async def test_the_page_knows_the_list_that_led_to_it_and_the_cards_other_conditions(a_seller):
    seller = await a_seller(lines=["magic"])
    jaguars = [("Near Mint", 3), ("Near Mint Foil", 1), ("Lightly Played", 2)]
    rows = [
        a_row(n, name="Jungle Jaguar", number=7, condition=condition, quantity=copies)
        for n, (condition, copies) in enumerate(jaguars, 1)
    ]
    await seller.import_csv(a_csv(*rows, a_row(9, name="Jaguar Cub"), a_row(10, name="Zebra")))
    browser = await signed_in(seller)
    found = (await browser.get("/cards", params={"search": "jaguar", "sort": "quantity"})).text
    links = [escaped.replace("&amp;", "&") for escaped in re.findall(AT, found)]
    assert len(links) == 4
    page = (await browser.get(links[1])).text
    told = " ".join(re.sub(r"<[^>]*>", "", page).split())
    assert "Cards › jaguar › 2 of 4" in told
    assert f'href="{links[0]}"'.replace("&", "&amp;") in page
    assert f'href="{links[2]}"'.replace("&", "&amp;") in page
    # Without a list, or at a place where it no longer is, the page names none.
    alone = links[1].split("?")[0]
    for address in (alone, f"{alone}?at=1&search=zebra", f"{alone}?at=x", f"{alone}?at=2&sort=no"):
        assert "›" not in (await browser.get(address)).text, address
    first = (await browser.get(links[-1].split("?")[0])).text
    tabs = re.search(r'aria-label="Conditions of this card".*?</nav>', first, re.S)[0]
    shown = [" ".join(re.sub(r"<[^>]*>", " ", one).split()) for one in tabs.split("<li>")[1:]]
    assert sorted(shown[:-1]) == ["Lightly Played 2", "Near Mint 3", "Near Mint Foil 1"]
    assert shown[-1] == "All printings"
    pages = [(await browser.get(one)).text for one in links]
    [cub] = [one for one in pages if "Conditions of" not in one]
    assert "<bdi>Jaguar Cub</bdi></h1>" in cub


def test_charts_show_ninety_days_unless_the_address_names_others():
    now = clock.read_moment("2026-11-29T12:00:00Z")
    seen = [SimpleNamespace(observed_at=f"2026-{month:02}-01T00:00:00Z") for month in (11, 10, 3)]
    for asked, whole, shown in (
        ("", False, 2), ("30", False, 1), ("365", False, 3), ("7", False, 2), ("", True, 3),
    ):  # fmt: skip
        days = days_of(asked, whole=whole)
        assert sum(is_of(one, days, now) for one in seen) == shown, (asked, whole)


async def test_the_days_of_the_charts_are_links_and_stock_that_stays_is_a_sentence(shop):
    browser = await signed_in(shop)
    card = await the_card(browser)
    await shop.import_csv(a_csv(a_row(1, name="Black Lotus", price="6.00", market="9.00")))
    for asked, current in (("", "90"), ("?days=365", "365 days"), ("?history=all", "All")):
        page = (await browser.get(f"/cards/{card['id']}{asked}")).text
        chart = page[page.index('id="history"') :]
        marked = re.findall(r'aria-current="true"[^>]*>([^<]+)</a>', chart)
        assert [one.strip() for one in marked] == [current]
        assert "in stock all that time." in chart
        assert 'data-line="1"' in chart


async def test_a_wrong_product_is_settled_by_type_ahead(shop):
    browser = await signed_in(shop)
    card = await the_card(browser)
    path = f"/cards/{card['id']}/match"
    product = await a_product(shop, "Settled Jaguar")
    assert f'href="{path}"' in (await browser.get(f"/cards/{card['id']}")).text
    found = await browser.get(path, params={"typed": "settled jag"})
    assert f'name="product_id" value="{product}"' in found.text
    done = await browser.form(path, product_id=str(product))
    assert done.status_code == 303
    page = await browser.get(done.headers["location"])
    assert "Match saved." in page.text
    assert "Someone in your shop chose this product" in page.text
    assert (await the_card(browser))["product_id"] == product
    # The table is open where a part differs, and folded where all agree.
    folded = "<details> <summary>Match details"
    assert folded.replace(">", " open>", 1) in page.text
    own = card["product_id"]
    async with shop.service.database.shared() as session:
        await session.execute(
            text("UPDATE product SET provisional = false WHERE id = :id"), {"id": own}
        )
    assert (await browser.form(path, product_id=str(own))).status_code == 303
    assert folded in (await browser.get(f"/cards/{card['id']}")).text
    assert "No products found" in (await browser.get(path, params={"typed": "zz"})).text
    wrong = await browser.form(path, product_id="none")
    assert wrong.status_code == 422


async def test_a_price_is_pinned_and_unpinned(shop):
    browser = await signed_in(shop)
    card = await the_card(browser)
    path = f"/cards/{card['id']}"
    assert (await browser.form(f"{path}/pin", price="7.50")).status_code == 303
    page = await browser.get(path)
    assert 'You</bdi> pinned <span class="money">$7.50</span>' in page.text
    assert (await browser.form(f"{path}/unpin")).status_code == 303
    assert "Rules don&#39;t change a pinned price" in (await browser.get(path)).text
    assert "price must be" in (await browser.form(f"{path}/pin", price="0")).text.lower()


async def test_lots_are_added_and_corrected_by_forms(shop):
    browser = await signed_in(shop)
    card = await the_card(browser)
    path = f"/cards/{card['id']}/lots"
    lot = {"marketplace_id": "1", "quantity": "3", "cost": "$1,234.50", "bought_on": "2026-01-02"}
    for wrong, told in (
        ({"quantity": "0"}, "quantity must be a whole number from 1 to"),
        ({"quantity": "few"}, "quantity must be a whole number from 1 to 1,000,000."),
        ({"quantity": ""}, "quantity is missing"),
        ({"cost": "dear"}, "enter a cost, like 1.25"),
        ({"bought_on": "soon"}, "bought on must be a day"),
        ({"bought_on": "2999-01-01"}, "must not be later than today"),
    ):
        answer = await browser.form(path, **lot | wrong)
        assert answer.status_code == 422
        assert told in answer.text.lower()
    assert (await browser.form(path, **lot)).status_code == 303

    async def stored():
        [one] = (await browser.get("/api/buying/lots")).json()["lots"]
        return one["quantity"], one["cost"], one["bought_on"]

    assert await stored() == (3, "1234.50", "2026-01-02")
    [own] = (await browser.get("/api/buying/lots")).json()["lots"]
    change = {"quantity": "2", "cost": "", "bought_on": ""}
    assert (await browser.form(f"{path}/{own['id']}", **change)).status_code == 303
    assert await stored() == (2, None, "2026-01-02")


async def test_of_two_who_pin_a_card_that_both_were_shown_the_later_is_told_and_may_do_it_then(
    shop,
):
    browser = await signed_in(shop)
    card = await the_card(browser)
    path = f"/cards/{card['id']}"
    shown = re.search(r'name="seen" value="([^"]+)"', (await browser.get(path)).text)[1]
    sent = [browser.form(f"{path}/pin", price=price, seen=shown) for price in ("7.50", "8.00")]
    answers = await asyncio.gather(*sent)
    assert sorted(answer.status_code for answer in answers) == [303, 409]
    [refused] = [answer.text for answer in answers if answer.status_code == 409]
    name = (await browser.get("/api/session")).json()["member"]["name"]
    kept = re.search(r"The price is now pinned at \$(\d\.\d\d), by (.*?);", refused)
    assert kept[2] == name
    assert f'pinned <span class="money">${kept[1]}</span>' in (await browser.get(path)).text
    shown = re.search(r'data-seen="([^"]+)"', refused)[1]
    assert (await browser.form(f"{path}/pin", price="9.00", seen=shown)).status_code == 303
    assert 'pinned <span class="money">$9.00</span>' in (await browser.get(path)).text


async def test_staff_sees_no_button_of_the_owner_and_is_refused(shop):
    staff = await joined(shop, "reading-a-card@example.invalid")
    card = await the_card(staff)
    page = await staff.get(f"/cards/{card['id']}")
    for what in ("pin", "match"):
        assert f'"/cards/{card["id"]}/{what}"' not in page.text
        answer = await staff.form(f"/cards/{card['id']}/{what}", price="1.00", product_id="1")
        assert answer.status_code == 403
        assert "owner" in answer.text
    assert 'name="product_id"' not in (await staff.get(f"/cards/{card['id']}/match")).text


async def test_forms_without_a_token_are_refused(shop):
    browser = await signed_in(shop)
    card = await the_card(browser)
    for what in ("pin", "unpin", "match", "publish"):
        answer = await browser.http.post(f"/cards/{card['id']}/{what}", data={"price": "1.00"})
        assert answer.status_code == 403


async def test_a_private_contribution_is_shown_to_everybody_by_its_member(shop):
    staff = await joined(shop, "contributing-a-card@example.invalid")
    body = {"name": "Mine", "set": "Alpha", "game": "magic", "condition": "NM", "quantity": 1}
    card = (await staff.post("/api/contributions", json=body)).json()["id"]
    owner = await signed_in(shop)
    assert (await owner.get(f"/cards/{card}")).status_code == 404
    assert "Publish to everyone in the shop" in (await staff.get(f"/cards/{card}")).text
    assert (await staff.form(f"/cards/{card}/publish")).status_code == 303
    assert (await owner.get(f"/cards/{card}")).status_code == 200


async def test_a_changed_rule_is_tried_and_not_saved(shop):
    browser = await signed_in(shop)
    rule = {"name": "Mine", "state": "published", "price_source": "market"}
    made = (await browser.post("/api/pricing/rules", json=rule)).json()
    card = await the_card(browser)
    path = "/api/v1/pricing/explain/1/changed"
    told = (await browser.post(path, json={"adjust_bp": -1000})).json()
    assert (told["rule_id"], told["asks"], told["would_ask"]) == (made["id"], "9.00", "8.10")
    page = await browser.get(f"/cards/{card['id']}", params={"percent": "-10"})
    assert 'would set <strong><span class="money">$8.10</span></strong>' in page.text
    assert (await browser.get("/api/pricing/rules")).json()["rules"][0]["adjust_bp"] == 0
    for wrong in ({"percent": "much"}, {"floor": "-1"}, {"percent": "1.234"}):
        page = await browser.get(f"/cards/{card['id']}", params=wrong)
        assert (page.status_code, 'role="alert"' in page.text) == (200, True), wrong
    for body in ({"query": "is:foil"}, {"adjust_bp": "x"}):
        assert (await browser.post(path, json=body)).status_code == 422
    assert (await browser.post(path.replace("/1/", "/77/"), json={})).status_code == 404
    staff = await joined(shop, "trying@example.invalid")
    assert (await staff.post(path, json={})).status_code == 403
    page = await staff.get(f"/cards/{card['id']}", params={"percent": "-10"})
    assert "would set" not in page.text
