"""The database goes away: a worker ends, so that its supervisor starts another one, and a request
is told to come again.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.chaos.proxy import Proxy

from cardsync.operations.processes import worker
from cardsync.platform.database.session import Database

# Ends who waits for the lock of the jobs.
ENDED = """
    SELECT pg_terminate_backend(pid) FROM pg_locks
     WHERE NOT granted AND relation = 'procrastinate_jobs'::regclass"""


async def test_a_worker_ends_where_the_database_is_away_as_it_asks_for_work(service, monkeypatch):
    monkeypatch.setattr(worker, "AWAY_SECONDS", 0.5)
    given = conninfo_to_dict(service.settings.database_url)
    host, port = str(given.get("host", "")), int(given.get("port") or 5432)
    proxy = Proxy(Path(host) / f".s.PGSQL.{port}" if host.startswith("/") else port)
    through = make_conninfo(**given | {"host": "127.0.0.1", "port": proxy.port})
    settings = service.settings.model_copy(update={"sweep_seconds": 0.05})
    async with Database.open(through, pool=4, hot_pool=0) as database:
        running = asyncio.create_task(
            worker.run_worker(replace(service.work, settings=settings, database=database))
        )
        await asyncio.wait([running], timeout=1)
        assert not running.done()
        with proxy.faulty("cut"):
            await asyncio.wait([running], timeout=20)
        assert running.done()
        with pytest.raises(ConnectorException):
            await running
    proxy.close()


async def test_an_upload_whose_connection_ends_at_its_job_is_told_to_come_again(
    a_seller, owner_url
):
    seller = await a_seller()
    with psycopg.connect(owner_url) as held, psycopg.connect(owner_url, autocommit=True) as admin:
        held.execute("LOCK TABLE procrastinate_jobs IN SHARE MODE")
        row = {"order_number": "A-1", "status": "Paid", "total_amt": "2.50"}
        sent = asyncio.create_task(seller.send("/orders", [row]))
        for _ in range(400):
            if admin.execute(ENDED).rowcount:
                break
            await asyncio.sleep(0.025)
    answer = await sent
    assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")
    assert (await seller.send("/orders", [row])).status_code == 202
