"""The commands `cardsync pricing …`: each calls one operation and prints its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cardsync.operations.processes.command_line import (
    ROW_ID,
    Result,
    prints,
    settings_with,
    with_database,
)
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    from cardsync.platform.database.session import Database


@click.group()
def pricing() -> None:
    """Look after pricing runs."""


@pricing.command("replay")
@prints
@click.argument("run_id", type=ROW_ID, metavar="RUN")
def pricing_replay(run_id: int) -> Result:
    """Price a run's cards again from its receipts; exit status 1 if a card gets another price.

    Example: cardsync pricing replay 41
    """
    from cardsync.platform.storage import open_store
    from cardsync.prices.receipts.replayed_runs import replay_run

    settings = settings_with()

    async def replay(database: Database) -> tuple[int, int]:
        return await replay_run(database, open_store(settings), run_id)

    cards, differ = with_database(replay, settings)
    line = f"pricing run {run_id}: {cards - differ:,} of {cards:,} cards come to the same price"
    return Result({"run_id": run_id, "cards": cards, "differ": differ}, [line], differ > 0)


@pricing.command("replay-all")
@prints
@click.argument("seller_id", type=ROW_ID, metavar="SELLER_ID")
def pricing_replay_all(seller_id: int) -> Result:
    """Price every run of a seller again from the stored receipts; exit status 1 if a card gets
    another price.

    Example: cardsync pricing replay-all 7
    """
    from cardsync.platform.storage import open_store
    from cardsync.prices.receipts.replayed_runs import replay_runs

    settings = settings_with()

    async def replay(database: Database) -> list[JsonObject]:
        return [line async for line in replay_runs(database, open_store(settings), seller_id)]

    runs = with_database(replay, settings)
    data = {"seller_id": seller_id, "runs": runs}
    return Result(data, map(_replayed, runs), any(run["differ"] for run in runs))


def _replayed(run: JsonObject) -> str:
    same = f"{run['cards'] - run['differ']:,} of {run['cards']:,} cards come to the same price"
    return (
        f"pricing run {run['run_id']}: {same if run['kept'] else 'its receipts are no longer kept'}"
    )
