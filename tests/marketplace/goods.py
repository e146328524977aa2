"""Makes the cards and orders of the simulated marketplace: the same ones for the same numbers. Pure.

Money is in cents. Nobody's name or address is real.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import date, timedelta

FIRST_ID = 8_500_001
LINES = ("Magic", "Pokemon", "YuGiOh", "Lorcana TCG", "Flesh & Blood TCG")
_SETS = ("Aetherdrift", "Base Set", "Foundations", "Rising Tides", "Silver Dawn", "Wild Frontier")
_FIRST = ("Amber", "Ancient", "Basri's", "Crystal", "+2", "Élan", 'The "Iron"', "Silent", "Storm")
_SECOND = ("Jaguar", "Lieutenant", "Mace", "Dragon", "Lotus, Black", "Harbor", "Oracle", "Golem")
CONDITIONS = (
    "Near Mint", "Lightly Played", "Near Mint Foil", "Moderately Played", "Near Mint Holofoil",
    "Near Mint - Japanese", "Damaged",
)  # fmt: skip
_STATUSES = ("Ready to Ship", "Completed - Paid", "Shipped - In Transit", "Shipped - Delivered",
             "Canceled")  # fmt: skip
_CITIES = (("Testville", "OH"), ("Sampleton", "TX"), ("Mockford", "WA"))
_COMMENTS = ("Great cards", "Fast, well packed", "", "Arrived late", "As described")
OPEN = frozenset({"Ready to Ship", "Completed - Paid"})


@dataclass
class Card:
    """A SKU: `id` is the marketplace's number for it. A price of 0 means that it has none."""

    id: int
    line: str
    set_name: str
    name: str
    number: str
    rarity: str
    condition: str
    market: int
    quantity: int
    price: int


@dataclass(frozen=True)
class Refund:
    kind: str
    origin: str
    cents: int
    reason: str


@dataclass(frozen=True)
class Order:
    """`items` are pairs of a card's id and a quantity; `rating` is None without feedback."""

    number: str
    first_name: str
    last_name: str
    street: str
    city: str
    state: str
    postal_code: str
    email: str
    day: date
    status: str
    expedited: bool
    product: int
    shipping: int
    tracking: str
    items: tuple[tuple[int, int], ...]
    refund: Refund | None = None
    rating: int | None = None
    comment: str = ""

    @property
    def buyer(self) -> str:
        return f"{self.first_name} {self.last_name}"

    @property
    def total(self) -> int:
        return self.product + self.shipping


@dataclass
class Goods:
    cards: dict[int, Card]
    orders: list[Order] = field(default_factory=list)


def make(rows: int, orders: int, today: date) -> Goods:
    """Orders are newest first and spread over the 400 days before `today`."""
    draw = random.Random(20_261)
    cards = {FIRST_ID + 7 * n: _card(draw, n) for n in range(rows)}
    made = [_order(draw, n, cards, today) for n in range(orders if cards else 0)]
    return Goods(cards, sorted(made, key=lambda order: (order.day, order.number), reverse=True))


def _card(draw: random.Random, n: int) -> Card:
    line = LINES[n % len(LINES)]
    sealed = n % 40 == 39
    market = draw.randrange(5, 4_000)
    name = f"{draw.choice(_FIRST)} {draw.choice(_SECOND)}"
    return Card(
        id=FIRST_ID + 7 * n,
        line=line,
        set_name=draw.choice(_SETS),
        name=f"{name} Booster Box" if sealed else name,
        number="" if sealed else str(1 + n % 300),
        rarity="" if sealed else draw.choice("CURM"),
        condition="Unopened" if sealed else draw.choice(CONDITIONS),
        market=market,
        quantity=draw.choice((0, 0, 1, 1, 2, 4)),
        price=0 if n % 25 == 24 else max(1, market + draw.randrange(-4, 40)),
    )


def _order(draw: random.Random, n: int, cards: dict[int, Card], today: date) -> Order:
    # Two of three orders are of the last 90 days.
    age = draw.randrange(90) if n % 3 else draw.randrange(90, 400)
    status = _STATUSES[draw.randrange(2) if age < 10 else draw.randrange(2, 5)]
    ids = draw.sample(sorted(cards), k=min(len(cards), draw.randrange(1, 4)))
    items = tuple((id_, draw.choice((1, 1, 1, 2))) for id_ in ids)
    product = sum(max(1, cards[id_].price) * quantity for id_, quantity in items)
    city, state = draw.choice(_CITIES)
    refunded = status == "Canceled" or n % 17 == 0
    rated = status == "Shipped - Delivered"
    return Order(
        number=f"5EED{n % 10_000:04}-{draw.randrange(16**6):06X}-{draw.randrange(16**5):05X}",
        first_name=f"Testa{n}",
        last_name=f"Buyerly{n}",
        street=f"{n + 1} Example Street",
        city=city,
        state=state,
        postal_code=f"{draw.randrange(100_000):05}",
        email=f"buyer{n}@mail.example",
        day=today - timedelta(days=age),
        status=status,
        expedited=n % 5 == 0,
        product=product,
        shipping=0 if product >= 500 else 131,
        tracking=f"94{n:018}" if n % 4 == 0 else "",
        items=items,
        refund=_refund(n, product) if refunded else None,
        rating=(5, 5, 4, 5, 3)[n % 5] if rated else None,
        comment=_COMMENTS[n % len(_COMMENTS)] if rated else "",
    )


def _refund(n: int, product: int) -> Refund:
    if n % 2:
        return Refund("full", "seller", product, "Canceled by buyer")
    return Refund("partial", "marketplace", max(1, product // 2), "Damaged in the mail")
