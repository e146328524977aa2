"""The page Today over HTTP: the sync, its request, and the work that waits."""

from __future__ import annotations

from browsers import joined, signed_in
from builders import a_csv, a_row


async def test_today_shows_the_sync_and_requests_one(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    page = await browser.get("/today")
    assert page.status_code == 200
    assert "Nothing waits for you" in page.text
    token = browser.session["csrf_token"]
    form = {"csrf_token": token, "kind": "orders"}
    asked = await browser.http.post("/today/sync", data=form)
    assert asked.status_code == 303
    pending = (await seller.get("/api/v1/sync/pending")).json()
    assert pending["action"] == "sync"
    refused = await browser.http.post("/today/sync", data={"csrf_token": "x", "kind": "full"})
    assert refused.status_code == 403
    assert "This form is not of your session" in refused.text


async def test_an_upload_in_review_is_settled_by_its_owner(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 41))))
    upload = (await seller.import_csv(a_csv(a_row(1, quantity=3))))["id"]
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    page = await owner.get("/today")
    assert f'action="/today/review/{upload}"' in page.text
    assert "/today/review" not in (await staff.get("/today")).text
    path, decision = f"/today/review/{upload}", {"decision": "discarded"}
    form = {"csrf_token": staff.session["csrf_token"], **decision}
    assert (await staff.http.post(path, data=form)).status_code == 403
    form = {"csrf_token": owner.session["csrf_token"], **decision}
    assert (await owner.http.post(path, data=form)).status_code == 303
    report = (await seller.get(f"/api/v1/uploads/{upload}")).json()
    assert report["state"] == "discarded"


async def test_the_first_address_leads_to_today(a_seller):
    browser = await signed_in(await a_seller())
    answer = await browser.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/today")
