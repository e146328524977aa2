"""The forms on a card's page that add, correct and remove its lots."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from litestar import Response
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import see
from cardsync.platform import clock
from cardsync.platform.read_json import read
from cardsync.platform.table_text import typed_number
from cardsync.sales.lots import write_lots
from cardsync.sales.lots.hand_lot import LotByHand, LotCorrection, changed_fields, hand_lots
from cardsync.web.forms import Form

S = TypeVar("S", bound=msgspec.Struct)


def _read(form: Form, shape: type[S]) -> S:
    """Read the fields of a lot's form; an empty cost means unknown. Raises InvalidPayload."""
    given: dict[str, str | None] = {n: form[n] for n in shape.__struct_fields__ if form[n]}
    if "cost" in form:
        given["cost"] = typed_number(form["cost"]) or None
    return read(given, shape, strict=False)


@post_form("/cards/{card_id:int}/lots")
async def add_lot(
    caller: Caller,
    form: Form,
    session: AsyncSession,
    card_id: int,
) -> Response[str]:
    now = clock.now()
    lots = hand_lots(caller, [_read(form, LotByHand)], now)
    await write_lots.add_by_hand(session, caller, lots, now)
    return see(f"/cards/{card_id}", done=message("lot_added"))


@post_form("/cards/{card_id:int}/lots/{lot_id:int}")
async def change_lot(
    caller: Caller,
    form: Form,
    session: AsyncSession,
    card_id: int,
    lot_id: int,
) -> Response[str]:
    now = clock.now()
    if form["remove"]:
        await write_lots.remove(session, caller, lot_id, now)
        return see(f"/cards/{card_id}", done=message("lot_removed"))
    changes = changed_fields(caller, _read(form, LotCorrection), now)
    await write_lots.correct(session, caller, lot_id, changes, now)
    return see(f"/cards/{card_id}", done=message("lot_corrected"))


ROUTES: Final = [add_lot, change_lot]
