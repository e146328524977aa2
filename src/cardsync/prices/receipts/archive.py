"""Stores the receipts of a priced run as a file in the object store, and finds a card's latest
receipt, with its steps as sentences.

The file's key is in the run's summary; a run has no key if attribution logging was off or if no
sync caused the run. `retention` deletes old files, and files that a killed worker did not record in
a run.
"""

from __future__ import annotations

import asyncio
import uuid
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

import polars as pl

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.clock import rfc3339
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.money import dollars_or_none, to_units
from cardsync.platform.storage import ObjectMissing, Store
from cardsync.platform.value_types import NamedRow
from cardsync.prices.engine.engine import INPUT_COLUMNS
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.receipts import parquet_file
from cardsync.prices.receipts.schemas import ExplainedBlocker, ReceiptThen
from cardsync.prices.receipts.sentences import blocker_codes, explain, input_shown

# Selects the run over the last upload that covered the card's whole product line, or a later run
# that priced all cards because rules have queries.
_LATEST = """
    SELECT r.id, r.summary ->> 'receipts' AS key FROM price_run r
     WHERE r.seller_id = :seller AND r.trigger = 'sync' AND r.state = 'completed'
       AND (r.upload_id IS NULL OR r.upload_id = (
            SELECT l.upload_id FROM line_snapshot l
             WHERE l.seller_id = :seller AND l.product_line = (
                   SELECT c.product_line FROM card c
                    WHERE c.seller_id = :seller AND c.marketplace_id = :card)))
     ORDER BY r.id DESC LIMIT 1
"""
# The runs before a moment that may have priced the card, the newest first. A run over an upload of
# one product line prices no card of another line.
_BEFORE = """
    SELECT r.id, r.summary ->> 'receipts' AS key
      FROM price_run r
      LEFT JOIN upload u ON u.seller_id = :seller AND u.id = r.upload_id
     WHERE r.seller_id = :seller AND r.trigger = 'sync' AND r.state = 'completed'
       AND r.finished_at <= :at AND r.summary ->> 'receipts' IS NOT NULL
       AND coalesce(u.product_line, :line) = :line
     ORDER BY r.finished_at DESC, r.id DESC LIMIT :most
"""
# The number of runs, newest first, that are searched for a card's receipt. If none of them priced
# the card, it has no receipt.
_RUNS_LOOKED_AT = 5


async def keep(
    store: Store,
    seller_id: int,
    run_id: int,
    taken: list[pl.DataFrame],
    run: Run,
) -> str:
    """Write the file and return its key. The frame is removed from the list `taken`
    (`parquet_file.pack`).
    """
    key = f"receipts/u{seller_id}/{run_id}-{uuid.uuid4()}.parquet"
    data = await asyncio.to_thread(parquet_file.pack, taken, run)
    with store.spool() as (path, file):
        file.write(data)
        file.flush()
        await store.write(key, path)
    return key


class Synced(NamedTuple):
    """A run that a sync caused, and the key of its receipts; None if the receipts were not
    stored.
    """

    id: int
    key: str | None


class PricedCard(NamedTuple):
    """A card on the marketplace, as its explanation and its receipts show it."""

    seller_id: int
    id: int
    marketplace_id: int
    product_line: str
    product_name: str
    set_name: str
    number: str
    condition: str | None
    printing: str
    language: str
    target_price: Decimal | None


_CARD = f"""
    SELECT {", ".join(PricedCard._fields)} FROM card
     WHERE seller_id = :seller AND marketplace_id = :card AND contribution IS NULL
"""


async def card_of(session: Source, seller_id: int, marketplace_id: int) -> PricedCard:
    """Return the seller's card. Raises NotFound."""
    values = {"seller": seller_id, "card": marketplace_id}
    rows = await rows_of(session)(_CARD, values)
    if not rows:
        raise errors.NotFound(f"there is no card {marketplace_id}")
    return PricedCard._make(rows[0])


async def last_synced(session: Source, seller_id: int, marketplace_id: int) -> Synced | None:
    """Return the run that made this card's newest receipt."""
    values = {"seller": seller_id, "card": marketplace_id}
    rows = await rows_of(session)(_LATEST, values)
    return Synced._make(rows[0]) if rows else None


async def breakdown(store: Store, latest: Synced | None, card: PricedCard) -> ReceiptThen:
    """Return the last sync's receipt of this card, or the reason why the card has none."""
    if latest is None:
        return _absent("never_synced")
    if latest.key is None:
        return _absent("not_kept")
    try:
        data = await store.read(latest.key)
    except ObjectMissing:
        return _absent("no_longer_kept")
    row, run = await asyncio.to_thread(
        lambda: (parquet_file.receipt(data, card.marketplace_id), parquet_file.run_of(data))
    )
    if row is None:
        return _absent("not_priced")
    return ReceiptThen(_breakdown(row, run, latest.id, card), None)


async def breakdown_at(
    session: Source,
    caller: Caller,
    store: Store,
    marketplace_id: int,
    at: datetime,
) -> ReceiptThen:
    """Return the receipt that was valid at a moment, or the reason why there is no receipt.

    Raises NotFound for a card that is not the seller's.
    """
    card = await card_of(session, caller.seller_id, marketplace_id)
    values = {
        "seller": caller.seller_id,
        "line": card.product_line,
        "at": at,
        "most": _RUNS_LOOKED_AT,
    }
    runs = await rows_of(session)(_BEFORE, values)
    absent = "not_priced_then" if runs else "no_run_then"
    for run_id, key in runs:
        try:
            data = await store.read(key)
        except ObjectMissing:
            absent = "no_longer_kept"
            continue
        row = await asyncio.to_thread(parquet_file.receipt, data, marketplace_id)
        if row is not None:
            return ReceiptThen(_breakdown(row, parquet_file.run_of(data), run_id, card), None)
    return _absent(absent)


_ABSENT: Final = {
    "no_run_then": "No earlier sync saved how prices were calculated.",
    "not_priced_then": "No earlier sync priced the card.",
    "never_synced": "No sync has priced the card yet.",
    "not_kept": (
        "The last sync wrote no receipts: receipt logging was off, or pricing did not finish."
    ),
    "no_longer_kept": "How the last sync calculated this price is too old and was deleted.",
    "not_priced": "The last sync didn't price the card.",
}


def _absent(code: str) -> ReceiptThen:
    return ReceiptThen(None, ExplainedBlocker(code, _ABSENT[code]))


def _breakdown(
    row: NamedRow,
    run: Run,
    run_id: int,
    card: PricedCard,
) -> dict[str, object]:
    target = None if card.target_price is None else to_units(card.target_price)
    return {
        "run_id": run_id,
        "computed_at": rfc3339(run.now),
        "reflects_current_price": row["target"] == target,
        "current_price": dollars_or_none(row["current_price"]),
        "final_price": dollars_or_none(row["target"]),
        "rule_id": row["rule_id"],
        "blockers": blocker_codes(row["blockers"]),
        "steps": explain(row, run),
        "inputs": {name: input_shown(name, row[name]) for name in INPUT_COLUMNS if name in row},
    }
