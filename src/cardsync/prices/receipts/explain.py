"""Explains a card's price: the steps by which the live rules price it now, and the rules and sales
that also select the card but do not price it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from cardsync.access.models import Account
from cardsync.catalog.market.of_cards import Market, the_market
from cardsync.platform.clock import rfc3339
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.platform.kit.struct_rows import struct_of, struct_of_values
from cardsync.platform.money import dollars_or_none, usd
from cardsync.platform.storage import Store
from cardsync.platform.value_types import NamedRow
from cardsync.prices.engine import engine
from cardsync.prices.engine.rules import Rule, Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.simulate import simulate_row
from cardsync.prices.engine.steps import BLOCKERS
from cardsync.prices.files.price_updates import run_waits
from cardsync.prices.inputs.cards_to_price import Choices, choices, condition_of, read_chosen
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.receipts.archive import PricedCard, Synced, breakdown, card_of, last_synced
from cardsync.prices.receipts.schemas import (
    ExplainedBlocker,
    ExplainedCard,
    ExplainedPin,
    Explanation,
    MatchingRule,
    governing_rule,
)
from cardsync.prices.receipts.sentences import blocker_codes, explain, input_shown
from cardsync.prices.receipts.stale_target import stale_target


async def explain_card(
    session: Source,
    seller_id: int,
    store: Store,
    marketplace_id: int,
    now: datetime,
) -> Explanation:
    """Explain the card's price. Raise NotFound for a card that is not the seller's."""
    card, (account, asked), (latest, market), waiting = await each_of(
        session,
        card_of(session, seller_id, marketplace_id),
        live_run(session, seller_id, now),
        _synced_and_market(session, seller_id, marketplace_id),
        _waiting(session, seller_id),
    )
    waits = waiting.upload or (waiting.run and account.entitlements(now).sync_mode == "full")
    # The stored receipts are read concurrently with the database.
    (row, run, rules, sales), synced = await at_once(
        _priced(session, account, asked, market, card),
        breakdown(store, latest, card),
    )
    inputs = {
        name: input_shown(name, row[name]) for name in engine.INPUT_COLUMNS if name not in _TEXTS
    }
    return Explanation(
        marketplace_id,
        struct_of(ExplainedCard, card),
        "USD",
        dollars_or_none(row["current_price"]),
        usd(card.target_price) if row["pin"] is None else dollars_or_none(row["pin"]),
        rfc3339(now),
        [
            ExplainedBlocker(code, BLOCKERS[code])
            for code in _blockers(row["blockers"], waits=waits)
        ],
        considered_rules(rules, sales, row, run),
        governing_rule(rules, row["rule_id"]),
        explain(row, run),
        inputs | {name: getattr(card, name) for name in _TEXTS},
        synced.historical_breakdown,
        synced.historical_breakdown_absent,
        await pin_of(session, seller_id, marketplace_id, now) if row["pin"] is not None else None,
        await stale_target(session, card, row),
    )


_PIN: Final = """
    SELECT price, decided_by, since, until FROM price_decision
     WHERE seller_id = :seller AND kind = 'pin' AND marketplace_id = :card
       AND (until IS NULL OR until > :now)
"""


async def pin_of(
    session: Source, seller_id: int, marketplace_id: int, now: datetime
) -> ExplainedPin | None:
    """Return the pin that sets a card's target, or None."""
    values = {"seller": seller_id, "card": marketplace_id, "now": now}
    rows = await rows_of(session)(_PIN, values)
    return struct_of_values(ExplainedPin, rows[0]) if rows else None


_TEXTS: Final = ("condition", "printing", "language")


class _Priced(NamedTuple):
    """The engine's row of the card, priced by the live rules, and the rules and sales that select
    the card.
    """

    row: NamedRow
    run: Run
    rules: list[Rule]
    sales: list[Sale]


async def _priced(
    session: Source, account: Account, asked: Run, market: Market, card: PricedCard
) -> _Priced:
    chosen = await choices(session, account.seller_id, asked)
    stock, (rules, sales) = await each_of(
        session,
        read_chosen(session, account, chosen, "true", [card.id], market=market),
        _matching(session, account.seller_id, chosen, card.id),
    )
    inputs = stock.cards.row(0, named=True)
    losing = [rule.id for rule in rules if rule.id != inputs["rule_id"]]
    row = simulate_row(stock.run, inputs | {"candidates": losing})
    return _Priced(row, stock.run, rules, sales)


class _Waiting(NamedTuple):
    """Whether an upload waits for a review, and whether a run does. The price file of a read_only
    seller waits only for uploads.
    """

    upload: bool
    run: bool


async def _waiting(session: Source, seller_id: int) -> _Waiting:
    upload, run = await each_of(
        session, _upload_waits(session, seller_id), run_waits(session, seller_id)
    )
    return _Waiting(upload, run)


async def _synced_and_market(
    session: Source, seller_id: int, marketplace_id: int
) -> tuple[Synced | None, Market]:
    # Of its own: a read that never begins must not hold reads that were already made.
    return await each_of(
        session, last_synced(session, seller_id, marketplace_id), the_market(session)
    )


_UPLOAD_WAITS: Final = """
    SELECT 1 FROM sync_state WHERE seller_id = :seller AND review_upload_id IS NOT NULL
"""


async def _upload_waits(session: Source, seller_id: int) -> bool:
    return bool(await rows_of(session)(_UPLOAD_WAITS, {"seller": seller_id}))


async def _matching(
    session: Source,
    seller_id: int,
    chosen: Choices,
    card_id: int,
) -> tuple[list[Rule], list[Sale]]:
    """Return the live rules and active sales that select the card, by priority."""
    run = chosen.run
    bound: dict[str, object] = {"seller": seller_id, "now": run.now, "wanted": card_id}
    of_rules = [condition_of(selection, bound, f"r{id}") for id, selection in chosen.rules]
    of_sales = [condition_of(selection, bound, f"s{id}") for id, selection in chosen.sales]
    columns = (
        ", ".join(f"coalesce({condition}, false)" for condition in (*of_rules, *of_sales)) or "true"
    )
    [flags] = await rows_of(session)(
        f"SELECT {columns} FROM card c WHERE c.seller_id = :seller AND c.id = :wanted", bound
    )
    selecting = {id for (id, _), flag in zip(chosen.rules, flags, strict=False) if flag}
    reducing = {
        id
        for (id, _), flag in zip(
            chosen.sales,
            flags[len(chosen.rules) :],
            strict=False,
        )
        if flag
    }
    rules = [rule for rule in run.live if rule.id in selecting]
    return rules, [sale for sale in run.active_sales if sale.id in reducing]


def _blockers(bits: int, *, waits: bool) -> list[str]:
    codes = blocker_codes(bits)
    return [*codes, "awaiting_review"] if waits and "awaiting_review" not in codes else codes


def considered_rules(
    rules: Sequence[Rule],
    sales: Sequence[Sale],
    row: NamedRow,
    run: Run,
) -> list[MatchingRule]:
    considered = [
        *(_considered_rule(rule, rules, row) for rule in rules),
        *(_considered_guard(guard, row) for guard in _guards_of(row, run)),
        *(_considered_sale(sale, row) for sale in sales),
    ]
    return sorted(considered, key=lambda entry: (entry.priority, entry.kind))


def _considered_rule(rule: Rule, rules: Sequence[Rule], row: NamedRow) -> MatchingRule:
    outcome: Literal["governs", "blocks", "lost"] = "lost"
    if row["pin"] is not None:
        reason = "The card's price is pinned."
    elif rule.id == row["rule_id"]:
        outcome = "governs"
        reason = "It is the first that matches the card."
        if rule.broken:
            outcome = "blocks"
            reason = "Its search doesn't work anymore."
    else:
        reason = f"Rule “{rules[0].name}” is applied before it."
    return MatchingRule(rule.id, rule.name, "base", rule.priority, outcome, reason)


def _guards_of(row: NamedRow, run: Run) -> list[Rule]:
    bits = row["guards"] or 0
    return [guard for bit, guard in enumerate(run.guards) if bits >> bit & 1]


def _considered_guard(guard: Rule, row: NamedRow) -> MatchingRule:
    outcome: Literal["blocks", "holds", "decides"] = "holds"
    reason = "The price is within its limits, or another guard is stricter."
    if guard.broken:
        outcome, reason = "blocks", "Its search doesn't work anymore."
    elif guard.id == row["guard_floor_id"] and row["target"] == row["guard_floor"]:
        outcome, reason = "decides", "Its floor sets the price."
    elif guard.id == row["guard_ceiling_id"] and row["target"] == row["guard_ceiling"]:
        outcome, reason = "decides", "Its ceiling sets the price."
    elif guard.id == row["guard_cap_id"]:
        outcome, reason = "decides", "Its daily limit stops the price."
    return MatchingRule(guard.id, guard.name, "guard", guard.priority, outcome, reason)


def _considered_sale(sale: Sale, row: NamedRow) -> MatchingRule:
    applies = sale.id == row["sale_id"]
    if applies:
        reason = "It is the first active promotion that matches the card."
    elif row["target"] is None or row["pin"] is not None:
        reason = "No rule prices the card."
    else:
        reason = "An earlier promotion applies."
    outcome: Literal["applies", "lost"] = "applies" if applies else "lost"
    return MatchingRule(sale.id, sale.name, "sale", sale.priority, outcome, reason)
