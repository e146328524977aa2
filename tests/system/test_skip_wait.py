"""Skipping the wait with 64 callers at once in four processes: never a credit twice for one waiting
request, whatever process is killed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from psycopg.rows import dict_row
from tests.system.processes import Seller, Server, a_folder, kill, until

import schedule
from cardsync.operations.processes import embedded
from cardsync.platform import clock
from cardsync.platform.database.migrate import keep_seal, migrate
from cardsync.platform.database.session import Database
from cardsync.shop.accounts import sellers
from cardsync.shop.credits import ledger

PROCESSES, CALLERS = 4, 64
FEW, MANY = 6, schedule.count("CARDSYNC_SKIP_WAIT_ROUNDS", 10_000, 300)
SOAK_ROUNDS = schedule.count("CARDSYNC_SOAK_ROUNDS", 30, 3)
CALLER_PROGRAM = Path(__file__).with_name("skip_wait_callers.py")

LEDGER = """
    SELECT a.credit_balance AS balance, sum(t.amount) AS sum,
        count(*) FILTER (WHERE t.kind = 'skip_wait') AS charges
      FROM account a JOIN credit_transaction t USING (seller_id) WHERE a.seller_id = %(seller)s
      GROUP BY 1
"""
# The rows after an agent's failed cycle: the request is taken, the cooldown goes on. Its moment
# names the round.
NEXT_ROUND = """
    UPDATE sync_state SET requested_kind = NULL, requested_at = NULL,
        last_pricing_at = clock_timestamp()
     WHERE seller_id = %(seller)s RETURNING seller_id
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    off = {"RATE_LIMIT_GENERAL": "0", "RATE_LIMIT_SYNC_REQUEST": "0"}
    with a_folder() as folder, Server(folder, WEB_WORKERS=str(PROCESSES), **off) as started:
        yield started


def a_seller(server: Server, credits: int) -> Seller:
    seller = server.seller()
    ran = server.run(
        "admin", "credits", "grant", str(seller.id), str(credits), "--reason", "a test"
    )
    assert ran.code == 0, ran.err
    server.sql(NEXT_ROUND, seller=seller.id)
    return seller


def assert_adds_up(ledger: dict[str, Any], charges: int) -> None:
    assert ledger["balance"] == ledger["sum"]
    assert ledger["charges"] == charges


def expected(keys: int) -> dict[str, int]:
    """The expected answers where all callers share so many keys: every caller with the key that
    paid hears of the charge.
    """
    shared = CALLERS // keys
    told = {"charged": 1, "replayed": shared - 1, "no_charge_needed": CALLERS - shared}
    return {status: times for status, times in told.items() if times}


# Over HTTP, one round after the other


async def skip(http: httpx.AsyncClient, key: str) -> str:
    """As a careful client does: without an answer it asks again with the same key."""
    while True:
        try:
            answer = await http.post("/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": key})
        except httpx.TransportError:
            await asyncio.sleep(0.05)
            continue
        if answer.status_code != 503:
            assert answer.status_code == 200, answer.text
            return str(answer.json()["status"])


async def all_at_once(seller: Seller, name: str, keys: int, meanwhile: Any = None) -> Counter[str]:
    """Every caller once; they share so many keys."""
    headers = {"Authorization": f"Bearer {seller.api_key}"}
    limits = httpx.Limits(max_connections=CALLERS)
    async with httpx.AsyncClient(
        base_url=seller.server.url, headers=headers, timeout=120, limits=limits
    ) as http:
        calls = [asyncio.create_task(skip(http, f"{name}-{n % keys}")) for n in range(CALLERS)]
        if meanwhile:
            await asyncio.to_thread(meanwhile)
        async with asyncio.timeout(60):
            return Counter(await asyncio.gather(*calls))


@pytest.mark.night
def test_one_charge_a_round_however_many_keys(server: Server) -> None:
    seller = a_seller(server, 100)
    for charges, keys in enumerate((1, CALLERS, 8), start=1):
        told = asyncio.run(all_at_once(seller, f"round-{charges}", keys))
        assert told == expected(keys)
        assert_adds_up(*server.sql(LEDGER, seller=seller.id), charges)
        server.sql(NEXT_ROUND, seller=seller.id)


def kill_the_oldest(server: Server) -> None:
    time.sleep(random.uniform(0, 0.15))  # the moment is what is tested
    kill(oldest(server))


def oldest(server: Server) -> psutil.Process:
    return min(server.children("web")[1:], key=psutil.Process.create_time)


@pytest.mark.parametrize("rounds", [2, pytest.param(SOAK_ROUNDS, marks=pytest.mark.night)])
def test_a_web_process_killed_in_the_middle_charges_nobody_twice(
    server: Server, rounds: int
) -> None:
    """A caller that lost an answer asks again; the answer `charged` may be among the lost ones."""
    seller = a_seller(server, 1000)
    for charges, keys in zip(range(1, rounds + 1), itertools.cycle((1, CALLERS, 8)), strict=False):
        until(
            lambda: len(server.children("web")) == PROCESSES + 1 and server.ready(),
            "every web process",
        )
        # granian ends itself, all of it, when one of its processes dies younger than that.
        until(
            lambda: time.time() - oldest(server).create_time() > 6, "the oldest to be no crash loop"
        )
        told = asyncio.run(
            all_at_once(seller, f"round-{charges}", keys, lambda: kill_the_oldest(server))
        )
        assert told["charged"] <= 1
        assert told["charged"] + told["replayed"] + told["no_charge_needed"] == CALLERS
        assert_adds_up(*server.sql(LEDGER, seller=seller.id), charges)
        server.sql(NEXT_ROUND, seller=seller.id)


@pytest.mark.night
def test_a_charge_is_replayed_after_a_restart_and_a_day_later(server: Server) -> None:
    seller = a_seller(server, 5)
    assert asyncio.run(all_at_once(seller, "once", 1))["charged"] == 1
    assert server.stop() == 0
    server.start()
    assert asyncio.run(all_at_once(seller, "once", 1)) == {"replayed": CALLERS}
    for table, moment in (("credit_transaction", "created_at"), ("sync_state", "last_pricing_at")):
        query = (
            f"UPDATE {table} SET {moment} = {moment} - interval '24 h'"
            " WHERE seller_id = %(seller)s RETURNING 1"
        )
        server.sql(query, seller=seller.id)
    assert asyncio.run(all_at_once(seller, "once", 1)) == {"replayed": CALLERS}
    assert asyncio.run(all_at_once(seller, "another", 1)) == {"no_charge_needed": CALLERS}
    assert_adds_up(*server.sql(LEDGER, seller=seller.id), 1)


# By the operation itself, for many rounds


SEAL = b"a test"


async def made(url: str, credits: int) -> sellers.CreatedSeller:
    async with Database.open(url, pool=1, hot_pool=1, seal=lambda: SEAL) as database:
        async with database.shared() as session:
            seller = await sellers.create_seller(
                session,
                name="A Seller",
                email="a@example.invalid",
                plan="founder",
                lines=[],
                sync_mode="full",
            )
        async with database.tenant(seller.seller_id) as session:
            await ledger.grant(session, seller.seller_id, credits, "a test", clock.now())
    return seller


@dataclass(frozen=True)
class Callers:
    """The processes of callers, and the ledger as they leave it."""

    seller: sellers.CreatedSeller
    connection: psycopg.Connection[dict[str, Any]]
    processes: list[subprocess.Popen[str]]

    def rows(self, query: str) -> list[dict[str, Any]]:
        return self.connection.execute(query, {"seller": self.seller.seller_id}).fetchall()

    def round(self, name: str, keys: int) -> tuple[Counter[str], set[int]]:
        """All answers: how often each came, and of which transactions."""
        for process in self.processes:
            assert process.stdin
            print(name, keys, file=process.stdin, flush=True)
        told: Counter[str] = Counter()
        transactions = set()
        for process in self.processes:
            assert process.stdout
            for status, transaction_id, times in json.loads(process.stdout.readline()):
                told[status] += times
                transactions |= {transaction_id} - {None}
        return told, transactions


@pytest.fixture
def callers() -> Iterator[Callers]:
    with a_folder() as folder, embedded.running(folder / "data") as database:
        migrate(database.admin_url())
        keep_seal(database.admin_url(), SEAL)
        seller = asyncio.run(made(database.url(), 10 * MANY))
        with psycopg.connect(
            database.admin_url(), row_factory=dict_row, autocommit=True
        ) as connection:
            share = CALLERS // PROCESSES
            processes = [
                subprocess.Popen(
                    [
                        sys.executable,
                        CALLER_PROGRAM,
                        database.url(),
                        seller.api_key,
                        str(share),
                        str(first),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for first in range(0, CALLERS, share)
            ]
            yield Callers(seller, connection, processes)
            for process in processes:
                process.communicate(timeout=180)


@pytest.mark.parametrize("rounds", [FEW, pytest.param(MANY, marks=pytest.mark.night(first=True))])
@pytest.mark.night
def test_one_charge_a_round_for_many_rounds(callers: Callers, rounds: int) -> None:
    for charges, keys in zip(range(1, rounds + 1), itertools.cycle((1, CALLERS, 8)), strict=False):
        callers.rows(NEXT_ROUND)
        told, transactions = callers.round(f"round-{charges}", keys)
        assert told == expected(keys)
        assert len(transactions) == 1
        assert_adds_up(*callers.rows(LEDGER), charges)
    earlier, transactions = callers.round("round-1", 1)
    assert (earlier, len(transactions)) == ({"replayed": CALLERS}, 1)
