"""Writes the changed rows of an import in slabs. A slab is the rows of one transaction, which
renews the run's lease before it commits.

A slab commits only while this worker holds the lease and nobody has canceled the run, so a worker
that seemed dead can't overwrite its successor's work. A slab also commits only if the slabs before
it are stored, because commits that did not wait for the disk may be lost in a database crash.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state.state import Lease, check_lease, hold_lease
from cardsync.platform import clock
from cardsync.platform.database.copy import new_table
from cardsync.platform.database.session import Database
from cardsync.platform.database.transaction_settings import committed_before_the_disk
from cardsync.platform.telemetry import spans
from cardsync.platform.work.piece import LeaseLost
from cardsync.stock.cards.changes import AMOUNTS, IDENTITY, Changes
from cardsync.stock.search.folding import search_columns

WRITERS = 2
# Because of the id range, each statement reads only the cards between the slab's first and last
# id. Without the range, each slab may read all of the seller's cards, because the planner expects
# only one row of a seller who is newer than its statistics.
_JOINED = "c.seller_id = :seller AND c.id = i.id AND c.id BETWEEN :first AND :last"
MONEY = (*AMOUNTS, "target_price")
_TEXTS = (*IDENTITY, "condition", "printing", "language")
# The columns that are computed from `_TEXTS` when a slab is encoded.
_SEARCHED = ("search_text", "number_leading")
_TYPES = {
    "id": "bigint",
    "marketplace_id": "bigint",
    "listing_id": "bigint",
    "product_id": "bigint",
    "identity_hash": "bigint",
    "values_hash": "bigint",
    "rule_id": "bigint",
    "quantity": "integer",
    "observed": "boolean",
    "asked": "boolean",
    "my_store_priced": "boolean",
    "match": "text",
    "search_text": "text",
    "number_leading": "integer",
    **dict.fromkeys(MONEY, "numeric(12,4)"),
    **dict.fromkeys(_TEXTS, "text"),
}

# The columns that are copied for new cards. INSERT_SQL derives `custom`, `gone` and, except for
# custom listings, `listing_id` from them.
_CARD = (
    "id",
    "marketplace_id",
    "listing_id",
    "product_id",
    "match",
    "identity_hash",
    "values_hash",
    "quantity",
    "my_store_priced",
    *MONEY,
    *_TEXTS,
    *_SEARCHED,
)
_VALUES = ("values_hash", "quantity", "my_store_priced", *MONEY)
_NAMES = ("product_id", "match", "identity_hash", *_TEXTS, *_SEARCHED)
# New cards are written in at least _STEPS slabs, or in fewer if a slab would have fewer than
# _STEP_ROWS rows, because the progress bar moves once per slab.
_STEPS = 12
_STEP_ROWS = 2_500
# The columns that have a fixed width and are never null. They are first in a row of `incoming`,
# because PostgreSQL then finds them without reading other columns.
_FIXED = (
    "id",
    "marketplace_id",
    "product_id",
    "identity_hash",
    "values_hash",
    "quantity",
    "observed",
    "asked",
    "my_store_priced",
)


@dataclass(frozen=True)
class Writer:
    """The state that all slabs of one run share."""

    database: Database
    lease: Lease
    run_id: int
    observed_at: datetime
    kept_since: datetime
    total: int
    progress: list[int] = field(default_factory=lambda: [0])
    counting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def seller_id(self) -> int:
        return self.lease.seller_id


def _list(columns: Sequence[str], prefix: str = "") -> str:
    return ", ".join(prefix + column for column in columns)


def _sets(columns: Sequence[str]) -> str:
    return ", ".join(f"{column} = i.{column}" for column in columns)


CHANGE_SQL = """
    INSERT INTO price_change (seller_id, run_id, card_id, old_price, new_price, rule_id)
    SELECT :seller, :run, id, price, target_price, rule_id FROM incoming WHERE asked
"""
CHANGE_AGAIN_SQL = f"""{CHANGE_SQL} ON CONFLICT (seller_id, run_id, card_id) DO UPDATE
    SET old_price = excluded.old_price, new_price = excluded.new_price, rule_id = excluded.rule_id
"""
INSERT_SQL = f"""
    INSERT INTO card
           (seller_id, observed_at, priced_at, created_at, updated_at, custom, gone, {_list(_CARD)})
    SELECT :seller, :observed_at,
           CASE WHEN target_price IS NOT NULL THEN CAST(:now AS timestamptz) END, :now, :now,
           marketplace_id < 0, quantity = 0,
           {_list(_CARD).replace("listing_id", "coalesce(listing_id, marketplace_id)")}
      FROM incoming
"""
HISTORY_SQL = f"""
    INSERT INTO price_observation (seller_id, card_id, observed_at, quantity, {_list(AMOUNTS)})
    SELECT c.seller_id, c.id, c.observed_at, c.quantity, {_list(AMOUNTS, "c.")}
      FROM card c, incoming i
     WHERE {_JOINED} AND i.observed AND c.observed_at >= :kept_since
    ON CONFLICT (seller_id, card_id, observed_at) DO NOTHING
"""
_UPDATE = f"""
    UPDATE card c
       SET {{sets}}, gone = i.quantity = 0,
           priced_at = CASE WHEN c.target_price IS DISTINCT FROM i.target_price
                            THEN :now ELSE c.priced_at END,
           observed_at = CASE WHEN i.observed THEN :observed_at ELSE c.observed_at END,
           updated_at = :now
      FROM incoming i
     WHERE {_JOINED}
"""
UPDATE_SQL = _UPDATE.format(sets=_sets(_VALUES))
RENAME_SQL = _UPDATE.format(sets=_sets((*_VALUES, *_NAMES)))
RETARGET_SQL = f"""
    UPDATE card c SET target_price = i.target_price, priced_at = :now
      FROM incoming i WHERE {_JOINED}
"""
GONE_SQL = f"""
    UPDATE card c SET gone = true, quantity = 0, values_hash = 0, target_price = NULL,
           observed_at = :observed_at, updated_at = :now
      FROM incoming i WHERE {_JOINED} AND NOT c.gone
"""


@dataclass(frozen=True)
class Slab:
    """The rows of one transaction: their indexes `at` in `rows`, the columns that are copied into
    the table `incoming`, and the statements that apply `incoming` to the cards.
    """

    phase: str
    rows: pl.DataFrame
    at: pl.Series
    columns: tuple[str, ...]
    statements: tuple[str, ...]
    # `found` is a task that finds the product, match and search columns of all new cards while
    # other slabs are written. This slab's cards begin at the row `found_from` of its result.
    found: asyncio.Task[pl.DataFrame] | None = None
    found_from: int = 0

    @property
    def is_new(self) -> bool:
        return INSERT_SQL in self.statements


def _slabs(
    phase: str,
    rows: pl.DataFrame,
    at: pl.Series,
    columns: Sequence[str],
    statements: Sequence[str],
    size: int,
) -> list[Slab]:
    columns = sorted(columns, key=lambda name: name not in _FIXED)
    rows = rows.select(name for name in columns if name not in _SEARCHED)
    # All slabs have the same size, and their number is a multiple of WRITERS, so that no writer
    # waits for another's last slab.
    count = -(-at.len() // size)
    if count > 1:
        size = -(-at.len() // (-(-count // WRITERS) * WRITERS))
    return [
        Slab(
            phase,
            rows,
            at.slice(start, size),
            tuple(columns),
            tuple(statements),
        )
        for start in range(0, at.len(), size)
    ]


def plan(changes: Changes, size: int) -> list[Slab]:
    """Return the slabs of all changes in the order of writing. New cards and value changes are
    first, because a member may be watching new cards appear; rows with only a new target are last.
    """
    asked = ("rule_id", "asked")
    values = ("id", *_VALUES, "observed", *asked)
    new = changes.rows.with_columns(pl.when("custom").then("listing_id").alias("listing_id"))
    parts: list[tuple[str, pl.DataFrame, pl.Series, Sequence[str], Sequence[str]]] = [
        (
            "importing",
            new,
            changes.insert_at,
            (*_CARD, *asked),
            (INSERT_SQL, CHANGE_SQL),
        ),
        (
            "importing",
            changes.rows,
            changes.update_at,
            values,
            (HISTORY_SQL, UPDATE_SQL, CHANGE_AGAIN_SQL),
        ),
        (
            "importing",
            changes.rows,
            changes.rename_at,
            (*values, *_NAMES),
            (HISTORY_SQL, RENAME_SQL, CHANGE_AGAIN_SQL),
        ),
        (
            "repricing",
            changes.rows,
            changes.retarget_at,
            ("id", "price", "target_price", *asked),
            (RETARGET_SQL, CHANGE_AGAIN_SQL),
        ),
    ]
    steps = max(_STEP_ROWS, changes.insert_at.len() // _STEPS)
    return [
        *_slabs(*parts[0], min(size, steps)),
        *(slab for part in parts[1:] for slab in _slabs(*part, size)),
    ]


def retargets(rows: pl.DataFrame, size: int) -> list[Slab]:
    """Return the slabs of stored cards that only get a new target, ordered by id."""
    everywhere = pl.int_range(rows.height, dtype=pl.UInt32, eager=True)
    columns = ("id", "price", "target_price", "rule_id", "asked")
    return _slabs("repricing", rows, everywhere, columns, (RETARGET_SQL, CHANGE_AGAIN_SQL), size)


def tombstones(absent: pl.DataFrame, size: int) -> list[Slab]:
    """Return the slabs of cards that are no longer in the file, for the run's last transaction."""
    gone = absent.select("id").sort("id").with_columns(observed=pl.lit(True))
    everywhere = pl.int_range(gone.height, dtype=pl.UInt32, eager=True)
    return _slabs(
        "importing",
        gone,
        everywhere,
        ("id", "observed"),
        (HISTORY_SQL, GONE_SQL),
        size,
    )


def _rows(slab: Slab) -> pl.DataFrame:
    amounts = [name for name in MONEY if name in slab.columns]
    rows = slab.rows[slab.at].with_columns(decimal(name) for name in amounts)
    if slab.found is not None:
        rows = rows.with_columns(slab.found.result().slice(slab.found_from, rows.height))
    elif set(_SEARCHED) <= set(slab.columns):
        rows = rows.hstack(search_columns(rows))
    return rows.select(slab.columns)


_UNIT = pl.lit(Decimal("0.0001"))


def decimal(name: str) -> pl.Expr:
    """Convert ten-thousandths to a decimal with four places, for a numeric(12,4) column."""
    return (pl.col(name).cast(pl.Decimal(18, 0)) * _UNIT).alias(name)


async def write(writer: Writer, waiting: deque[Slab]) -> None:
    """Commit the slabs in `waiting`, in their order. Raises LeaseLost or CancelRequested between
    two slabs; committed slabs stay.

    `WRITERS` slabs are written at once, each on its own connection, so that PostgreSQL works on one
    slab while another is encoded or waits for the disk.
    """
    if not waiting:
        return
    async with writer.database.tenant(writer.seller_id) as session:
        writer.progress[0] = 0
        await hold_lease(
            session,
            writer.lease,
            clock.now(),
            done=0,
            total=writer.total,
        )
    ended = await asyncio.gather(
        *(_write_some(writer, waiting) for _ in range(WRITERS)), return_exceptions=True
    )
    if wrong := [error for error in ended if error is not None]:
        # If one writer's commit fails, the stored progress is not the one that the other writer
        # expects, so the other writer raises LeaseLost. The first writer's error is raised here,
        # because it is the cause.
        raise min(wrong, key=lambda error: isinstance(error, LeaseLost))
    async with writer.database.tenant(writer.seller_id) as session:
        # This commit waits for the disk, and thereby for the writers' earlier commits.
        await hold_lease(
            session,
            writer.lease,
            clock.now(),
            after=writer.progress[0],
        )


async def _write_some(writer: Writer, waiting: deque[Slab]) -> None:
    try:
        while waiting:
            await _write_slab(writer, waiting.popleft())
    except BaseException:
        # The other writers stop after their current slab.
        waiting.clear()
        raise


async def _write_slab(writer: Writer, slab: Slab) -> None:
    if slab.found is not None:
        await slab.found
    with spans.part("slab", phase=slab.phase, rows=slab.at.len()):
        await _commit_slab(writer, slab)


async def _commit_slab(writer: Writer, slab: Slab) -> None:
    rows = await asyncio.to_thread(_rows, slab)
    async with writer.database.tenant(writer.seller_id) as session:
        # This commit does not wait for the disk; only the run's last commit does, and thereby for
        # all commits before it. If a power cut loses this slab, the next slab finds another
        # progress than it expects, and the slabs are written again.
        await session.execute(text(committed_before_the_disk()))
        await _settle(session, writer, slab, rows)
        # The lock makes the writers commit one after the other, so that the stored progress grows
        # in the order of the commits.
        async with writer.counting:
            before = writer.progress[0]
            after = writer.progress[0] + slab.at.len()
            await hold_lease(
                session,
                writer.lease,
                clock.now(),
                phase=slab.phase,
                done=after,
                total=writer.total,
                after=before,
            )
            writer.progress[0] = after


async def bury(session: AsyncSession, writer: Writer, gone: list[Slab]) -> None:
    """Mark cards as gone in the caller's transaction, so that a canceled run marks no cards.

    Raises LeaseLost or CancelRequested.
    """
    for slab in gone:
        await check_lease(session, writer.lease)
        await _settle(session, writer, slab, await asyncio.to_thread(_rows, slab))
        await session.execute(text("DROP TABLE incoming"))


async def _settle(session: AsyncSession, writer: Writer, slab: Slab, rows: pl.DataFrame) -> None:
    keyed = {} if slab.is_new else {"id": "bigint PRIMARY KEY"}
    await new_table(session, "incoming", rows, _TYPES | keyed)
    ids = slab.rows["id"][slab.at]
    values = {
        "seller": writer.seller_id,
        "run": writer.run_id,
        "observed_at": writer.observed_at,
        "now": clock.now(),
        "kept_since": writer.kept_since,
        "first": ids.min(),
        "last": ids.max(),
    }
    for statement in slab.statements:
        names = {name for name in values if f":{name}" in statement}
        await session.execute(text(statement), {name: values[name] for name in names})
