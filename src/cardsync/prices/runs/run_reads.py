"""Reads a seller's pricing runs: the newest runs, one run, and the next run to process."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, newest, row_as, rows_as
from cardsync.platform.kit.row_pages import Page
from cardsync.prices.limits import RUNS_SHOWN
from cardsync.prices.models import PriceChange, PriceRun


async def newest_runs(source: Source, caller: Caller) -> list[PriceRun]:
    tail = "ORDER BY id DESC LIMIT :limit"
    return await rows_as(source, PriceRun, caller.seller_id, tail, limit=RUNS_SHOWN)


async def runs_before(
    session: AsyncSession, caller: Caller, before: int | None, most: int
) -> Page[PriceRun]:
    return await newest(session, PriceRun, caller.seller_id, before, most)


async def count_changes(session: AsyncSession, seller_id: int, run_id: int) -> int:
    """Return how many prices the run changed, counted from the stored rows, because an interrupted
    earlier attempt may have written some of them.
    """
    of_run = (PriceChange.seller_id == seller_id, PriceChange.run_id == run_id)
    return await session.scalar(select(func.count()).where(*of_run)) or 0


def kept_of(run: PriceRun) -> dict[str, object]:
    """Return the part of a run's summary that stays when the run starts again: the upload that it
    follows, and the sales that it is for.
    """
    return {name: value for name, value in run.summary.items() if name in ("follows", "sales")}


async def run_of(source: Source, caller: Caller, run_id: int) -> PriceRun:
    """Return the pricing run with this id. Raise NotFound."""
    run = await row_as(source, PriceRun, caller.seller_id, "AND id = :id", id=run_id)
    if run is None:
        raise errors.NotFound(f"there is no pricing run {run_id}")
    return run


async def oldest_open(session: AsyncSession, seller_id: int) -> PriceRun | None:
    statement = select(PriceRun).where(
        PriceRun.seller_id == seller_id,
        PriceRun.state == "running",
        PriceRun.upload_id.is_(None),
    )
    return await session.scalar(
        statement.order_by(PriceRun.id).limit(1).execution_options(populate_existing=True)
    )
