"""The schemas of lots, profit and the fee audit for the API and pages. Pure."""

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
    """`cost` is per copy; null is unknown. `source_id` is the id of the offer or file, and
    `rule_id` that of the buy rule that set the cost.
    """

    id: int
    marketplace_id: int
    quantity: int
    remaining: int
    """The copies that are not sold"""
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
    """`known_before`: the same file was added before, so nothing is added now."""

    lots: int
    """The number of added lots"""
    known_before: bool
    """The same file was added before, so nothing is added now"""
    rejected: list[RejectedLotRow]
    read_as: str
    """The format of the file, if it is unusual, such as: separated by ;"""


class CostOfCard(msgspec.Struct):
    """`copies` remain in lots. The cost of `known` of them is known and is `cost` on average."""

    copies: int
    """The copies that remain in lots"""
    known: int
    """The copies whose cost is known"""
    cost: str | None
    """The average cost of these copies, in USD; null: unknown"""
    oldest: date | None
    """The day on which the oldest of these copies was bought"""


class Profit(msgspec.Struct):
    """`received` is the buyers' payments less refunds. `costed` of the `pieces` have a known cost;
    the counted amounts cover only these. `profit` is `counted_received` less `counted_fees`,
    `counted_postage` and `cost`; null if no cost is known.
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
    """The orders without items; their payments are in `received`, but not counted"""

    @property
    def not_counted(self) -> Decimal:
        """Return the amount received for copies without a cost."""
        return Decimal(self.received) - Decimal(self.counted_received)


class CardWithoutCost(msgspec.Struct):
    """A card with sold copies of unknown cost."""

    marketplace_id: int
    product_name: str | None
    set_name: str | None
    condition: str | None
    copies: int
    """The sold copies without a cost"""
    received: str
    """The amount that buyers paid for these copies, less refunds, in USD"""


class ProfitRow(msgspec.Struct):
    """`start` is the first day of a period, `game` the name of a game. By pricing rule, `priced_by`
    is whether a rule set the price of the sold copies; `rule` is null if the rule is deleted.
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
    """The name of the pricing rule; null: the rule is deleted"""


class RuleReturn(msgspec.Struct):
    """A buy rule: the amount paid for copies of known cost, and the profit of the sold copies.
    `return_rate` is the profit divided by the cost of the sold copies; `days_to_sell` is a median.
    """

    rule_id: int
    bought: int
    """The number of copies that the rule bought"""
    paid: str
    """The amount that the rule paid, in USD"""
    sold: int
    cost: str
    """The cost of the sold copies, in USD"""
    profit: str
    return_rate: str | None
    """The profit divided by the cost of the sold copies"""
    days_to_sell: float | None


class ProfitSummary(msgspec.Struct):
    """The profit of a range of days. By buy rule (`by=rule`), `rows` is empty; otherwise, `rules`
    is empty.
    """

    by: ProfitBy
    """day, week, month, game, rule (buy rule) or pricing_rule"""
    first: date
    """The first day"""
    last: date
    """The last day"""
    rows: list[ProfitRow]
    """The periods, games or pricing rules; empty by buy rule"""
    rules: list[RuleReturn]
    """The buy rules; empty unless by buy rule"""
    total: Profit | None
    """The sums of all rows; null by buy rule"""


class LineProfit(msgspec.Struct):
    """The profit of a line of an order. `fees_reported`: the payments report has the fees."""

    item_id: int
    fees_reported: bool
    """The payments report has the fees"""
    profit: Profit
    """The sales, costs and profit of the item"""


class FeeDifference(msgspec.Struct):
    """`difference` is the charged fee less the fee that `rule` of the fee schedule expects."""

    order_id: int
    order_number: str
    order_date: date | None
    expected: str
    """The fee that the fee schedule expects, in USD"""
    taken: str
    difference: str
    rule: str
    """The rule of the fee schedule"""


class FeeMonth(msgspec.Struct):
    month: date
    orders: int
    expected: str
    """The fees that the fee schedule expects, in USD"""
    taken: str
    difference: str


class FeeAudit(msgspec.Struct):
    """`claim` is a text about the overcharged orders; empty if there are none. `reports` compares
    the fees of monthly sales reports with their estimates.
    """

    months: list[FeeMonth]
    """The fees by month"""
    differences: list[FeeDifference]
    """The orders whose fees differ from the expected fees"""
    left_out: int
    claim: str
    """A text about the overcharged orders; empty: there are none"""
    reports: list[FeeMonth] = []
    """The reported and the estimated fees of months with a sales report"""


class PaymentsAdded(msgspec.Struct):
    """`changed` counts orders with new or changed fees."""

    orders: int
    changed: int
    """The number of orders with new or changed fees"""
    rejected: list[RejectedLotRow]
    read_as: str
    """The format of the file, if it is unusual, such as: separated by ;"""


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
    """Return the sums as a `Profit`. The profit is None if no copy has a known cost, unless all
    copies were returned: then it is the negative postage.
    """
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
