"""Changes an offer's state: offered, accepted or declined, received, paid. Each change locks the
offer's row, and is refused if the caller has not seen the current revision.

Offered values never change: later steps store only the answer, the counted cards and the payment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note, note_by
from cardsync.access.caller import Caller
from cardsync.buying.binding_rights import must_bind_shop
from cardsync.buying.engine.wanted_lines import WantedLine
from cardsync.buying.limits import OFFER_COPIES
from cardsync.buying.offers.models import BuyingOffer, BuyingOfferLine, State, Way
from cardsync.buying.offers.offer_amounts import (
    ZERO,
    cash_share,
    cost_each,
    need_next,
    need_payable,
    payment,
    regraded,
    totals,
)
from cardsync.buying.offers.offer_reads import lines_of, offer_to_change, one_offer
from cardsync.buying.offers.schemas import OfferInFull, counted
from cardsync.buying.rules.day_budgets import Promise, need_budget
from cardsync.buying.rules.room_for_copies import BoughtCopies, need_room
from cardsync.buying.store_credit.credit_entries import cents, enter
from cardsync.catalog.condition import CODES, SEALED
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.money import usd
from cardsync.platform.read_json import Amount

# The name of a customer who answers by the link, in the activity feed.
CUSTOMER = "customer"
_CONDITIONS = frozenset(CODES.values()) - {SEALED}
Count = Annotated[int, msgspec.Meta(ge=0, le=OFFER_COPIES)]


class CountedLine(msgspec.Struct):
    """The counted cards of a line. A missing value means that the cards are as offered. A price by
    hand replaces the price of the counted condition.
    """

    id: int
    copies: Count | None = None
    condition: str | None = None
    cash_each: Amount | None = None
    credit_each: Amount | None = None


async def offer_it(
    session: AsyncSession, caller: Caller, offer_id: int, revision: int, days: int, now: datetime
) -> OfferInFull:
    """Offer a draft to its customer, with prices that are valid for `days` days. A lock lets the
    shop make only one offer at a time, so that two offers do not use the same rest of a budget or
    of a limit of copies. Raises OwnerRequired, RefusedByGrant, NotFound, RevisionConflict,
    OfferStateWrong, InvalidPayload.
    """
    must_bind_shop(caller)
    await locked(session, Lock.SHOP, caller.seller_id)
    offer = await offer_to_change(session, caller, offer_id, revision, now)
    need_next(offer.state, "offered")
    lines = await lines_of(session, caller.seller_id, offer_id)
    if not totals(counted(line) for line in lines).copies:
        raise errors.InvalidPayload("lines: nothing in this offer has a price; enter one first")
    await need_budget(session, caller, _promises(lines), now)
    await need_room(session, caller, list(_asked(lines)), now)
    _enter_state(offer, "offered")
    offer.offered_at, offer.expires_at = now, now + timedelta(days=days)
    note(session, caller, "offer.offered", f"offer {offer.id}, for {days} days", now)
    return await one_offer(session, caller, offer.id)


async def answer_yes(
    session: AsyncSession,
    caller: Caller,
    offer_id: int,
    revision: int,
    way: Way,
    cash_part: Decimal | None,
    chosen: Sequence[int] | None,
    now: datetime,
    *,
    shown: Sequence[int] | None = None,
    by_customer: bool = False,
) -> OfferInFull:
    """Accept all lines of an offer or, with `chosen`, these lines. `shown` are the lines that the
    customer's page showed; lines that it did not show are accepted, too. Raises OwnerRequired,
    RefusedByGrant, NotFound, RevisionConflict, OfferStateWrong, InvalidPayload.
    """
    if not by_customer:
        must_bind_shop(caller)
    offer = await offer_to_change(session, caller, offer_id, revision, now)
    need_live(offer, "accepted", now)
    lines = await lines_of(session, caller.seller_id, offer_id)
    bought = {line.id for line in lines if _brings(line, way)}
    taken = bought if chosen is None else set(chosen)
    if taken - {line.id for line in lines}:
        raise errors.InvalidPayload("lines: one line is not in this offer")
    if shown is not None:
        taken |= bought - set(shown)
    taken &= bought
    if not taken:
        raise errors.InvalidPayload("lines: accept at least one card that the shop buys this way")
    for line in lines:
        line.accepted = line.id in taken
    part = None if cash_part is None else cents(cash_part, "cash_part")
    payment([counted(line) for line in lines], way, part)
    _enter_state(offer, "accepted")
    offer.way, offer.cash_part = way, part
    _answered(session, caller, offer, "accepted", now, by_customer=by_customer)
    return await one_offer(session, caller, offer.id)


async def answer_no(
    session: AsyncSession,
    caller: Caller,
    offer_id: int,
    revision: int,
    now: datetime,
    *,
    by_customer: bool = False,
) -> OfferInFull:
    """Decline an offer: the customer does not accept it, or the cards are not as described. If the
    cards are received, only the shop may decline. Raises OwnerRequired, RefusedByGrant, NotFound,
    RevisionConflict, OfferStateWrong.
    """
    if not by_customer:
        must_bind_shop(caller)
    offer = await offer_to_change(session, caller, offer_id, revision, now)
    if by_customer:
        need_live(offer, "declined", now)
        if offer.state == "received":
            raise errors.OfferStateWrong("the shop has the cards already; ask it to decline")
    else:
        need_next(offer.state, "declined")
    _enter_state(offer, "declined")
    _answered(session, caller, offer, "declined", now, by_customer=by_customer)
    return await one_offer(session, caller, offer.id)


async def receive(
    session: AsyncSession,
    caller: Caller,
    offer_id: int,
    revision: int,
    came: Sequence[CountedLine],
    now: datetime,
) -> OfferInFull:
    """Record the counted cards of an offer. Lines that are not in `came` keep their earlier count,
    or else count as offered. Cards may be counted again until the offer is paid.

    Raises OwnerRequired, RefusedByGrant, NotFound, RevisionConflict, OfferStateWrong,
    InvalidPayload.
    """
    must_bind_shop(caller)
    offer = await offer_to_change(session, caller, offer_id, revision, now)
    need_next(offer.state, "received")
    lines = await lines_of(session, caller.seller_id, offer_id)
    accepted = {line.id: line for line in lines if line.accepted}
    by_id = {line.id: line for line in came}
    if len(by_id) != len(came) or by_id.keys() - accepted.keys():
        raise errors.InvalidPayload("lines: list each accepted line once")
    for line_id, line in accepted.items():
        if line_id in by_id or line.received_copies is None:
            _count(line, by_id.get(line_id) or CountedLine(line_id))
    need_payable(counted(line) for line in lines)
    _enter_state(offer, "received")
    offer.received_at = now
    changed = sum(_differs(line) for line in accepted.values())
    summary = f"offer {offer.id}: cards counted, {changed} lines differ"
    note(session, caller, "offer.received", summary, now)
    return await one_offer(session, caller, offer.id)


async def pay(
    session: AsyncSession,
    caller: Caller,
    offer_id: int,
    revision: int,
    now: datetime,
    *,
    way: Way | None = None,
    cash_part: Decimal | None = None,
) -> OfferInFull:
    """Pay for the received copies. Credit is added to the customer's ledger in the same
    transaction. `way` replaces the way that was accepted. Raises OwnerRequired, RefusedByGrant,
    NotFound, RevisionConflict, OfferStateWrong, InvalidPayload.
    """
    must_bind_shop(caller)
    offer = await offer_to_change(session, caller, offer_id, revision, now)
    need_next(offer.state, "paid")
    if way is None and cash_part is not None:
        raise errors.InvalidPayload('cash_part: say way "split" with it')
    if way is not None:
        offer.way = way
        offer.cash_part = None if cash_part is None else cents(cash_part, "cash_part")
    chosen = offer.way or "cash"
    lines = await lines_of(session, caller.seller_id, offer_id)
    came = [counted(line) for line in lines]
    if any(line.accepted and not _brings(line, chosen) for line in lines):
        raise errors.InvalidPayload("way: some of the cards can't be paid this way")
    due = payment(came, chosen, offer.cash_part)
    if due.credit and offer.customer_id is None:
        raise errors.InvalidPayload("customer_id: credit needs a customer; name one first")
    share = cash_share(came, offer.cash_part)
    for line, priced in zip(lines, came, strict=True):
        line.cost_each = cost_each(priced, chosen, share) if priced.copies else None
    _enter_state(offer, "paid")
    offer.paid_cash, offer.paid_credit, offer.paid_at = due.cash, due.credit, now
    if due.credit and offer.customer_id is not None:
        await enter(
            session,
            caller,
            offer.customer_id,
            "offer",
            due.credit,
            now,
            key=f"offer {offer.id}",
            offer_id=offer.id,
            reason=f"offer {offer.id}",
        )
    cash, credit = (usd(amount) for amount in due)
    summary = f"offer {offer.id}: {cash} in cash, {credit} in credit"
    note(session, caller, "offer.paid", summary, now, after={"cash": cash, "credit": credit})
    return await one_offer(session, caller, offer.id)


def _promises(lines: Sequence[BuyingOfferLine]) -> Iterator[Promise]:
    for line in lines:
        if line.rule_id is not None:
            cash, credit = line.cash_each or ZERO, line.credit_each or ZERO
            yield Promise(line.rule_id, line.copies * cash, line.copies * credit)


def _asked(lines: Sequence[BuyingOfferLine]) -> Iterator[BoughtCopies]:
    for line in lines:
        if line.rule_id is not None and (_brings(line, "cash") or _brings(line, "credit")):
            card = WantedLine(
                line.id,
                line.product_id,
                line.condition,
                line.printing,
                line.language,
                line.copies,
            )
            yield BoughtCopies(line.rule_id, card, line.held)


def need_live(offer: BuyingOffer, to: State, now: datetime) -> None:
    """Refuse a change of the state to `to` if it is not allowed, or if the offer's days are over,
    even if the offer is not marked as expired yet. Raises OfferStateWrong.
    """
    need_next(offer.state, to)
    if offer.expires_at is not None and offer.expires_at <= now:
        raise errors.OfferStateWrong(f"offer {offer.id} has expired")


def _enter_state(offer: BuyingOffer, state: State) -> None:
    need_next(offer.state, state)
    offer.state = state
    if state in ("declined", "expired"):
        offer.secret_hash = None


def _answered(
    session: AsyncSession,
    caller: Caller,
    offer: BuyingOffer,
    state: str,
    now: datetime,
    *,
    by_customer: bool,
) -> None:
    offer.answered_at = now
    offer.answered_by = CUSTOMER if by_customer else caller.actor
    summary = f"offer {offer.id} {state}"
    if by_customer:
        note_by(session, caller.seller_id, CUSTOMER, f"offer.{state}", summary, now)
    else:
        note(session, caller, f"offer.{state}", summary, now)


def _brings(line: BuyingOfferLine, way: Way) -> bool:
    """Return whether a line can be paid in this way."""
    in_cash, in_credit = line.cash_each is not None, line.credit_each is not None
    return {"cash": in_cash, "credit": in_credit, "split": in_cash or in_credit}[way]


def _count(line: BuyingOfferLine, came: CountedLine) -> None:
    """Store the counted copies, condition and prices of a line. Raises InvalidPayload."""
    condition = came.condition or line.condition
    if condition not in _CONDITIONS:
        raise errors.InvalidPayload(
            f"lines: condition {condition[:20]!r} is not one of {', '.join(sorted(_CONDITIONS))}"
        )
    copies = line.copies if came.copies is None else came.copies
    prices = {
        "cash_each": regraded(line.cash_each, line.grades, line.condition, condition),
        "credit_each": regraded(line.credit_each, line.grades, line.condition, condition),
    }
    for name in prices:
        by_hand: Decimal | None = getattr(came, name)
        if by_hand is not None:
            prices[name] = cents(by_hand, f"lines.{name}")
            if by_hand < 0:
                raise errors.InvalidPayload(f"lines: {name} must not be negative")
    line.received_copies, line.received_condition = copies, condition
    line.received_cash_each = prices["cash_each"]
    line.received_credit_each = prices["credit_each"]


def _differs(line: BuyingOfferLine) -> bool:
    came = (line.received_copies, line.received_condition)
    return came != (line.copies, line.condition)
