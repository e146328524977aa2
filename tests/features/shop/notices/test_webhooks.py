"""Webhooks over HTTP, with a receiver on this machine: what is sent, how often, and when no more."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta
from itertools import pairwise

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync.platform import clock
from cardsync.shop.notices import send_webhooks
from cardsync.shop.notices.look import look, watch_all
from cardsync.shop.notices.news import NewsItem
from cardsync.shop.notices.record_notices import record
from notices_builder import (
    a_receiver,
    a_webhook,
    calls,
    deliveries,
    looked_at,
    of_service,
    reaching,
    reported,
    sent,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
async def receiver():
    async with a_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
async def near(service, alive):
    """The service, which may reach this machine."""
    async with reaching(service, alive) as near:
        yield near


@pytest.fixture(scope="module")
async def hasty(service, alive):
    """The service, which waits a second for a receiver: shorter than a slow machine needs."""
    async with reaching(service, alive, webhook_seconds=1) as hasty:
        yield hasty


@pytest.fixture
async def seller(a_seller, near):
    return of_service(await a_seller(), near)


@pytest.mark.night
async def test_a_silent_agent_is_reported_once_and_again_after_it_came_back(seller, receiver):
    _, _, secret = await a_webhook(seller, receiver.url, "agent_silent")
    await calls(seller)
    await reported(seller)
    assert receiver.got == []
    clock.shift(3 * HOUR)
    for _ in range(3):
        await reported(seller)
    [post] = receiver.got
    assert post.type == "agent_silent"
    data = post.data["data"]
    assert data["severity"] == "warn"
    assert data["sentence"].startswith("The sync app isn't responding")
    assert data["url"] == seller.service.settings.origin + "/today#sync"
    assert secret.startswith("whsec_")
    await calls(seller)
    await reported(seller)
    clock.shift(3 * HOUR)
    await reported(seller)
    assert receiver.types == ["agent_silent"] * 2
    # After a day it is worse, and that is news.
    clock.shift(DAY)
    await reported(seller)
    assert [post.data["data"]["severity"] for post in receiver.got] == ["warn", "warn", "bad"]
    assert len({post.id for post in receiver.got}) == 3


@pytest.mark.night
async def test_a_test_is_signed_so_that_the_official_reader_takes_it(seller, receiver):
    owner, id, secret = await a_webhook(seller, receiver.url)
    answer = await owner.post(f"/api/webhooks/{id}/test")
    assert answer.status_code == 201, answer.text
    assert answer.json()["state"] == "waiting"
    await seller.service.run_jobs()
    [post] = receiver.got
    assert post.verified_by(secret)["type"] == "test"
    assert post.headers["content-type"] == "application/json"
    [row] = await deliveries(owner, id)
    assert (row["state"], row["status"], row["tries"]) == ("sent", 200, 1)
    assert row["message_id"] == post.id


async def test_what_happens_is_reported_to_who_asked_for_it(seller, receiver):
    await a_webhook(seller, receiver.url, "orders_new", "upload_rejected", "sync_done")
    await seller.orders([an_order("A-1", status="Ready to Ship", total_amt=12.5)])
    await reported(seller)
    # A condition from before the first look is no news.
    assert receiver.got == []
    await seller.orders(
        [an_order(n, status="Ready to Ship", total_amt=12.5) for n in ("A-2", "A-3")]
    )
    key = await seller.put_object(b"no,csv\nof,ours\n")
    assert (await seller.import_key(key))["state"] == "failed"
    done = {"status": "success", "sync_cycle_id": "cycle-1"}
    assert (await seller.post("/api/v1/sync/log", json=done)).status_code == 201
    await reported(seller)
    await reported(seller)
    assert sorted(receiver.types) == ["orders_new", "sync_done", "upload_rejected"]
    [new] = [post.data["data"] for post in receiver.got if post.type == "orders_new"]
    assert (new["count"], new["money"], new["sentence"]) == (2, "25.00", "2 new orders to pull.")


@pytest.mark.night
async def test_a_failing_receiver_is_tried_again_later_with_the_same_message(seller, receiver):
    owner, id, _ = await a_webhook(seller, receiver.url)
    receiver.status = 500
    await owner.post(f"/api/webhooks/{id}/test")
    await seller.service.run_jobs()
    [row] = await deliveries(owner, id)
    assert (row["state"], row["status"], row["tries"]) == ("waiting", 500, 1)
    assert row["error"] == "the server answered with status 500"
    await sent(seller)
    await sent(seller)
    assert len(receiver.got) == 2
    clock.shift(timedelta(minutes=6))
    receiver.status = 204
    await sent(seller)
    assert len(receiver.got) == 3
    assert len({(post.id, post.body) for post in receiver.got}) == 1
    # Each try is signed at its own time.
    assert len({post.headers["webhook-timestamp"] for post in receiver.got}) == 3
    [row] = await deliveries(owner, id)
    assert (row["state"], row["tries"]) == ("sent", 3)


async def test_a_failing_receiver_is_tried_less_and_less_and_gets_all_when_it_works(
    seller, receiver
):
    owner, id, _ = await a_webhook(seller, receiver.url)
    receiver.status = 500
    await owner.post(f"/api/webhooks/{id}/test")
    await seller.service.run_jobs()
    since = clock.now()
    tried = []
    for _ in range(60):
        # A message that comes while it rests waits, too; what an owner asks for does not.
        async with seller.service.database.tenant(seller.id) as session:
            found = NewsItem(
                "webhook_disabled", f"{clock.now()}", "bad", "x", "x", "/", clock.now()
            )
            await record(session, seller.service.settings, seller.id, [found], clock.now())
        clock.shift(timedelta(minutes=5))
        before = len(receiver.got)
        await sent(seller)
        if len(receiver.got) > before:
            tried.append(round((clock.now() - since) / timedelta(minutes=1)))
    gaps = [(later - earlier) // 5 for earlier, later in pairwise(tried)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == 12
    assert len(receiver.got) <= 9
    receiver.status = 200
    owner = await signed_in(seller)
    await owner.post(f"/api/webhooks/{id}/test")
    await seller.service.run_jobs()
    await sent(seller)
    waiting = [row for row in await deliveries(owner, id) if row["state"] == "waiting"]
    assert all(row["tries"] for row in waiting)
    assert sum(row["state"] == "sent" for row in await deliveries(owner, id)) >= 40


@pytest.mark.night
async def test_after_three_days_it_is_given_up_and_can_be_sent_again(seller, receiver):
    owner, id, _ = await a_webhook(seller, receiver.url)
    receiver.status = 503
    await owner.post(f"/api/webhooks/{id}/test")
    await seller.service.run_jobs()
    for _ in range(80):
        clock.shift(HOUR)
        await sent(seller)
    owner = await signed_in(seller)
    [row] = await deliveries(owner, id)
    assert (row["state"], row["status"], row["next_try_at"]) == ("failed", 503, None)
    assert len(receiver.got) == row["tries"] == 10
    [webhook] = (await owner.get("/api/webhooks")).json()["webhooks"]
    assert (webhook["on"], webhook["off_why"]) == (False, "failing")
    refused = await owner.post(f"/api/webhooks/{id}/deliveries/{row['id']}/replay")
    assert refused.status_code == 422
    receiver.status = 200
    answer = await owner.send("PATCH", f"/api/webhooks/{id}", json={"on": True})
    assert answer.json()["on"] is True
    answer = await owner.post(f"/api/webhooks/{id}/deliveries/{row['id']}/replay")
    assert (answer.status_code, answer.json()["state"]) == (200, "waiting")
    await seller.service.run_jobs()
    [row] = await deliveries(owner, id)
    assert (row["state"], row["tries"]) == ("sent", 1)
    assert len({post.id for post in receiver.got}) == 1


async def test_a_receiver_that_is_gone_is_switched_off_at_once(seller, receiver):
    async with a_receiver() as other:
        owner, id, _ = await a_webhook(seller, receiver.url)
        await a_webhook(seller, other.url, "webhook_disabled", browser=owner)
        receiver.status = 410
        await owner.post(f"/api/webhooks/{id}/test")
        await owner.post(f"/api/webhooks/{id}/test")
        await seller.service.run_jobs()
        await sent(seller, 2)
        assert len(receiver.got) == 1
        assert {row["state"] for row in await deliveries(owner, id)} == {"failed"}
        [webhook, _] = (await owner.get("/api/webhooks")).json()["webhooks"]
        assert (webhook["on"], webhook["off_why"]) == (False, "gone")
        [post] = other.got
        assert post.type == "webhook_disabled"
        assert f"Webhook {id} was turned off" in post.data["data"]["sentence"]


async def test_a_redirect_is_not_followed(seller, receiver):
    async with a_receiver() as other:
        owner, id, _ = await a_webhook(seller, receiver.url)
        receiver.status, receiver.elsewhere = 307, other.url
        await owner.post(f"/api/webhooks/{id}/test")
        await seller.service.run_jobs()
        assert other.got == []
        [row] = await deliveries(owner, id)
        assert (row["state"], row["status"]) == ("waiting", 307)


@pytest.mark.night
async def test_a_receiver_that_hangs_costs_a_turn_one_wait(a_seller, hasty, receiver):
    seller = of_service(await a_seller(), hasty)
    owner, id, _ = await a_webhook(seller, receiver.url)
    receiver.seconds = 30
    for _ in range(5):
        await owner.post(f"/api/webhooks/{id}/test")
    await seller.service.run_jobs()
    rows = await deliveries(owner, id)
    assert sorted(row["tries"] for row in rows) == [0, 0, 0, 0, 1]
    assert rows[-1]["error"] == "it was not answered within 1 seconds"


async def test_a_host_in_a_private_network_is_not_reached(a_seller, service, receiver):
    # The service as it is in a shop, where nothing of this machine is reached.
    seller = await a_seller()
    owner = await signed_in(seller)
    inside = ("https://127.0.0.1:80/x", "https://10.0.0.1/hook", "https://[::1]/hook")
    for url in (receiver.url, *inside, "https://a@b.example/x", "ftp://a.b/x"):
        answer = await owner.post("/api/webhooks", json={"url": url})
        assert answer.status_code == 422, url
        assert answer.json()["error"].startswith("url: must "), answer.text
    owner, id, _ = await a_webhook(seller, "https://localhost/hook", browser=owner)
    await owner.post(f"/api/webhooks/{id}/test")
    await service.run_jobs()
    [row] = await deliveries(owner, id)
    assert row["error"] == "its host is not in the public internet"
    assert (row["state"], row["status"]) == ("waiting", None)


async def test_two_workers_send_a_message_once(seller, receiver):
    owner, id, _ = await a_webhook(seller, receiver.url)
    receiver.seconds = 0.2
    for _ in range(3):
        await owner.post(f"/api/webhooks/{id}/test")
    work = seller.service.work
    await asyncio.gather(*(send_webhooks.send_due(work, seller.id) for _ in range(2)))
    assert len(receiver.got) == len({post.id for post in receiver.got}) == 3
    assert {row["tries"] for row in await deliveries(owner, id)} == {1}


async def test_two_workers_report_a_condition_once(seller, receiver):
    await a_webhook(seller, receiver.url, "consent_missing")
    await seller.set(write_consent=False)
    work = seller.service.work
    await asyncio.gather(*(look(work, seller.id) for _ in range(3)))
    await sent(seller)
    assert receiver.types == ["consent_missing"]


async def test_a_worker_that_is_killed_in_the_middle_sends_the_same_message_again(seller, receiver):
    owner, id, _ = await a_webhook(seller, receiver.url)
    await owner.post(f"/api/webhooks/{id}/test")
    work = seller.service.work
    # The receiver gets it, and the worker dies before it notes that.
    [claimed] = await send_webhooks.claim(work, seller.id)
    assert (await send_webhooks.send(work.settings, claimed)).is_good
    await sent(seller)
    assert len(receiver.got) == 1
    clock.shift(timedelta(minutes=2))
    await sent(seller)
    first, again = receiver.got
    assert (first.id, first.body) == (again.id, again.body)
    # A worker that was only slow changes nothing any more.
    await send_webhooks.settle(work, claimed, send_webhooks.Outcome(500, "late"))
    [row] = await deliveries(owner, id)
    assert (row["state"], row["status"]) == ("sent", 200)


@pytest.mark.night
async def test_for_a_day_both_secrets_are_good(seller, receiver):
    owner, id, former = await a_webhook(seller, receiver.url)
    rotated = (await owner.post(f"/api/webhooks/{id}/secret")).json()
    new = rotated["secret"]
    assert rotated["webhook"]["former_secret_until"] is not None
    await owner.post(f"/api/webhooks/{id}/test")
    await seller.service.run_jobs()
    [post] = receiver.got
    assert post.verified_by(former) == post.verified_by(new)
    clock.shift(25 * HOUR)
    owner = await signed_in(seller)
    await owner.post(f"/api/webhooks/{id}/test")
    await seller.service.run_jobs()
    assert len(receiver.got[-1].headers["webhook-signature"].split(" ")) == 1
    [webhook] = (await owner.get("/api/webhooks")).json()["webhooks"]
    assert webhook["former_secret_until"] is None


async def test_the_secret_is_shown_once_and_is_nowhere_in_plain(seller, receiver):
    owner, id, secret = await a_webhook(seller, receiver.url)
    assert secret not in (await owner.get("/api/webhooks")).text
    [row] = await seller.service.sql(
        seller.id, "SELECT * FROM webhook WHERE seller_id = :seller", seller=seller.id
    )
    assert secret.encode() not in bytes(row["secret"])
    assert secret not in (await owner.get(f"/settings/webhooks/{id}")).text


@pytest.mark.night
async def test_a_webhook_that_is_off_or_deleted_gets_nothing(seller, receiver):
    owner, id, _ = await a_webhook(seller, receiver.url, "consent_missing")
    await owner.post(f"/api/webhooks/{id}/test")
    await owner.send("PATCH", f"/api/webhooks/{id}", json={"on": False})
    await seller.set(write_consent=False)
    await reported(seller)
    assert receiver.got == []
    [row] = await deliveries(owner, id)
    assert row["error"] == "the webhook was turned off"
    assert (await owner.send("DELETE", f"/api/webhooks/{id}")).json() == {"deleted": True}
    assert (await owner.get(f"/api/webhooks/{id}/deliveries")).status_code == 404
    await sent(seller)
    assert receiver.got == []


async def test_webhooks_are_the_owners_and_of_one_shop(seller, receiver, a_seller):
    owner, id, _ = await a_webhook(seller, receiver.url)
    staff = await joined(seller, f"bea-{seller.email}")
    assert (await staff.get("/api/webhooks")).status_code == 403
    stranger = await signed_in(of_service(await a_seller(), seller.service))
    for path in ("test", "secret"):
        assert (await staff.post(f"/api/webhooks/{id}/{path}")).status_code == 403
        assert (await stranger.post(f"/api/webhooks/{id}/{path}")).status_code == 404
    assert (await seller.get("/api/webhooks")).status_code == 403
    for _ in range(9):
        await a_webhook(seller, receiver.url, browser=owner)
    full = await owner.post("/api/webhooks", json={"url": receiver.url})
    assert (full.status_code, "at most 10" in full.json()["error"]) == (422, True)
    wrong = await owner.post("/api/webhooks", json={"url": receiver.url, "kinds": ["nothing"]})
    assert wrong.json()["error"] == "kinds: there is no notice nothing"


async def test_without_mail_and_webhooks_no_shop_is_looked_at(seller):
    assert await watch_all(seller.service.work) == 0
    await looked_at(seller)
    kept = "SELECT * FROM {} WHERE seller_id = :seller"
    for table in ("notice", "notice_look"):
        assert await seller.service.sql(seller.id, kept.format(table), seller=seller.id) == []


async def test_a_port_that_nobody_listens_at_is_tried_again(seller, receiver):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    owner, id, _ = await a_webhook(seller, f"http://127.0.0.1:{port}/hook")
    await owner.post(f"/api/webhooks/{id}/test")
    await seller.service.run_jobs()
    [row] = await deliveries(owner, id)
    assert (row["state"], row["error"]) == ("waiting", "its host cannot be reached safely")


@pytest.mark.night
async def test_a_suspended_shop_reports_nothing(seller, receiver):
    await a_webhook(seller, receiver.url, "consent_missing")
    await seller.import_csv(a_csv(a_row(1)))
    await seller.set(write_consent=False, suspended=True)
    await reported(seller)
    assert receiver.got == []
