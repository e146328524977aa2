"""Rates the certainty of a match between a listing and a product, with the reasons why it is not
more certain. Pure.

A match is certain if a member chose the product, or all parts agree. It is probable if only this
product has no contradiction, but the listing or the product lacks a part. It is possible if several
products fit equally.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Certainty = Literal["certain", "probable", "possible"]


class Evidence(NamedTuple):
    """The certainty of a match, with reasons. `certainty` is None if the catalog has no product for
    the listing.
    """

    certainty: Certainty | None
    reasons: list[str]


def weigh(
    found: str, listing: Mapping[str, object], product: Mapping[str, object] | None
) -> Evidence:
    """Rate a match. `found` is settled, matched, ambiguous, provisional or contributed."""
    if found == "settled":
        return Evidence("certain", ["A member chose this product."])
    if found == "ambiguous":
        tie = "Several products of the catalog fit this listing equally. A tie is never decided."
        return Evidence("possible", [tie])
    if product is None:
        return Evidence(None, ["The catalog has no product that agrees with this listing."])
    missing = _missing_parts(listing, product)
    if missing:
        return Evidence("probable", missing)
    return Evidence("certain", ["Set, name, number and printing agree."])


def _missing_parts(listing: Mapping[str, object], product: Mapping[str, object]) -> list[str]:
    """Return a sentence for each part that does not agree exactly."""
    reasons = {
        "The set was found by its code, because the catalog writes its name differently.": (
            listing["set_key"] != product["set_key"]
        ),
        "The name was found in another form.": listing["name_key"] != product["name_key"],
        "Neither side has a number.": not listing["number_key"] and not product["number_key"],
        "Only one side has a number.": bool(listing["number_key"]) != bool(product["number_key"]),
        "Only one side says how many cards the set has.": (
            listing["number_total"] != product["number_total"]
        ),
        "Only one side names the back of the card.": listing["back_key"] != product["back_key"],
        "Only one side names a variant.": listing["variant_key"] != product["variant_key"],
        "The catalog does not distinguish finishes here.": product["finish_key"] is None,
    }
    return [reason for reason, holds in reasons.items() if holds]
