"""The forms of a card's page that add, correct and remove its lots."""

from __future__ import annotations

from datetime import date
from typing import Final

from litestar import Response
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import TemplateValues, see
from cardsync.platform import clock, errors, limits
from cardsync.platform.kit.typed_numbers import amount, read_id, whole
from cardsync.sales.lots import write_lots
from cardsync.sales.lots.hand_lot import changed_fields, hand_lots
from cardsync.web.forms import Form


def fields_of(form: Form) -> TemplateValues:
    """Read the fields of a lot's form; an empty cost is unknown. Raises InvalidPayload."""
    quantity = whole(form["quantity"], limits.LARGEST_ID, least=1)
    if quantity is None:
        raise errors.InvalidPayload("quantity: must be a whole number, 1 or more")
    if quantity > limits.SHELVED_QUANTITY:
        raise errors.InvalidPayload("quantity: is too large")
    cost = amount(form["cost"])
    if cost is None and form["cost"]:
        raise errors.InvalidPayload("cost: must be an amount like 1.50")
    try:
        day = date.fromisoformat(form["bought_on"]) if form["bought_on"] else None
    except ValueError as e:
        raise errors.InvalidPayload("bought_on: must be a day like 2026-07-31") from e
    return {"quantity": quantity, "cost": cost, "bought_on": day}


@post_form("/cards/{card_id:int}/lots")
async def add_lot(
    caller: Caller,
    form: Form,
    session: AsyncSession,
    card_id: int,
) -> Response[str]:
    number = read_id(form["marketplace_id"])
    if number is None or not 1 <= number <= limits.LARGEST_ID:
        raise errors.InvalidPayload("marketplace_id: is missing")
    now = clock.now()
    given = fields_of(form)
    lot = (number, given["quantity"], given["cost"], given["bought_on"])
    await write_lots.add_by_hand(session, caller, hand_lots(caller, [lot], now), now)
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
    given = {name: value for name, value in fields_of(form).items() if name in form and value}
    if "cost" in form and not form["cost"]:
        given["cost"] = None
    await write_lots.correct(session, caller, lot_id, changed_fields(caller, given, now), now)
    return see(f"/cards/{card_id}", done=message("lot_corrected"))


ROUTES: Final = [add_lot, change_lot]
