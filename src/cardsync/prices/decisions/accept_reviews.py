"""Accepts price reviews, and undoes decisions about them. An accepted price is the card's target at
once, and later runs let it pass for thirty days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.market.of_cards import the_market
from cardsync.platform import errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.session import (
    SessionReading,
    Statement,
    in_one_message,
    run,
    run_all,
)
from cardsync.platform.money import dollars, to_units
from cardsync.platform.value_types import JsonMapping, JsonObject, Row
from cardsync.prices import standing
from cardsync.prices.decisions.confirmed import confirm
from cardsync.prices.decisions.ended import Applied, ended
from cardsync.prices.decisions.on_sale import note_sales
from cardsync.prices.decisions.set_targets import (
    NewTarget,
    apply_targets,
    must_be_free,
    must_take_targets,
)
from cardsync.prices.engine import breaker
from cardsync.prices.errors import MarketEvidenceChanged, NotEligible
from cardsync.prices.inputs.cards_to_price import Stock, price_chosen, read_stock
from cardsync.prices.proposals.decide_proposals import (
    Accepted,
    Answer,
    Deciding,
    FeedEntry,
    Kind,
    Refused,
    Rows,
    undo_decisions,
)
from cardsync.prices.proposals.models import Proposal

KIND: Final = "pricing.review_decided"
# The largest number of reviews on a page and in a request.
MOST: Final = 1_000
_OF_CARDS: Final = """
    SELECT w.id AS marketplace_id, c.id AS card_id, c.price, c.target_price,
           a.price AS accepted_price, a.since AS accepted_at, p.price IS NOT NULL AS pinned
      FROM unnest(CAST(:ids AS bigint[])) AS w (id)
      LEFT JOIN card c ON c.seller_id = :seller AND c.marketplace_id = w.id
                      AND NOT c.gone AND c.contribution IS NULL
      LEFT JOIN price_decision p
             ON p.seller_id = :seller AND p.kind = 'pin' AND p.marketplace_id = w.id
            AND (p.until IS NULL OR p.until > :now)
      LEFT JOIN price_decision a
             ON a.seller_id = :seller AND a.kind = 'accepted' AND a.marketplace_id = w.id
"""


async def _accept(deciding: Deciding, rows: Rows) -> Accepted:
    """Accept the prices that the live rules still produce, and refuse the others. Raises
    NotEligible, MutexHeld.
    """
    session, caller, state, now = deciding
    values = {"seller": caller.seller_id, "ids": list(rows), "now": now}
    reads = SessionReading(session)
    (account, live), [found], market = await at_once(
        must_take_targets(reads, state, now),
        in_one_message(reads, [_OF_CARDS], values),
        the_market(reads),
    )
    cards = {card.marketplace_id: card for card in found}
    refused = {
        number: problem
        for number, row in rows.items()
        if (problem := _refusal(row, cards[number], now)) is not None
    }
    able = [number for number in rows if number not in refused]
    card_ids = [cards[number].card_id for number in able]
    asks: Mapping[int, _Asks] = {}
    if able:
        stock = await read_stock(reads, account, live, card_ids=card_ids, market=market)
        asks = await _asked_now(stock)
    refused |= {
        number: problem
        for number in able
        if (problem := _unasked(rows[number], asks.get(number, _Asks()).price)) is not None
    }
    taken = {number: row for number, row in rows.items() if number not in refused}
    said = [Refused(number, problem) for number, problem in refused.items()]
    if not taken:
        return Accepted({}, said)
    targets = [
        NewTarget(cards[number].card_id, _proposed(row), row.rule_id)
        for number, row in taken.items()
    ]
    also = _let_pass(caller, taken, now)
    if reduced := {number: sale for number in taken if (sale := asks[number].sale_id)}:
        also += note_sales(caller.seller_id, reduced, now)
    run_id = await apply_targets(session, state, targets, "review", caller.actor, now, also)
    return Accepted(taken, said, run_id, known=cards)


def _feed_entry(answer: Answer, done: Accepted, now: datetime) -> FeedEntry:
    of = "price" if len(done.rows) == 1 else "prices"
    did = "approved" if answer == "accepted" else answer
    cards = sorted(done.rows)
    undo: JsonObject = {"kind": KIND, "answer": answer, "cards": cards, "at": now.isoformat()}
    if answer == "accepted":
        undo["was"] = [_kept(done.known[number]) for number in cards]
    return FeedEntry(f"pricing.review_{answer}", f"{len(cards):,} {of} {did}", undo)


def _let_pass(caller: Caller, taken: Rows, now: datetime) -> list[Statement]:
    """Return the statements that store the accepted prices, so that later runs let them pass and do
    not count them as leaps.
    """
    seller_id, ids, rows = caller.seller_id, [*taken], taken.values()
    accepted = standing.put(
        seller_id,
        "accepted",
        ids,
        now,
        prices=[row.evidence["regular_price"] for row in rows],
        until=now + breaker.REMEMBERED,
        by=caller.actor,
        replaces="true",
    )
    results = [row.evidence["result"] for row in rows]
    return [accepted, confirm(seller_id, ids, results, now)]


def _refusal(row: Proposal, card: Row, now: datetime) -> errors.Problem | None:
    feed_entry = f"card {row.marketplace_id}"
    if row.expires_at <= now:
        return MarketEvidenceChanged(
            f"the market data behind the price of {feed_entry} has expired; the next run prices"
            " it again"
        )
    if card.card_id is None or card.pinned:
        return NotEligible(f"{feed_entry} is {'pinned' if card.pinned else 'no longer in stock'}")
    if card.price != row.current_price:
        return errors.RevisionConflict(f"the price of {feed_entry} changed since the last run")
    return None


class _Asks(NamedTuple):
    """A card's price by the live rules, and the sale that sets it, if any."""

    price: int | None = None
    sale_id: int | None = None


async def _asked_now(stock: Stock) -> dict[int, _Asks]:
    """Return each card's present price by the live rules, before any review, by the card's
    marketplace id.
    """
    priced = await price_chosen(stock)
    asked = pl.coalesce("after_holdout", "after_rounding")
    price = pl.when(pl.col("blockers") == 0).then(asked)
    rows = priced.select("marketplace_id", price, "sale_id").iter_rows()
    return {number: _Asks(*asks) for number, *asks in rows}


def _unasked(row: Proposal, asked: int | None) -> errors.Problem | None:
    """Return the refusal of a price that the rules no longer produce, because a rule, a setting or
    the market has changed since the run; None if they still produce it.
    """
    card = f"card {row.marketplace_id}"
    if asked is None:
        return NotEligible(f"your rules do not price {card} now; its explanation says why")
    if asked != _proposed(row):
        return errors.RevisionConflict(
            f"your rules now set {dollars(asked)} for {card}; the next run offers that price"
        )
    return None


def _proposed(row: Proposal) -> int:
    assert row.proposed_price is not None
    return to_units(row.proposed_price)


def _kept(card: Row) -> list[str | None]:
    """Return the card's target, its former accepted price and the time of that acceptance, in the
    form that Activity stores for an undo.
    """
    amounts = [
        None if one is None else str(one) for one in (card.target_price, card.accepted_price)
    ]
    return [*amounts, card.accepted_at and card.accepted_at.isoformat()]


_PUT_BACK: Final = """
    UPDATE card c SET target_price = w.target, updated_at = :now
      FROM unnest(CAST(:ids AS bigint[]), CAST(:targets AS numeric[])) AS w (id, target)
      JOIN proposal r
        ON r.seller_id = :seller AND r.family = 'review' AND r.marketplace_id = w.id
     WHERE r.state = 'accepted' AND r.settled_at = :at
       AND c.seller_id = :seller AND c.marketplace_id = r.marketplace_id
       AND c.contribution IS NULL
       AND c.target_price = r.proposed_price AND c.price IS NOT DISTINCT FROM r.current_price
"""


async def _undo(deciding: Deciding, undo: JsonMapping) -> None:
    """Restore the cards' former targets. Raises ChangedSince, MutexHeld."""
    session, caller, state, now = deciding
    must_be_free(state, now)
    ids, at = undo["cards"], datetime.fromisoformat(undo["at"])
    # Older Activity entries lack the former values.
    was: Sequence[Sequence[str | None]] = undo.get("was", [[None] * 3] * len(ids))
    values = {
        "seller": caller.seller_id,
        "ids": ids,
        "at": at,
        "targets": [None if target is None else Decimal(target) for target, _, _ in was],
        "now": now,
    }
    if await run(session, _PUT_BACK, values) != len(ids):
        raise errors.ChangedSince("the price of one of these cards has changed in the meantime")
    await _forget(session, caller, ids, was, at)
    await ended(session, state, Applied(pushes=True), now)


async def _forget(
    session: AsyncSession,
    caller: Caller,
    ids: Sequence[int],
    was: Sequence[Sequence[str | None]],
    at: datetime,
) -> None:
    """Delete the prices accepted at the time `at`, and restore the prices accepted before them."""
    seller_id = caller.seller_id
    before = [
        (number, to_units(Decimal(price)), datetime.fromisoformat(since))
        for number, (_, price, since) in zip(ids, was, strict=True)
        if price is not None and since is not None
    ]
    restored = standing.put(
        seller_id,
        "accepted",
        [number for number, _, _ in before],
        at,
        prices=[price for _, price, _ in before],
        sinces=[since for _, _, since in before],
        ends=[since + breaker.REMEMBERED for _, _, since in before],
    )
    confirmed = standing.drop(seller_id, "confirmed", ids, "d.since = :at", at=at)
    await run_all(session, [confirmed, standing.drop(seller_id, "accepted", ids), restored])


REVIEWS: Final = Kind(
    ("review",),
    "marketplace_id",
    missing="no price of card {key} waits",
    settled="this price was already {state}",
    newer="this price changed since you looked",
    changed="one of these prices needs review again or was decided again",
    accept=_accept,
    undo=_undo,
    feed_entry=_feed_entry,
)


UNDO: Final = partial(undo_decisions, REVIEWS)
