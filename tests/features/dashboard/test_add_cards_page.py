"""Quick-add as pages: found, drafted, published, and settled after a lost answer."""

from __future__ import annotations

import pytest

from browsers import joined, signed_in
from quick_add_builder import JAGUAR, drafted, entry_of, published, rejected, served

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'


async def test_a_draft_is_changed_published_and_deleted(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    one, two = await drafted(staff, JAGUAR, JAGUAR | {"name": HOSTILE, "price": None})
    page = await owner.get("/add-cards")
    assert page.status_code == 200
    assert "<b onclick" not in page.text
    assert "Publish selected drafts" in page.text
    assert "Publish selected drafts" not in (await staff.get("/add-cards")).text
    unpriced = await owner.form("/add-cards/publish", ids=[str(one["id"]), str(two["id"])])
    assert (unpriced.status_code, "needs a price before you publish" in unpriced.text) == (
        422,
        True,
    )
    assert "Select at least one draft." in (await owner.form("/add-cards/publish")).text
    typed = {
        f"quantity:{two['id']}": "3",
        f"price:{two['id']}": "2.50",
        f"cost:{two['id']}": "1.20",
    }
    changed = await staff.form("/add-cards/drafts", **typed)
    assert changed.status_code == 303
    kept = await entry_of(owner, two["id"])
    assert (kept["quantity"], kept["price"], kept["cost"]) == (3, "2.50", "1.20")
    wrong = await staff.form("/add-cards/drafts", **typed | {f"quantity:{two['id']}": "many"})
    assert wrong.status_code == 422
    assert (await staff.form("/add-cards/publish", ids=one["id"])).status_code == 403
    # What is typed in a row when its neighbor is published is kept.
    typed[f"price:{two['id']}"] = "2.75"
    assert (await owner.form("/add-cards/publish", ids=one["id"], **typed)).status_code == 303
    assert (await entry_of(owner, two["id"]))["price"] == "2.75"
    assert (await entry_of(owner, one["id"]))["status"] == "published"
    assert (await staff.form(f"/add-cards/{two['id']}/delete")).status_code == 303
    assert HOSTILE not in (await owner.get("/api/quick_add")).text


async def test_a_product_that_is_found_is_drafted(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    [known] = await drafted(browser, JAGUAR)
    id = known["product_id"]
    empty = await browser.form("/add-cards", **{f"quantity:{id}": ""})
    assert empty.status_code == 422
    fields = {f"quantity:{id}": "2", f"condition:{id}": "LP", f"price:{id}": "4.00"}
    answer = await browser.form("/add-cards", q="jaguar", **fields)
    assert answer.status_code in (303, 422), answer.text
    page = await browser.get("/add-cards", params={"q": "jaguar"})
    assert page.status_code == 200
    products = (await browser.get("/api/quick_add/products", params={"q": "jaguar"})).json()
    for product in products["products"]:
        assert f'name="quantity:{product["product_id"]}"' in page.text


async def test_a_rejected_entry_says_why_and_is_drafted_again(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    [id] = await published(browser, JAGUAR)
    await served(seller)
    await rejected(seller, {id: HOSTILE})
    page = await browser.get("/add-cards?status=rejected")
    again = {f"quantity:{id}": "1", f"price:{id}": "1.00"}
    assert "&lt;b onclick" in page.text
    assert (await browser.form("/add-cards/drafts", again=id, **again)).status_code == 303
    assert (await entry_of(browser, id))["status"] == "draft"


async def test_a_lost_answer_is_settled_row_by_row(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    [id] = await published(owner, JAGUAR)
    await served(seller)
    page = await owner.get("/add-cards/recover")
    assert f'action="/add-cards/{id}/settle"' in page.text
    assert "/settle" not in (await staff.get("/add-cards/recover")).text
    assert "/add-cards/recover" in (await owner.get("/sync")).text
    early = await owner.form(f"/add-cards/{id}/settle", listed="false")
    assert early.status_code == 409
    assert (await staff.form(f"/add-cards/{id}/settle", listed="true")).status_code == 403
    done = await owner.form(f"/add-cards/{id}/settle", listed="true", quantity="1")
    assert done.status_code == 303
    assert (await entry_of(owner, id))["status"] == "listed"
    assert "All listings are confirmed" in (await owner.get("/add-cards/recover")).text


@pytest.mark.parametrize("path", ["", "/publish", "/drafts", "/1/delete", "/1/settle"])
async def test_forms_without_their_token_are_refused(a_seller, path):
    browser = await signed_in(await a_seller())
    answer = await browser.http.post(f"/add-cards{path}", data={"csrf_token": "x"})
    assert answer.status_code == 403
