"""A worker whose database is away ends, so that its supervisor starts another one."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from procrastinate.exceptions import ConnectorException
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.chaos.proxy import Proxy

from cardsync.database.session import Database
from cardsync.processes import worker


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
