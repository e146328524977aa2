"""Defines the structs of buying: a line of a customer's cards, the facts about its card, and the
shop's price for it. Pure. Money is in ten-thousandths of a dollar.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from cardsync.buying.engine.buy_rules import Base, BuyRule

# The reasons why copies of a line are not bought.
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
    """A customer's copies of one card. `line` is the line's ID in its offer or collection.

    `condition` is NM, LP, MP, HP or DMG. `sku` is the marketplace's ID, if known. An empty `finish`
    means the product's own finish. `price_of` is the finish whose price a person chose in place of
    an unknown price.
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
    """The prices of the line's card in another condition or finish."""

    condition: str
    finish: str
    target: int | None = None
    market: int | None = None
    low: int | None = None


class PriceTaken(NamedTuple):
    """The price by which a line was valued, with its source, condition and finish."""

    source: Base
    condition: str
    finish: str
    amount: int


class LineFacts(NamedTuple):
    """The facts about a line's card.

    The prices are for a Near Mint copy in the line's finish and language. `in_stock` and `on_order`
    are the copies of the product in the line's finish, in all conditions and languages. `lists` has
    the IDs of the lists that contain the card. `rule_id` is the first live rule that selects the
    card. `others` has the card's prices in other conditions and finishes; it is empty unless the
    card's own market price is unknown or the price of another finish was chosen.
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
    """Copies of a line with the same price. If the budget for cash is used up, `cash` is None and
    the copies are bought only for credit, and vice versa.
    """

    copies: int
    cash: int | None
    credit: int | None


class Why(NamedTuple):
    """One step of an explanation: its kind, the price of a copy after the step, and its inputs."""

    kind: str
    cash: int | None
    credit: int | None
    used: tuple[int | str, ...] = ()


class ValuedLine(NamedTuple):
    """The shop's payment for a line. `bought` has one entry per price. `left` copies are not
    bought, for the reason `reason`. `why` is empty unless the line's explanation was requested.
    `taken` is the price by which the line was valued; None if no price is known or needed.
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
        """The payment for all of the line's copies in cash."""
        return sum(part.copies * (part.cash or 0) for part in self.bought)

    @property
    def credit(self) -> int:
        """The payment for all of the line's copies in credit."""
        return sum(part.copies * (part.credit or 0) for part in self.bought)


class BudgetLeft(NamedTuple):
    """The rest of a budget. None means no limit."""

    cash: int | None = None
    credit: int | None = None


class Spent(NamedTuple):
    """The amounts that were promised today."""

    cash: int = 0
    credit: int = 0
