"""The pages of one customer and of returns over HTTP: the API's figures, the note's form, and the
forms that put copies back.
"""

from __future__ import annotations

import asyncio
import re

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop, undo_newest
from cards_builder import card_ids, on_shelf
from orders_builder import an_item, an_order

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"


@pytest.fixture
async def shop(a_seller):
    """A refunded order of two of card 1, which is in 1-4, and one of card 2, on no shelf."""
    seller = await a_shop(a_seller, *(a_row(number, quantity=3) for number in (1, 2)))
    browser, ids = await signed_in(seller), await card_ids(seller)
    body = {"card_id": ids[1], "box": 1, "slot": 4, "quantity": 3}
    assert (await browser.post("/api/shelves/put", json=body)).status_code == 200
    order = await an_order(seller, buyer_name=HOSTILE, total_amt="7.25", refund_amt="6.50")
    for number, quantity in ((1, 2), (2, 1)):
        await an_item(seller, order, sku_id=number, quantity=quantity, product_name=HOSTILE)
    return seller, browser, ids, order


async def test_a_customer_is_shown_with_the_apis_figures_and_takes_a_note(shop):
    seller, browser, _, order = shop
    [row] = (await browser.get("/api/customers")).json()["customers"]
    path = f"/customers/{row['key']}"
    assert f'href="{path}"' in (await browser.get("/customers")).text
    page = (await browser.get(path)).text
    assert "<b onclick" not in page
    assert ESCAPED in page
    assert f'href="/orders/{order}"' in page
    for amount in ("7.25", "6.50"):
        assert f"${amount}" in page
    staff = await joined(seller, f"staff-{seller.email}")
    answer = await staff.form(f"{path}/note", note=f"{HOSTILE}\r\nPays late.")
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith(path)
    told = (await browser.get(f"/api{path}")).json()["note"]
    assert told == f"{HOSTILE}\nPays late."
    page = (await browser.get(path)).text
    assert "<b onclick" not in page
    assert "Pays late." in page
    long = await browser.form(f"{path}/note", note="x" * 2001)
    assert (long.status_code, "Note must have at most 2000" in long.text) == (422, True)
    assert (await browser.http.post(f"{path}/note", data={"note": "x"})).status_code == 403
    assert (await browser.get("/customers/0000000000000000")).status_code == 404


async def test_copies_are_put_back_from_the_desk(shop):
    _, browser, ids, order = shop
    page = (await browser.get("/returns")).text
    assert "<b onclick" not in page
    assert ESCAPED in page
    assert "$6.50" in page
    assert 'value="1-4"' in page
    assert (await browser.http.post(f"/returns/{order}/restocked")).status_code == 403
    answer = await browser.form(f"/returns/{order}/restocked")
    assert answer.status_code == 303, answer.text
    page = (await browser.get(answer.headers["location"])).text
    assert "2 copies restocked. 1 item has no location, so it stays here." in page
    assert await on_shelf(browser) == {(ids[1], 4): 5}
    assert f'href="/orders/{order}"' not in (await browser.get("/returns?state=restocked")).text
    [line] = re.findall(r'name="one" value="([0-9.]+)"', page)
    _, item, _, _ = line.split(".")
    answer = await browser.form("/returns", one=line)
    assert "1 item has no location" in (await browser.get(answer.headers["location"])).text
    answer = await browser.form("/returns", line=line, **{f"place-{order}-{item}": "1-9"})
    page = (await browser.get(answer.headers["location"])).text
    assert "1 copy restocked." in page
    assert "Nothing to restock" in page
    assert f'href="/orders/{order}"' in (await browser.get("/returns?state=restocked")).text
    again = await browser.form(f"/returns/{order}/restocked")
    assert again.status_code == 409


async def test_what_was_sent_is_expected_back_until_somebody_says_that_it_did_not_come(shop):
    seller, browser, ids, order = shop
    sent = await an_order(seller, status="Shipped - In Transit", product_amt=5, refund_amt=5)
    await an_item(seller, sent, sku_id=1, product_name="Card 1")
    here, away = f'href="/orders/{order}"', f'href="/orders/{sent}"'

    async def desk(state):
        page = (await browser.get("/returns", params={"state": state})).text
        told = (await seller.get("/api/returns", params={"state": state})).json()
        assert len(told["returns"]) == told["total"] == told["state_counts"][state]
        return (here in page, away in page), page

    assert [(await desk(s))[0] for s in ("to_restock", "expected")] == [
        (True, False),
        (False, True),
    ]
    assert "Didn't come back<span" in (await desk("expected"))[1]
    answer = await browser.form("/returns", gone=str(sent), state="expected")
    assert answer.headers["location"].startswith("/returns?state=expected")
    assert "Your stock stays as it is." in (await browser.get(answer.headers["location"])).text
    states = ("to_restock", "expected", "restocked", "not_back")
    assert [(await desk(s))[0][1] for s in states] == [False, False, False, True]
    assert await on_shelf(browser) == {(ids[1], 4): 3}
    again = await browser.form("/returns", gone=str(sent), state="expected")
    assert again.status_code == 409
    assert (await undo_newest(seller, "order.restocked")).status_code == 200
    assert (await desk("expected"))[0] == (False, True)
    # What came back after all is restocked.
    answer = await browser.form(f"/returns/{sent}/restocked")
    assert [(await desk(s))[0][1] for s in states] == [False, False, True, False]
    assert (await browser.form("/returns", gone="x")).status_code == 422
    assert (await browser.get("/returns", params={"state": "lost"})).status_code == 422


async def test_copies_are_put_where_the_form_says(shop):
    _, browser, ids, order = shop
    path = f"/returns/{order}/restocked"
    copies = [f"{ids[1]}x2", f"{ids[2]}x1"]
    for box, slot, told in ((1, "", "Slot: a number"), ("a/b", 2, "Box must have no slash")):
        answer = await browser.form(path, box=box, slot=slot, copies=copies)
        assert (answer.status_code, told in answer.text) == (422, True)
    answer = await browser.form(path, box=2, slot=7, copies="many")
    assert answer.status_code == 422
    answers = await asyncio.gather(
        *(browser.form(path, box=2, slot=7, copies=copies) for _ in range(2))
    )
    assert sorted(answer.status_code for answer in answers) == [303, 409]
    assert await on_shelf(browser, 2) == {(ids[1], 7): 2, (ids[2], 7): 1}


async def test_customers_with_several_refunds_are_named(shop):
    seller, browser, *_ = shop
    assert "Customers with several refunds" not in (await browser.get("/returns")).text
    await an_order(seller, buyer_name=HOSTILE, refund_amt=3)
    [told] = (await browser.get("/api/returns/customers")).json()["customers"]
    page = (await browser.get("/returns")).text
    assert f'href="/customers/{told["key"]}"' in page
    assert f"${told['refunded_total']}" in page
