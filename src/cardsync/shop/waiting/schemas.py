"""The JSON structs of the decisions that wait for the owner, and the functions that fill them.
Pure.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated

import msgspec

from cardsync.platform.kit.row_pages import Numbers
from cardsync.platform.kit.struct_rows import Column, Reads, struct_of
from cardsync.platform.money import dollars, to_units
from cardsync.platform.plurals import counted
from cardsync.shop.waiting.all_waiting import Answer, Kind, Waits
from cardsync.shop.waiting.decide_waiting import DecidedWaiting


def _amount(change: Decimal | None) -> str | None:
    return None if change is None else dollars(to_units(change))


class WaitingItem(msgspec.Struct):
    """A waiting decision. `cards` and `listed_value_change` are its effect, as far as they are
    known. The answer must send the `revision`.
    """

    kind: Kind
    """The kind of the decision"""
    id: int
    """The id of the upload, run, plan or suggestion; for a price, the card's marketplace id"""
    revision: str
    """An opaque text that identifies the current content"""
    summary: str
    cards: int | None
    listed_value_change: Annotated[str | None, Column("change"), Reads(_amount)]
    """The change of the listed value, in USD; for a suggestion, the expected gain"""
    risk: str | None
    created_at: Annotated[datetime, Column("since")]
    expires_at: datetime | None
    answers: list[Answer]
    """The possible answers"""
    confirm_url: str
    """The page on which a member decides"""


class WaitingCounts(msgspec.Struct):
    """The number of waiting decisions by kind."""

    upload: int
    run: int
    plan: int
    price: int
    suggestion: int


class WaitingList(msgspec.Struct):
    waiting: list[WaitingItem]
    counts: WaitingCounts
    total: int
    page: int
    per_page: int
    total_pages: int


class DecidedItem(msgspec.Struct):
    """The result of a decision. `run_id` is the pricing run of approved prices. If the prices of a
    plan have changed since it was made, the plan was not applied, and `waits` is the plan with its
    new revision.
    """

    answer: Answer
    run_id: int | None
    waits: WaitingItem | None


def shown(one: Waits, origin: str) -> WaitingItem:
    return struct_of(WaitingItem, one, summary=_summary(one), confirm_url=origin + one.page)


def _summary(one: Waits) -> str:
    if one.kind == "upload":
        return f"Upload {one.id}: its prices are not used until you decide."
    if one.kind == "run":
        return f"Pricing run {one.id}: many prices would jump. None are used until you decide."
    if one.kind == "plan":
        cards = counted(one.cards or 0, "card", "cards")
        return f"Plan {one.id}: {cards}" + (f", {one.risk} risk." if one.risk else ".")
    name = one.name or f"{one.kind.capitalize()} {one.id}"
    was = "no price" if one.current_price is None else dollars(to_units(one.current_price))
    return f"{name}: {was} to {dollars(to_units(one.proposed_price))}."


def list_of(rows: list[WaitingItem], counts: dict[Kind, int], numbers: Numbers) -> WaitingList:
    return WaitingList(rows, WaitingCounts(**counts), *numbers)


def decided_body(done: DecidedWaiting, origin: str) -> DecidedItem:
    again = None if done.waits is None else shown(done.waits, origin)
    return DecidedItem(done.answer, done.run_id, again)
