"""A year of a shop's life, made of a seed: its sales, and what the marketplace says of them on
any day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from cardsync.sales.orders.shipping_type import shipping_type

Row = dict[str, Any]
CARDS = [
    (9000 + n, f"Card {n}", ("Magic", "Pokemon")[n % 2], Decimal(f"{(25 + n * n) / 100:.2f}"))
    for n in range(60)
]
THRESHOLD = Decimal(50)


@dataclass(frozen=True)
class Sale:
    """`ships`, `cancelled`, `refunded` and `rated` are days; an order that is cancelled never
    ships.
    """

    number: str
    buyer: str
    placed: date
    lines: tuple[tuple[int, str, str, Decimal, int], ...]
    method: str
    tracking: str
    ships: date
    cancelled: date | None
    refunded: date | None
    refund: Decimal
    rated: date | None
    rating: int

    @property
    def product(self) -> Decimal:
        return sum((price * quantity for *_, price, quantity in self.lines), Decimal())

    @property
    def total(self) -> Decimal:
        return self.product + Decimal("1.31")

    def is_refunded(self, day: date) -> bool:
        return self.refunded is not None and self.refunded <= day

    def has_shipped(self, day: date) -> bool:
        return self.ships <= day and self.cancelled is None

    def status(self, day: date) -> str:
        if self.cancelled is not None and self.cancelled <= day:
            return "Canceled"
        if self.has_shipped(day):
            return (
                "Shipped - In Transit"
                if day < self.ships + timedelta(days=4)
                else "Shipped - Delivered"
            )
        return "Processing" if day == self.placed else "Ready to Ship"

    # As uploads say it.

    def order(self, day: date) -> Row:
        return {
            "order_number": self.number, "buyer_name": self.buyer,
            "order_date": f"{self.placed:%m/%d/%Y}", "status": self.status(day),
            "product_amt": str(self.product), "shipping_amt": "1.31", "total_amt": str(self.total),
        }  # fmt: skip

    def items(self) -> Iterator[Row]:
        for sku, name, line, price, quantity in self.lines:
            yield {
                "order_number": self.number, "sku_id": sku, "product_name": name,
                "product_line": line, "quantity": quantity,
                "unit_price": str(price),
            }  # fmt: skip

    def shipping(self, day: date) -> Row:
        tracking = self.tracking if self.has_shipped(day) else ""
        return {
            "order_number": self.number,
            "shipping_method": self.method,
            "tracking_number": tracking,
        }

    def refund_row(self) -> Row:
        kind = "full" if self.refund == self.total else "partial"
        return {"order_number": self.number, "total_amt": str(self.refund), "refund_type": kind}

    def feedback(self) -> Row:
        return {"order_number": self.number, "rating": self.rating}

    # As it must be read.

    def told(self, day: date) -> Row:
        status = self.status(day)
        tracking = self.tracking if self.has_shipped(day) else ""
        return {
            "buyer_name": self.buyer, "order_date": self.placed.isoformat(),
            "status": "Cancelled" if status == "Canceled" else status,
            "total_amt": str(self.total),
            "shipping_type": shipping_type(self.method, tracking, self.total, THRESHOLD),
            "refund_amt": str(self.refund) if self.is_refunded(day) else None,
            "feedback_rating": self.rating if self.rated is not None and self.rated <= day else None,
            "item_count": sum(quantity for *_, quantity in self.lines),
            "items": sorted(
                (name, str(price), quantity) for _, name, _, price, quantity in self.lines
            ),
        }  # fmt: skip


def sales(chance: Random, first: date, days: int) -> list[Sale]:
    """More of them on some days than on others; some buyers come back."""
    made: list[Sale] = []
    for day in (first + timedelta(days=n) for n in range(days)):
        for _ in range(chance.choice((0, 0, 1, 1, 2, 4))):
            made.append(_sale(chance, day, len(made)))
    return made


def _sale(chance: Random, day: date, number: int) -> Sale:
    cards = chance.sample(CARDS, chance.choice((1, 1, 2, 3, 5)))
    lines = tuple((*card, chance.choice((1, 1, 1, 4))) for card in cards)
    total = sum((price * quantity for *_, price, quantity in lines), Decimal("1.31"))

    def later(share: float, most: int) -> date | None:
        return day + timedelta(days=chance.randint(1, most)) if chance.random() < share else None

    return Sale(
        number=f"5EED-{chance.getrandbits(24):06X}-{number:05X}",
        buyer=f"Test Buyer {chance.randrange(80)}",
        placed=day,
        lines=lines,
        method=chance.choice(("Standard", "Standard", "Standard", "Expedited")),
        tracking=f"9400{number:08}" if chance.random() < 0.3 else "",
        ships=day + timedelta(days=chance.randint(1, 6)),
        cancelled=later(0.05, 3),
        refunded=later(0.06, 40),
        refund=chance.choice((total, Decimal("1.00"), Decimal("0.00"))),
        rated=later(0.5, 30),
        rating=chance.randint(1, 5),
    )
