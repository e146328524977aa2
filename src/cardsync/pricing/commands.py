"""The commands `cardsync pricing …`: each calls one operation and prints its result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import click
from sqlalchemy import select

from cardsync import errors
from cardsync.access.each_seller import all_sellers
from cardsync.access.known_seller import known_seller
from cardsync.database.session import Database
from cardsync.pricing.models import PriceRun
from cardsync.pricing.receipts import parquet_file
from cardsync.processes.command_line import ROW_ID, settings_with, with_database
from cardsync.storage import ObjectMissing, Store, open_store


@click.group()
def pricing() -> None:
    """Look after pricing runs."""


@pricing.command("replay")
@click.argument("run_id", type=ROW_ID, metavar="RUN")
@click.option("--json", "as_json", is_flag=True)
def pricing_replay(run_id: int, as_json: bool) -> None:
    """Price a run's cards again from its receipts; exit status 1 if any comes to another price."""
    settings = settings_with()

    async def replay(database: Database) -> tuple[int, int]:
        data = await _receipts_of(database, open_store(settings), run_id)
        return await asyncio.to_thread(_counted, data)

    cards, differ = with_database(replay, settings)
    if as_json:
        click.echo(json.dumps({"run_id": run_id, "cards": cards, "differ": differ}))
    else:
        click.echo(
            f"pricing run {run_id}: {cards - differ:,} of {cards:,} cards come to the same price"
        )
    if differ:
        raise SystemExit(1)


@pricing.command("replay-all")
@click.argument("seller_id", type=ROW_ID, metavar="SELLER_ID")
@click.option("--json", "as_json", is_flag=True)
def pricing_replay_all(seller_id: int, as_json: bool) -> None:
    """Price every run of a seller again from the receipts that are kept; exit status 1 if any
    card comes to another price.
    """
    settings = settings_with()

    async def replay(database: Database) -> list[dict[str, Any]]:
        return [line async for line in _replayed(database, open_store(settings), seller_id)]

    runs = with_database(replay, settings)
    if as_json:
        click.echo(json.dumps({"seller_id": seller_id, "runs": runs}))
    for run in [] if as_json else runs:
        said = f"{run['cards'] - run['differ']:,} of {run['cards']:,} cards come to the same price"
        click.echo(
            f"pricing run {run['run_id']}: "
            f"{said if run['kept'] else 'its receipts are no longer kept'}"
        )
    if any(run["differ"] for run in runs):
        raise SystemExit(1)


async def _replayed(
    database: Database,
    store: Store,
    seller_id: int,
) -> AsyncIterator[dict[str, Any]]:
    """One run after the other, oldest first; one file is held at a time."""
    key = PriceRun.summary["receipts"].astext
    async with database.tenant(seller_id) as session:
        await known_seller(session, seller_id)
        statement = select(PriceRun.id, key).where(
            PriceRun.seller_id == seller_id, key.is_not(None)
        )
        found = (await session.execute(statement.order_by(PriceRun.id))).all()
    for run_id, kept_as in found:
        try:
            data = await store.read(kept_as)
        except ObjectMissing:
            yield {
                "run_id": run_id,
                "kept": False,
                "cards": 0,
                "differ": 0,
            }
            continue
        cards, differ = await asyncio.to_thread(_counted, data)
        yield {
            "run_id": run_id,
            "kept": True,
            "cards": cards,
            "differ": differ,
        }


def _counted(data: bytes) -> tuple[int, int]:
    return parquet_file.unpack(data)[0].height, parquet_file.replay(data)


async def _receipts_of(database: Database, store: Store, run_id: int) -> bytes:
    """Find the seller of the run, whose row only that seller's scope shows, and read its receipts.

    Raises CommandError.
    """
    for seller_id in await all_sellers(database):
        async with database.tenant(seller_id) as session:
            run = await session.scalar(
                select(PriceRun).where(PriceRun.seller_id == seller_id, PriceRun.id == run_id)
            )
        if run is None:
            continue
        key = run.summary.get("receipts")
        if key is None:
            raise errors.CommandError(
                f"pricing run {run_id} has no receipts: no sync made it, or attribution logging"
                " was off"
            )
        try:
            return await store.read(key)
        except ObjectMissing:
            raise errors.CommandError(
                f"the receipts of pricing run {run_id} are no longer in the object store"
            ) from None
    raise errors.CommandError(f"there is no pricing run {run_id}")
