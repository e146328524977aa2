"""The pages for paper over HTTP: labels in their places, sheets in the order of the way, and no
buyer on a packing slip.
"""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop
from cards_builder import card_ids
from orders_builder import an_item, an_order

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


@pytest.fixture
async def shop(a_seller):
    rows = [a_row(1, name=HOSTILE), a_row(2, name="Bolt"), a_row(3, name="Elf")]
    seller = await a_shop(a_seller, *rows)
    browser, ids = await signed_in(seller), await card_ids(seller)
    for number, box, slot in ((1, 10, 2), (2, 2, 11)):
        body = {"card_id": ids[number], "box": box, "slot": slot, "quantity": 1}
        assert (await browser.post("/api/shelves/put", json=body)).status_code == 200
    return seller, browser, ids


async def places_of(browser, sheet, page):
    """The corners of the labels in millimetres, by the style that the page links."""
    style = (await browser.get(f"/print/sheets/{sheet}")).text
    corners = {
        int(place): (Decimal(left), Decimal(top))
        for place, left, top in re.findall(r"\.p(\d+) { left: ([\d.]+)mm; top: ([\d.]+)mm }", style)
    }
    return [corners[int(place)] for place in re.findall(r'class="label p(\d+)"', page)]


@pytest.mark.parametrize("sheet", ["avery-5160", "avery-l7160", "zebra-2x1"])
async def test_labels_lie_where_the_layout_says(shop, sheet):
    _, browser, ids = shop
    start = 1 if sheet == "zebra-2x1" else 20
    page = await browser.get("/print/labels", params={"sheet": sheet, "start": start})
    assert page.status_code == 200, page.text
    layout = await browser.get(
        f"/api/print/sheets/{sheet}", params={"start": start, "count": len(ids)}
    )
    told = layout.json()
    assert await places_of(browser, sheet, page.text) == [
        (Decimal(at["left"]), Decimal(at["top"])) for at in told["positions"]
    ]
    assert page.text.count('<div class="page">') == told["pages"]
    style = await browser.get(f"/print/sheets/{sheet}")
    assert style.headers["content-type"].startswith("text/css")
    size = f"size: {told['sheet']['page_width']}mm {told['sheet']['page_height']}mm"
    assert size in style.text


async def test_labels_have_name_place_and_code_and_show_names_as_text(shop):
    _, browser, _ = shop
    page = (await browser.get("/print/labels", params={"search": "right"})).text
    assert "<b onclick" not in page
    assert ESCAPED in page
    assert "Place 10-2" in page
    assert page.count('src="data:image/svg+xml') == 1
    assert "/img/" not in page
    query = {"search": "right", "pictures": "true"}
    assert 'src="/img/cards/' in (await browser.get("/print/labels", params=query)).text
    none = await browser.get("/print/labels", params={"search": "nothing-has-this"})
    assert "No cards found" in none.text


@pytest.mark.parametrize("scope", ["", "page", "all"])
async def test_the_selected_cards_get_labels_on_the_sheet_that_is_chosen_then(shop, scope):
    _, browser, ids = shop
    assert 'formaction="/cards/labels"' in (await browser.get("/cards")).text
    form = {"scope": scope, "card_ids": str(ids[2]), "search": "bolt", "game": "magic"}
    form["page_ids"] = f"{ids[2]},{ids[3]}"
    sent = await browser.form("/cards/labels", **form)
    assert (sent.status_code, sent.headers["location"].partition("?")[0]) == (303, "/print")
    page = (await browser.get(sent.headers["location"])).text
    fields = dict(re.findall(r'<input [^>]*?name="(\w+)"[^>]*?value="([^"]*)"', page, re.DOTALL))
    asked = {name: fields[name] for name in ("selected_ids", "search", "game", "status")
             if name in fields}  # fmt: skip
    labels = (await browser.get("/print/labels", params=asked | {"sheet": "herma-4360"})).text
    names = re.findall(r"<strong><bdi>(\w+)", labels)
    assert names == (["Bolt", "Elf"] if scope == "page" else ["Bolt"])
    assert ("1 card selected." in page) == (scope == "")
    nothing = await browser.form("/cards/labels", search="bolt")
    assert (nothing.status_code, "Nothing is selected" in nothing.text) == (422, True)


async def test_labels_of_many_cards_lead_to_those_that_follow(shop):
    _, browser, _ = shop
    query = {"per_page": "2", "start": "5"}
    first = (await browser.get("/print/labels", params=query)).text
    assert "1 label" in first
    [address] = re.findall(r'rel="next"\s+href="([^"]*)"', first)
    last = (await browser.get(address.replace("&amp;", "&"))).text
    assert last.count('class="label p1"') == 1
    assert 'rel="next"' not in last


async def test_boxes_and_a_test_page_are_printed(shop):
    _, browser, _ = shop
    boxes = {"kind": "boxes", "first": 3, "last": 5, "sheet": "herma-4360"}
    page = (await browser.get("/print/labels", params=boxes)).text
    assert re.findall(r"<bdi>(Box \d+)</bdi>", page) == ["Box 3", "Box 4", "Box 5"]
    test = {"kind": "test", "sheet": "herma-4200"}
    page = (await browser.get("/print/labels", params=test)).text
    assert 'class="outlined"' in page
    assert page.count('class="label ') == 7 * 27
    assert page.count('<div class="page">') == 1


async def test_wrong_addresses_are_refused_with_a_sentence(shop):
    _, browser, _ = shop
    for query, status, told in (
        ({"kind": "stamps"}, 422, "Kind must be one of"),
        ({"sheet": "none"}, 404, "There is no label sheet"),
        ({"start": "31"}, 422, "has labels 1 to 30"),
        ({"start": "x"}, 422, "Start: a number from 1"),
        ({"search": "prise>1"}, 422, "prise"),
        ({"kind": "boxes", "first": "9", "last": "3"}, 422, "Last: at most "),
        ({"kind": "boxes"}, 422, "First must have a letter or a digit"),
    ):
        page = await browser.get("/print/labels", params=query)
        assert (page.status_code, told in page.text) == (status, True), (query, page.text)
    assert (await browser.get("/print/sheets/none")).status_code == 404


async def test_sheets_follow_the_way_and_a_slip_names_no_buyer(shop):
    seller, browser, _ = shop
    assert "Nothing to restock" in (await browser.get("/print/restock")).text
    orders = []
    for refund in (None, 5):
        order = await an_order(seller, buyer_name="Some Buyer", total_amt=5, refund_amt=refund)
        for number in (1, 2, 3):
            await an_item(seller, order, sku_id=number, product_name=f"{HOSTILE}{number}")
        orders.append(order)
    opened = await browser.post("/api/pull_sessions", json={"order_ids": orders})
    assert opened.status_code == 201, opened.text
    staff = await joined(seller, f"staff-{seller.email}")
    session_id = opened.json()["id"]
    for path in ("/print/restock", f"/print/pulls/{session_id}"):
        page = (await staff.get(path)).text
        codes = re.findall(r"<strong>(\d+-\d+|No location)</strong>", page)
        assert list(dict.fromkeys(codes)) == ["2-11", "10-2", "No location"]
        assert "<b onclick" not in page
        assert "Some Buyer" not in page
    slip = (await staff.get(f"/print/orders/{orders[0]}")).text
    assert "Some Buyer" not in slip
    assert ESCAPED in slip
    assert (await staff.get("/print")).status_code == 200
    assert (await staff.get("/print/orders/99999999")).status_code == 404


async def test_a_slip_has_prices_only_if_all_are_known_and_the_sums_of_the_order(shop):
    seller, browser, _ = shop
    sums = {"product_amt": "4.16", "shipping_amt": "1.31", "total_amt": "5.47"}
    order = await an_order(seller, **sums)
    await an_item(seller, order, unit_price="4.16")
    slip = (await browser.get(f"/print/orders/{order}")).text
    assert slip.count("$4.16") == 2
    await an_item(seller, order, product_name="Elf")
    slip = (await browser.get(f"/print/orders/{order}")).text
    assert slip.count("$4.16") == 1
    assert "–" not in slip
    assert "$5.47" in slip


async def test_the_slips_of_several_orders_are_printed_together(shop):
    seller, browser, _ = shop
    orders = [await an_order(seller, total_amt="5.47") for _ in range(3)]
    for order in orders:
        await an_item(seller, order, unit_price="4.16")
    asked = await browser.form("/print/slips", order=orders)
    assert asked.status_code == 303, asked.text
    page = (await browser.get(asked.headers["location"])).text
    assert page.count('<article class="paper letter"') == 3
    for paper in ("letter", "roll46"):
        page = await browser.get("/print/slips", params={"order": orders, "paper": paper})
        assert page.text.count(f'<article class="paper {paper}"') == 3
    assert "No orders selected" in (await browser.get("/print/slips")).text
    many = await browser.get("/print/slips", params={"order": list(range(1, 102))})
    assert many.status_code == 422
