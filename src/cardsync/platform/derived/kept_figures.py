"""Maintains kept figures, which are stored because they take a scan to compute. Each figure has a
declaration (`KeptFigure`), a mark in `work_due` when its source changes, and a stream of
`platform/work/runner.py` that refreshes it.

`operations/processes/worker.py` lists the declarations, and docs/derived.md shows them. The mark is
the stream's only piece of work. A refresh reads the mark, rewrites the figure in one transaction,
and removes the mark in the end. If a change commits in between, it sets a newer mark, which is not
removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, Generic, TypeVar

import procrastinate
import structlog
from procrastinate.tasks import Task
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import clock
from cardsync.platform.concurrency import beside
from cardsync.platform.database.locks import Lock, locked, try_locked
from cardsync.platform.database.session import Database, at_the_end, run
from cardsync.platform.database.transaction_settings import sent_to_nodes
from cardsync.platform.settings import Settings
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import Work, WorkDue, enqueue, jobs, work_of
from cardsync.platform.work.piece import LeaseLost, origin
from cardsync.platform.work.streams import due_of

log = structlog.get_logger(__name__)

R = TypeVar("R")


class Figure(StrEnum):
    """The kept figures, by the names of their streams."""

    STOCK = "stock"
    LOTS = "lots"
    SALES_SUMS = "sales_sums"
    ORDER_SEARCH = "order_search"
    OFFERS = "network"
    CELLS = "network_cells"
    RECOMMENDATIONS = "recommendations"
    PRICE_FILE = "price_file"


# A mark of one of the figures in AT_ONCE queues a refresh immediately. A mark of another figure
# waits for the sweep, so that many uploads in a row cause one refresh.
AT_ONCE: Final = frozenset({Figure.STOCK, Figure.LOTS, Figure.SALES_SUMS})

# A waiting import precedes a refresh, because a seller waits for the import, while readers of an
# outdated figure have the previous one.
_PRIORITY: Final = -1
# A refresh looks so often for work of its seller that precedes it.
_LOOK_SECONDS: Final = 0.2

# The figures that become outdated when prices or targets of cards change: each end of a pricing
# marks all of them (`prices/decisions/ended.py`).
OF_PRICES: Final = (
    Figure.STOCK,
    Figure.OFFERS,
    Figure.CELLS,
    Figure.RECOMMENDATIONS,
    Figure.PRICE_FILE,
)
PRICING_ENDS: Final = (
    "the end of a pricing: an import, a pricing run, prices that are accepted or taken back,"
    " and prices that were imported at the marketplace"
)

_MARK: Final = """
    INSERT INTO work_due (seller_id, stream, due_at, request_id, traceparent)
    SELECT :seller, figure, :now, :request_id, :traceparent
      FROM unnest(CAST(:figures AS text[])) AS figure
    ON CONFLICT (seller_id, stream) DO UPDATE
       SET due_at = excluded.due_at, attempts = 0, failures = 0, request_id = excluded.request_id,
           traceparent = excluded.traceparent
"""
_MARKED: Final = "marked figures"
_FRESH: Final = """
    DELETE FROM work_due WHERE seller_id = :seller AND stream = :figure AND due_at = :at
"""
_FORGET: Final = """
    DELETE FROM work_due WHERE seller_id = :seller AND stream = :stream AND due_at <= :at
"""
_PRECEDED: Final = """
    SELECT EXISTS (
        SELECT FROM procrastinate_jobs
         WHERE status = 'todo' AND queue_name = 'imports' AND priority > :priority
           AND scheduled_at IS NULL AND args ->> 'seller_id' = CAST(:seller AS text))
"""
_NOT_STARTED: Final = """
    UPDATE work_due SET attempts = greatest(attempts - 1, 0)
     WHERE seller_id = :seller AND stream = :figure
"""
_BEGIN_ANEW: Final = """
    UPDATE work_due SET attempts = 0, failures = 0, put_back_id = NULL, put_back_times = 0,
           put_back_since = NULL, rests_until = NULL
     WHERE seller_id = :seller AND stream = :figure
"""


async def mark(session: AsyncSession, seller_id: int, *figures: Figure) -> None:
    """Mark figures as outdated, at the end of the transaction that changes their source, because
    other writers of the same mark, and the end of a refresh, wait for its commit.
    """
    session.info.setdefault(_MARKED, set()).update(figures)
    at_the_end(session, _MARKED, partial(_write_marks, seller_id, origin()))


async def _write_marks(seller_id: int, began: dict[str, str | None], session: AsyncSession) -> None:
    figures: list[Figure] = sorted(session.info.pop(_MARKED))
    values = {"seller": seller_id, "figures": figures, "now": clock.now()}
    tasks = [TASKS[figure] for figure in figures if figure in AT_ONCE]
    await enqueue(session, *tasks, seller_id=seller_id, first=[(_MARK, values | began)])


@dataclass(frozen=True)
class Refresh(Generic[R]):
    """One refresh. `read` is the result of the declaration's `read` before the transaction."""

    seller_id: int
    marked_at: datetime
    now: datetime
    read: R


async def _nothing_read(database: Database, seller_id: int, now: datetime) -> Any:
    return None


async def _no_lock(session: AsyncSession, seller_id: int) -> object:
    return None


@dataclass(frozen=True)
class KeptFigure(Generic[R]):
    """The declaration of a kept figure: its tables, the source that they are computed from, what
    marks them, and how readers stay correct while they are outdated, as sentences for people.

    `refresh` rewrites the tables in one transaction and returns whether it is complete; otherwise
    the next turn continues. `read` runs before `refresh`, in its own transactions. If another mark
    is set before `lock` has locked the rows, the next turn reads again.

    On a cluster, a refresh that writes other tables in many turns needs `is_sent_to_nodes`. It may
    then join a temporary table only in a subquery or a CTE of its own.
    """

    figure: Figure
    tables: tuple[str, ...]
    source: str
    marked_by: str
    meanwhile: str
    refresh: Callable[[AsyncSession, Refresh[R]], Awaitable[bool]]
    read: Callable[[Database, int, datetime], Awaitable[R]] = _nothing_read
    lock: Callable[[AsyncSession, int], Awaitable[object]] = _no_lock
    is_sent_to_nodes: bool = False

    async def work_off(self, work: Work, seller_id: int) -> bool:
        """Refresh the figure if it is marked; return whether there may be more to do now."""
        return await runner.work_off_one(self.stream, work, seller_id)

    @property
    def stream(self) -> runner.Stream[WorkDue, WorkDue]:
        return runner.Stream(
            self.figure,
            OneAtATime(),
            oldest=partial(mark_of, self.figure),
            work=partial(_refresh, self),
            fail=_give_up,
        )


class OneAtATime:
    """The lock with which `platform/work/runner.py` takes a mark. A worker that finds another
    worker refreshing the figure stops; the other worker also handles newer marks.
    """

    async def take(
        self, session: AsyncSession, piece: WorkDue, settings: Settings
    ) -> WorkDue | None:
        turn = Lock(piece.stream)
        return piece if await try_locked(session, turn, piece.seller_id) else None

    async def release(self, session: AsyncSession, hold: WorkDue) -> None:
        """Do nothing: the lock ended with the transaction that took it."""

    def kept(self, database: Database, hold: WorkDue) -> AbstractAsyncContextManager[None]:
        return nullcontext()


async def mark_of(stream: str, session: AsyncSession, seller_id: int) -> WorkDue | None:
    own = (WorkDue.seller_id == seller_id) & (WorkDue.stream == stream)
    return await session.scalar(
        select(WorkDue).where(own).execution_options(populate_existing=True)
    )


async def forget(session: AsyncSession, due: WorkDue) -> None:
    """Remove the mark that was read, but not a newer mark."""
    values = {"seller": due.seller_id, "stream": due.stream, "at": due.due_at}
    await run(session, _FORGET, values)


async def give_up(work: Work, hold: WorkDue, due: WorkDue, code: str | None, why: str) -> None:
    """Remove the mark; the next change marks the figure again."""
    async with work.database.tenant(due.seller_id) as session:
        await forget(session, due)


async def _refresh(
    kept: KeptFigure[Any],
    work: Work,
    hold: WorkDue,
    due: WorkDue,
) -> None:
    seller_id, now = due.seller_id, clock.now()
    read = await kept.read(work.database, seller_id, now)
    async with work.database.tenant(seller_id) as session:
        if kept.is_sent_to_nodes and work.database.spread.over_nodes:
            await session.execute(text(sent_to_nodes()))
        await kept.lock(session, seller_id)
        await locked(session, Lock(due.stream), seller_id)
        present = await due_of(session, seller_id, due.stream)
        if present is None or present.at != due.due_at:
            raise LeaseLost  # another worker was faster, or a newer mark was set
        fresh = await kept.refresh(session, Refresh(seller_id, due.due_at, now, read))
        await _end(session, due, fresh=fresh)
    log.debug("figure_refreshed", seller_id=seller_id, figure=kept.figure)


async def _give_up(
    work: Work,
    hold: WorkDue,
    due: WorkDue,
    code: str | None,
    why: str,
) -> None:
    """Give up until the next mark; until then readers have the previous figures."""
    async with work.database.tenant(due.seller_id) as session:
        await _end(session, due, fresh=True)


async def _end(session: AsyncSession, due: WorkDue, *, fresh: bool) -> None:
    """Remove the mark that was read. A newer mark remains, as a piece of work that has not begun.

    Raises LeaseLost if there is no mark at all, because the seller is being removed.
    """
    values = {"seller": due.seller_id, "figure": due.stream, "at": due.due_at}
    if fresh and await run(session, _FRESH, values):
        return
    if not await run(session, _BEGIN_ANEW, values):
        raise LeaseLost


async def _unless_preceded(kept: KeptFigure[Any], work: Work, seller_id: int) -> bool:
    """Refresh the figure if it is marked. If an upload of the seller waits for this worker, end the
    refresh without a result: it would soon be outdated, and the mark remains. Return whether there
    may be more to do now.
    """
    async with beside(kept.work_off(work, seller_id)) as refreshing:
        while not refreshing.done():
            await asyncio.wait([refreshing], timeout=_LOOK_SECONDS)
            if not refreshing.done() and await _is_preceded(work.database, seller_id):
                break
    if not refreshing.cancelled():
        return refreshing.result()
    log.debug("refresh_preceded", seller_id=seller_id, figure=kept.figure)
    async with work.database.tenant(seller_id) as session:
        await run(session, _NOT_STARTED, {"seller": seller_id, "figure": kept.figure})
    return True


async def _is_preceded(database: Database, seller_id: int) -> bool:
    async with database.shared() as session:
        values = {"seller": seller_id, "priority": _PRIORITY}
        return bool(await session.scalar(text(_PRECEDED), values))


def _task_of(figure: Figure) -> Task[Any, object, Any]:
    async def refresh(context: procrastinate.JobContext, seller_id: int) -> None:
        kept: KeptFigure[object] = context.additional_context["kept"][figure]
        work = work_of(context)
        if await _unless_preceded(kept, work, seller_id) and figure in AT_ONCE:
            async with work.database.tenant(seller_id) as session:
                # Most refreshes leave no mark and need no further turn.
                if await mark_of(figure, session, seller_id) is not None:
                    await enqueue(session, TASKS[figure], seller_id=seller_id)

    task = jobs.task(
        name=f"derived.{figure}", queue="imports", priority=_PRIORITY, pass_context=True
    )
    return task(refresh)


TASKS: Final[dict[str, Task[Any, object, Any]]] = {figure: _task_of(figure) for figure in Figure}
