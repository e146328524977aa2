"""Writes the demo's order files: what the marketplace would have exported today of a shop with the
demo's inventory.

The texts are always the same for the same inventory and day. People, addresses and sums are
invented; one line of the order list is broken on purpose.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from cardsync.processes.demo import demo_catalog

ORDERS = 40
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
    status: str
    expedited: bool
    tracked: bool
    items: list[tuple[dict[str, str], int]]

    @property
    def products(self) -> Decimal:
        return sum(
            (Decimal(row["TCG Marketplace Price"]) * count for row, count in self.items), Decimal()
        )

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
    """By file name."""
    orders = _orders(today)
    return {
        "order-list.csv": _table(LIST, map(_listed, orders))
        + '"D0D0CAFE-000BAD-0000","cut off in the middle\n',
        "pull-sheet.csv": _table(SHEET, _pulled(orders))
        + f"Orders Contained in Pull Sheet:,{'|'.join(order.number for order in orders)}\n",
        "shipping-export.csv": _table(SHIPPING, map(_shipped, orders)),
        "refunds.csv": _table(REFUNDS, _refunded(orders)),
        "feedback.csv": _table("order_number,rating,comment", _rated(orders)),
        "sales-summary.csv": _table(SALES, _summed(today)),
    }


def _orders(today: date) -> list[Order]:
    chance = Random("cardsync demo")  # noqa: S311 - the same shop every time
    with demo_catalog.INVENTORY.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        stock = [row for row in csv.DictReader(file) if _for_sale(row)]
    return [_order(chance, stock, n, today - timedelta(days=n)) for n in range(ORDERS)]


def _order(
    chance: Random,
    stock: Sequence[dict[str, str]],
    n: int,
    day: date,
) -> Order:
    number = f"D0D0CAFE-{chance.getrandbits(24):06X}-{chance.getrandbits(20):05X}"
    items = [
        (row, 1 + (chance.random() < 0.15))
        for row in chance.sample(stock, 1 + int(chance.expovariate(0.7)))
    ]
    status = (
        "Ready to Ship" if n < 4 else "Shipped - In Transit" if n < 11 else "Shipped - Delivered"
    )
    return Order(
        number,
        n % 31,
        day,
        "Canceled" if n == 17 else status,
        n % 9 == 4,
        n % 5 == 2,
        items,
    )


def _for_sale(row: dict[str, str]) -> bool:
    quantity = row["Total Quantity"] or ""
    price = row["TCG Marketplace Price"] or ""
    usual = row["Product Line"] != "Sports Cards" and None not in row
    return (
        usual
        and quantity.isdigit()
        and quantity != "0"
        and price.replace(".", "").isdigit()
        and Decimal(price) < 100
    )


def _listed(order: Order) -> list[object]:
    day = f"{order.day:%A, %d %B %Y}"
    kind = "Expedited" if order.expedited else "Standard"
    amounts = [
        _money(order.products),
        order.shipping,
        _money(order.products + order.shipping),
    ]
    return [
        order.number,
        f"Demo Buyer {order.buyer:02}",
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
    person = ["Demo", f"Buyer {order.buyer:02}", f"{order.buyer + 1} Example Street", ""]
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
    canceled = orders[17]
    bent = max(orders[20:36], key=lambda order: order.products)
    whole = _money(canceled.products + canceled.shipping)
    yield [canceled.number, whole, "Refunded", "full", "marketplace", "canceled by the buyer"]
    yield [
        bent.number,
        _money(bent.products / 2),
        "Refunded",
        "partial",
        "seller",
        "a bent corner",
    ]


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


def _summed(today: date) -> Iterable[list[object]]:
    """The last two whole months."""
    ends = today.replace(day=1) - timedelta(days=1)
    for gross, count in ((1412, 71), (1296, 64)):
        shipping = Decimal(count) * 2
        fees = Decimal(gross) * Decimal("0.13")
        yield [
            ends.replace(day=1),
            ends,
            gross,
            count,
            gross - shipping,
            shipping,
            fees,
            gross,
            gross - fees,
        ]
        ends = ends.replace(day=1) - timedelta(days=1)


def _money(amount: Decimal) -> str:
    return f"{amount:.2f}"


def _table(header: str, rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return f"{header}\n{out.getvalue()}"
