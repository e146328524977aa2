"""Structs of buying: a customer's line, the facts about its card, and the shop's price for it.
Pure. Money is in ten-thousandths of a dollar.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from cardsync.buying.engine.buy_rules import Base, BuyRule

# Why copies of a line are not bought.
Reason = Literal[
    "no_rule",
    "broken_rule",
    "no_price",
    "condition",
    "no_bulk_price",
    "pays_nothing",
    "limit",
    "budget",
]
REASONS: Final[dict[Reason, str]] = {
    "no_rule": "No buy rule matches this card.",
    "broken_rule": "The search of its buy rule doesn't work anymore.",
    "no_price": "No market price. Enter one.",
    "condition": "The rule does not buy this condition.",
    "no_bulk_price": "The card is bulk, and the rule has no bulk price for it.",
    "pays_nothing": "Below your minimum (less than a cent).",
    "limit": "The shop has as many copies as the rule allows.",
    "budget": "The budget is used up.",
}


class WantedLine(NamedTuple):
    """A line that a customer brings. `line` is the caller's own id of it, once in an offer.

    `condition` is NM, LP, MP, HP or DMG; `sku` is the marketplace's id, where it is known. A
    missing `finish` is the product's own. A person may choose that the price of another finish
    counts: `price_of`.
    """

    line: int
    product_id: int
    condition: str
    finish: str
    language: str
    copies: int
    sku: int | None = None
    finish_said: bool = True
    price_of: str | None = None


class KnownPrice(NamedTuple):
    """Holds the prices of the line's card in another condition or finish."""

    condition: str
    finish: str
    target: int | None = None
    market: int | None = None
    low: int | None = None


class PriceTaken(NamedTuple):
    """Says by which price a line was valued: whose it is, and how much."""

    source: Base
    condition: str
    finish: str
    amount: int


class LineFacts(NamedTuple):
    """Holds the facts about a line's card.

    The prices are those of a Near Mint copy in the line's finish and language. `in_stock` and
    `on_order` count the product in this finish, in every condition and language. `lists` holds the
    ids of the lists with the card. `rule_id` is the first live rule that selects it. `others` is
    filled where the card's own market price is unknown, or another finish's price counts.
    """

    rule_id: int | None
    target: int | None = None
    market: int | None = None
    low: int | None = None
    in_stock: int = 0
    on_order: int = 0
    days_to_sell: int | None = None
    lists: frozenset[int] = frozenset()
    game: str = ""
    rarity: str = ""
    others: tuple[KnownPrice, ...] = ()


class Bought(NamedTuple):
    """Copies of a line that bring the same. `cash` or `credit` is None where no budget is left for
    it: the copies are bought in the other way only.
    """

    copies: int
    cash: int | None
    credit: int | None


class Why(NamedTuple):
    """One step of an explanation: its kind, the price of a copy after it, and its inputs."""

    kind: str
    cash: int | None
    credit: int | None
    used: tuple[int | str, ...] = ()


class ValuedLine(NamedTuple):
    """Holds what the shop pays for a line. `bought` has one entry a price; `reason` says why `left`
    copies are not bought. `why` is empty where nobody asked for the line's explanation. `taken` is
    None where no price is known or no rule needed one.
    """

    line: int
    rule: BuyRule | None
    bought: tuple[Bought, ...]
    left: int
    reason: Reason | None
    why: tuple[Why, ...]
    taken: PriceTaken | None = None

    @property
    def copies(self) -> int:
        return sum(part.copies for part in self.bought)

    @property
    def cash(self) -> int:
        """All of the line's copies together, where it is paid in cash."""
        return sum(part.copies * (part.cash or 0) for part in self.bought)

    @property
    def credit(self) -> int:
        """All of the line's copies together, where it is paid in credit."""
        return sum(part.copies * (part.credit or 0) for part in self.bought)


class BudgetLeft(NamedTuple):
    """Holds the rest of a budget; None sets no limit."""

    cash: int | None = None
    credit: int | None = None


class Spent(NamedTuple):
    """Holds today's payments."""

    cash: int = 0
    credit: int = 0
