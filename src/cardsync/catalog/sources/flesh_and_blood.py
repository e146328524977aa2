"""Reads flesh-and-blood-cards: a list of cards with their printings, and a list of sets."""

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
    id_or_none,
    named_by,
    text_in,
    text_or_none,
)

GAME = "flesh_and_blood"
_EDITIONS = {"A": "1st Edition", "F": "1st Edition", "U": "Unlimited Edition", "N": ""}
_FOILS = {"S": "Normal", "R": "Rainbow Foil", "C": "Cold Foil", "G": "Gold Foil"}
# A card in three strengths (pitches) is three cards with the same name.
_PITCHES = {"1": "Red", "2": "Yellow", "3": "Blue"}
_TREATMENTS = {
    "AA": "Alternate Art",
    "AB": "Alternate Border",
    "AT": "Alternate Text",
    "EA": "Extended Art",
    "FA": "Full Art",
}
_RARITIES = {
    "B": "Basic",
    "C": "Common",
    "R": "Rare",
    "S": "Super Rare",
    "M": "Majestic",
    "L": "Legendary",
    "F": "Fabled",
    "T": "Token",
    "V": "Marvel",
    "P": "Promo",
}


def read(path: Path, _: str | None) -> Found:
    cards, sets = _files(path)
    names: dict[str, Record] = {
        one["id"]: one
        for one in json_file.few(sets, "item")
        if isinstance(one, dict) and "id" in one
    }
    yield from each(
        json_file.items(cards, "item"), partial(_card, names), named_by("name", "pitch")
    )


def _files(path: Path) -> tuple[Path, Path]:
    """Return the file of cards and the file of sets, which are in the same folder."""
    folder = path if path.is_dir() else path.parent
    cards = next(iter(sorted(folder.glob("**/card.json"))), None) if path.is_dir() else path
    sets = next(iter(sorted(folder.glob("**/set.json"))), None)
    if cards is None or sets is None:
        raise CatalogError(f"{path.name} needs the files card.json and set.json in one folder")
    return cards, sets


def _card(sets: dict[str, Record], card: Record) -> Iterator[Printing]:
    name, color = text_in(card, "name"), _PITCHES.get(str(card.get("pitch")))
    printings = card.get("printings")
    if not isinstance(printings, list):
        raise Unfit("printings is missing")
    for one in printings:
        of = sets.get(text_in(one, "set_id"))
        if of is None:
            raise Unfit(f"set {one['set_id']} is in no file of sets")
        rarity = text_or_none(one, "rarity")
        words = [color, *_treatments(one, rarity)]
        yield Printing(
            GAME,
            text_in(of, "name"),
            text_in(one, "set_id"),
            name + "".join(f" ({word})" for word in words if word),
            text_in(one, "id"),
            _RARITIES.get(rarity or "", rarity),
            _finish(one),
            "en",
            id_or_none(one.get("tcgplayer_product_id")),
            address_or_none(one.get("image_url")),
        )


def _treatments(printing: Record, rarity: str | None) -> list[str]:
    """Return the treatments that the marketplace writes in brackets. A Marvel is recognized only by
    its rarity.
    """
    if rarity == "V":
        return ["Marvel"]
    found = printing.get("art_variations")
    return (
        [_TREATMENTS[one] for one in found if one in _TREATMENTS] if isinstance(found, list) else []
    )


def _finish(printing: Record) -> str | None:
    foil = _FOILS.get(str(printing.get("foiling")))
    edition = _EDITIONS.get(str(printing.get("edition")))
    return None if foil is None or edition is None else f"{edition} {foil}".strip()
