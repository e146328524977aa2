"""The page Sync over HTTP: the sync, its forms, the agent's tasks and the price file."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, log
from cardsync.dashboard.formats import Reader, zone_of
from cardsync.platform import clock
from sent_statements import counting, prepared
from tasks_builder import claim, end, listed

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'


async def test_a_sync_is_requested_and_cancelled(a_seller):
    seller = await a_seller()
    await seller.post("/api/v1/heartbeat", json={"version": "1.2.3<b>", "platform": "linux"})
    browser = await signed_in(seller)
    asked = await browser.form("/sync/request", kind="orders", back="/today")
    assert (asked.status_code, asked.headers["location"][:6]) == (303, "/today")
    assert (await seller.get("/api/v1/sync/pending")).json()["action"] == "sync"
    page = await browser.get("/sync")
    assert page.status_code == 200
    assert 'every 5s"' in page.text
    assert "1.2.3&lt;b&gt;" in page.text
    staff = await joined(seller, f"bea-{seller.email}")
    assert 'action="/sync/cancel"' in page.text
    assert 'action="/sync/cancel"' not in (await staff.get("/sync")).text
    assert (await staff.form("/sync/cancel")).status_code == 403
    assert (await browser.form("/sync/cancel")).status_code == 303
    assert (await seller.get("/api/v1/status")).json()["sync_in_progress"] is False


AGENT_OFFLINE = re.compile("(agent|sync app) (is )?offline", re.IGNORECASE)


async def test_a_request_says_when_the_agent_starts_it(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)

    async def asked(kind):
        answer = await browser.form("/sync/request", kind=kind, back="/today")
        return (await browser.get(answer.headers["location"])).text

    assert "No sync app has connected yet" in await asked("orders")
    await seller.post("/api/v1/heartbeat")
    seen = clock.now()
    assert "The sync app starts it within a minute." in await asked("orders")
    assert not AGENT_OFFLINE.search((await browser.get("/today")).text)
    clock.shift(timedelta(minutes=6))
    told = await asked("orders")
    at = Reader("en", zone_of("America/New_York"), clock.now()).exact(seen)
    assert "It starts when the sync app is back online." in told
    page = (await browser.get("/sync")).text
    assert f"The sync app is offline since {at} (6 min ago)" in page
    for page in ("/sync", "/today"):
        text = (await browser.get(page)).text
        assert "(6 min ago); the sync starts once it is back" in text
        assert "next poll" not in text
    await seller.post("/api/v1/heartbeat")
    assert (await seller.get("/api/v1/sync/pending")).json()["action"] == "sync"
    clock.shift(timedelta(minutes=4))
    assert "when the current sync ends" in await asked("refunds")
    assert not AGENT_OFFLINE.search((await browser.get("/sync")).text)


async def test_the_agents_tasks_are_those_of_the_api(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    for _ in range(2):
        assert (await browser.form("/sync/tasks", kind="refresh_account")).status_code == 303
    [task] = await listed(seller)
    assert task["kind"] == "refresh_account"
    assert "Refresh the account" in (await browser.get("/sync?tasks=pending")).text
    assert "No tasks found" in (await browser.get("/sync?tasks=failed")).text
    refused = await browser.form("/sync/tasks", kind="apply_rollback")
    assert refused.status_code == 422
    staff = await joined(seller, f"bea-{seller.email}")
    assert (await staff.form("/sync/tasks", kind="refresh_account")).status_code == 403
    assert "Run a task" not in (await staff.get("/sync")).text


async def test_a_failed_task_says_why(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await browser.form("/sync/tasks", kind="refresh_orders")
    [task] = await claim(seller)
    error = {"code": "gone", "message": HOSTILE}
    assert (await end(seller, task, "failed", error=error))[0] == 200
    page = await browser.get("/sync?tasks=failed")
    assert page.status_code == 200
    assert "&lt;b onclick" in page.text
    assert "<b onclick" not in page.text


async def test_the_price_file_shows_old_price_new_price_and_change(a_seller):
    seller = await a_seller(sync_mode="read_only")
    dearer = a_row(1, name="Dearer", price="10.00", market="11.00", quantity=3)
    cheap = a_row(2, name="Cheap", price="1.00", market="1.11", quantity=2)
    await seller.import_csv(a_csv(cheap, dearer, a_row(3, name="New", price="", market="5.00")))
    browser = await signed_in(seller)
    page = (await browser.get("/sync/prices")).text
    told = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert "Dearer" in told.split("Cheap")[0]  # the largest change of the listed value comes first
    assert "$10.00 $10.89 ▲ rises by $0.89 (8.9%)" in told
    assert "$1.00 $1.10 ▲ rises by $0.10 (10.0%)" in told
    assert "none yet $4.95 first price" in told
    # 3 x 0.89 and 2 x 0.10.
    assert "2 prices to raise by $2.87, 0 to lower, 1 card without a price before" in told


async def test_a_page_of_the_price_file_shows_its_rows_before_it_counts_all(a_seller):
    seller = await a_seller(sync_mode="read_only")
    dearer = [a_row(n, price="1.00", market="1.11", quantity=n) for n in range(1, 62)]
    cheaper = a_row(70, price="5.00", market="4.00")
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    free = {"never_lower": False, "cap": None}
    assert (
        await seller.http.patch(f"/api/pricing/rules/{rule['id']}", json=free)
    ).status_code == 200
    await seller.import_csv(a_csv(*dearer, cheaper))
    browser = await signed_in(seller)
    page = (await browser.get("/sync/prices")).text
    assert page.count('name="card_ids"') == 50
    assert 'rel="next" class="button quiet" href="/sync/prices?page=2"' in page
    assert 'data-hx-get="/sync/prices/count"' in page
    assert "more than 50 prices</a>" in page
    assert "to raise" not in page
    # A browser without scripts follows the link.
    assert 'href="/sync/prices?count=all"' in page
    whole = (await browser.get("/sync/prices?count=all")).text
    answer = (await browser.get("/sync/prices/count")).text
    second = (await browser.get("/sync/prices?page=2")).text
    raised = sum(range(1, 62)) * Decimal("0.10")
    lowered = Decimal("5.00") - Decimal("3.96")
    told = f"61 prices to raise by ${raised}, 1 to lower by ${lowered}"
    for one in (whole, answer, second):
        assert told in " ".join(re.sub(r"<[^>]*>", " ", one).split()).replace(" ,", ",")
    assert "62 prices, page <span data-page-now>1</span> of 2" in answer
    assert 'id="place"' in answer
    # Each card is on one page, those with the largest changes first.
    sizes = [
        int(size) for one in (page, second) for size in re.findall(r'data-label="Stock">(\d+)', one)
    ]
    assert sizes == [*range(61, 10, -1), 1, *range(10, 0, -1)]
    kept = await browser.form("/cards/pin", card_ids=1, back="/sync/prices", page=2)
    assert kept.headers["location"].startswith("/sync/prices?page=2&done=")
    assert "That page does not exist" in (await browser.get("/sync/prices?page=9")).text


@prepared
async def test_a_page_of_the_price_file_reads_the_cards_once_and_its_sums_once_more(a_seller):
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(*(a_row(n, price="1.00", market="9.00") for n in range(1, 62))))
    browser = await signed_in(seller)
    for address, most in (("/sync/prices", 1), ("/sync/prices?count=all", 2)):
        await browser.get(address)
        async with counting(seller.service.app.state.database) as sent:
            await browser.get(address)
        assert len([one for one in sent.sent if "FROM card c" in one]) == most, address


async def test_a_withheld_price_file_says_why_and_shows_no_prices(a_seller):
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(a_row(1, price="1.00", market="9.00")))
    browser = await signed_in(seller)
    await seller.service.sql(
        seller.id,
        "UPDATE sync_state SET rollback_preparing_until = now() + interval '1 hour'"
        " WHERE seller_id = :s",
        s=seller.id,
    )
    page = (await browser.get("/sync/prices")).text
    assert "A rollback is being prepared." in page
    assert 'name="card_ids"' not in page
    assert "to raise" not in page


async def test_the_file_of_prices_is_seen_and_approved(a_seller):
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(a_row(1, name=HOSTILE, price="1.00", market="9.00")))
    browser = await signed_in(seller)
    page = await browser.get("/sync/prices")
    assert page.status_code == 200
    file = await browser.get("/sync/prices.csv")
    assert file.content == (await seller.export()).content
    assert "&lt;b onclick" in page.text
    assert "<b onclick" not in page.text
    assert (await browser.form("/sync/approve", approved="true")).status_code == 303
    assert (await seller.post("/api/v1/heartbeat")).json()["upload_approved"] is True
    assert "Withdraw approval" in (await browser.get("/sync")).text
    await browser.form("/sync/approve", approved="false")
    assert (await seller.post("/api/v1/heartbeat")).json()["upload_approved"] is False
    staff = await joined(seller, f"bea-{seller.email}")
    assert (await staff.get("/sync/prices")).status_code == 403
    assert (await staff.form("/sync/approve", approved="true")).status_code == 403


@pytest.mark.parametrize("path", ["request", "cancel", "skip-wait", "tasks", "approve"])
async def test_forms_without_their_token_are_refused(a_seller, path):
    browser = await signed_in(await a_seller())
    answer = await browser.http.post(f"/sync/{path}", data={"csrf_token": "x"})
    assert answer.status_code == 403


async def test_a_credit_skips_the_wait_once_a_form(a_seller):
    seller = await a_seller(credits_metering_enabled=True)
    await seller.import_csv(a_csv(a_row(1)))
    await seller.grant(2)
    browser = await signed_in(seller)
    page = (await browser.get("/sync")).text
    if 'name="key" value="' not in page:
        pytest.skip("this shop has no cooldown after its import")
    key = page.split('name="key" value="')[1].split('"')[0]
    for _ in range(2):
        assert (await browser.form("/sync/skip-wait", key=key)).status_code == 303
    assert "You have 1 credits" in (await browser.get("/sync")).text


async def test_the_newest_syncs_are_shown_and_the_others_are_not_counted(a_seller):
    seller = await a_seller()
    for number in range(1, 8):
        await log(seller, "success", {"inventory": "success"}, sync_cycle_id=f"c{number}")
    browser = await signed_in(seller)
    async with counting(seller.service.app.state.database) as sent:
        page = (await browser.get("/sync")).text
    shown = [int(id) for id in re.findall(r'href="/sync/result\?cycle=(\d+)"', page)]
    assert len(shown) == 5
    assert shown == sorted(shown, reverse=True)
    assert sent.statements("FROM sync_cycle") > 0
    assert sent.statements("count(*) FROM sync_cycle") == 0
