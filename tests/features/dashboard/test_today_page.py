"""The page Today over HTTP: the sync, its request, and the work that waits."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from zoneinfo import ZoneInfo

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync.platform import clock


async def test_today_shows_the_sync_and_requests_one(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    browser = await signed_in(seller)
    page = await browser.get("/today")
    assert page.status_code == 200
    assert "You&#39;re all caught up" in page.text
    token = browser.session["csrf_token"]
    form = {"csrf_token": token, "kind": "orders", "back": "/today"}
    asked = await browser.http.post("/sync/request", data=form)
    assert asked.status_code == 303
    assert asked.headers["location"].startswith("/today")
    pending = (await seller.get("/api/v1/sync/pending")).json()
    assert pending["action"] == "sync"
    refused = await browser.http.post("/sync/request", data={"csrf_token": "x", "kind": "full"})
    assert refused.status_code == 403
    assert "This form is not from your session" in refused.text


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
    # The day of the marketplace, which is also that of the shop.
    day = f"{clock.now().astimezone(ZoneInfo('America/New_York')):%m/%d/%y}"
    await seller.orders([an_order(status="Ready to Ship", total_amt=12.5, order_date=day)])
    browser = await signed_in(seller)
    page = (await browser.get("/today")).text
    today = (await browser.get("/api/today")).json()
    movers = (await browser.get("/api/movers")).json()
    listed = (await browser.get("/api/listed_value")).json()["days"]
    assert f"<title>({len(today['conditions'])}) Today" in page
    for condition in today["conditions"]:
        assert condition["title"] in page
        assert condition["detail"] in page
        assert condition["sentence"].startswith(condition["title"])
        assert f'href="{condition["next_step"]["path"]}"'.replace("&", "&amp;") in page
    assert f"${today['listed']['value']}" in page
    assert len(listed) == 2
    said = f"Listed value over 30 days: ${listed[0]['value']} to ${listed[1]['value']}"
    assert said in page
    assert f"${movers['rises'][0]['price_after']}" in page
    assert name not in page
    assert "&lt;b&gt;Jaguar" in page
    # The page of thirty days is another address.
    month = (await browser.get("/today?days=30")).text
    assert "No price changes in the last 30" in month


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


async def test_fewer_than_two_days_are_no_line(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    page = (await browser.get("/today")).text
    assert "Unknown" in page
    assert 'class="spark wide"' not in page
    await seller.import_csv(a_csv(a_row(1, price="2.00")))
    # The day of the marketplace, which is also that of the shop.
    day = f"{clock.now().astimezone(ZoneInfo('America/New_York')):%m/%d/%y}"
    await seller.orders([an_order(status="Ready to Ship", total_amt=12.5, order_date=day)])
    page = (await browser.get("/today")).text
    assert "$2.00" in page
    assert 'class="spark wide"' not in page
    clock.shift(timedelta(days=1))
    await seller.import_csv(a_csv(a_row(1, price="3.00")))
    page = (await (await signed_in(seller)).get("/today")).text
    assert "Listed value over 30 days: $2.00 to $3.00" in page
    assert "Sales by day over 30 days: $12.50 to $0.00" in page
    assert "Orders by day over 30 days: 1 to 0" in page


async def test_work_is_in_groups_by_when_it_is_due_and_then_by_money(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 41))))
    await seller.import_csv(a_csv(a_row(1, quantity=3)))
    # The day of the marketplace, which is also that of the shop.
    day = f"{clock.now().astimezone(ZoneInfo('America/New_York')):%m/%d/%y}"
    await seller.orders([an_order(status="Ready to Ship", total_amt=12.5, order_date=day)])
    browser = await signed_in(seller)
    page = (await browser.get("/today")).text
    work = page[page.index('id="work"') :]
    places = [
        work.index(words)
        for words in ("Due today", "An upload needs your review", "This week", "1 order to pull")
    ]
    assert places == sorted(places)
    [blue] = re.findall(r'class="button primary"\s+href="([^"]*)"', work)
    assert blue == "/pulls"
    assert re.search(r"Due today <span class=\"badge due\">1</span>", work)
    clock.shift(timedelta(days=8))
    late = (await (await signed_in(seller)).get("/today")).text
    assert "1 order to pull" in late
    assert "This week" not in late
    assert "The oldest is past its shipping deadline." in late


async def test_orders_to_ship_are_those_to_pull_and_those_of_the_pull(a_seller):
    seller = await a_seller()
    day = f"{clock.now():%m/%d/%y}"
    first = [
        an_order(n, status="Ready to Ship", total_amt=10, order_date=day) for n in ("A-1", "A-2")
    ]
    await seller.orders(first)
    pull = (await seller.post("/api/pull_sessions", json={})).json()["id"]
    await seller.orders([an_order("A-3", status="Ready to Ship", total_amt=5, order_date=day)])
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    told = (await owner.get("/api/today")).json()
    assert told["to_ship"] == {
        "orders": 3, "to_pull": 1, "in_pull": 2, "pulled": 0, "missing": 0, "pull_id": pull,
        "money": "25.00",
    }  # fmt: skip
    assert told["shipping"] == [{"shipping_type": "pwe", "orders": 1}]
    assert (await staff.get("/api/today")).json()["to_ship"]["money"] is None
    page = (await owner.get("/today")).text
    assert "3 orders" in page
    assert f'2 in <a href="/pulls/{pull}">' in page


async def test_a_member_sees_what_others_changed_since_the_last_visit(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    assert "Since your last visit" not in (await owner.get("/today")).text
    assert (await staff.get("/today")).status_code == 200
    clock.shift(timedelta(hours=2))
    assert (await staff.post("/api/lists", json={"name": "Binder"})).status_code == 201
    page = (await owner.get("/today")).text
    changes = page[page.index('id="changes"') : page.index('id="movers"')]
    assert "List created" in changes
    assert "Binder" in changes
    # The same visit goes on, and a page that asks for itself is no visit.
    clock.shift(timedelta(minutes=5))
    assert "List created" in (await owner.get("/today")).text
    clock.shift(timedelta(hours=2))
    polled = await owner.get("/today", headers={"HX-Request": "true"})
    assert "List created" not in polled.text
    assert "No changes since your last visit." in polled.text
    # One's own changes are no news.
    assert "No changes since your last visit." in (await staff.get("/today")).text
    link = re.search(r'href="(/activity\?since=[^"]+)"', page)[1]
    assert "Binder" in (await owner.get(link)).text
