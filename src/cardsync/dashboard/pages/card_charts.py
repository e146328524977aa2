"""The price sources and the charts of a card. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cardsync.dashboard.shell import TemplateValues
from cardsync.platform import clock
from cardsync.platform.value_types import JsonMapping
from cardsync.stock.cards.schemas import (
    CardWithHistory,
    PriceObservation,
)

SERIES = {
    "Price": "price",
    "Market": "market_price",
    "Low": "low_price",
    "Low with shipping": "low_price_with_shipping",
    "Direct low": "direct_low",
}
# Each price source: its name in rules, the field of the card, and its name on pages.
SOURCES = (
    ("market", "market_price", "Market"),
    ("low", "low_price", "Low"),
    ("low_with_shipping", "low_price_with_shipping", "Low with shipping"),
    ("direct_low", "direct_low", "Direct low"),
    ("current", "price", "Your price"),
)
# The numbers of days that the charts can show, as the address names them.
DAYS = ("30", "90", "365")


class Source(NamedTuple):
    """A price source of the card. `since` is the time when the present amount was first observed;
    `unused` is the reason why the rule skips the source.
    """

    name: str
    amount: str | None
    since: str | None
    in_force: bool
    unused: str


def sources_of(card: CardWithHistory, steps: Sequence[JsonMapping]) -> list[Source]:
    """Return the card's price sources. Pure."""
    source_step = next((step for step in steps if step["name"] == "price_source"), {})
    unused = {one["source"]: one["reason"] for one in source_step.get("unused_sources", ())}
    return [
        Source(
            name,
            getattr(card, key),
            seen_since(card.history, key),
            source_step.get("source") == source,
            str(unused.get(source, "")).replace("_", " "),
        )
        for source, key, name in SOURCES
    ]


def seen_since(history: Sequence[PriceObservation], key: str) -> str | None:
    """Return the time of the first observation in the unbroken run that has the present amount. The
    newest observation is first. Pure.
    """
    since = None
    for seen in history:
        if getattr(seen, key) != getattr(history[0], key):
            break
        since = seen.observed_at
    return since


def charts_of(card: CardWithHistory, days: str) -> TemplateValues:
    """Return the points of the charts for these days, and the names of all series that the card has
    ever had an amount for.
    """
    shown = [seen for seen in card.history if is_of(seen, days, clock.now())]
    return {
        "points": [
            (seen.observed_at, {name: getattr(seen, key) for name, key in SERIES.items()})
            for seen in shown
        ],
        "stock": [(seen.observed_at, {"In stock": seen.quantity}) for seen in shown],
        "series": [
            name
            for name, key in SERIES.items()
            if name == "Price" or any(getattr(seen, key) for seen in card.history)
        ],
    }


def days_of(asked: str, *, whole: bool) -> str:
    """Return the number of days for the charts, "" for all days; 90 if `asked` is not in DAYS.
    Pure.
    """
    return "" if whole else asked if asked in DAYS else "90"


def is_of(seen: PriceObservation, days: str, now: datetime) -> bool:
    """Return whether an observation is within the last `days`; "" means all days. Pure."""
    moment = clock.read_moment(seen.observed_at)
    return not days or moment is None or moment >= now - timedelta(days=int(days))
