"""Old rows move into files of the object store, once and whole, and are read back where somebody
asks for them.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import polars as pl
import psycopg
import pytest
from obstore.exceptions import BaseError
from sqlalchemy.exc import DBAPIError

import schedule
from browsers import signed_in
from builders import Seller, a_csv, a_row, environment
from cardsync.operations import put_away
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.old_data.old_kinds import ACTIVITY, CYCLES, HISTORY, KINDS, Kind
from cardsync.platform.storage import LocalStore, Store
from cardsync.platform.work.jobs import Work
from cardsync.stock.cards import history

ROUNDS = schedule.count("CARDSYNC_SOAK_ROUNDS", 30, 3)
SHORT = {
    "history_retention_days": 31,
    "activity_retention_days": 31,
    "cycle_retention_days": 31,
}
OLD = 400
FILES = "SELECT kind, rows, storage_key, kept_at FROM old_rows WHERE seller_id = :id ORDER BY id"


def soon_old(seller: Seller, store: Store | None = None) -> Work:
    """The work of an installation that keeps rows in the database for a month."""
    work = seller.service.work
    settings = work.settings.model_copy(update=SHORT)
    return replace(work, settings=settings, store=store or work.store)


async def moved(seller: Seller, kind: Kind, store: Store | None = None) -> int:
    slabs = put_away.slabs(soon_old(seller, store), seller.id, kind)
    return sum([rows async for rows in slabs])


async def files(seller: Seller) -> list[dict[str, object]]:
    return await seller.service.sql(seller.id, FILES, id=seller.id)


async def count(seller: Seller, table: str) -> int:
    query = f"SELECT count(*) AS n FROM {table} WHERE seller_id = :id"
    [row] = await seller.service.sql(seller.id, query, id=seller.id)
    return int(row["n"])


async def with_history(seller: Seller, days: int = OLD, cards: int = 3) -> None:
    """Three editions of each card: two observations are old, and the newest is the card's."""
    for edition, age in enumerate((days, days - 1, 0), 1):
        moment = clock.now().replace(microsecond=0) - timedelta(days=age, minutes=1)
        rows = (a_row(n, price=f"{edition}.00") for n in range(1, cards + 1))
        await seller.import_csv(a_csv(*rows), **{"X-Exported-At": clock.rfc3339(moment)})


async def prices(seller: Seller, card: int, which: str) -> list[str]:
    answer = await seller.get(f"/api/cards/{card}", params={"history": which})
    assert answer.status_code == 200, answer.text
    return [one["price"] for one in answer.json()["history"]]


async def test_history_moves_and_a_card_shows_it_when_asked(a_seller):
    seller = await a_seller()
    await with_history(seller)
    [card, *_] = await seller.cards()
    before = await prices(seller, card["id"], "recent")
    assert before == ["3.00", "2.00", "1.00"]
    assert await moved(seller, HISTORY) == 6
    assert await count(seller, "price_observation") == 0
    assert await prices(seller, card["id"], "recent") == ["3.00"]
    assert await prices(seller, card["id"], "all") == before
    assert all(file["kept_at"] and file["rows"] for file in await files(seller))
    assert await moved(seller, HISTORY) == 0
    owner, address = await signed_in(seller), f"/cards/{card['id']}"
    page = (await owner.get(address)).text
    assert f'href="{address}?history=all#history"' in page
    assert "1.00" in (await owner.get(f"{address}?history=all")).text


@pytest.mark.night
async def test_a_month_goes_when_the_history_of_all_sellers_has_moved(a_seller, owner_url):
    one, other = await a_seller(), await a_seller()
    for seller in (one, other):
        await with_history(seller, days=700)
    part = f"price_observation_{clock.now() - timedelta(days=700):%Y%m}"
    query = "SELECT to_regclass(%s) IS NOT NULL"
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        await moved(one, HISTORY)
        await history.drop_old(soon_old(one))
        assert owner.execute(query, [part]).fetchone() == (True,)
        assert await count(other, "price_observation") == 6
        await moved(other, HISTORY)
        with owner.transaction():
            # A read that takes long keeps its month, and the tidying goes on.
            owner.execute(f"SELECT FROM {part}")
            await history.drop_old(soon_old(one))
        assert owner.execute(query, [part]).fetchone() == (True,)
        await history.drop_old(soon_old(one))
        assert owner.execute(query, [part]).fetchone() == (False,)
    # History of that month that comes late has a place again.
    assert len(await prices(one, (await one.cards())[0]["id"], "all")) == 3


async def exported(seller: Seller, **wanted: str) -> list[str]:
    answer = await seller.get("/api/v1/agent/activity/export.csv", params=wanted)
    assert answer.status_code == 200, answer.text
    return [row["summary"] for row in csv.DictReader(io.StringIO(answer.content.decode()))]


async def test_the_export_of_the_activity_has_old_entries_and_filters_them(a_seller, monkeypatch):
    seller = await a_seller()
    for name in ("one", "two", "three"):
        await seller.post("/api/lists", json={"name": name})
    await seller.import_csv(a_csv(a_row(1)))
    await seller.made_old("activity", "created_at", OLD)
    for name in ("four", "five"):
        await seller.post("/api/lists", json={"name": name})
    wanted = [{}, {"action": "list"}, {"actor": "key"}, {"risk": "low"}, {"action": "list.created"}]
    before = [await exported(seller, **one) for one in wanted]
    assert await moved(seller, ACTIVITY) > 3
    assert len((await seller.get("/api/v1/agent/activity")).json()["activity"]) == 2
    assert [await exported(seller, **one) for one in wanted] == before
    since = clock.rfc3339(clock.now() - timedelta(days=1))
    assert await exported(seller, since=since) == before[0][:2]
    # Parts of two entries: old and young ones share a part.
    monkeypatch.setattr("cardsync.shop.activity.as_csv.PART", 2)
    assert [await exported(seller, **one) for one in wanted] == before


async def test_cycles_move_but_those_with_a_screenshot(a_seller):
    seller = await a_seller()
    for number in range(3):
        log = {"status": "success", "sync_cycle_id": f"c-{number}", "steps": []}
        assert (await seller.post("/api/v1/sync/log", json=log)).status_code == 201
    await seller.made_old("sync_cycle", "started_at", OLD)
    await seller.service.sql(
        seller.id,
        "INSERT INTO debug_screenshot (seller_id, cycle_id, storage_key, size)"
        " SELECT seller_id, max(id), 'debug/none', 1 FROM sync_cycle WHERE seller_id = :id GROUP BY 1",
        id=seller.id,
    )
    assert await moved(seller, CYCLES) == 2
    assert await count(seller, "sync_cycle") == 1


async def test_two_at_once_move_each_row_once(a_seller):
    seller = await a_seller()
    await with_history(seller, cards=20)
    taken = await asyncio.gather(
        *(moved(seller, HISTORY) for _ in range(4)), return_exceptions=True
    )
    # One that met rows which had just gone tries again in the next hour.
    assert sum(one for one in taken if isinstance(one, int)) + await moved(seller, HISTORY) == 40
    assert sum(int(str(file["rows"])) for file in await files(seller)) == 40


@dataclass(frozen=True)
class Dying(LocalStore):
    """A store whose process dies behind a write."""

    async def write(self, key: str, path: Path) -> None:
        await super().write(key, path)
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Lying(LocalStore):
    """A store that gives back other bytes than it got."""

    async def read(self, key: str) -> bytes:
        return (await super().read(key))[:-1]


def beside(seller: Seller, kind: type[LocalStore]) -> LocalStore:
    store = seller.service.work.store
    assert isinstance(store, LocalStore)
    return kind(store.root, store.secret)


async def stored(seller: Seller) -> set[str]:
    return set(await seller.service.work.store.keys(f"old/u{seller.id}"))


async def named_keys(seller: Seller) -> set[str]:
    return {str(file["storage_key"]) for file in await files(seller)}


async def test_rows_of_a_killed_worker_are_written_into_another_file(a_seller, monkeypatch):
    seller = await a_seller()
    await with_history(seller)
    with pytest.raises(KeyboardInterrupt):
        await moved(seller, HISTORY, beside(seller, Dying))
    assert await count(seller, "price_observation") == 6
    [named] = await files(seller)
    assert (named["rows"], named["kept_at"]) == (0, None)
    assert await moved(seller, HISTORY) == 6
    assert sum(int(str(file["rows"])) for file in await files(seller)) == 6
    assert await stored(seller) > await named_keys(seller)
    assert await put_away.sweep_strays(soon_old(seller)) == 0, "it may be written at this moment"
    monkeypatch.setattr(put_away, "STRAY_AFTER", -timedelta(minutes=1))
    assert await put_away.sweep_strays(soon_old(seller)) == 1
    assert await stored(seller) == await named_keys(seller)


@dataclass(frozen=True)
class Slow(LocalStore):
    """A store whose writer loses its database in the middle, and goes on when another is done."""

    lost: Callable[[], Awaitable[None]]

    async def write(self, key: str, path: Path) -> None:
        await self.lost()
        await super().write(key, path)


async def test_a_late_worker_touches_no_file_of_another(a_seller, owner_url):
    seller = await a_seller()
    await with_history(seller)

    async def lost() -> None:
        with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND state = 'idle in transaction'"
                " AND pid <> pg_backend_pid()"
            )
        assert await moved(seller, HISTORY) == 6

    store = beside(seller, LocalStore)
    with pytest.raises(DBAPIError):
        await moved(seller, HISTORY, Slow(store.root, store.secret, lost))
    assert await count(seller, "price_observation") == 0
    frames = [pl.read_parquet(await store.read(key)) for key in await named_keys(seller)]
    assert sum(frame.height for frame in frames) == 6


@pytest.mark.night
async def test_an_hour_moves_so_much_and_the_next_one_the_rest(a_seller, monkeypatch):
    seller = await a_seller()
    await with_history(seller)
    monkeypatch.setattr(put_away, "SLAB_ROWS", 2)
    with monkeypatch.context() as hurried:
        hurried.setattr(put_away, "SECONDS", 0)
        # Another seller may have the turn.
        while await count(seller, "price_observation") == 6:
            await put_away.put_away(soon_old(seller), [HISTORY])
    assert 0 < await count(seller, "price_observation") < 6
    await put_away.put_away(soon_old(seller), [HISTORY])
    assert await count(seller, "price_observation") == 0


@dataclass(frozen=True)
class Away(LocalStore):
    """A bucket that cannot be reached: its client's errors are no OSErrors."""

    async def write(self, key: str, path: Path) -> None:
        raise BaseError("away")

    async def delete(self, key: str) -> None:
        raise BaseError("away")


async def test_a_bucket_that_is_away_ends_no_tidying(a_seller):
    seller = await a_seller()
    await with_history(seller)
    work = soon_old(seller, beside(seller, Away))
    assert await put_away.put_away(work, [HISTORY]) == 0
    assert await count(seller, "price_observation") == 6
    await moved(seller, HISTORY)
    gone = work.settings.model_copy(update={"old_data_retention_days": OLD - 90})
    assert await put_away.drop_old(replace(work, settings=gone)) == 0
    assert await files(seller)


@pytest.mark.night
async def test_rows_stay_where_a_file_does_not_read_back(a_seller):
    seller = await a_seller()
    await with_history(seller)
    with pytest.raises(put_away.Damaged):
        await moved(seller, HISTORY, beside(seller, Lying))
    assert await count(seller, "price_observation") == 6


@pytest.mark.night
async def test_files_go_when_they_are_too_old_even_for_the_store(a_seller):
    seller = await a_seller()
    await with_history(seller)
    await moved(seller, HISTORY)
    work = soon_old(seller)
    kept = replace(
        work, settings=work.settings.model_copy(update={"old_data_retention_days": OLD + 90})
    )
    await put_away.drop_old(kept)
    assert await files(seller)
    gone = work.settings.model_copy(update={"old_data_retention_days": OLD - 90})
    assert await put_away.drop_old(replace(work, settings=gone)) >= 1
    assert await files(seller) == []
    assert await seller.service.work.store.keys(f"old/u{seller.id}") == []


async def test_the_archive_of_all_data_has_the_old_files(a_seller):
    seller = await a_seller()
    await with_history(seller)
    owner = await signed_in(seller)
    await moved(seller, HISTORY)
    answer = await owner.get("/api/export/everything")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = [name for name in archive.namelist() if name.startswith("old/history-")]
        assert sum(pl.read_parquet(archive.read(name)).height for name in names) == 6
        manifest = json.loads(archive.read("manifest.json"))
    assert set(names) <= manifest["files"].keys()


MOVER = """
import asyncio, os, sys
from cardsync.platform.database.session import Database
from cardsync.operations import put_away
from cardsync.platform.old_data.old_kinds import HISTORY
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.platform.work.jobs import Work
put_away.SLAB_ROWS = 5

async def main():
    settings = Settings()
    async with Database.open(settings.database_url, pool=2, hot_pool=0) as database:
        work = Work(settings, database, open_store(settings))
        print("begun", flush=True)
        async for _ in put_away.slabs(work, int(sys.argv[1]), HISTORY):
            pass

asyncio.run(main())
"""


@contextmanager
def mover(seller: Seller) -> Iterator[subprocess.Popen[bytes]]:
    short = {f"CARDSYNC_{name.upper()}": str(days) for name, days in SHORT.items()}
    env = os.environ | environment(seller.service.settings) | short
    process = subprocess.Popen(
        [sys.executable, "-c", MOVER, str(seller.id)], env=env, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("rounds", [1, pytest.param(ROUNDS, marks=pytest.mark.night)])
async def test_kill_9_in_the_middle_loses_and_doubles_nothing(a_seller, rounds, monkeypatch):
    """It alone finds a row that is in no place, or in two, after a process that ended anywhere."""
    seller = await a_seller()
    await with_history(seller, cards=60)
    for _ in range(rounds):
        with mover(seller):
            time.sleep(random.uniform(0, 0.3))  # the moment is what is tested
    left, kept = await count(seller, "price_observation"), await files(seller)
    there = [file for file in kept if file["kept_at"]]
    assert left + sum(int(str(file["rows"])) for file in there) == 120
    await moved(seller, HISTORY)
    store = seller.service.work.store
    frames = [
        pl.read_parquet(await store.read(str(file["storage_key"]))) for file in await files(seller)
    ]
    whole = pl.concat(frames)
    assert whole.height == whole.select("card_id", "observed_at").unique().height == 120
    monkeypatch.setattr(put_away, "STRAY_AFTER", -timedelta(minutes=1))
    await put_away.sweep_strays(soon_old(seller))
    assert await stored(seller) == await named_keys(seller)


def test_each_kind_has_a_setting_of_its_own():
    days = [kind.days for kind in KINDS.values()]
    assert len(set(days)) == len(days)
