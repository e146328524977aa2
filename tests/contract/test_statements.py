"""The polls of a steady agent cost the database few statements and round trips."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from builders import Seller, Service, a_csv, a_row, poll
from cardsync.agents.seller_state import state as sync_state
from cardsync.asgi import create_app
from cardsync.platform import clock
from cardsync.platform.database.hot_reads import PolledQuery
from cardsync.platform.settings import Settings
from sent_statements import counting, prepared

AGENTS, ROUNDS = 20, 5


@pytest.fixture
async def web(service: Service, alive):
    """A web process with the limits as they come and no flush of its own accord."""
    usual = {
        name: info.default
        for name, info in Settings.model_fields.items()
        if name.startswith("rate_limit_")
    }
    update = usual | {
        "last_seen_flush_seconds": 3600,
        "rate_limit_exchange_seconds": 3600,
        "database_pool": 2,
        "database_hot_pool": 1,
    }
    settings = service.settings.model_copy(update=update)
    app = create_app(settings)
    async with alive(app):
        yield replace(service, settings=settings, app=app)


@pytest.fixture
async def agents(web: Service, a_seller):
    """Sellers whose last cycle was a moment ago, each known to the process."""
    found = []
    for _ in range(AGENTS):
        seller = await a_seller()
        await seller.service.sql(
            seller.id,
            "UPDATE sync_state SET last_pricing_at = :now WHERE seller_id = :id",
            now=clock.now(),
            id=seller.id,
        )
        agent = replace(
            seller, service=web, http=web.client(Authorization=f"Bearer {seller.api_key}")
        )
        await heartbeat(agent)
        found.append(agent)
    return found


async def heartbeat(agent: Seller) -> None:
    answer = await agent.post(
        "/api/v1/heartbeat", json={"version": "1.2.3", "platform": "linux/amd64"}
    )
    assert answer.status_code == 200


async def nothing_due(agent: Seller) -> None:
    assert await poll(agent, f"agent-{agent.id}") == {
        "action": "wait",
        "reason": "no_sync_needed",
        "sync_requested": False,
    }


@prepared
@pytest.mark.parametrize("request_of", [heartbeat, nothing_due])
async def test_each_request_of_a_steady_agent_is_one_select_in_one_round_trip(
    web, agents, request_of
):
    async with counting(web.app.state.database) as counted:
        for _ in range(ROUNDS):
            for agent in agents:
                await request_of(agent)
    assert (
        len(counted.sent)
        == counted.round_trips
        == counted.statements("EXECUTE caller")
        == AGENTS * ROUNDS
    )


async def _of_its_cycle(agent: Seller) -> dict:
    answer = await agent.get("/api/v1/sync/pending", params={"agent_id": f"agent-{agent.id}"})
    assert answer.status_code == 200
    return answer.json()


@prepared
@pytest.mark.day
async def test_who_waits_for_an_import_polls_as_cheaply_as_it_beats(web, a_seller):
    seller = await a_seller()
    agent = replace(seller, service=web, http=web.client(Authorization=f"Bearer {seller.api_key}"))
    assert (await _of_its_cycle(agent))["action"] == "sync"
    assert (await agent.upload(a_csv(a_row(1)))).status_code == 202
    async with counting(web.app.state.database) as counted:
        for _ in range(ROUNDS):
            assert await _of_its_cycle(agent) == {
                "action": "wait",
                "reason": "in_progress",
                "sync_requested": False,
            }
    assert (
        len(counted.sent) == counted.round_trips == counted.statements("EXECUTE caller") == ROUNDS
    )


@prepared
async def test_who_is_told_its_cycle_again_takes_no_transaction_and_no_wait_for_the_disk(
    web, a_seller
):
    seller = await a_seller()
    agent = replace(seller, service=web, http=web.client(Authorization=f"Bearer {seller.api_key}"))
    told = await _of_its_cycle(agent)
    assert await _of_its_cycle(agent) == told
    async with counting(web.app.state.database) as counted:
        for _ in range(ROUNDS):
            assert await _of_its_cycle(agent) == told
    assert counted.round_trips == counted.statements("EXECUTE") == 2 * ROUNDS
    assert (
        counted.statements("synchronous_commit = off")
        == counted.statements("EXECUTE refresh_lock")
        == ROUNDS
    )


@pytest.mark.parametrize("uploaded", [False, True])
async def test_a_poll_waits_for_nobody_who_writes_in_the_sellers_row(web, a_seller, uploaded):
    """As an import does at the end of each slab, and for as long as its commit takes."""
    seller = await a_seller()
    agent = replace(seller, service=web, http=web.client(Authorization=f"Bearer {seller.api_key}"))
    told = await _of_its_cycle(agent)
    if uploaded:
        assert (await agent.upload(a_csv(a_row(1)))).status_code == 202
        told = {"action": "wait", "reason": "in_progress", "sync_requested": False}
    async with web.database.tenant(seller.id) as session:
        await sync_state.locked(session, seller.id)
        async with asyncio.timeout(5):
            await heartbeat(agent)
            assert await _of_its_cycle(agent) == told
            if uploaded:
                assert (await agent.get("/api/v1/status")).json()["phase"] == "queued"


async def test_the_holders_polls_keep_its_lock_and_nobody_elses(web, a_seller):
    seller = await a_seller()
    agent = replace(seller, service=web, http=web.client(Authorization=f"Bearer {seller.api_key}"))
    told = await _of_its_cycle(agent)
    for _ in range(8):
        clock.shift(timedelta(seconds=100))
        assert await _of_its_cycle(agent) == told
        other = (await agent.get("/api/v1/sync/pending", params={"agent_id": "another"})).json()
        assert other == {"action": "wait", "reason": "in_progress", "sync_requested": False}
    for _ in range(3):
        clock.shift(timedelta(seconds=101))
        other = (await agent.get("/api/v1/sync/pending", params={"agent_id": "another"})).json()
    # Nobody refreshed it for 303 s: a scheduled cycle that went stale counts as failed, and the
    # schedule waits.
    assert other == {"action": "wait", "reason": "no_sync_needed", "sync_requested": False}


@prepared
@pytest.mark.day
async def test_polls_at_the_same_time_share_round_trips_and_each_hears_of_its_own_seller(
    web, agents
):
    for agent in agents[::2]:
        await agent.set(sync_mode="read_only")
    async with counting(web.app.state.database) as counted:
        answers = await asyncio.gather(
            *(agent.post("/api/v1/heartbeat") for agent in agents for _ in range(ROUNDS))
        )
    modes = [answer.json()["sync_mode"] for answer in answers]
    assert modes == (["read_only"] * ROUNDS + ["full"] * ROUNDS) * (AGENTS // 2)
    assert counted.statements("EXECUTE caller") == AGENTS * ROUNDS
    assert counted.round_trips < AGENTS * ROUNDS / 2


async def test_a_connection_that_lost_its_session_goes_on(web, agents):
    async with web.app.state.database.hot.connection() as connection:
        await connection.execute("DEALLOCATE ALL")
    await asyncio.gather(*map(heartbeat, agents))


async def test_who_goes_away_takes_nobody_elses_answer_along(web):
    itself = PolledQuery("itself", "SELECT $1::bigint")
    reads = [
        asyncio.create_task(web.app.state.database.polled.first_row(number, itself))
        for number in range(1, 100)
    ]
    await asyncio.sleep(0)
    reads[0].cancel()
    assert await asyncio.gather(*reads[1:]) == [(number,) for number in range(2, 100)]


@pytest.mark.day
async def test_a_read_that_fails_is_told_to_who_asked_and_to_nobody_after(web):
    polled = web.app.state.database.polled
    with pytest.raises(psycopg.errors.DivisionByZero):
        await polled.first_row(1, PolledQuery("divided", "SELECT 1 / ($1 - 1)"))
    assert await polled.first_row(2, PolledQuery("divided", "SELECT 1 / ($1 - 1)")) == (1,)


async def test_what_cannot_be_written_takes_no_read_along(web):
    polled = web.app.state.database.polled
    plain = PolledQuery("number", "SELECT $1 + 0")
    broken = PolledQuery(
        "broken", "DELETE FROM work_due WHERE seller_id = 1 / ($1 - 5) RETURNING 1", writes=True
    )
    asked = (polled.first_row(number, broken if number == 5 else plain) for number in range(1, 10))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(answers.pop(4), psycopg.errors.DivisionByZero)
    assert answers == [(number,) for number in range(1, 10) if number != 5]


async def test_what_they_leave_to_write_is_one_statement_for_all_of_them(web, agents):
    await web.app.state.last_seen.flush()
    await web.app.state.rate_limits.buckets.flush()
    for agent in agents:
        await heartbeat(agent)
        await nothing_due(agent)
    async with counting(web.app.state.database) as seen:
        await web.app.state.last_seen.flush()
    async with counting(web.app.state.database) as limits:
        await web.app.state.rate_limits.buckets.flush()
    assert [counted.statements("INSERT") for counted in (seen, limits)] == [1, 1]
    assert [counted.statements("SELECT ") for counted in (seen, limits)] == [1, 1], (
        "the one that INSERT reads from"
    )
    async with counting(web.app.state.database) as nothing:
        await web.app.state.last_seen.flush()
        await web.app.state.rate_limits.buckets.flush()
    assert nothing.sent == []
