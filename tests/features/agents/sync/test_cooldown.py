"""POST /sync/request inside and outside the cooldown: whom it binds, and each body to the
letter.
"""

import asyncio
from datetime import timedelta

import pytest

from builders import a_csv, a_row
from cardsync.agents.seller_state.sync_kinds import KINDS
from cardsync.platform import clock
from world import status

HOUR = timedelta(hours=1)


async def ask(seller, **body):
    return await seller.post("/api/v1/sync/request", json=body)


# The state table's rows on manual sync requests


@pytest.mark.parametrize("plan", ["founder", "paid", "complimentary", "trial", "free"])
@pytest.mark.parametrize("metering", [True, False])
async def test_manual_sync_request_not_in_cooldown_is_requested(a_seller, plan, metering):
    seller = await a_seller(plan=plan, credits_metering_enabled=metering)
    answer = await ask(seller)
    assert (answer.status_code, answer.json()) == (200, {"status": "requested"})
    pending = (await seller.get("/api/v1/sync/pending")).json()
    assert (pending["action"], pending["reason"]) == ("sync", "manual_request")


@pytest.mark.parametrize("plan", ["founder", "paid", "complimentary", "trial"])
async def test_manual_sync_request_with_the_cooldown_not_enforced_is_requested(a_seller, plan):
    seller = await a_seller.synced(plan=plan)
    answer = await ask(seller)
    assert (answer.status_code, answer.json()) == (200, {"status": "requested"})
    pending = (await seller.get("/api/v1/sync/pending")).json()
    assert (pending["action"], pending["reason"]) == ("sync", "manual_request")


@pytest.mark.parametrize("plan", ["founder", "paid", "complimentary", "trial", "free"])
async def test_manual_sync_request_metered_inside_the_cooldown_is_402_and_changes_nothing(
    a_seller, plan
):
    seller = await a_seller.synced(plan=plan, credits_metering_enabled=True)
    await seller.grant(3)
    answer = await ask(seller)
    remaining = answer.json()["cooldown_remaining_seconds"]
    assert answer.status_code == 402
    assert answer.json() == {
        "status": "cooldown", "cooldown_remaining_seconds": remaining, "balance": 3,
        "top_up_path": "/account/credits",
    }  # fmt: skip
    assert isinstance(remaining, int)
    assert 1 <= remaining <= 3600
    assert (await status(seller))["phase"] == "idle"


@pytest.mark.parametrize("expired_trial", [True, False])
async def test_manual_sync_request_of_a_free_account_inside_the_cooldown_is_429_and_changes_nothing(
    a_seller, expired_trial
):
    changes = (
        {"plan": "trial", "trial_ends_at": "2024-01-01T00:00:00Z"}
        if expired_trial
        else {"plan": "free"}
    )
    seller = await a_seller.synced(**changes)
    answer = await ask(seller)
    remaining = answer.json()["cooldown_remaining_seconds"]
    assert answer.status_code == 429
    assert answer.json() == {"status": "cooldown", "cooldown_remaining_seconds": remaining}
    assert answer.headers["Retry-After"] == str(remaining)
    assert 1 <= remaining <= 3600
    assert (await status(seller))["phase"] == "idle"


# Its start and its end


async def test_it_ends_an_hour_after_the_cycle(a_seller):
    seller = await a_seller.synced(plan="free")
    clock.shift(HOUR / 2)
    assert (await ask(seller)).json()["cooldown_remaining_seconds"] <= 1800
    clock.shift(HOUR / 2)
    assert (await ask(seller)).status_code == 200


@pytest.mark.parametrize("kind", KINDS)
async def test_it_binds_every_kind(a_seller, kind):
    seller = await a_seller.synced(plan="free")
    assert (await ask(seller, kind=kind)).status_code == 429


@pytest.mark.parametrize(
    ("kind", "result", "expected"),
    [
        ("full", "success", 429),
        ("pricing", "success", 429),
        ("orders", "success", 200),
        ("account", "success", 200),
        ("full", "partial", 200),
        ("full", "failed", 200),
        ("pricing", "failed", 200),
    ],
)
async def test_only_a_completed_full_or_pricing_cycle_starts_it(a_seller, kind, result, expected):
    seller = await a_seller(plan="free")
    await ask(seller, kind=kind)
    assert (await seller.get("/api/v1/sync/pending")).json()["kind"] == kind
    await seller.post("/api/v1/sync/log", json={"status": result})
    assert (await ask(seller)).status_code == expected


async def test_a_request_that_waits_does_not_open_the_cooldown_to_another(a_seller):
    seller = await a_seller.synced()
    assert (await ask(seller, kind="orders")).status_code == 200
    await seller.set(credits_metering_enabled=True)
    assert (await ask(seller)).status_code == 402
    pending = (await seller.get("/api/v1/sync/pending")).json()
    assert (pending["reason"], pending["kind"]) == ("manual_request", "orders")


async def test_a_request_before_the_end_of_a_running_cycle_is_not_undone_by_its_cooldown(a_seller):
    seller = await a_seller(plan="free")
    await seller.get("/api/v1/sync/pending")
    assert (await ask(seller)).status_code == 200
    await seller.import_csv(a_csv(a_row()))
    assert (await ask(seller)).status_code == 200
    assert (await ask(seller, kind="orders")).status_code == 200
    assert (await seller.get("/api/v1/sync/pending")).json()["reason"] == "manual_request"
    assert (await ask(seller)).status_code == 429


async def test_requests_at_the_same_time_meet_the_same(a_seller):
    seller = await a_seller.synced(credits_metering_enabled=True)
    answers = await asyncio.gather(*(ask(seller) for _ in range(6)))
    assert [answer.status_code for answer in answers] == [402] * 6
