"""Values the lines of an offer by rules, facts and budgets. Pure.

Expensive cards are valued before cheap cards, and so get the budgets and the limits of copies
first. So the result does not depend on the order of the lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cardsync.buying.engine.buy_rules import GRADES, Base, Budget, BulkPrice, BuyRule, Step
from cardsync.buying.engine.wanted_lines import (
    Bought,
    BudgetLeft,
    KnownPrice,
    LineFacts,
    PriceTaken,
    Reason,
    Spent,
    ValuedLine,
    WantedLine,
    Why,
)
from cardsync.prices.engine.rules import WHOLE_BP, down_to_cent

# The key of the budget for all rules together.
WHOLE_SHOP: Final = -1
NOTHING_SPENT: Final = Spent()
Facted = tuple[WantedLine, LineFacts]


def left_of(budget: Budget, spent: Spent = NOTHING_SPENT) -> BudgetLeft:
    """Return the amounts that an offer may use: the budget's limit for an offer, or the rest of its
    limit for a day if that is less.
    """
    return BudgetLeft(
        _least(budget.offer_cash, budget.day_cash, spent.cash),
        _least(budget.offer_credit, budget.day_credit, spent.credit),
    )


def _least(offer: int | None, day: int | None, spent: int) -> int | None:
    today = None if day is None else max(day - spent, 0)
    limits = [limit for limit in (offer, today) if limit is not None]
    return min(limits, default=None)


class _Price(NamedTuple):
    """The price of a copy before `stock_steps` lower it. They do not lower the price of bulk."""

    sells_for: int
    cash: int
    credit: int
    is_bulk: bool
    taken: PriceTaken


class _Told:
    """Collects the steps of a line's explanation, unless the explanation is not wanted, as for the
    lines of a large collection that are not on the page.
    """

    def __init__(self, is_wanted: bool) -> None:
        self.is_wanted = is_wanted
        self.why: tuple[Why, ...] = ()

    def tell(
        self,
        kind: str,
        cash: int | None,
        credit: int | None,
        *used: int | str,
    ) -> None:
        if self.is_wanted:
            self.why += (Why(kind, cash, credit, used),)


class _Known(NamedTuple):
    """A rule, with its parts in the form in which lines look them up."""

    rule: BuyRule
    shares: dict[str, int]
    bands: list[int]
    days: list[int]
    stock: list[int]

    @classmethod
    def of(cls, rule: BuyRule) -> _Known:
        return cls(
            rule,
            dict(rule.conditions),
            [band.start for band in rule.bands],
            [step.start for step in rule.days_steps],
            [step.start for step in rule.stock_steps],
        )


@dataclass(slots=True)
class _Purse:
    """The rest of the budgets, and the copies of each card that the shop will have, while lines are
    valued.
    """

    left: dict[int, BudgetLeft]
    held: dict[tuple[int, str], int] = field(default_factory=dict)

    def affordable(
        self,
        rule: BuyRule,
        cash: int,
        credit: int,
        copies: int,
    ) -> tuple[int, int]:
        """Return how many of the copies can be paid in cash, and how many in credit."""
        if not self.left:
            return copies if cash > 0 else 0, copies if credit > 0 else 0
        limits = [self.left[key] for key in (WHOLE_SHOP, rule.id) if key in self.left]
        in_cash = min([copies, *(_times(limit.cash, cash) for limit in limits)])
        in_credit = min([copies, *(_times(limit.credit, credit) for limit in limits)])
        return in_cash, in_credit

    def take(self, rule: BuyRule, cash: int, credit: int) -> None:
        for key in {WHOLE_SHOP, rule.id} & self.left.keys() if self.left else ():
            left = self.left[key]
            self.left[key] = BudgetLeft(_less(left.cash, cash), _less(left.credit, credit))


def _times(limit: int | None, price: int) -> int:
    """Return how many copies with this price a limit allows; 0 for a price of 0, because such
    copies are not bought.
    """
    if price <= 0:
        return 0
    return 1 << 60 if limit is None else limit // price


def _less(limit: int | None, amount: int) -> int | None:
    return None if limit is None else limit - amount


def value_lines(
    lines: Sequence[Facted],
    rules: Iterable[BuyRule],
    budgets: Mapping[int, BudgetLeft],
    explained: Container[int] | None = None,
) -> list[ValuedLine]:
    """Value the lines, and return the values in the order of `lines`.

    `budgets` has the rest of each rule's budget by the rule's ID, and the rest of the shop's budget
    by `WHOLE_SHOP`; a missing budget means no limit. `explained` has the IDs of the lines to
    explain; None means all lines.
    """
    by_id: dict[int | None, _Known] = {rule.id: _Known.of(rule) for rule in rules}
    told = [_Told(explained is None or line.line in explained) for line, _ in lines]
    priced = [
        _priced(line, facts, by_id.get(facts.rule_id), steps)
        for (line, facts), steps in zip(lines, told, strict=True)
    ]
    worth = [-price.sells_for if isinstance(price, _Price) else 0 for price in priced]
    order = sorted(range(len(lines)), key=lambda at: (worth[at], lines[at][0].line))
    limits = {key: left for key, left in budgets.items() if left != BudgetLeft()}
    purse = _Purse(limits)
    valued: dict[int, ValuedLine] = {}
    for at in order:
        line, facts = lines[at]
        price = priced[at]
        if isinstance(price, ValuedLine):
            valued[at] = price
        else:
            known = by_id[facts.rule_id]
            valued[at] = _buy(line, facts, known, price, purse, told[at])
    return [valued[at] for at in range(len(lines))]


def _priced(
    line: WantedLine,
    facts: LineFacts,
    known: _Known | None,
    steps: _Told,
) -> _Price | ValuedLine:
    """Return the price of one copy, or the value of a line that the rule does not buy."""
    if known is None:
        return _refused(line, None, "no_rule", steps)
    rule = known.rule
    steps.tell("rule", None, None, rule.name)
    if rule.broken:
        return _refused(line, rule, "broken_rule", steps)
    taken = price_taken(line, facts, rule.base, known.shares)
    if taken is None:
        return _refused(line, rule, "no_price", steps)
    if (taken.source, taken.condition, taken.finish) == (rule.base, "NM", line.finish):
        steps.tell("base", None, None, rule.base, taken.amount)
    else:
        finish = taken.finish if taken.finish != line.finish else ""
        used = (rule.base, taken.source, taken.condition, finish, taken.amount)
        steps.tell("other_base", None, None, *used)
    share = known.shares.get(line.condition)
    if share is None:
        return _refused(line, rule, "condition", steps, taken)
    if taken.condition == "NM":
        sells_for = taken.amount * share // WHOLE_BP
        steps.tell("condition", None, None, line.condition, share, sells_for)
    else:
        other = known.shares[taken.condition]
        sells_for = taken.amount * share // other
        told = (line.condition, share, taken.condition, other, sells_for)
        steps.tell("other_condition", None, None, *told)
    if rule.bulk_below is not None and sells_for < rule.bulk_below:
        return _bulk_price(line, facts, rule, sells_for, taken, steps)
    return _band_price(facts, known, sells_for, taken, steps)


def price_taken(
    line: WantedLine,
    facts: LineFacts,
    base: Base,
    shares: Mapping[str, int],
) -> PriceTaken | None:
    """Return the first known price of these, or None: the base price of a Near Mint copy; the
    market price of a Near Mint copy; the base price of a copy in another condition of `shares`; the
    market price of such a copy. If several other conditions have that price, the condition nearest
    to the line's is used.

    A price of another finish is used only if a person chose that finish.
    """
    finish = line.price_of or line.finish
    own = KnownPrice("NM", line.finish, facts.target, facts.market, facts.low)
    known = [each for each in (own, *facts.others) if each.finish == finish]
    asked = GRADES.index(line.condition)

    def distance(each: KnownPrice) -> tuple[bool, int]:
        return each.condition != "NM", abs(GRADES.index(each.condition) - asked)

    sources: tuple[Base, ...] = (base, "market") if base != "market" else ("market",)
    priced = [
        (distance(each), place, PriceTaken(source, each.condition, finish, amount))
        for each in known
        if each.condition == "NM" or shares.get(each.condition)
        for place, source in enumerate(sources)
        if (amount := getattr(each, source)) is not None
    ]
    return min(priced, key=lambda one: (one[0][0], one[1], one[0][1]), default=(0, 0, None))[2]


def _bulk_price(
    line: WantedLine,
    facts: LineFacts,
    rule: BuyRule,
    sells_for: int,
    taken: PriceTaken,
    steps: _Told,
) -> _Price | ValuedLine:
    price = bulk_price_of(rule.bulk, facts.rarity, facts.game)
    if price is None:
        return _refused(line, rule, "no_bulk_price", steps, taken)
    cash, credit = down_to_cent(price.cash), down_to_cent(price.credit)
    steps.tell("bulk", cash, credit, rule.bulk_below or 0, price.rarity, price.game)
    return _Price(sells_for, cash, credit, True, taken)


def bulk_price_of(
    prices: Iterable[BulkPrice],
    rarity: str,
    game: str,
) -> BulkPrice | None:
    """Return the most specific bulk price for the card. A price for its rarity is more specific
    than a price for its game.
    """
    fitting = [
        price
        for price in prices
        if price.rarity.lower() in ("", rarity.lower()) and price.game.lower() in ("", game.lower())
    ]
    return max(fitting, key=lambda price: (price.rarity != "", price.game != ""), default=None)


def _band_price(
    facts: LineFacts,
    known: _Known,
    sells_for: int,
    taken: PriceTaken,
    steps: _Told,
) -> _Price:
    rule = known.rule
    band = rule.bands[bisect_right(known.bands, sells_for) - 1]
    cash = sells_for * band.cash_bp // WHOLE_BP
    credit = sells_for * band.credit_bp // WHOLE_BP
    steps.tell("band", cash, credit, band.start, band.cash_bp, band.credit_bp)
    for listed in rule.lists:
        if listed.list_id in facts.lists:
            cash, credit = _changed(cash, credit, listed.change_bp)
            steps.tell("list", cash, credit, listed.name, listed.change_bp)
            break
    slow = _step_at(rule.days_steps, known.days, facts.days_to_sell)
    if slow is not None:
        cash, credit = _changed(cash, credit, -slow.less_bp)
        days = facts.days_to_sell or 0
        steps.tell("days", cash, credit, days, slow.start, slow.less_bp)
    return _Price(sells_for, cash, credit, False, taken)


def _changed(cash: int, credit: int, change_bp: int) -> tuple[int, int]:
    share = WHOLE_BP + change_bp
    return cash * share // WHOLE_BP, credit * share // WHOLE_BP


def _step_at(
    steps: Sequence[Step],
    starts: Sequence[int],
    reached: int | None,
) -> Step | None:
    """Return the last step whose start is at most `reached`; None if there is none."""
    if reached is None:
        return None
    at = bisect_right(starts, reached)
    return steps[at - 1] if at else None


def _refused(
    line: WantedLine,
    rule: BuyRule | None,
    reason: Reason,
    steps: _Told,
    taken: PriceTaken | None = None,
) -> ValuedLine:
    return ValuedLine(line.line, rule, (), line.copies, reason, steps.why, taken)


def _buy(
    line: WantedLine,
    facts: LineFacts,
    known: _Known,
    price: _Price,
    purse: _Purse,
    steps: _Told,
) -> ValuedLine:
    """Buy copies of a line at the price of each stock step, as far as the rule's limit of copies
    and the budgets allow.
    """
    rule = known.rule
    key = (line.product_id, line.finish)
    held = purse.held.get(key, facts.in_stock + facts.on_order)
    bought: tuple[Bought, ...] = ()
    left, reason = line.copies, None
    while left and reason is None:
        step = None if price.is_bulk else _step_at(rule.stock_steps, known.stock, held)
        cash, credit = _in_cents(price, step)
        room = _room(known, held, left, price.is_bulk)
        if step is not None and room:
            steps.tell("stock", cash, credit, held, step.start, step.less_bp)
        parts, taken, reason = _paid(rule, cash, credit, room, purse)
        if not room:
            reason = "limit"
            steps.tell("limit", None, None, held, rule.most_copies or 0)
        elif reason == "budget":
            steps.tell("budget", None, None)
        bought += parts
        held += taken
        left -= taken
    purse.held[key] = held
    return ValuedLine(line.line, rule, bought, left, reason, steps.why, price.taken)


def _in_cents(price: _Price, step: Step | None) -> tuple[int, int]:
    cash, credit = price.cash, price.credit
    if step is not None:
        cash, credit = _changed(cash, credit, -step.less_bp)
    return down_to_cent(cash), down_to_cent(credit)


def _room(
    known: _Known,
    held: int,
    left: int,
    is_bulk: bool,
) -> int:
    """Return how many copies the rule buys before its next stock step or its limit of copies."""
    room = left
    most = known.rule.most_copies
    if most is not None:
        room = min(room, max(most - held, 0))
    if is_bulk or not known.stock:
        return room
    next_at = bisect_right(known.stock, held)
    return min(room, known.stock[next_at] - held) if next_at < len(known.stock) else room


def _paid(
    rule: BuyRule,
    cash: int,
    credit: int,
    copies: int,
    purse: _Purse,
) -> tuple[tuple[Bought, ...], int, Reason | None]:
    """Pay for copies with the same price: first copies that the budgets allow in cash and in
    credit, then copies that they allow in only one way. Return the bought copies, their number, and
    the reason if not all are bought.
    """
    if cash <= 0 and credit <= 0:
        return (), 0, "pays_nothing"
    in_cash, in_credit = purse.affordable(rule, cash, credit, copies)
    both, most = min(in_cash, in_credit), max(in_cash, in_credit)
    parts: tuple[Bought, ...] = (Bought(both, cash, credit),) if both else ()
    if most > both:
        one_way = (cash, None) if in_cash > in_credit else (None, credit)
        parts += (Bought(most - both, *one_way),)
    purse.take(rule, in_cash * cash, in_credit * credit)
    return parts, most, None if most == copies else "budget"
