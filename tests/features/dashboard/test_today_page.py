"""The page Today over HTTP: the sync, its request, and the work that waits."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync import clock


async def test_today_shows_the_sync_and_requests_one(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    browser = await signed_in(seller)
    page = await browser.get("/today")
    assert page.status_code == 200
    assert "Nothing waits for you" in page.text
    token = browser.session["csrf_token"]
    form = {"csrf_token": token, "kind": "orders", "back": "/today"}
    asked = await browser.http.post("/sync/request", data=form)
    assert asked.status_code == 303
    assert asked.headers["location"].startswith("/today")
    pending = (await seller.get("/api/v1/sync/pending")).json()
    assert pending["action"] == "sync"
    refused = await browser.http.post("/sync/request", data={"csrf_token": "x", "kind": "full"})
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


async def test_the_page_shows_the_figures_of_its_json_reads(a_seller):
    seller = await a_seller()
    name = "<b>Jaguar</b> \u202eright"
    rows = [a_row(n, price="2.00", quantity=n, name=name) for n in (1, 2)]
    await seller.import_csv(a_csv(*rows))
    clock.shift(timedelta(days=9))
    await seller.import_csv(a_csv(a_row(1, price="5.00", name=name), rows[1]))
    day = f"{clock.now():%m/%d/%y}"
    await seller.orders([an_order(status="Ready to Ship", total_amt=12.5, order_date=day)])
    browser = await signed_in(seller)
    page = (await browser.get("/today")).text
    today = (await browser.get("/api/today")).json()
    movers = (await browser.get("/api/movers")).json()
    listed = (await browser.get("/api/listed_value")).json()["days"]
    assert f"<title>({len(today['conditions'])}) Today" in page
    for condition in today["conditions"]:
        assert condition["sentence"] in page
        assert f'href="{condition["next_step"]["path"]}"'.replace("&", "&amp;") in page
    assert f"${today['listed']['value']}" in page
    assert all(f"${one['value']}" in page for one in listed)
    assert f"${movers['rises'][0]['price_after']}" in page
    assert name not in page
    assert "&lt;b&gt;Jaguar" in page
    # The page of thirty days is another address.
    month = (await browser.get("/today?days=30")).text
    assert "No card&#39;s price has moved in 30 days" in month


async def test_a_running_sync_is_cancelled_by_its_owner_alone(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    assert 'action="/sync/cancel"' not in (await owner.get("/today")).text
    await seller.get("/api/v1/sync/pending")
    page = (await owner.get("/today")).text
    assert 'action="/sync/cancel"' in page
    assert 'data-hx-trigger="every 5s"' in page
    assert "/sync/cancel" not in (await staff.get("/today")).text
    form = {"csrf_token": staff.session["csrf_token"]}
    assert (await staff.http.post("/sync/cancel", data=form)).status_code == 403
    assert (await owner.http.post("/sync/cancel", data={})).status_code == 403
    form = {"csrf_token": owner.session["csrf_token"]}
    assert (await owner.http.post("/sync/cancel", data=form)).status_code == 303
    assert (await seller.get("/api/v1/status")).json()["phase"] == "idle"
    again = await owner.http.post("/sync/cancel", data=form)
    assert again.status_code == 409


async def test_a_credit_skips_the_wait_once(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    await seller.set(credits_metering_enabled=True)
    await seller.grant(2)
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    page = (await owner.get("/today")).text
    [key] = re.findall(r'name="key" value="([^"]+)"', page)
    assert "/sync/skip-wait" not in (await staff.get("/today")).text
    form = {"csrf_token": owner.session["csrf_token"], "key": key}
    answers = await asyncio.gather(
        *(owner.http.post("/sync/skip-wait", data=form) for _ in range(2))
    )
    assert [answer.status_code for answer in answers] == [303, 303]
    assert (await owner.get("/api/today")).json()["sync"]["credits"] == 1
    form = {"csrf_token": staff.session["csrf_token"], "key": "other"}
    assert (await staff.http.post("/sync/skip-wait", data=form)).status_code == 403
    refused = await owner.http.post("/sync/skip-wait", data={"csrf_token": "x", "key": key})
    assert refused.status_code == 403
