"""Computes a plan's effect on prices: the live rules and pins price the cards that the plan can
affect, before and after its actions, and the two results are compared.

Cards are read by the functions that previews and runs use. For the prices after the actions, only
the rule, sale and pin of each card are read again. Pauses and empty stock do not hide a change,
because such cards may be for sale again tomorrow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.money import to_units
from cardsync.platform.value_types import Values
from cardsync.prices.engine.rules import ReviewLimits, Rule, Sale, Stale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.simulate import simulate, worth
from cardsync.prices.inputs.cards_to_price import (
    ON_SALE,
    Choices,
    Stock,
    choices,
    condition_of,
    first_of,
    guards_of,
    integer_frame,
    read_stock,
)
from cardsync.prices.inputs.rule_queries import selections
from cardsync.prices.inputs.rule_rows import run_of
from cardsync.prices.loss.loss_limits import SIDES, WHOLE_BP, sums_of
from cardsync.prices.loss.risk import DEFAULT_CAP_BP, MARKET_PARTS, Size
from cardsync.prices.plans import lot_changes
from cardsync.prices.plans.actions import Actions, OwnChange, RuleChange
from cardsync.prices.plans.asked_data import asked_by, asked_of
from cardsync.prices.standing import decided_of, with_decided

# A move of less than 25 cents does not count as a leap, as in the breaker of runs.
_LEAP = 2_500
# The maximum number of cards that are read and priced at a time, in a web process and in a separate
# process.
PART, PART_BESIDE = 50_000, 300_000
_FITS = """
    SELECT NOT EXISTS (SELECT FROM card c WHERE c.seller_id = :seller AND {where} OFFSET :most)
"""
_PARTS = """
    SELECT min(id) AS first, max(id) AS last
      FROM (SELECT c.id, (row_number() OVER (ORDER BY c.id) - 1) / :most AS part
              FROM card c WHERE c.seller_id = :seller AND {where}) cards
     GROUP BY part ORDER BY part
"""
_CHOSEN = """
    (SELECT c.id, coalesce({rule}, 0) AS rule_id, coalesce({sale}, 0) AS sale_id, {guards} AS guards
       FROM card c WHERE c.seller_id = :seller AND {where}) stock
"""
_SHOP_VALUE = """
    SELECT coalesce(sum(least(price, coalesce(target_price, price)) * quantity), 0) AS listed,
           coalesce(sum(coalesce(target_price, price) * quantity), 0) AS asked
      FROM card WHERE seller_id = :seller AND NOT gone AND contribution IS NULL
"""


@dataclass(frozen=True)
class Reach:
    """The cards whose prices can change, as a condition over `card c` with its values. `card_ids`
    names the cards. `anew` is true if the write changes the cards themselves, which must then be
    read again.
    """

    where: str
    values: Values
    card_ids: Sequence[int] | None = None
    anew: bool = False


async def reach_of(
    session: AsyncSession,
    seller_id: int,
    run: Run,
    actions: Actions,
) -> Reach | None:
    """Return the cards whose prices the plan can change, or None if it can change no price."""
    if any(own.type in ("pricing.rollback", "quick_add.publish") for own in actions.own):
        # The moves of these writes are read separately (`attempt.py`).
        return Reach("false", {})
    queries = _queries(run, actions)
    if queries is None:
        return Reach(ON_SALE, {})
    named = [pin.marketplace_id for pin in actions.pins]
    for own in actions.own:
        if own.type == "lots":
            named += await lot_changes.cards_of(session, seller_id, own.body)
    if not queries and not named:
        return None
    bound: dict[str, object] = {}
    found = await selections(session, seller_id, queries)
    conditions = [condition_of(one, bound, f"w{place}") for place, one in enumerate(found)]
    parts = [f"({ON_SALE} AND ({' OR '.join(conditions)}))"] if conditions else []
    if named:
        # A pin of a card that is gone applies once the card is back, so the card is read in any
        # case.
        parts.append("(c.contribution IS NULL AND c.marketplace_id = ANY (:plan_cards))")
        bound["plan_cards"] = sorted({*named})
    return Reach(f"({' OR '.join(parts)})", bound)


def _queries(run: Run, actions: Actions) -> list[str] | None:
    """Return the queries of the rules that the plan changes, before and after the change. None
    means every card.
    """
    of_rules = {rule.id: rule.query for rule in run.rules}
    of_sales = {sale.id: sale.query for sale in run.sales}
    live = {rule.id for rule in (*run.live, *run.guards)}
    found: list[str] = []
    for change in actions.rules:
        if change.op == "reorder":
            return None
        if _governs(change, live):
            found += queries_of(change, of_rules)
    for own in actions.own:
        if own.type not in ("pricing.sales", "lots"):
            return None
        if own.type == "pricing.sales":
            found += _queries_of_sale(own, of_sales)
    if actions.lists and "lists" in asked_of(run) | asked_by(found):
        return None
    return None if "" in found else list(dict.fromkeys(found))


def _governs(change: RuleChange, live: Set[int]) -> bool:
    """Return whether the rule may govern prices before or after the change."""
    if change.op == "create":
        return change.values.get("state") == "published"
    if change.op == "update" and change.rule_id not in live:
        return bool({"state", "enabled"} & change.values.keys())
    return change.op == "enable" or change.rule_id in live


def _queries_of_sale(change: OwnChange, of_sales: Mapping[int, str]) -> list[str]:
    was = of_sales.get(change.body.get("id", 0))
    if was is None and change.op != "create":
        return []
    query = change.body.get("set", {}).get("query", was or "")
    found = [] if was is None else [was]
    return [*found, query.strip() if isinstance(query, str) else ""]


def queries_of(change: RuleChange, of_rules: dict[int, str]) -> list[str]:
    """Return the rule's queries before and after the change."""
    found = []
    if change.rule_id in of_rules:
        found.append(of_rules[change.rule_id])
    query = change.values.get("query")
    if isinstance(query, str):
        found.append(query.strip())
    return found or [""]


async def parts_of(
    session: AsyncSession, seller_id: int, reach: Reach, most: int, now: datetime
) -> list[Reach]:
    """Return the reach in parts of limited size, so that a large shop's cards are never all in
    memory. A small shop has one part.
    """
    values = {"seller": seller_id, "most": most, "now": now, **reach.values}
    if await session.scalar(text(_FITS.format(where=reach.where)), values):
        return [reach]
    ends = (await session.execute(text(_PARTS.format(where=reach.where)), values)).all()
    return [replace(reach, card_ids=range(one.first, one.last + 1)) for one in ends]


def reach_by_id(card_ids: list[int]) -> Reach:
    return Reach("c.id = ANY (CAST(:named AS bigint[]))", {"named": card_ids}, card_ids)


async def read_cards(
    session: AsyncSession,
    seller_id: int,
    reach: Reach,
    now: datetime,
    seen: Stock | None = None,
    sales: Sequence[Sale] | None = None,
    run: Run | None = None,
    in_run: bool = False,
) -> Stock:
    """Read the cards for the live rules and pins, or for a run of other rules. For cards that were
    `seen` before the plan's actions, only the rule, the sale and the pin are read again. Nothing is
    read again if the run holds every change (`in_run`) and the same queries decide. `sales` replace
    the run's sales.
    """
    account = await session.get_one(Account, seller_id, populate_existing=True)
    run = run or await run_of(session, account, now)
    run = replace(
        run,
        seller=replace(run.seller, automatic_pricing_paused=False),
        sales=run.sales if sales is None else list(sales),
    )
    if seen is None or not _needs(run) <= _needs(seen.run) or not run.every_game:
        return await read_stock(session, account, run, reach.where, reach.card_ids, **reach.values)
    chosen = await choices(session, seller_id, run)
    if in_run and _selects(chosen) == _selects(seen.chosen):
        return replace(seen, chosen=chosen)
    bound: dict[str, object] = {"seller": seller_id, "now": now, **reach.values}
    rule = first_of(chosen.rules, bound, "r")
    sale = first_of(chosen.sales, bound, "s")
    where = reach.where
    if isinstance(reach.card_ids, range):
        where = f"c.id BETWEEN :first_id AND :last_id AND {where}"
        bound |= {"first_id": reach.card_ids.start, "last_id": reach.card_ids.stop - 1}
    guards = guards_of(chosen, bound)
    sql = _CHOSEN.format(rule=rule, sale=sale, guards=guards, where=where)
    columns = ["id", "rule_id", *(["sale_id"] if chosen.sales else [])]
    columns += ["guards"] if chosen.guards else []
    rows = await integer_frame(session, columns, sql, bound, ("rule_id", "sale_id"))
    run = chosen.run
    decided = await decided_of(
        session, seller_id, run.now, reviewed=run.reviewed, costed=run.costed
    )
    kept = with_decided(seen.cards.drop("rule_id", "sale_id", "guards", strict=False), decided)
    return Stock(chosen, kept.join(rows, on="id", how="inner", maintain_order="left"))


def _selects(chosen: Choices) -> tuple[object, ...]:
    """Return the inputs that decide a card's rule, sale, guards and pin."""
    run = chosen.run
    return chosen.rules, chosen.sales, chosen.guards, run.reviewed, run.costed


def _needs(run: Run) -> set[str]:
    """Return the kinds of data about the cards' past and market that the run needs."""
    asked = {"period": run.periodic, "stale": run.stale, "market": run.reads_market}
    return {*run.periods, *(name for name, asks in asked.items() if asks)}


async def priced(stock: Stock) -> pl.DataFrame:
    """Return the cards' prices by rules and pins: `today` is the price now, `worst` the price after
    all caps and stale cuts have taken effect, and `asked` the last target.
    """
    return await asyncio.to_thread(_priced, stock)


def _priced(stock: Stock) -> pl.DataFrame:
    cards, run = in_stock(stock.cards), stock.run
    today = _asked(cards, run)
    moving = _moving(cards, run).arg_true()
    worst = today.clone()
    if len(moving):
        then = replace(run, rules=at_worst(run.rules))
        worst.scatter(moving, _asked(cards[moving], then))
    asked = pl.coalesce("target_price", "current_price").alias("asked")
    kept = stock.cards.select("id", "marketplace_id", "market", asked, "quantity")
    return kept.with_columns(today=today, worst=worst)


def _moving(cards: pl.DataFrame, run: Run) -> pl.Series:
    """Return for each card whether its rule or a guard may give it different `worst` and `today`
    prices.
    """
    rules = run.rules
    if not run.reviewed:
        rules = [replace(rule, review=ReviewLimits()) for rule in rules]
    others = [rule for rule, then in zip(rules, at_worst(rules), strict=True) if rule != then]
    governed = pl.col("rule_id").is_in([rule.id for rule in others])
    return cards.select(governed | any(rule.guard for rule in others)).to_series()


def _asked(cards: pl.DataFrame, run: Run) -> pl.Series:
    return simulate(run, cards).cards["asks"]


def in_stock(cards: pl.DataFrame) -> pl.DataFrame:
    """Return the cards with at least one copy each, because a card that is gone may be sold again
    tomorrow.
    """
    return cards.with_columns(quantity=pl.max_horizontal("quantity", 1))


def at_worst(rules: Sequence[Rule]) -> list[Rule]:
    """Return the rules without caps, reviews and hold-outs, and with every stale cut at its
    largest.
    """
    return [
        replace(
            rule,
            cap=None,
            review=ReviewLimits(),
            holdout_bp=None,
            velocity_boost_enabled=rule.velocity_boost_enabled and rule.stale is None,
            stale=None
            if rule.stale is None
            else Stale(0, rule.stale.limit_bp, 1, rule.stale.limit_bp),
        )
        for rule in rules
    ]


class ShopValue(NamedTuple):
    """The shop's listed value at the lower of listed price and target, and its value at the
    targets.
    """

    listed: int
    asked: int


def size_of(
    moved: pl.DataFrame | None,
    past: pl.DataFrame,
    cap_bp: int,
    shop: ShopValue,
) -> Size:
    """Return the size of the change. `moved` is a result of `summed`. The shop's value before the
    change has the moved cards at the prices from which the change is measured. Pure.
    """
    if moved is None:
        return Size(cap_bp=cap_bp, shop_value=shop.listed)
    if "asked" not in moved.columns:
        # These moves start at the stored target.
        moved = moved.with_columns(asked="today")
    under = moved.filter(
        pl.min_horizontal("today_after", "worst_after") * MARKET_PARTS < pl.col("market")
    )
    copies = pl.col("quantity").cast(pl.Int128)
    # A card without a price is left out, because its move is not a fraction of an earlier price.
    known = pl.col("today") > 0
    asked, before, after, worst_before, worst_after = worth(
        moved, "asked", "today", "today_after", "worst", "worst_after"
    )
    sums = moved.select(
        **{
            f"{side}_base": (pl.col(f"day_{side}_base") * copies).filter(known).sum()
            for side in SIDES
        },
        **{
            f"{side}_gross": (pl.col(f"day_{side}").abs() * copies).filter(known).sum()
            for side in SIDES
        },
        beyond=pl.max_horizontal(_leaps(side, cap_bp) for side in SIDES).sum(),
        deepest=pl.max_horizontal(_fall_bp(side) for side in SIDES).max(),
    ).row(0, named=True)
    others = max(shop.asked - asked, 0)
    return Size(
        cards=moved.height,
        before=before,
        after=after,
        worst_before=worst_before,
        worst_after=worst_after,
        shop_value=shop.listed,
        whole=others + before,
        worst_whole=others + worst_before,
        moved_bp=max(_share(int(sums[f"{s}_gross"]), int(sums[f"{s}_base"])) for s in SIDES),
        beyond=int(sums["beyond"]),
        cap_bp=cap_bp,
        deepest_bp=int(sums["deepest"] or 0),
        under_market=under.height,
        first_under_market=under["marketplace_id"].min() if under.height else None,  # type: ignore[arg-type]
        sums=sums_of(moved, past),
    )


def _leaps(side: str, cap_bp: int) -> pl.Expr:
    moved, base = pl.col(f"day_{side}").abs(), pl.col(f"day_{side}_base")
    far = (moved >= _LEAP) & (moved * WHOLE_BP > base * cap_bp) & (pl.col("today") > 0)
    return far.fill_null(False).cast(pl.Int64)


def _fall_bp(side: str) -> pl.Expr:
    """Return the fall of a card's price by this change alone, in basis points, rounded up."""
    price = pl.col(side)
    fall = (price - pl.col(f"{side}_after")) * WHOLE_BP
    return pl.when(price > 0).then(-(-fall // price)).otherwise(0).fill_null(0)


def _share(part: int, whole: int) -> int:
    """Return the part in basis points, rounded up, so that a move beyond a limit never equals the
    limit.
    """
    return -(-part * WHOLE_BP // whole) if whole else 0


def cap_of(rules: Sequence[Rule]) -> int:
    """Return the tightest cap of the live rules, in basis points."""
    limits = [
        limit
        for rule in rules
        if rule.live and rule.cap is not None
        for limit in (rule.cap.up_bp, rule.cap.down_bp)
        if limit
    ]
    return min(limits, default=DEFAULT_CAP_BP)


async def shop_value(source: Source, seller_id: int) -> ShopValue:
    [sums] = await rows_of(source)(_SHOP_VALUE, {"seller": seller_id})
    return ShopValue(*map(to_units, sums))
