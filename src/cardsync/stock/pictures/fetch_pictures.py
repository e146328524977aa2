"""Fetches the pictures whose addresses are stored, one after the other, has them encoded, and
stores their files. All workers together send each host requests at a limited rate.

Before a worker fetches a picture, it claims the picture: it schedules the next try, as if this try
had failed. The end of the fetch replaces that schedule. So two workers never fetch the same address
at once, and if a worker is killed, the picture is fetched again at the scheduled time. The seller's
mark in `work_due` stays while a fetch is due within two days.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import procrastinate
import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Seller
from cardsync.platform import clock
from cardsync.platform.database.session import Database, run
from cardsync.platform.derived.kept_figures import OneAtATime, give_up, mark_of
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import Work, WorkDue, jobs
from cardsync.stock.pictures import objects
from cardsync.stock.pictures.ask import FILES
from cardsync.stock.pictures.encode_process import Unfit
from cardsync.stock.pictures.encoder import Encoder, encoder
from cardsync.stock.pictures.picture_addresses import host_in, read_hosts
from cardsync.web.public_fetch import FetchRequest, HostAway, NotFetched, fetch

log = structlog.get_logger(__name__)

BYTES_MOST: Final = 8_000_000
SECONDS: Final = 15.0
TYPES: Final = frozenset({"image/jpeg", "image/jpg", "image/png", "image/webp"})
PICTURES_A_TURN: Final = 20
# The longest time that a turn waits for a host. If the wait is longer, the turn ends, and the sweep
# starts another turn later.
_PATIENCE: Final = timedelta(seconds=2)
_LEFT_ALONE: Final = timedelta(days=2)
# The pauses after the failed tries of one picture; the last pause repeats.
PAUSES: Final = (
    timedelta(minutes=10),
    timedelta(hours=1),
    timedelta(hours=6),
    timedelta(days=1),
    timedelta(days=30),
)
# The pause after a host did not answer. It doubles with each failure, up to an hour.
_HOST_RESTS: Final = timedelta(seconds=30)
_HOST_RESTS_MOST: Final = timedelta(hours=1)

# The statement returns the time of the seller's next own photo on each host. It is separate from
# the statement on `picture_host`, which only the cluster's coordinator node stores
# (docs/distribution.md).
_OWN: Final = """
    SELECT w.host, own.next_at FROM unnest(CAST(:hosts AS text[])) AS w (host),
    LATERAL (SELECT p.next_at FROM card_photo p
              WHERE p.seller_id = :seller AND p.host = w.host AND p.next_at IS NOT NULL
              ORDER BY p.next_at LIMIT 1) AS own
"""
_A_HOST: Final = """
    SELECT h.host, h.failures FROM picture_host h
     WHERE h.host = ANY(:hosts) AND h.next_at <= :now
       AND (EXISTS (SELECT FROM picture p WHERE p.host = h.host AND p.next_at <= :now)
            OR EXISTS (SELECT FROM unnest(CAST(:own AS text[]), CAST(:own_at AS timestamptz[]))
                                AS own (host, next_at)
                        WHERE own.host = h.host AND own.next_at <= :now))
     ORDER BY h.next_at LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_AN_ADDRESS: Final = """
    SELECT address, tries FROM {table}
     WHERE {own} AND host = :host AND next_at <= :now
     ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_CLAIM: Final = """
    UPDATE {table} SET tries = tries + 1, next_at = :until WHERE {own} AND address = :address
"""
_KEEP: Final = """
    UPDATE {table} SET digest = :digest, next_at = NULL, tries = 0
     WHERE {own} AND address = :address
"""
_LATER: Final = "UPDATE {table} SET next_at = :until WHERE {own} AND address = :address"
_OF_HOST: Final = (
    "UPDATE picture_host SET next_at = :until, failures = :failures WHERE host = :host"
)
_SOONEST: Final = """
    SELECT min(greatest(h.next_at, waits.next_at)) FROM picture_host h,
    LATERAL (
        (SELECT p.next_at FROM picture p WHERE p.host = h.host AND p.next_at IS NOT NULL
          ORDER BY p.next_at LIMIT 1)
        UNION ALL
        (SELECT own.next_at FROM unnest(CAST(:own AS text[]), CAST(:own_at AS timestamptz[]))
                                 AS own (host, next_at)
          WHERE own.host = h.host)
    ) AS waits
     WHERE h.host = ANY(:hosts)
"""
# If an import set the mark during this turn, the mark is newer than :at and is not changed.
_REST: Final = """
    UPDATE work_due SET due_at = :until, attempts = 0, failures = 0, put_back_id = NULL,
           put_back_times = 0, put_back_since = NULL, rests_until = NULL
     WHERE seller_id = :seller AND stream = :stream AND due_at <= :at
"""


def _is_picture(kind: str) -> bool:
    return kind in TYPES


ASKED: Final = FetchRequest(
    "image/webp, image/jpeg, image/png", _is_picture, "it is not a picture", BYTES_MOST, SECONDS
)


@dataclass(frozen=True)
class Claimed:
    """A picture that this worker fetches now. `seller_id` is the seller of an own photo, and None
    for a shared picture.
    """

    address: str
    host: str
    host_failures: int
    seller_id: int | None

    def statement(self, template: str) -> str:
        return _statement(template, own=self.seller_id is not None)

    @property
    def values(self) -> dict[str, object]:
        return {"address": self.address, "seller": self.seller_id}


def _statement(template: str, *, own: bool) -> str:
    table, whose = ("card_photo", "seller_id = :seller") if own else ("picture", "true")
    return template.format(table=table, own=whose)


async def claim(
    database: Database, seller_id: int, hosts: list[str], pause: float
) -> Claimed | None:
    """Claim the next picture that is due on a host that may get a request now. The seller's own
    photos precede shared pictures.
    """
    now = clock.now()
    values: dict[str, object] = {"seller": seller_id, "hosts": hosts, "now": now}
    async with database.tenant(seller_id) as session:
        values |= await _own(session, values)
        gate = (await session.execute(text(_A_HOST), values)).one_or_none()
        if gate is None:
            return None
        values |= {"host": gate.host, "failures": gate.failures}
        for own in (True, False):
            found = await session.execute(text(_statement(_AN_ADDRESS, own=own)), values)
            if (row := found.one_or_none()) is None:
                continue
            claimed = Claimed(row.address, gate.host, gate.failures, seller_id if own else None)
            until = now + PAUSES[min(row.tries, len(PAUSES) - 1)]
            await run(session, claimed.statement(_CLAIM), claimed.values | {"until": until})
            await run(session, _OF_HOST, values | {"until": now + timedelta(seconds=pause)})
            return claimed
    return None


async def _own(session: AsyncSession, values: Mapping[str, object]) -> dict[str, object]:
    """Return the hosts of the seller's own photos, with the time of each host's next photo."""
    rows = (await session.execute(text(_OWN), values)).all()
    return {"own": [row.host for row in rows], "own_at": [row.next_at for row in rows]}


async def fetch_one(work: Work, encode: Encoder, claimed: Claimed) -> None:
    """Fetch, encode and store a claimed picture; on failure, schedule the next try."""
    now = clock.now
    bound = log.bind(host=claimed.host, seller_id=claimed.seller_id)
    try:
        # In a row that was restored from an archive or a backup, address and host may disagree.
        if host_in(claimed.address) != claimed.host:
            raise NotFetched("its address is on another host")
        # Redirects are not followed.
        here = work.settings.development_clients
        source = await fetch(claimed.address, ASKED, development=here)
        files = await encode.make(source)
    except HostAway as e:
        rests = min(_HOST_RESTS * 2 ** min(claimed.host_failures, 10), _HOST_RESTS_MOST)
        bound.info("picture_host_away", reason=str(e), seconds=round(rests.total_seconds()))
        await _settle(work, claimed, _OF_HOST, until=now() + rests)
        return
    except (NotFetched, Unfit) as e:
        bound.info("picture_refused", reason=str(e))
        await _settle(work, claimed, claimed.statement(_LATER), until=now() + PAUSES[-1])
        return
    digest = objects.digest_of(source)
    await objects.write(work.store, digest, files, claimed.seller_id)
    kept = await _settle(work, claimed, claimed.statement(_KEEP), digest=digest)
    if not kept and claimed.seller_id is not None:
        # The photo's row was deleted meanwhile. Its file is deleted only if the seller was deleted,
        # too, because another card of the seller may use the same file.
        async with work.database.shared() as session:
            is_there = await session.get(Seller, claimed.seller_id)
        if is_there is None:
            await objects.delete_photo(work.store, claimed.seller_id, digest)


async def _settle(work: Work, claimed: Claimed, statement: str, **values: object) -> bool:
    """Run a statement on the claimed row; return whether the row still exists."""
    given = claimed.values | {"host": claimed.host, "failures": claimed.host_failures + 1} | values
    async with _scope(work.database, claimed) as session:
        written = await run(session, statement, given)
        if "digest" in values and claimed.host_failures:
            well = "UPDATE picture_host SET failures = 0 WHERE host = :host"
            await run(session, well, given)
    return written > 0


def _scope(database: Database, claimed: Claimed) -> AbstractAsyncContextManager[AsyncSession]:
    own = claimed.seller_id
    return database.shared() if own is None else database.tenant(own)


async def soonest(database: Database, seller_id: int, hosts: list[str]) -> datetime | None:
    """Return when the next picture may be fetched; None if no picture is due."""
    async with database.tenant(seller_id) as session:
        values: dict[str, object] = {"seller": seller_id, "hosts": hosts}
        values |= await _own(session, values)
        at = await session.scalar(text(_SOONEST), values)
    return at if isinstance(at, datetime) else None


async def _work_off(work: Work, hold: WorkDue, due: WorkDue) -> None:
    """Fetch up to `PICTURES_A_TURN` pictures, and set the mark to the time of the next picture."""
    hosts = list(read_hosts(work.settings.picture_hosts))
    async with encoder() as encode:
        for _ in range(PICTURES_A_TURN):
            claimed = await _next(work, due.seller_id, hosts)
            if claimed is None:
                break
            await fetch_one(work, encode, claimed)
    at = await soonest(work.database, due.seller_id, hosts)
    if at is None or at > clock.now() + _LEFT_ALONE:
        await give_up(work, hold, due, None, "")
        return
    async with work.database.tenant(due.seller_id) as session:
        values = {"seller": due.seller_id, "stream": due.stream, "at": due.due_at, "until": at}
        await run(session, _REST, values)


async def _next(work: Work, seller_id: int, hosts: list[str]) -> Claimed | None:
    """Claim the next picture; wait up to _PATIENCE for its host."""
    pause = work.settings.picture_pause_seconds
    if claimed := await claim(work.database, seller_id, hosts, pause):
        return claimed
    at = await soonest(work.database, seller_id, hosts)
    if at is None or (wait := at - clock.now()) > _PATIENCE:
        return None
    await asyncio.sleep(max(wait.total_seconds(), 0))
    return await claim(work.database, seller_id, hosts, pause)


async def _due_mark(session: AsyncSession, seller_id: int) -> WorkDue | None:
    mark = await mark_of(FILES, session, seller_id)
    return mark if mark is not None and mark.due_at <= clock.now() else None


async def _mark_stays(work: Work, seller_id: int) -> bool:
    """Return False, so that the runner leaves a mark that is not yet due to the sweep."""
    return False


STREAM: Final[runner.Stream[WorkDue, WorkDue]] = runner.Stream(
    FILES,
    OneAtATime(),
    oldest=_due_mark,
    work=_work_off,
    fail=give_up,
    nothing_left=_mark_stays,
)


@jobs.task(name="pictures.fetch", queue="pictures", pass_context=True)
async def fetch_pictures(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(STREAM, fetch_pictures, context, seller_id)
