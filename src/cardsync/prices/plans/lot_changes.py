"""Writes of lots by a key, as actions of a plan. Floors depend on the cost of cards, so a write
beyond the loss limits waits for a member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.read_json import read
from cardsync.platform.value_types import JsonMapping, JsonObject
from cardsync.sales.lots import write_lots
from cardsync.sales.lots.add_lots import NewLot
from cardsync.sales.lots.hand_lot import LotByHand, LotCorrection, changed_fields, hand_lots
from cardsync.sales.lots.lot_csv import read_lots
from cardsync.sales.lots.models import Lot

Action = JsonObject


def add(lots: Sequence[NewLot]) -> Action:
    given = [struct_of(LotByHand, lot) for lot in lots]
    return {"type": "lots", "op": "add", "lots": msgspec.to_builtins(given)}


def add_file(body: bytes) -> Action:
    return {"type": "lots", "op": "add_file", "csv": body.decode(errors="replace")}


def correct(lot_id: int, changes: Mapping[str, object]) -> Action:
    return {
        "type": "lots",
        "op": "correct",
        "id": lot_id,
        "set": msgspec.to_builtins(dict(changes)),
    }


def remove(lot_id: int) -> Action:
    return {"type": "lots", "op": "remove", "id": lot_id}


async def cards_of(session: AsyncSession, seller_id: int, body: JsonMapping) -> list[int]:
    """Return the marketplace ids of the cards whose lots change."""
    if "id" in body:
        own = (Lot.seller_id == seller_id) & (Lot.id == body["id"])
        return list(await session.scalars(select(Lot.marketplace_id).where(own)))
    if body["op"] == "add":
        return [lot["marketplace_id"] for lot in body["lots"]]
    return [lot.marketplace_id for lot in read_lots(body["csv"].encode(), date.max).lots]


async def carry_out(
    session: AsyncSession, caller: Caller, body: JsonMapping, now: datetime
) -> tuple[int | None, str]:
    """Carry out the action. Return the lot's id, if the action is about one lot, and a sentence.
    Raises the errors of the operations.
    """
    match body["op"]:
        case "add":
            lots = hand_lots(caller, read(body["lots"], list[LotByHand]), now)
            made = await write_lots.add_by_hand(session, caller, lots, now)
            return None, f"{len(made)} lots added."
        case "add_file":
            file = body["csv"].encode()
            rows = read_lots(file, caller.today(now))
            count, _ = await write_lots.add_by_file(session, caller, file, rows, now)
            return None, f"{count} lots added from a file."
        case "correct":
            fields = changed_fields(caller, read(body["set"], LotCorrection), now)
            await write_lots.correct(session, caller, body["id"], fields, now)
            return body["id"], f"Lot {body['id']} corrected."
    await write_lots.remove(session, caller, body["id"], now)
    return body["id"], f"Lot {body['id']} removed."
