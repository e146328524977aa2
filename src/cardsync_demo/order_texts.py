"""Writes the demo's order files: the exports that a marketplace makes today for a shop that has
sold the demo's inventory for a year.

For the same inventory and day the texts are always the same. People, addresses and sums are
invented. One line of the order list is broken on purpose.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from cardsync_demo import demo_catalog, price_walk

ORDERS = 420
BUYERS = 190
# Orders that are younger than WAITING days wait to be shipped; those that are younger than
# ON_THE_WAY days are on the way.
WAITING, ON_THE_WAY = 2, 9
# Order CANCELED is canceled, and so is every order at this interval after it.
CANCELED, CANCELED_EVERY = 17, 97
FEES = Decimal("0.13")
PLACES = [
    ("Portland", "OR", "97205"),
    ("Austin", "TX", "78701"),
    ("Boston", "MA", "02108"),
    ("Tampa", "FL", "33602-1234"),
]
LIST = "Order #,Buyer Name,Order Date,Status,Shipping Type,Product Amt,Shipping Amt,Total Amt,Buyer Paid,Carrier Information"
SHEET = "Product Line,Product Name,Condition,Number,Set,Rarity,Quantity,Main Photo URL,Set Release Date,SkuId,Order Quantity"
SHIPPING = (
    "Order #,FirstName,LastName,Address1,Address2,City,State,PostalCode,Country,Order Date,Product Weight,"
    "Shipping Method,Item Count,Value Of Products,Shipping Fee Paid,Tracking #,Carrier"
)
REFUNDS = "order_number,total_amt,status,refund_type,refund_origin,refund_reason"
SALES = "date_from,date_to,gross_sales,order_count,product_amount,shipping_amount,total_fees,net_sales,net_sales_minus_fees"


@dataclass(frozen=True)
class Order:
    number: str
    buyer: int
    day: date
    age: int
    status: str
    expedited: bool
    tracked: bool
    items: list[tuple[dict[str, str], int]]

    @property
    def products(self) -> Decimal:
        """Return the sum of the items at their prices on the order's day."""
        prices = ((demo_catalog.amounts_at(row, self.age), count) for row, count in self.items)
        return sum((then[demo_catalog.PRICE] * count for then, count in prices), Decimal())

    @property
    def total(self) -> Decimal:
        return self.products + self.shipping

    @property
    def shipping(self) -> Decimal:
        return (
            Decimal("8.99")
            if self.expedited
            else Decimal("4.49")
            if self.tracked
            else Decimal("1.31")
        )

    @property
    def count(self) -> int:
        return sum(count for _, count in self.items)


def files(today: date) -> dict[str, str]:
    """Return the texts of the files by name."""
    orders = _orders(today)
    return {
        "order-list.csv": _table(LIST, map(_listed, orders))
        + '"D0D0CAFE-000BAD-0000","cut off in the middle\n',
        "pull-sheet.csv": _table(SHEET, _pulled(orders))
        + f"Orders Contained in Pull Sheet:,{'|'.join(order.number for order in orders)}\n",
        "shipping-export.csv": _table(SHIPPING, map(_shipped, orders)),
        "refunds.csv": _table(REFUNDS, _refunded(orders)),
        "feedback.csv": _table("order_number,rating,comment", _rated(orders)),
        "sales-summary.csv": _table(SALES, _summed(orders, today)),
    }


def _orders(today: date) -> list[Order]:
    chance = Random("cardsync demo")  # noqa: S311 - the same shop every time
    by_sku = {row["TCGplayer Id"]: row for row in demo_catalog.whole_rows() if _for_sale(row)}
    stock = list(by_sku.values())
    return [_order(chance, stock, n, today) for n in range(ORDERS)]


def _order(
    chance: Random,
    stock: Sequence[dict[str, str]],
    n: int,
    today: date,
) -> Order:
    # The shop has grown, so most of its orders are from the last months.
    age = int((price_walk.DAYS - 1) * (n / ORDERS) ** 1.3)
    number = f"D0D0CAFE-{chance.getrandbits(24):06X}-{chance.getrandbits(20):05X}"
    items = [
        (row, 1 + (chance.random() < 0.15))
        for row in chance.sample(stock, 1 + int(chance.expovariate(0.7)))
    ]
    return Order(
        number,
        int(BUYERS * chance.random() ** 1.6),
        today - timedelta(days=age),
        age,
        _status(n, age),
        n % 9 == 4,
        n % 5 == 2,
        items,
    )


def _status(n: int, age: int) -> str:
    if n % CANCELED_EVERY == CANCELED:
        return "Canceled"
    if age < WAITING:
        return "Ready to Ship"
    return "Shipped - In Transit" if age < ON_THE_WAY else "Shipped - Delivered"


def _for_sale(row: dict[str, str]) -> bool:
    quantity, price = row["Total Quantity"], row[demo_catalog.PRICE]
    in_stock = quantity.isdigit() and quantity != "0"
    cheap = bool(price) and Decimal(price) < 100
    # Custom listings are left out, because a pull sheet does not show which of them was sold.
    usual = not row["Title"] and row["Product Line"] != "Sports Cards"
    return in_stock and cheap and usual


def _listed(order: Order) -> list[object]:
    day = f"{order.day:%A, %d %B %Y}"
    kind = "Expedited" if order.expedited else "Standard"
    amounts = [
        _money(order.products),
        order.shipping,
        _money(order.total),
    ]
    return [
        order.number,
        f"Demo Buyer {order.buyer:03}",
        day,
        order.status,
        kind,
        *amounts,
        "True",
        "",
    ]


def _pulled(orders: Sequence[Order]) -> Iterable[list[object]]:
    found: dict[str, tuple[dict[str, str], list[tuple[str, int]]]] = {}
    for order in orders:
        for row, count in order.items:
            found.setdefault(row["TCGplayer Id"], (row, []))[1].append((order.number, count))
    for sku, (row, pairs) in found.items():
        names = [
            row[name]
            for name in (
                "Product Line",
                "Product Name",
                "Condition",
                "Number",
                "Set Name",
                "Rarity",
            )
        ]
        numbers = " | ".join(f"{number}:{count}" for number, count in pairs)
        yield [
            *names,
            sum(count for _, count in pairs),
            "",
            "01/01/2025 00:00:00",
            sku,
            numbers,
        ]


def _shipped(order: Order) -> list[object]:
    method = "Expedited" if order.expedited else "Standard (7-10 days)"
    tracking = f"9400{order.buyer:018}" if order.tracked else ""
    person = ["Demo", f"Buyer {order.buyer:03}", f"{order.buyer + 1} Example Street", ""]
    day = f"{order.day.month}/{order.day.day}/{order.day.year}"
    weight = f"{order.count * 0.07:.2f}"
    fees = [_money(order.products), order.shipping]
    place = PLACES[order.buyer % len(PLACES)]
    return [
        order.number,
        *person,
        *place,
        "US",
        day,
        weight,
        method,
        order.count,
        *fees,
        tracking,
        "USPS" if tracking else "",
    ]


def _refunded(orders: Sequence[Order]) -> Iterable[list[object]]:
    for n, order in enumerate(orders):
        if order.status == "Canceled":
            reason = "canceled by the buyer"
            yield [order.number, _money(order.total), "Refunded", "full", "marketplace", reason]
        elif n % 50 == 30:
            half = _money(order.products / 2)
            yield [order.number, half, "Refunded", "partial", "seller", "a bent corner"]


def _rated(orders: Sequence[Order]) -> Iterable[list[object]]:
    comments = ["Fast and well packed", "", "As described, thanks!", "One card was bent"]
    return (
        [
            order.number,
            5 if n % 4 < 3 else 3,
            comments[n % 4],
        ]
        for n, order in enumerate(orders[12::3])
    )


def _summed(orders: Sequence[Order], today: date) -> Iterable[list[object]]:
    """Yield the sums of orders for each whole month since the shop opened."""
    months: dict[date, list[Order]] = defaultdict(list)
    for order in orders:
        if order.status != "Canceled":
            months[order.day.replace(day=1)].append(order)
    opened = today - timedelta(days=price_walk.DAYS - 1)
    for first in sorted(months, reverse=True):
        ends = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        if first < opened or ends >= today:
            continue
        products = sum((order.products for order in months[first]), Decimal())
        shipping = sum((order.shipping for order in months[first]), Decimal())
        gross = products + shipping
        fees = (gross * FEES).quantize(Decimal("0.01"))
        count = len(months[first])
        yield [first, ends, gross, count, products, shipping, fees, gross, gross - fees]


def _money(amount: Decimal) -> str:
    return f"{amount:.2f}"


def _table(header: str, rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return f"{header}\n{out.getvalue()}"
