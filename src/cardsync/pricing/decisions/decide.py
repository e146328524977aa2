"""The seller's word on prices that wait: accept or dismiss, one or many, each for the revision that
was seen, and both can be undone.

The seller's state row is locked first, so of many callers at once exactly one decides. An accepted
price is the card's target at once, and later runs let it pass for thirty days.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

import msgspec
import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.cards.exported import fingerprint
from cardsync.database.session import run
from cardsync.money import dollars, to_units
from cardsync.pricing.decisions.on_sale import note_accepted
from cardsync.pricing.decisions.push_task import push_prices
from cardsync.pricing.decisions.set_targets import (
    NewTarget,
    apply_targets,
    must_be_free,
    review_waits,
)
from cardsync.pricing.engine import engine
from cardsync.pricing.inputs.cards_to_price import ON_SALE, read_stock
from cardsync.pricing.inputs.rule_rows import run_of
from cardsync.read_json import Id, ReadBy
from cardsync.seller_state.state import locked

KIND: Final = "pricing.review_decided"
Answer = Literal["accepted", "dismissed"]
# One page asks for so many at most, and so does one request.
MOST: Final = 1_000


def _revision(value: Any) -> datetime:
    moment = clock.read_moment(value) if isinstance(value, str) else None
    if moment is None:
        raise ValueError("must be a revision, as 2026-11-21T08:00:00.000000Z")
    return moment


Revision = ReadBy[datetime, _revision]


class Asked(msgspec.Struct, frozen=True):
    """A review at the revision that the caller saw."""

    marketplace_id: Id
    revision: Revision


class Refused(NamedTuple):
    """A review that was not decided, and why."""

    marketplace_id: int
    problem: errors.Problem


class Decided(NamedTuple):
    """`run_id` is the price run of accepted prices."""

    decided: int
    refused: list[Refused]
    run_id: int | None


_CARDS: Final = f"{ON_SALE} AND c.marketplace_id = ANY (CAST(:ids AS bigint[]))"
_ASKED: Final = """
    SELECT r.marketplace_id, r.state, r.revision, r.expires_at, r.rule_id, r.current_price,
           r.proposed_price, r.accepted_price, r.accepted_at, c.id AS card_id, c.price,
           c.target_price, p.price IS NOT NULL AS pinned
      FROM price_review r
      LEFT JOIN card c ON c.seller_id = :seller AND c.marketplace_id = r.marketplace_id
                      AND NOT c.gone AND c.contribution IS NULL
      LEFT JOIN pinned_price p ON p.seller_id = :seller AND p.marketplace_id = r.marketplace_id
                              AND (p.until IS NULL OR p.until > :now)
     WHERE r.seller_id = :seller AND r.marketplace_id = ANY (CAST(:ids AS bigint[]))
       FOR UPDATE OF r
"""
_SETTLE: Final = """
    UPDATE price_review
       SET state = :answer, decided_at = :now, decided_by = :actor,
           accepted_price = CASE WHEN :answer = 'accepted' THEN regular_price
                                 ELSE accepted_price END,
           accepted_at = CASE WHEN :answer = 'accepted' THEN CAST(:now AS timestamptz)
                              ELSE accepted_at END
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))
"""
# What the seller accepted does not count as a leap in later runs (pricing.runs.confirmed).
_CONFIRM: Final = """
    INSERT INTO confirmed_price (seller_id, marketplace_id, price, confirmed_at)
    SELECT seller_id, marketplace_id, result, :now FROM price_review
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))
    ON CONFLICT (seller_id, marketplace_id) DO UPDATE
       SET price = excluded.price, confirmed_at = excluded.confirmed_at
"""


async def decide(
    session: AsyncSession,
    caller: Caller,
    asked: Sequence[Asked],
    answer: Answer,
    now: datetime,
) -> Decided:
    """Decide each review that still is as it was seen; the others are told with their reasons.

    A price is accepted only if the live rules still ask it. Raises OwnerRequired, NotEligible,
    MutexHeld, and the one reason if nothing could be decided.
    """
    caller.must_be_owner()
    state = await locked(session, caller.seller_id)
    account = await session.get_one(Account, caller.seller_id, populate_existing=True)
    if answer == "accepted":
        holds = account.entitlements(now).holds
        if holds:
            raise errors.NotEligible(f"prices of this account are held: {', '.join(holds)}")
        must_be_free(state, now)
        if await review_waits(session, state):
            raise errors.NotEligible("prices wait for your review; confirm or discard them first")
    values = {"seller": caller.seller_id, "ids": [one.marketplace_id for one in asked]}
    rows = await session.execute(text(_ASKED), values | {"now": now})
    stored = {row.marketplace_id: row for row in rows}
    refused, taken = list[Refused](), dict[int, Any]()
    for one in asked:
        row = stored.get(one.marketplace_id)
        problem = _refusal(one, row, answer, now)
        if problem is not None:
            refused.append(Refused(one.marketplace_id, problem))
        else:
            taken[one.marketplace_id] = row
    asks = dict[int, _Asks]()
    if answer == "accepted" and taken:
        asks = await _asked_now(session, account, list(taken), now)
        changed = [
            Refused(number, problem)
            for number, row in taken.items()
            if (problem := _unasked(row, asks.get(number, _Asks()).price)) is not None
        ]
        refused += changed
        for one_changed in changed:
            del taken[one_changed.marketplace_id]
    if not taken:
        if refused:
            raise refused[0].problem
        return Decided(0, [], None)
    values = {"seller": caller.seller_id, "ids": list(taken)}
    settled = values | {"answer": answer, "now": now, "actor": caller.actor}
    await run(session, _SETTLE, settled)
    run_id = None
    if answer == "accepted":
        targets = [
            NewTarget(row.card_id, to_units(row.proposed_price), row.rule_id)
            for row in taken.values()
        ]
        run_id = await apply_targets(session, state, targets, "review", now)
        if reduced := {number: sale for number in taken if (sale := asks[number].sale_id)}:
            await note_accepted(session, caller.seller_id, reduced, now)
        await run(session, _CONFIRM, values | {"now": now})
    of = "price that waited" if len(taken) == 1 else "prices that waited"
    note(
        session,
        caller,
        f"pricing.review_{answer}",
        f"{len(taken):,} {of} {answer}",
        now,
        undo={
            "kind": KIND,
            "answer": answer,
            "cards": sorted(taken),
            "at": now.isoformat(),
            "was": [_kept(taken[number]) for number in sorted(taken)],
        },
    )
    await session.flush()
    return Decided(len(taken), refused, run_id)


def _refusal(
    one: Asked,
    row: Any,
    answer: Answer,
    now: datetime,
) -> errors.Problem | None:
    card = f"card {one.marketplace_id}"
    if row is None:
        return errors.NotFound(f"no price of {card} waits")
    if row.state != "pending":
        return errors.RevisionConflict(f"the price of {card} was {row.state}")
    if row.revision != one.revision:
        return errors.RevisionConflict(f"the price of {card} changed since you looked")
    if answer == "dismissed":
        return None
    if row.expires_at <= now:
        return errors.MarketEvidenceChanged(
            f"the evidence for the price of {card} has expired; the next run prices it anew"
        )
    if row.card_id is None or row.pinned:
        return errors.NotEligible(
            f"{card} is {'pinned' if row.pinned else 'not in stock any more'}"
        )
    if row.price != row.current_price:
        return errors.RevisionConflict(f"the price of {card} changed since the last run")
    return None


class _Asks(NamedTuple):
    """The price that the live rules ask for a card, and the sale that it is the price of."""

    price: int | None = None
    sale_id: int | None = None


async def _asked_now(
    session: AsyncSession,
    account: Account,
    ids: list[int],
    now: datetime,
) -> dict[int, _Asks]:
    """Return what the live rules ask for each card at this moment, before any review."""
    stock = await read_stock(session, account, await run_of(session, account, now), _CARDS, ids=ids)
    of = stock.run
    priced = await asyncio.to_thread(
        engine.price,
        stock.cards,
        of.rules,
        of.seller,
        of.now,
        of.sales,
    )
    asked = pl.coalesce("after_holdout", "after_rounding")
    price = pl.when(pl.col("blockers") == 0).then(asked)
    rows = priced.select("marketplace_id", price, "sale_id").iter_rows()
    return {number: _Asks(*asks) for number, *asks in rows}


def _unasked(row: Any, asked: int | None) -> errors.Problem | None:
    """Return why a price is not taken over that the rules do not ask any more: a rule, a setting or
    the market has changed since the run.
    """
    card = f"card {row.marketplace_id}"
    if asked is None:
        return errors.NotEligible(f"your rules do not price {card} now; its explanation says why")
    if asked != to_units(row.proposed_price):
        return errors.RevisionConflict(
            f"your rules ask {dollars(asked)} for {card} by now; the next run offers that price"
        )
    return None


def _kept(row: Any) -> list[str | None]:
    """Return the target of a card, and the price that was accepted before with its time, as the
    undo of a decision keeps them.
    """
    amounts = [None if one is None else str(one) for one in (row.target_price, row.accepted_price)]
    return [*amounts, row.accepted_at and row.accepted_at.isoformat()]


def _amount(said: str | None) -> Decimal | None:
    return None if said is None else Decimal(said)


_PUT_BACK: Final = """
    UPDATE card c SET target_price = w.target, updated_at = :now
      FROM unnest(CAST(:ids AS bigint[]), CAST(:targets AS numeric[])) AS w (id, target)
      JOIN price_review r ON r.seller_id = :seller AND r.marketplace_id = w.id
     WHERE r.state = 'accepted' AND r.decided_at = :at
       AND c.seller_id = :seller AND c.marketplace_id = r.marketplace_id
       AND c.contribution IS NULL
       AND c.target_price = r.proposed_price AND c.price IS NOT DISTINCT FROM r.current_price
"""
_WAIT_AGAIN: Final = """
    UPDATE price_review r
       SET state = 'pending', decided_at = NULL, decided_by = NULL,
           accepted_price = CASE WHEN :answer = 'dismissed' THEN r.accepted_price ELSE w.price END,
           accepted_at = CASE WHEN :answer = 'dismissed' THEN r.accepted_at ELSE w.at END
      FROM unnest(CAST(:ids AS bigint[]), CAST(:prices AS numeric[]),
                  CAST(:times AS timestamptz[])) AS w (id, price, at)
     WHERE r.seller_id = :seller AND r.marketplace_id = w.id
       AND r.state = :answer AND r.decided_at = :at
"""
_UNCONFIRM: Final = """
    DELETE FROM confirmed_price
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))
       AND confirmed_at = :at
"""


async def put_back(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Let the prices wait again; of accepted ones the targets go back. Raises ChangedSince,
    MutexHeld.
    """
    caller.must_be_owner()
    state = await locked(session, caller.seller_id)
    # Older entries lack what was before.
    was: Sequence[Sequence[str | None]] = undo.get("was", [[None] * 3] * len(undo["cards"]))
    values = {
        "seller": caller.seller_id,
        "ids": undo["cards"],
        "at": datetime.fromisoformat(undo["at"]),
        "targets": [_amount(target) for target, _, _ in was],
        "prices": [_amount(price) for _, price, _ in was],
        "times": [at and datetime.fromisoformat(at) for _, _, at in was],
    }
    cards = len(undo["cards"])
    if undo["answer"] == "accepted":
        must_be_free(state, now)
        if await run(session, _PUT_BACK, values | {"now": now}) != cards:
            raise errors.ChangedSince("the price of one of these cards was changed since")
        await run(session, _UNCONFIRM, values)
    if await run(session, _WAIT_AGAIN, values | {"answer": undo["answer"]}) != cards:
        raise errors.ChangedSince("one of these prices waits again or was decided anew")
    if undo["answer"] == "accepted":
        state.export_fingerprint = await fingerprint(session, caller.seller_id)
        await session.flush()
        await push_prices(session, caller.seller_id, now)
