"""Writes one sentence on why a price is held, from the reason and its figures. Pure. To add a
reason, add a line to SENTENCES and, unless the reason is a review, to WORDS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from cardsync.platform.money import dollars
from cardsync.prices.engine.market_steps import GATE_PASSED
from cardsync.prices.rules.rule_forms import CAPS

SENTENCES: Final[Mapping[str, str]] = {
    "rise": "An increase to {price} is over your limit and needs approval.",
    "drop": "A drop to {price} is over your limit and needs approval.",
    "first_price": "Its first price, {price}, needs approval.",
    "holdout": "It's in its rule's control group until {until}; the rule would set {price}.",
    "cap": "The change is bigger than its rule's cap allows, so the price stays the same.",
    "gate": "Waiting for market data, so the price stays the same. {why}",
}
# The sentences for a cap if the rule's price without the cap is known.
LIMITED: Final = "Its rule sets {price}. The {cap} limits how far the price moves at once."
STUCK: Final = "Its rule sets {price}, which is beyond the {cap}, so the price stays the same."
# Short names of the reasons, except cap (`schemas.py` names it by its period) and the reviews (each
# of them is "needs review").
WORDS: Final[Mapping[str, str]] = {
    "holdout": "control group",
    "gate": "waiting for market data",
}
GATES: Final[Mapping[str, str]] = {
    "market_stale": "The market price was unknown or too old.",
    "no_listing": "No listing in the same condition was found.",
    "listings_stale": "The listings were unknown or too old.",
    "too_few_listings": "There are fewer listings than the rule requires.",
    "sales_stale": "The sales were unknown or too old.",
    "too_few_sales": "There are fewer sales than the rule requires.",
    "buy_out": "The card was bought out within the last four hours.",
}


class Held(NamedTuple):
    """The reason for a held price. `price` is the withheld price, in ten-thousandths; `until` is
    the end of a hold-out; `verdict` is the verdict of a market gate. `period` is the period of a
    cap; `stays` is true if the cap leaves the price unchanged.
    """

    reason: str
    price: int | None = None
    until: datetime | None = None
    verdict: str = ""
    period: str | None = None
    stays: bool = True

    @property
    def sentence(self) -> str:
        said = SENTENCES[self.reason]
        if self.reason == "cap" and self.price is not None:
            said = STUCK if self.stays else LIMITED
        return said.format(
            price="" if self.price is None else dollars(self.price),
            cap=CAPS[self.period or "day"],
            until="" if self.until is None else self.until.date().isoformat(),
            why=GATES.get(self.verdict, ""),
        )


def gate_hold(steps: Sequence[Mapping[str, object]]) -> str:
    """Return the sentence of the market gate that held a price, or an empty string if no gate
    did.
    """
    gate = next((step for step in steps if step["name"] == "market_gate"), {})
    verdict = gate.get("verdict")
    return "" if verdict is None or verdict in GATE_PASSED else str(gate["summary"])
