"""Shows a draft rule on a few cards: the price of each card by the live rules and with the draft,
and the steps to both prices. Nothing is written.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import dollars_or_none
from cardsync.platform.read_json import Id
from cardsync.platform.value_types import NamedRow
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.steps import BLOCKERS
from cardsync.prices.inputs.cards_to_price import ON_SALE, condition_of
from cardsync.prices.inputs.rule_json import RuleBody
from cardsync.prices.inputs.rule_queries import need_readable, selections
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.preview.draft import beside, read_draft
from cardsync.prices.preview.schemas import DraftOnCard, DraftOnCards, PricedBy
from cardsync.prices.receipts.schemas import (
    ExplainedBlocker,
    ExplainedCard,
    governing_rule,
)
from cardsync.prices.receipts.sentences import blocker_codes, explain
from cardsync.prices.receipts.some_cards import priced_cards
from cardsync.stock.cards.models import Card

CARDS: Final = 50


class DraftOnCardsAsked(msgspec.Struct):
    """A draft of a rule, and the card or the cards to price by it."""

    rule: RuleBody
    rule_id: int | None = None
    marketplace_id: Id | None = None
    search: str | None = None


async def draft_on_cards(
    session: AsyncSession,
    caller: Caller,
    given: DraftOnCardsAsked,
    now: datetime,
) -> DraftOnCards:
    """Price the card `marketplace_id`, or the first cards that `search` selects, by the draft
    `rule`. With `rule_id`, the draft changes fields of that rule and replaces it.

    Raises OwnerRequired, InvalidRule, InvalidQuery, InvalidPayload, NotFound.
    """
    caller.must_be_owner()
    account, live = await live_run(session, caller.seller_id, now)
    draft, _ = read_draft(given.rule, given.rule_id, list(live.rules))
    query = await need_readable(session, caller.seller_id, draft.query, "rule.query")
    draft = replace(draft, query=query)
    ids = await _ids(session, caller.seller_id, given, now)
    chosen = ids[:CARDS]
    by_live, live = await priced_cards(session, account, live, chosen)
    drafted = replace(live, rules=beside(live.rules, draft))
    by_draft, drafted = await priced_cards(session, account, drafted, chosen)
    cards = await session.scalars(
        select(Card)
        .where(Card.seller_id == caller.seller_id, Card.id.in_(chosen))
        .order_by(Card.id)
    )
    return DraftOnCards(
        [
            DraftOnCard(
                card.marketplace_id,
                struct_of(ExplainedCard, card),
                dollars_or_none(by_live[card.id]["current_price"]),
                _priced_by(by_live[card.id], live),
                _priced_by(by_draft[card.id], drafted),
            )
            for card in cards
        ],
        len(ids) > CARDS,
    )


async def _ids(
    session: AsyncSession,
    seller_id: int,
    given: DraftOnCardsAsked,
    now: datetime,
) -> list[int]:
    """Return the ids of the chosen cards, at most one more than the number of cards that are
    priced.
    """
    marketplace_id, search = given.marketplace_id, given.search
    if (marketplace_id is None) == (search is None):
        raise errors.InvalidPayload("give either marketplace_id or search")
    bound: dict[str, object] = {"seller": seller_id, "now": now, "most": CARDS + 1}
    if search is not None:
        search = await need_readable(session, seller_id, search, "search")
        [selection] = await selections(session, seller_id, [search])
        where = f"{ON_SALE} AND {condition_of(selection, bound, 'w')}"
    else:
        bound["wanted"] = marketplace_id
        where = "c.marketplace_id = :wanted AND c.contribution IS NULL"
    sql = (
        f"SELECT c.id FROM card c WHERE c.seller_id = :seller AND {where} ORDER BY c.id LIMIT :most"
    )
    ids = list(await session.scalars(text(sql), bound))
    if marketplace_id is not None and not ids:
        raise errors.NotFound(f"there is no card {marketplace_id}")
    return ids


def _priced_by(row: NamedRow, run: Run) -> PricedBy:
    return PricedBy(
        dollars_or_none(row["target"]),
        governing_rule(run.rules, row["rule_id"]),
        [ExplainedBlocker(code, BLOCKERS[code]) for code in blocker_codes(row["blockers"])],
        explain(row, run),
    )
