"""Defines streams of `platform/work/runner.py` whose only piece of work is the seller's mark in
`work_due`. The mark is due at the time of the next work; the work itself is in other tables.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import clock
from cardsync.platform.derived.kept_figures import OneAtATime, mark_of
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import Work, WorkDue
from cardsync.platform.work.streams import hold_mark, leave_mark

Task = Callable[[Work, int], Awaitable[None]]
_LEFT_ALONE: Final = timedelta(hours=1)
# A turn that has taken this many seconds, for example because other servers are slow, leaves the
# rest of its work to the next turn.
_QUICK_SECONDS: Final = 1.0


async def _due_mark(
    stream: str,
    session: AsyncSession,
    seller_id: int,
) -> WorkDue | None:
    """Return the seller's mark if it is due, else None."""
    mark = await mark_of(stream, session, seller_id)
    return mark if mark is not None and mark.due_at <= clock.now() else None


async def _mark_stays(work: Work, seller_id: int) -> bool:
    """Return False, so that the runner leaves a mark that is not due to the sweep."""
    return False


async def _give_up(
    work: Work,
    hold: WorkDue,
    due: WorkDue,
    code: str | None,
    why: str,
) -> None:
    """Set the mark to a later time after repeated failures. The work stays in its tables."""
    async with work.database.tenant(due.seller_id) as session:
        if await hold_mark(session, due.seller_id, due.stream):
            await leave_mark(session, due.seller_id, due.stream, clock.now() + _LEFT_ALONE)


def stream_of(name: str, task: Task) -> runner.Stream[WorkDue, WorkDue]:
    """Return a stream whose only piece of work is the mark. `task` does the work of a seller."""

    async def work_off(
        work: Work,
        hold: WorkDue,
        due: WorkDue,
    ) -> None:
        await task(work, due.seller_id)

    return runner.Stream(
        name,
        OneAtATime(),
        oldest=partial(_due_mark, name),
        work=work_off,
        fail=_give_up,
        nothing_left=_mark_stays,
    )


def while_quick(most: int) -> Iterator[int]:
    """Yield the numbers of up to `most` rounds of a turn, until the turn has taken
    `_QUICK_SECONDS`.
    """
    began = clock.monotonic()
    for number in range(most):
        if clock.monotonic() - began >= _QUICK_SECONDS:
            return
        yield number
