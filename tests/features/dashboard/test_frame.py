"""The frame of every page over HTTP: the counts of what waits, and the sync as one state."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

from browsers import joined, signed_in
from builders import an_order
from cardsync.platform import clock
from cardsync.shop.today.waiting import KEPT_FOR


def badge(page, name):
    entry = re.search(rf'<a href="[^"]*" title="{name}"(.*?)</a>', page, re.DOTALL)
    found = re.search(r'class="badge[^"]*">\s*([\d,]+)', entry[1]) if entry else None
    return int(found[1]) if found else None


async def test_the_navigation_counts_what_its_pages_list(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    assert badge((await browser.get("/today")).text, "Orders") is None
    await seller.orders([an_order(f"A-{n}", status="Ready to Ship") for n in range(3)])
    listed = await browser.get("/api/orders", params={"pull_session": "none"})
    # A form has been sent meanwhile, so the counts are read anew.
    await browser.form("/lists", name="Any")
    assert badge((await browser.get("/today")).text, "Orders") == listed.json()["total"] == 3
    opened = await browser.form("/pulls")
    assert opened.status_code == 303, opened.text
    page = (await browser.get("/cards")).text
    assert (badge(page, "Orders"), badge(page, "Pulls")) == (None, 1)


async def test_counts_are_read_once_in_a_few_seconds(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    clock.stop()
    assert badge((await browser.get("/orders")).text, "Orders") is None
    await seller.orders([an_order("A-1", status="Ready to Ship")])
    assert badge((await browser.get("/orders")).text, "Orders") is None
    clock.shift(KEPT_FOR)
    assert badge((await browser.get("/orders")).text, "Orders") == 1


def state(page):
    kind, words = re.search(
        r'class="state (\w+)".*?</span><span>\s*(.*?)</span>', page, re.S
    ).groups()
    return kind, words


async def test_the_header_says_the_sync_as_one_state(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    assert state((await browser.get("/cards")).text) == ("none", "No sync app yet")
    assert (await seller.post("/api/v1/heartbeat")).status_code == 200

    # The process that was called writes it a moment later.
    stored = "SELECT FROM agent_seen WHERE seller_id = :id"
    while not await seller.service.sql(seller.id, stored, id=seller.id):
        await asyncio.sleep(0.05)
    clock.shift(timedelta(minutes=20))
    page = (await browser.get("/cards")).text
    kind, words = state(page)
    assert kind == "bad", words
    assert re.fullmatch(r"Sync app offline since (\w+ \d+, )?\d+:\d\d [AP]M", words)
    # A page that stays open asks for the same part of it.
    part = (await browser.get("/sync/state")).text
    assert state(part) == (kind, words)
    assert "<main" not in part
    await seller.get("/api/v1/sync/pending")
    assert state((await browser.get("/cards")).text)[0] == "busy"


async def test_each_entry_leads_to_a_page(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    for browser, least in ((owner, 22), (staff, 18)):
        page = (await browser.get("/cards")).text
        entries = re.findall(r'<li><a href="([^"#]*)(?:#\w+)?" title=', page)
        assert len(entries) >= least
        for address in entries:
            answer = await browser.get(address, follow_redirects=True)
            assert answer.status_code == 200, address


async def test_an_address_that_is_no_page_keeps_the_navigation_of_a_member_alone(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    by_browser = {"Accept": "text/html"}
    for method, address in (("GET", "/nothing"), ("GET", "/nothing/is/here"), ("POST", "/nothing")):
        page = await browser.http.request(method, address, headers=by_browser)
        assert page.status_code == 404
        assert 'id="nav"' in page.text
        assert "We can&#39;t find that page." in page.text
    async with seller.service.client() as stranger:
        plain = [
            await stranger.get("/nothing", headers=by_browser),
            # No route has the second part of this address.
            await browser.get("/cards/nothing", headers=by_browser),
        ]
    for page in plain:
        assert page.status_code == 404
        assert 'id="nav"' not in page.text
        assert 'href="/today">Go to Today' in page.text
    for address in ("/nothing", "/api/nothing", "/api/v1/nothing"):
        answer = await browser.get(address, headers={"Accept": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
