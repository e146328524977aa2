"""POST /sync/skip_wait: each body to the letter, one charge for one waiting request, the ledger's
sum always the balance.
"""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy.exc import ProgrammingError

from builders import a_csv, a_row, poll
from cardsync.platform import clock
from world import phase

pytestmark = pytest.mark.day

MINUTE = timedelta(minutes=1)


async def skip(seller, key: str = "key-1"):
    return await seller.post("/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": key})


async def said(seller, key: str = "key-1") -> str:
    return (await skip(seller, key)).json()["status"]


async def in_cooldown(a_seller, credits: int = 2):
    """A seller whose full cycle has just completed."""
    seller = await a_seller.synced()
    if credits:
        await seller.grant(credits)
    return seller


async def charges(seller) -> int:
    """How many; the ledger's sum, and every row's running balance, agree with the account."""
    service = seller.service
    rows = await service.sql(
        seller.id,
        "SELECT kind, amount, balance_after FROM credit_transaction WHERE seller_id = :id"
        " ORDER BY id",
        id=seller.id,
    )
    total = 0
    for row in rows:
        total += row["amount"]
        assert row["balance_after"] == total
    [account] = await service.sql(
        seller.id, "SELECT credit_balance FROM account WHERE seller_id = :id", id=seller.id
    )
    assert account["credit_balance"] == total
    return sum(row["kind"] == "skip_wait" for row in rows)


# The state table's rows on skip-wait


async def test_manual_sync_request_by_skip_wait_deducts_one_credit_and_is_requested(a_seller):
    seller = await in_cooldown(a_seller, credits=2)
    answer = await skip(seller)
    told = answer.json()
    assert answer.status_code == 200
    assert told == {
        "status": "charged", "balance": 1,
        "cooldown_remaining_seconds": told["cooldown_remaining_seconds"],
        "transaction_id": told["transaction_id"],
    }  # fmt: skip
    assert isinstance(told["transaction_id"], int)
    assert 1 <= told["cooldown_remaining_seconds"] <= 3600
    assert await charges(seller) == 1
    assert await phase(seller) == "requested"
    assert (await poll(seller)) | {"first_sync": False} == {
        "action": "sync", "reason": "manual_request", "sync_requested": True, "first_sync": False,
        "kind": "full",
    }  # fmt: skip


async def test_skip_wait_with_the_same_key_as_an_earlier_call_is_replayed(a_seller):
    seller = await in_cooldown(a_seller, credits=2)
    first = (await skip(seller)).json()
    answer = await skip(seller)
    told = answer.json()
    assert answer.status_code == 200
    assert told == {
        "status": "replayed", "balance": 1,
        "cooldown_remaining_seconds": told["cooldown_remaining_seconds"],
        "transaction_id": first["transaction_id"],
    }  # fmt: skip
    assert await charges(seller) == 1


async def test_skip_wait_already_past_cooldown_needs_no_charge(a_seller):
    seller = await in_cooldown(a_seller)
    clock.shift(61 * MINUTE)
    answer = await skip(seller)
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "no_charge_needed", "balance": 2, "cooldown_remaining_seconds": 0,
        "transaction_id": None,
    }  # fmt: skip
    assert await charges(seller) == 0
    assert await phase(seller) == "idle"


async def test_skip_wait_while_a_sync_is_running_is_sync_in_flight(a_seller):
    seller = await in_cooldown(a_seller)
    await seller.post("/api/v1/sync/request")
    await poll(seller)
    answer = await skip(seller)
    assert (answer.status_code, answer.json()) == (200, {"status": "sync_in_flight"})
    assert await charges(seller) == 0


@pytest.mark.first(1)
@pytest.mark.parametrize("holder", ["sync", "rollback", "preview"])
async def test_skip_wait_while_the_price_mutation_mutex_is_held_is_409(a_seller, holder):
    seller = await in_cooldown(a_seller)
    await seller.hold_lease(holder)
    answer = await skip(seller)
    seconds = answer.json()["retry_after_seconds"]
    assert (answer.status_code, answer.json()) == (
        409,
        {"status": "mutex_held", "retry_after_seconds": seconds},
    )
    assert 1 <= seconds <= 30
    assert answer.headers["Retry-After"] == str(seconds)
    assert await charges(seller) == 0
    clock.shift(timedelta(seconds=31))
    assert await said(seller) == "charged"


# The rest of the order of checks


async def test_without_a_credit_it_is_402(a_seller):
    seller = await in_cooldown(a_seller, credits=0)
    answer = await skip(seller)
    assert answer.status_code == 402
    assert answer.json() == {
        "status": "insufficient_balance",
        "balance": 0,
        "top_up_path": "/account/credits",
    }
    assert await phase(seller) == "idle"
    await seller.grant(1)
    assert await said(seller) == "charged"  # a refusal is not remembered


async def test_a_waiting_request_is_not_sold_again(a_seller):
    seller = await in_cooldown(a_seller)
    await skip(seller, "key-1")
    told = (await skip(seller, "key-2")).json()
    assert told == {
        "status": "no_charge_needed", "balance": 1,
        "cooldown_remaining_seconds": told["cooldown_remaining_seconds"],
        "transaction_id": None,
    }  # fmt: skip
    assert told["cooldown_remaining_seconds"] > 0
    assert await charges(seller) == 1


@pytest.mark.night
async def test_a_request_that_cost_nothing_is_not_sold_either(a_seller):
    seller = await in_cooldown(a_seller)
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    assert await said(seller) == "no_charge_needed"
    assert (await poll(seller))["kind"] == "orders"


@pytest.mark.night
async def test_the_metering_flag_makes_no_difference(a_seller):
    seller = await in_cooldown(a_seller)
    await seller.set(credits_metering_enabled=True)
    assert (await seller.post("/api/v1/sync/request")).status_code == 402
    assert await said(seller) == "charged"
    # The charge bought one sync, which waits: asking for it again changes nothing.
    assert (await seller.post("/api/v1/sync/request")).status_code == 200
    assert (await poll(seller))["reason"] == "manual_request"
    # The cooldown itself goes on.
    assert (await seller.post("/api/v1/sync/request")).status_code == 402


@pytest.mark.first(1)
@pytest.mark.parametrize("plan", ["free", "trial", "paid", "complimentary", "founder"])
async def test_every_plan_pays_the_same(a_seller, plan):
    seller = await in_cooldown(a_seller, credits=1)
    await seller.set(plan=plan)
    assert (await said(seller), await charges(seller)) == ("charged", 1)


@pytest.mark.night
async def test_a_paused_schedule_does_not_hold_the_bought_sync_back(a_seller):
    seller = await in_cooldown(a_seller)
    await seller.set(auto_sync_paused=True)
    await skip(seller)
    assert (await poll(seller))["reason"] == "manual_request"


# A key and its charge, later


async def test_after_the_request_was_taken_a_new_key_is_charged_again_and_the_old_one_replays(
    a_seller,
):
    seller = await in_cooldown(a_seller)
    first = (await skip(seller, "key-1")).json()
    assert (await poll(seller))["action"] == "sync"
    assert await said(seller, "key-1") == "replayed"
    assert await said(seller, "key-2") == "sync_in_flight"
    await seller.post("/api/v1/sync/log", json={"status": "failed"})
    again = (await skip(seller, "key-2")).json()
    assert (again["status"], again["balance"]) == ("charged", 0)
    assert again["transaction_id"] != first["transaction_id"]
    # The balance of a replay is today's.
    assert (await skip(seller, "key-1")).json()["balance"] == 0
    assert await charges(seller) == 2


async def test_after_the_bought_cycle_was_cancelled_a_new_key_is_charged_again(a_seller):
    seller = await in_cooldown(a_seller)
    await skip(seller, "key-1")
    await poll(seller)
    assert (await seller.post("/api/v1/sync/cancel")).json() == {"status": "cancelled"}
    # The spent credit is not returned, and the request is not offered again.
    assert (await said(seller, "key-1"), (await poll(seller))["reason"]) == (
        "replayed",
        "no_sync_needed",
    )
    again = (await skip(seller, "key-2")).json()
    assert (again["status"], again["balance"]) == ("charged", 0)
    assert await charges(seller) == 2


@pytest.mark.night
async def test_after_the_bought_cycle_completed_the_next_wait_can_be_bought(a_seller):
    seller = await in_cooldown(a_seller)
    await skip(seller, "key-1")
    await poll(seller)
    await seller.import_csv(a_csv(a_row(1, market="2.00")))
    assert await said(seller, "key-2") == "charged"
    assert await charges(seller) == 2


async def test_a_bought_cycle_that_went_stale_waits_again_and_is_not_sold_twice(a_seller):
    seller = await in_cooldown(a_seller)
    await skip(seller, "key-1")
    await poll(seller)
    clock.shift(6 * MINUTE)
    assert await said(seller, "key-2") == "no_charge_needed"
    assert await phase(seller) == "requested"
    assert await charges(seller) == 1


async def test_a_cancelled_cycle_whose_worker_died_is_no_sync_in_flight(a_seller):
    seller = await in_cooldown(a_seller)
    await seller.upload(a_csv(a_row()))
    await seller.hold_lease("sync")
    assert (await seller.post("/api/v1/sync/cancel")).status_code == 202
    assert await said(seller) == "sync_in_flight"
    clock.shift(timedelta(seconds=31))
    assert await said(seller) == "charged"
    assert (await poll(seller))["reason"] == "manual_request"


async def test_a_replay_a_day_later_is_still_a_replay_with_todays_remainder(a_seller):
    seller = await in_cooldown(a_seller)
    first = (await skip(seller)).json()
    clock.shift(timedelta(hours=24))
    assert (await skip(seller)).json() == {
        "status": "replayed", "balance": 1, "cooldown_remaining_seconds": 0,
        "transaction_id": first["transaction_id"],
    }  # fmt: skip
    assert await charges(seller) == 1


async def test_a_replay_wins_over_everything_that_holds_now(a_seller):
    seller = await in_cooldown(a_seller, credits=1)
    await skip(seller)
    await seller.hold_lease("rollback")
    assert (await said(seller), await said(seller, "key-2")) == ("replayed", "mutex_held")
    assert (await poll(seller))["action"] == "sync"
    assert (await said(seller), await said(seller, "key-2")) == ("replayed", "sync_in_flight")


@pytest.mark.night
async def test_the_same_key_of_two_sellers_is_two_keys(a_seller):
    one, other = await in_cooldown(a_seller), await in_cooldown(a_seller)
    assert [await said(one, "same"), await said(other, "same")] == ["charged", "charged"]


# At the same time


async def test_callers_with_the_same_key_are_charged_once(a_seller):
    seller = await in_cooldown(a_seller, credits=5)
    told = [answer.json() for answer in await asyncio.gather(*(skip(seller) for _ in range(12)))]
    assert sorted(answer["status"] for answer in told) == ["charged"] + ["replayed"] * 11
    assert len({answer["transaction_id"] for answer in told}) == 1
    assert {answer["balance"] for answer in told} == {4}
    assert await charges(seller) == 1


async def test_callers_with_different_keys_are_charged_once(a_seller):
    seller = await in_cooldown(a_seller, credits=5)
    told = [
        answer.json()
        for answer in await asyncio.gather(*(skip(seller, f"key-{n}") for n in range(12)))
    ]
    assert sorted(answer["status"] for answer in told) == ["charged"] + ["no_charge_needed"] * 11
    assert {answer["balance"] for answer in told} == {4}
    assert await charges(seller) == 1


async def test_the_last_credit_is_spent_once_and_nobody_is_told_to_top_up_for_what_waits_already(
    a_seller,
):
    seller = await in_cooldown(a_seller, credits=1)
    told = [
        answer.json()
        for answer in await asyncio.gather(*(skip(seller, f"key-{n}") for n in range(12)))
    ]
    assert sorted(answer["status"] for answer in told) == ["charged"] + ["no_charge_needed"] * 11
    assert {answer["balance"] for answer in told} == {0}
    assert await charges(seller) == 1


async def test_a_charge_and_a_poll_at_the_same_time_lose_no_sync(a_seller):
    seller = await in_cooldown(a_seller)
    for n in range(8):
        answer, polled = await asyncio.gather(skip(seller, f"key-{n}"), poll(seller))
        assert answer.json()["status"] in ("charged", "insufficient_balance")
        if answer.json()["status"] == "charged" and polled["action"] == "wait":
            assert (await poll(seller))["reason"] == "manual_request"
        await seller.post("/api/v1/sync/log", json={"status": "failed"})
    assert await charges(seller) == 2


async def test_grants_and_charges_at_the_same_time_all_count(a_seller):
    seller = await in_cooldown(a_seller, credits=1)
    await asyncio.gather(
        *(seller.grant(3) for _ in range(4)), *(skip(seller, f"key-{n}") for n in range(4))
    )
    assert await charges(seller) == 1
    assert (await skip(seller, "key-9")).json()["balance"] == 12


async def test_the_ledger_is_only_ever_appended_to(a_seller, service):
    seller = await in_cooldown(a_seller)
    await skip(seller)
    with pytest.raises(ProgrammingError, match="permission denied"):
        await service.sql(
            seller.id,
            "UPDATE credit_transaction SET amount = 9 WHERE seller_id = :id",
            id=seller.id,
        )
    [found] = await service.sql((await a_seller()).id, "SELECT count(*) FROM credit_transaction")
    assert found["count"] == 0


# The key


@pytest.mark.first(1)
@pytest.mark.parametrize("headers", [{}, {"X-Idempotency-Key": ""}, {"X-Idempotency-Key": " \t "}])
async def test_a_missing_or_blank_key_is_400_before_anything_else(a_seller, headers):
    seller = await in_cooldown(a_seller)
    await seller.hold_lease("rollback")
    answer = await seller.post("/api/v1/sync/skip_wait", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "idempotency_key_required")
    assert set(answer.json()) == {"error", "code"}


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "key",
    ["x" * 256, "schlüssel".encode(), "two words", "ctrl\x01", b"\x80", "\x7f"],
    ids=lambda key: repr(key[:10]),
)
async def test_a_key_that_is_too_long_or_not_visible_ascii_is_422(a_seller, key):
    seller = await in_cooldown(a_seller)
    answer = await seller.http.post("/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert "X-Idempotency-Key" in answer.json()["error"]
    assert await charges(seller) == 0


async def test_two_keys_in_one_request_are_422(a_seller):
    seller = await in_cooldown(a_seller)
    headers = [("X-Idempotency-Key", "one"), ("X-Idempotency-Key", "two")]
    answer = await seller.http.post("/api/v1/sync/skip_wait", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


@pytest.mark.first(1)
@pytest.mark.parametrize("key", ["x", "!~", "x" * 255, "0b5b7a0e-6f6f-4a7e-9d55-2a0d3f6a1f00"])
async def test_any_visible_ascii_is_a_key(a_seller, key):
    seller = await in_cooldown(a_seller)
    assert [await said(seller, key), await said(seller, key)] == ["charged", "replayed"]


async def test_credentials_come_before_the_key(service):
    async with service.client() as http:
        assert (await http.post("/api/v1/sync/skip_wait")).status_code == 401


@pytest.mark.night
async def test_a_body_is_not_looked_at(a_seller):
    seller = await in_cooldown(a_seller)
    answer = await seller.post(
        "/api/v1/sync/skip_wait", content=b"{", headers={"X-Idempotency-Key": "k"}
    )
    assert answer.json()["status"] == "charged"
