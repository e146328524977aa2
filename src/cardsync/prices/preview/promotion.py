"""Previews one promotion while it is edited: the cards that it selects, priced with and without the
promotion, as if it were active now.

Only the cards in stock that the promotion selects are read. Nothing is written, and no lease is
held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec
import polars as pl

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source
from cardsync.platform.money import UNITS_PER_CENT, dollars
from cardsync.platform.value_types import JsonObject, Values
from cardsync.prices.engine.expressions import cents, scaled
from cardsync.prices.engine.rules import WHOLE_BP, Sale
from cardsync.prices.engine.run_inputs import ENDING_CENTS
from cardsync.prices.engine.simulate import Effect, furthest
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.cards_to_price import ON_SALE, condition_of, read_stock, simulate_stock
from cardsync.prices.inputs.rule_queries import need_readable, selections
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.limits import RULE_PRIORITY
from cardsync.prices.preview.draft import UNSAVED
from cardsync.prices.preview.preview import cards_of, largest_move
from cardsync.prices.preview.schemas import PromotionEffect

LARGEST: Final = 10
_A_DAY: Final = timedelta(days=1)


class PromotionAsked(msgspec.Struct):
    """An unsaved promotion; `sale_id` names the saved promotion that it changes."""

    sale: rule_json.SaleBody
    sale_id: int | None = None


async def preview_promotion(
    source: Source,
    caller: Caller,
    given: PromotionAsked,
    now: datetime,
) -> PromotionEffect:
    """Preview the promotion as if it were active now. Raise InvalidRule, InvalidQuery, NotFound."""
    caller.must_be_owner()
    account, live = await live_run(source, caller.seller_id, now)
    sale = read_sale(given.sale, given.sale_id, list(live.sales), now)
    query = await need_readable(source, caller.seller_id, sale.query, "sale.query")
    sale = as_if_on(replace(sale, query=query), now)
    others = [one for one in live.sales if one.id != sale.id]
    bound: Values = {}
    [selection] = await selections(source, caller.seller_id, [query])
    where = f"{ON_SALE} AND c.quantity > 0 AND {condition_of(selection, bound, 'p')}"
    stock = await read_stock(
        source, account, replace(live, sales=[*others, sale]), where, costed=True, **bound
    )
    return await _shown(source, caller, await simulate_stock(stock), sale)


def read_sale(
    given: Mapping[str, object],
    sale_id: int | None,
    sales: list[Sale],
    now: datetime,
) -> Sale:
    """Return the promotion that the body creates, or the saved promotion with the body's changes.
    Pure.

    Raises InvalidRule, NotFound.
    """
    former = next((sale for sale in sales if sale.id == sale_id), None)
    if sale_id is not None and former is None:
        raise errors.NotFound(f"there is no promotion {sale_id}")
    base = former or Sale(UNSAVED, "Promotion", RULE_PRIORITY, 0, now, now + _A_DAY)
    try:
        values = rule_json.read_body(given, rule_json.SaleFields)
        return rule_json.sale_from(values, base, base.priority)
    except errors.InvalidRule as e:
        raise errors.InvalidRule(f"sale.{e}") from e


def as_if_on(sale: Sale, now: datetime) -> Sale:
    """Return the promotion as if it were active now. Pure."""
    return replace(
        sale,
        enabled=True,
        starts_at=min(sale.starts_at, now),
        ends_at=max(sale.ends_at, now + _A_DAY),
    )


async def _shown(
    source: Source,
    caller: Caller,
    effect: Effect,
    sale: Sale,
) -> PromotionEffect:
    seen = judged(effect, sale)
    known = await cards_of(source, caller.seller_id, seen.largest["marketplace_id"].to_list())
    return PromotionEffect(
        **seen.counts,
        largest=[largest_move(row, "asks", known, effect.run) for row in seen.largest.to_dicts()],
    )


class Judged(msgspec.Struct):
    """The figures of a promotion, and the cards that it lowers most."""

    counts: JsonObject
    largest: pl.DataFrame


def judged(effect: Effect, sale: Sale) -> Judged:
    """Return the promotion's effect on cards that were priced with the promotion active. Pure.

    A card gets the full discount if its price is at most the regular price less the cut. The
    comparison is in whole cents, and allows for the rounding to the rule's ending.
    """
    live = effect.run.live
    endings = {rule.id: ENDING_CENTS[rule.rounding] for rule in live}
    keeps = [rule.id for rule in live if rule.never_lower]
    regular = pl.coalesce("after_cap", "after_bounds")
    full = cents(scaled(regular, pl.lit(WHOLE_BP + sale.adjust_bp)))
    ending = pl.col("rule_id").replace_strict(endings, default=1, return_dtype=pl.Int64)
    up_to = full + (ending - 1 - full % ending)
    current = pl.col("current_price")
    seen = effect.cards.with_columns(
        own=pl.col("sale_id").eq(sale.id) & regular.is_not_null(),
        up_to=pl.max_horizontal(up_to, pl.lit(1)) * UNITS_PER_CENT,
        kept=pl.col("rule_id").is_in(keeps) & (full * UNITS_PER_CENT < current),
    ).with_columns(own=pl.col("own").fill_null(False))
    asked = pl.col("asks")
    own = pl.col("own")
    lower = own & (asked < current)
    sums = seen.select(
        cards=pl.len(),
        copies=pl.col("quantity").sum(),
        reduced=lower.sum(),
        full=(own & (asked <= pl.col("up_to"))).sum(),
        limited=(own & (asked > pl.col("up_to"))).sum(),
        not_priced=(~own).sum(),
        below_cost=(lower & (asked < pl.col("cost"))).sum(),
        unknown_cost=(own & pl.col("cost").is_null()).sum(),
        never_lowered=(own & pl.col("kept")).sum(),
        below_never_lower=(lower & pl.col("kept")).sum(),
        deepest=((current - asked) * WHOLE_BP // current).filter(lower).max(),
    ).row(0, named=True)
    before, after = effect.worth
    deepest = sums.pop("deepest")
    counts: dict[str, object] = {name: int(count or 0) for name, count in sums.items()}
    counts |= {
        "listed_value_before": dollars(before),
        "listed_value_after": dollars(after),
        "deepest_fall_bp": int(deepest or 0),
    }
    shown = seen.filter(lower | (own & (asked > pl.col("up_to"))))
    return Judged(counts, furthest(shown, current - asked).head(LARGEST))
