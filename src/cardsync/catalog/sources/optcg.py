"""Reads the One Piece cards of OPTCG API: lists of cards. A card is a printing and has the
marketplace's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.source_record import (
    CatalogError,
    Found,
    Printing,
    Record,
    address_or_none,
    each,
    named_by,
    text_in,
    text_or_none,
)

GAME = "one_piece"
# The name contains the number if several cards of a set have the same name.
_NUMBER = re.compile(r" \(([0-9]{3})\)")
_RARITIES = {
    "C": "Common",
    "UC": "Uncommon",
    "R": "Rare",
    "SR": "Super Rare",
    "SEC": "Secret Rare",
    "L": "Leader",
    "PR": "Promo",
    "TR": "Treasure Rare",
}


def read(path: Path, _: str | None) -> Found:
    files = sorted(path.glob("**/*.json")) if path.is_dir() else [path]
    if not files:
        raise CatalogError(f"{path.name} holds no JSON files")
    for file in files:
        yield from each(
            json_file.items(file, "item"), _card, named_by("card_image_id", "card_name")
        )


def _card(card: Record) -> Iterator[Printing]:
    name, number = text_in(card, "card_name"), text_in(card, "card_set_id")
    own = _NUMBER.search(name)
    if own is not None and number.endswith(own[1]):
        name = _NUMBER.sub("", name, count=1)
    rarity = text_or_none(card, "rarity")
    yield Printing(
        GAME,
        text_in(card, "set_name"),
        text_or_none(card, "set_id"),
        name,
        number,
        _RARITIES.get(rarity or "", rarity),
        None,
        "en",
        None,
        address_or_none(card.get("card_image")),
    )
