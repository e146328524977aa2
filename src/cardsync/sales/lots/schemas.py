"""The shapes of lots, profit and the fee audit, as the API and the pages show them. Pure."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from operator import attrgetter
from typing import Annotated, Literal

import msgspec

from cardsync.platform.kit.csv_table import CsvTable
from cardsync.platform.kit.struct_rows import Reads
from cardsync.sales.lots.lot_csv import RejectedLotRow
from cardsync.sales.lots.models import Source

ProfitBy = Literal["day", "week", "month", "game", "rule", "pricing_rule"]
PricedBy = Literal["rule", "no_rule", "unknown"]


class LotBody(msgspec.Struct):
    """`cost` is that of each copy; null is unknown. `source_id` is an offer's or a file's id, and
    `rule_id` that of the buy rule whose price was paid.
    """

    id: int
    marketplace_id: int
    quantity: int
    remaining: int
    """The copies that are left"""
    cost: Annotated[str | None, Reads(lambda cost: None if cost is None else f"{cost:.2f}")]
    bought_on: date
    source: Source
    """offer, file or hand"""
    source_id: int | None
    """The offer or the file"""
    rule_id: int | None


class LotPage(msgspec.Struct):
    """`after` begins the next page; it is null on the last one."""

    lots: list[LotBody]
    after: int | None


class LotsAdded(msgspec.Struct):
    ids: list[int]


class FileAdded(msgspec.Struct):
    """`known_before` says that the same file was here: then nothing is added."""

    lots: int
    """How many lots were added"""
    known_before: bool
    """The same file was here before: nothing is added"""
    rejected: list[RejectedLotRow]
    read_as: str
    """How the file is written, where that is not the usual way: separated by ;"""


class CostOfCard(msgspec.Struct):
    """`copies` are left in lots, for `known` of them the cost is known: `cost` each on average."""

    copies: int
    """The copies that are left in lots"""
    known: int
    """The copies whose cost is known"""
    cost: str | None
    """The average cost of one of them, in USD; null: not known"""
    oldest: date | None
    """The day when the oldest of them was bought"""


class Profit(msgspec.Struct):
    """`received` is what buyers paid less refunds. `costed` of the `pieces` have a known cost: the
    counted amounts are theirs alone, and the profit is `counted_received` less `counted_fees`,
    `counted_postage` and `cost`; null if none has a cost.
    """

    pieces: int
    costed: int
    received: str
    """Price and shipping less refunds, in USD"""
    fees: str
    postage: str
    """The cost of sending, in USD"""
    cost: str
    """The cost of the cards, in USD"""
    profit: str | None
    counted_received: str
    """The part of `received` of the copies whose cost is known, in USD"""
    counted_fees: str
    """The part of `fees` of the copies whose cost is known, in USD"""
    counted_postage: str
    """The part of `postage` of the copies whose cost is known, in USD"""
    fees_estimated: str
    """The part of `fees` that the schedule expects, because no report has them yet, in USD"""
    orders_without_items: int
    """The orders whose items are not known; what they brought is received, and not counted"""

    @property
    def not_counted(self) -> Decimal:
        """Return the amount received for copies without a cost."""
        return Decimal(self.received) - Decimal(self.counted_received)


class CardWithoutCost(msgspec.Struct):
    """A sold card of whose copies some have no cost."""

    marketplace_id: int
    product_name: str | None
    set_name: str | None
    condition: str | None
    copies: int
    """The sold copies without a cost"""
    received: str
    """The amount that buyers paid for them, less refunds, in USD"""


class ProfitRow(msgspec.Struct):
    """`start` is the first day of a period, `game` the name of a game. By pricing rule, `priced_by`
    says whether a rule set the price at which the copies were sold; `rule` is null once it is gone.
    """

    start: date | None
    game: str | None
    profit: Profit
    """The sales, costs and profit of the sold copies"""
    priced_by: PricedBy | None = None
    """By pricing rule: rule, no_rule or unknown"""
    rule_id: int | None = None
    """The pricing rule that set the price"""
    rule: str | None = None
    """The name of that rule; null: deleted"""


class RuleReturn(msgspec.Struct):
    """A buy rule: what it paid, for copies whose cost is known, and what the sold ones brought.
    `return_rate` is the profit by the cost of what was sold; `days_to_sell` is a median.
    """

    rule_id: int
    bought: int
    """The copies that it bought"""
    paid: str
    """The amount that it paid, in USD"""
    sold: int
    cost: str
    """The cost of the sold copies, in USD"""
    profit: str
    return_rate: str | None
    """The profit by the cost of what was sold"""
    days_to_sell: float | None


class ProfitSummary(msgspec.Struct):
    """`rows` is empty by buy rule (`by=rule`), and `rules` otherwise."""

    by: ProfitBy
    """day, week, month, game, rule (buy rule) or pricing_rule"""
    first: date
    """The first day"""
    last: date
    """The last day"""
    rows: list[ProfitRow]
    """The periods, games or pricing rules; empty by buy rule"""
    rules: list[RuleReturn]
    """The buy rules; empty otherwise"""
    total: Profit | None
    """All of it; null by buy rule"""


class LineProfit(msgspec.Struct):
    """The profit of a line of an order; `fees_reported` says that the payments report has them."""

    item_id: int
    fees_reported: bool
    """The payments report has the fees"""
    profit: Profit
    """The sales, costs and profit of the item"""


class FeeDifference(msgspec.Struct):
    """`difference` is what was taken above what `rule` of the schedule expects."""

    order_id: int
    order_number: str
    order_date: date | None
    expected: str
    """The fee that the schedule of fees expects, in USD"""
    taken: str
    difference: str
    rule: str
    """The rule of the schedule of fees"""


class FeeMonth(msgspec.Struct):
    month: date
    orders: int
    expected: str
    """The fees that the schedule of fees expects, in USD"""
    taken: str
    difference: str


class FeeAudit(msgspec.Struct):
    """`claim` is a text about the orders that were charged too much; empty if there is none.
    `reports` are months whose sales report is here: their fees were estimated before.
    """

    months: list[FeeMonth]
    """The fees by month"""
    differences: list[FeeDifference]
    """The orders whose fees are not as expected"""
    left_out: int
    claim: str
    """A text about the orders that were charged too much; empty: none was"""
    reports: list[FeeMonth] = []
    """The fees of months with a sales report beside their estimate"""


class PaymentsAdded(msgspec.Struct):
    """`changed` counts orders whose fees are new or other ones."""

    orders: int
    changed: int
    """Orders whose fees are new or other ones"""
    rejected: list[RejectedLotRow]
    read_as: str
    """How the file is written, where that is not the usual way: separated by ;"""


def cents(amount: Decimal) -> str:
    return f"{amount.quantize(Decimal('0.01'), ROUND_HALF_UP):f}"


def profit_of(
    pieces: int,
    costed: int,
    bare: int,
    received: Decimal,
    fees: Decimal,
    estimated: Decimal,
    postage: Decimal,
    cost: Decimal,
    counted_received: Decimal,
    counted_fees: Decimal,
    counted_postage: Decimal,
    profit: Decimal,
) -> Profit:
    """Profit that holds for no copy is unknown, unless no copy was kept by its buyer."""
    return Profit(
        pieces,
        costed,
        cents(received),
        cents(fees),
        cents(postage),
        cents(cost),
        None if (pieces or bare) and not costed else cents(profit),
        cents(counted_received),
        cents(counted_fees),
        cents(counted_postage),
        cents(estimated),
        bare,
    )


def profit_as_csv(summary: ProfitSummary) -> bytes:
    """Return the rows or the rules as a CSV."""
    if summary.by == "rule":
        return CsvTable(RuleReturn.__struct_fields__).file(summary.rules)
    keys = ("priced_by", "rule_id", "rule") if summary.by == "pricing_rule" else ("start", "game")
    figures = {name: attrgetter(f"profit.{name}") for name in Profit.__struct_fields__}
    return CsvTable((*keys, *figures), **figures).file(summary.rows)
