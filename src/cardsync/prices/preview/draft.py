"""Previews one rule while it is edited, among the live rules: the cards that it selects, moves and
holds, and whether it can govern any card.

Only two groups of cards are read and priced: the cards that the draft selects, and the cards that
only the saved rule selects. Nothing is written, and no lease is held, because previews are frequent
while a person types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final

import msgspec
import polars as pl

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.platform.value_types import Values
from cardsync.prices.engine.rules import Rule
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.cards_to_price import ON_SALE, condition_of, read_stock, simulate_stock
from cardsync.prices.inputs.price_history import among
from cardsync.prices.inputs.rule_queries import Selection, need_readable, selections
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.inputs.sampled_cards import Sample, sample_of
from cardsync.prices.preview import preview
from cardsync.prices.preview.schemas import MoveBin, Preview

LARGEST: Final = 10
# With more than FEW cards, a first preview may use a sample: one card in ONE_IN.
FEW: Final = 40_000
ONE_IN: Final = 16
# The id of a draft that is no saved rule. No saved rule has this id.
UNSAVED: Final = -1


class DraftAsked(msgspec.Struct):
    """A draft of a rule; `rule_id` names the rule that it changes."""

    rule: rule_json.RuleBody
    rule_id: int | None = None
    sample: bool | None = None
    """Price only a sample of the cards if there are many"""


@dataclass(frozen=True, slots=True)
class Draft:
    """The preview of a draft. `edited` is true if the draft differs from the saved rule, and
    `is_live` if the saved rule is live. `shadowed_by` has the earlier rules that govern every card
    that the draft selects, in the order of priority; `figures` is the preview of the cards. If
    `one_in` is above one, a sample was priced, and all counts and values are those of the sample
    times `one_in`.
    """

    selects: int
    governs: int
    shadowed_by: list[Rule]
    figures: Preview
    one_in: int = 1
    edited: bool = True
    is_live: bool = False

    @property
    def never_matches(self) -> bool:
        return not self.selects


async def preview_draft(
    source: Source,
    caller: Caller,
    given: DraftAsked,
    now: datetime,
) -> Draft:
    """Preview the draft `rule`. With `rule_id`, the draft changes fields of that rule and replaces
    it. With `sample`, only a sample of the cards is priced if there are many.

    Raises InvalidRule, InvalidQuery, InvalidPayload, NotFound.
    """
    caller.must_be_owner()
    seller_id = caller.seller_id
    (account, live), sample = await each_of(
        source,
        live_run(source, seller_id, now),
        sample_of_many(source, seller_id, asked=bool(given.sample)),
    )
    one_in = one_in_of(sample)
    draft, former = read_draft(given.rule, given.rule_id, list(live.rules))
    query = await need_readable(source, seller_id, draft.query, "rule.query")
    draft = replace(draft, query=query)
    rules = beside(live.rules, draft)
    kept = rules[:-1]
    queries = [draft.query] + ([former.query] if former is not None and former.live else [])
    # Most drafts have the query of the rule that they change.
    found = await selections(source, seller_id, [*dict.fromkeys(queries)])
    bound: Values = {}
    conditions = [
        condition_of(selection, bound, f"d{place}") for place, selection in enumerate(found)
    ]
    where = f"{ON_SALE} AND ({' OR '.join(conditions)})"
    run = replace(live, rules=rules)
    effect = await simulate_stock(await read_stock(source, account, run, where, sample, **bound))
    out = effect.cards
    only = len(found) == 1
    selects = out.height if only else await _selected(source, seller_id, now, found[0], sample)
    governs = out.filter(_held_by(draft, effect.run)).height
    shadows = (
        set(out["rule_id"].unique().drop_nulls())
        if selects and not governs and not draft.guard
        else set()
    )
    order = sorted(kept, key=lambda rule: (rule.priority, rule.id))
    figures = await preview.figures(source, caller, effect, LARGEST)
    return Draft(
        selects * one_in,
        governs * one_in,
        [rule for rule in order if rule.id in shadows],
        times(figures, one_in),
        one_in,
        former is None or not former.live or draft != replace(former, name=draft.name),
        former is not None and former.live,
    )


def _held_by(draft: Rule, run: Run) -> pl.Expr:
    """Return which cards the draft prices or, if it is a guard, limits."""
    if not draft.guard:
        return pl.col("rule_id") == draft.id
    bit = [guard.id for guard in run.guards].index(draft.id)
    return pl.col("guards") // (1 << bit) % 2 == 1


async def sample_of_many(source: Source, seller_id: int, *, asked: bool) -> Sample | None:
    """Return the sample of a first preview, if one is asked for and the shop has many cards."""
    return await sample_of(source, seller_id, ONE_IN, FEW) if asked else None


def one_in_of(sample: Sample | None) -> int:
    """Return of how many cards a sample has one: one, if all cards are priced. Pure."""
    return 1 if sample is None else ONE_IN


def times(figures: Preview, one_in: int) -> Preview:
    """Return the figures of all cards, estimated from a sample. Pure."""
    if one_in == 1:
        return figures
    moved = ("up", "down", "unchanged", "held", "held_up", "held_down")
    counts = ("cards", *moved, "reviewed", "differs")
    values = ("listed_value_before", "listed_value_after", "up_value", "down_value")
    fields = msgspec.structs.asdict(figures)
    fields |= {name: fields[name] * one_in for name in counts}
    fields |= {name: str(Decimal(fields[name]) * one_in) for name in values}
    fields["blocked"] = {code: count * one_in for code, count in figures.blocked.items()}
    fields["histogram"] = [
        MoveBin(bin.from_bp, bin.to_bp, bin.count * one_in) for bin in figures.histogram
    ]
    return Preview(**fields)


def beside(rules: Sequence[Rule], draft: Rule) -> list[Rule]:
    """Return the live rules and, last in the list, the draft. The draft's priority decides its
    order. Pure.
    """
    return [*(rule for rule in rules if rule.live and rule.id != draft.id), draft]


def read_draft(
    given: Mapping[str, object],
    rule_id: int | None,
    rules: list[Rule],
) -> tuple[Rule, Rule | None]:
    """Return the draft as a live rule, and the rule that it changes. Pure.

    Raises InvalidRule, NotFound.
    """
    former = next((rule for rule in rules if rule.id == rule_id), None)
    if rule_id is not None and former is None:
        raise errors.NotFound(f"there is no rule {rule_id}")
    # A new rule has the priority of a rule created by POST: directly before the default rule.
    base = former or Rule(id=UNSAVED, name="Draft", priority=DEFAULT_PRIORITY - 1)
    try:
        values = rule_json.read_body(given, rule_json.RuleFields)
        drafted = rule_json.need_sound(rule_json.rule_from(values, base))
    except errors.InvalidRule as e:
        raise errors.InvalidRule(f"rule.{e}") from e
    return replace(drafted, state="published", enabled=True), former


async def _selected(
    source: Source,
    seller_id: int,
    now: datetime,
    selection: Selection,
    sample: Sample | None,
) -> int:
    bound: dict[str, object] = {"seller": seller_id, "now": now}
    where = condition_of(selection, bound, "d")
    if sample is not None:
        where = f"{among('c.id', sample)} AND {where}"
    counted = f"SELECT count(*) FROM card c WHERE c.seller_id = :seller AND {ON_SALE} AND {where}"
    [[count]] = await rows_of(source)(counted, bound)
    return int(count)
