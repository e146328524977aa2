"""Reads YGOPRODeck's list of cards. A card has a printing for each set and rarity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.source_record import (
    Found,
    Printing,
    Record,
    each,
    named_by,
    text_in,
    text_or_none,
)

GAME = "yugioh"
_EDITIONS = ("1st Edition", "Unlimited", "Limited")


def read(path: Path, _: str | None) -> Found:
    yield from each(json_file.items(path, "item", "data.item"), _card, named_by("name", "id"))


def _card(card: Record) -> Iterator[Printing]:
    name, printings = text_in(card, "name"), card.get("card_sets")
    # An announced card is not in a set yet.
    found = (
        [one for one in printings if isinstance(one, dict)] if isinstance(printings, list) else []
    )
    kinds = {(str(one.get("set_code")), str(one.get("set_rarity"))) for one in found}
    several = Counter(code for code, _ in kinds)
    for one in found:
        number, rarity = text_in(one, "set_code"), text_or_none(one, "set_rarity")
        edition = text_or_none(one, "set_edition")
        yield Printing(
            GAME,
            text_in(one, "set_name"),
            number.partition("-")[0] or None,
            f"{name} ({rarity})" if rarity and several[number] > 1 else name,
            number,
            rarity,
            edition if edition in _EDITIONS else None,
            "en",
            None,
        )
