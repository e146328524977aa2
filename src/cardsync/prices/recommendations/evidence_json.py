"""Writes the evidence of a recommendation as JSON, with its figures and their times, and computes
the key of the evidence. Pure.

The key covers figures and prices but no times, so evidence that was only observed again has the
same key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from cardsync.platform.clock import rfc3339
from cardsync.platform.money import UNITS_PER_CENT, dollars
from cardsync.platform.value_types import NamedRow
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.recommendations.generation import DEPTH_UNDERCUT_BP, LEAST_RISE, LEAST_RISE_BP

_MONEY: Final = ("listings_low", "sales_median", "market")
_CLOCKS: Final = (
    "listings_observed_at",
    "sales_newest_at",
    "sales_fetched_at",
    "observed_at",
)
_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "depth_raise": ("listings_low", "listings_count", "listings_observed_at"),
    "sales_anchor": ("sales_median", "sales_count", "sales_newest_at", "sales_fetched_at"),
    "generic_raise": ("market", "observed_at"),
    "demand_pulse": ("sales_week", "sales_count", "sales_newest_at", "sales_fetched_at"),
    "stale_stock": ("market", "observed_at"),
}
_NAMES: Final[Mapping[str, str]] = {
    "listings_low": "lowest_listing",
    "listings_count": "condition_listings",
    "sales_median": "median_sale",
    "sales_count": "sales_30d",
    "sales_week": "sales_7d",
    "sales_newest_at": "newest_sale_at",
    "sales_fetched_at": "fetched_at",
}
_FLAGS: Final[Mapping[str, str]] = {
    "depth_raise": "listings_of_network",
    "sales_anchor": "sales_of_network",
    "demand_pulse": "sales_of_network",
}
# For each kind, a sentence on the evidence and one on the events that would change the verdict.
_SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "depth_raise": (
        "The lowest of {condition_listings} listings in the condition is {lowest_listing}.",
        "Expires if a listing drops below {least}, or fewer than three are left.",
    ),
    "sales_anchor": (
        "The median of {sales_30d} sales in 30 days is {median_sale}.",
        "Expires if the median drops below {least}, or with fewer than three sales.",
    ),
    "generic_raise": (
        "The market price of the last upload is {market}.",
        "Expires if the market price drops below {least}.",
    ),
    "demand_pulse": (
        "{sales_7d} of {sales_30d} sales in 30 days were in the last seven.",
        "Expires after a week with fewer sales than before.",
    ),
    "stale_stock": (
        "No copies sold in the last 90 days.",
        "Clears when one sells.",
    ),
}


def evidence_of(row: NamedRow) -> dict[str, object]:
    """Return the evidence of a row of `generation.reviews` or `generation.stale_stock`."""
    kind: str = row["kind"]
    figures = {_NAMES.get(name, name): _plain(name, row[name]) for name in _OF_KIND[kind]}
    said, ends = _SENTENCES[kind]
    words = figures | {"least": dollars(_least(kind, row))}
    history = row.get("history")
    reason = said.format(**words)
    if history is not None:
        figures["market_history"] = history.as_evidence()
        if history.verdict.holds:
            reason = f"{reason} {history.verdict.reason}"
    if (source := _source(kind, row)) is not None:
        figures["source"] = source
    return figures | {
        "reason": reason,
        "would_change": ends.format(**words),
        "copies_from": "sales" if row.get("sales_known") else "assumed",
        "competing_signals": [
            {
                "kind": signal["kind"],
                "proposed_price": dollars(signal["proposed"]),
                "expected_value": dollars(signal["expected_value"]),
            }
            for signal in row.get("signals") or []
        ],
    }


def _least(kind: str, row: NamedRow) -> int:
    """Return the lowest figure, in whole cents, that still justifies a raise. A cap or a rounding
    style of the rule may require a slightly higher figure.
    """
    base: int = row.get("asked_now") or row["current_price"]
    least = max(base + LEAST_RISE, (base * (WHOLE_BP + LEAST_RISE_BP) + WHOLE_BP // 2) // WHOLE_BP)
    if kind == "depth_raise":
        # The proposed price is DEPTH_UNDERCUT_BP below the lowest listing.
        least = -(-least * WHOLE_BP // (WHOLE_BP - DEPTH_UNDERCUT_BP))
    return -(-least // UNITS_PER_CENT) * UNITS_PER_CENT


def _source(kind: str, row: Mapping[str, object]) -> str | None:
    """Return the source of the evidence, or None for a kind that uses only the upload."""
    flag = _FLAGS.get(kind)
    if flag is None:
        return None
    return "network" if row.get(flag) else "imported"


def _plain(name: str, value: Any) -> object:
    if value is None:
        return None
    if name in _CLOCKS:
        return rfc3339(value)
    return dollars(value) if name in _MONEY else value


def key_of(row: NamedRow) -> str:
    """Return the key of a review's evidence."""
    kind: str = row["kind"]
    figures = [row[name] for name in _OF_KIND[kind] if name not in _CLOCKS]
    keyed = [kind, row["current_price"], row["proposed"], *figures]
    # The median changes daily, so the key has the history's verdict instead.
    history = row.get("history")
    return digest([*keyed, history.verdict.code] if history is not None else keyed)


def digest(parts: Sequence[object]) -> str:
    return hashlib.blake2b(orjson.dumps(parts), digest_size=12).hexdigest()
