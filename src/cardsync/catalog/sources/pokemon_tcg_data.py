"""Reads pokemon-tcg-data: a list of cards for each set, and a list of the sets; or cards from the
project's API, which contain their set.

In a folder, `sets/en.json` and all files below `cards/` are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.source_record import (
    CatalogError,
    Found,
    Printing,
    Record,
    Unfit,
    address_or_none,
    each,
    named_by,
    part,
    text_in,
    text_or_none,
)

GAME = "pokemon"
_FINISHES = {
    "normal": "Normal",
    "holofoil": "Holofoil",
    "reverseHolofoil": "Reverse Holofoil",
    "1stEdition": "1st Edition",
    "1stEditionNormal": "1st Edition",
    "1stEditionHolofoil": "1st Edition Holofoil",
    "unlimited": "Unlimited",
    "unlimitedHolofoil": "Unlimited Holofoil",
}


def read(path: Path, _: str | None) -> Found:
    files = sorted(path.glob("**/cards/**/*.json")) if path.is_dir() else [path]
    if not files:
        raise CatalogError(f"{path.name} holds no folder `cards` with JSON files")
    sets = _sets(path)
    named = named_by("id", "name")
    for file in files:
        of_file = sets.get(file.name.split(".")[0], {})
        cards = json_file.items(file, "item", "data.item")
        yield from each(cards, partial(_card, of_file), named)


def _sets(path: Path) -> dict[str, Record]:
    """Return the sets by id, from the files `sets/*.json` near the files of cards."""
    if path.is_dir():
        files = sorted(path.glob("**/sets/*.json"))
    else:
        # The file is <root>/cards/<language>/<set>.json.
        files = sorted(root for up in path.parents[:3] for root in up.glob("sets/*.json"))
    found = [one for file in files for one in json_file.few(file, "item", "data.item")]
    return {one["id"]: one for one in found if isinstance(one, dict) and "id" in one}


def _card(of_file: Record, card: Record) -> Iterator[Printing]:
    of = part(card, "set") or of_file
    if not of:
        raise Unfit("its set is unknown; import the folder that holds `sets` and `cards`")
    number, total = text_in(card, "number"), of.get("printedTotal")
    # A card's printed number has the total if both are plain numbers.
    printed = f"{number}/{total}" if number.isdigit() and isinstance(total, int) else number
    prices = part(part(card, "tcgplayer"), "prices")
    finishes: list[str | None] = [_FINISHES[name] for name in prices if name in _FINISHES]
    for finish in finishes or [None]:
        yield Printing(
            GAME,
            text_in(of, "name"),
            text_or_none(of, "ptcgoCode") or text_or_none(of, "id"),
            text_in(card, "name"),
            printed,
            text_or_none(card, "rarity"),
            finish,
            "en",
            None,
            address_or_none(part(card, "images").get("large")),
        )
