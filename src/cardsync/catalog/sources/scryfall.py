"""Reads Scryfall's bulk data: a list of card objects, each a printing with its finishes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.mtgjson import FINISHES, GAME
from cardsync.catalog.sources.source_record import (
    Found,
    Printing,
    Record,
    address_or_none,
    each,
    id_or_none,
    id_text,
    named_by,
    part,
    text_in,
    text_or_none,
)

# Scryfall's codes for Chinese; all other codes are ISO codes.
_LANGUAGES = {"zhs": "zh", "zht": "zh"}


def read(path: Path, _: str | None) -> Found:
    yield from each(json_file.items(path, "item", "data.item"), _card, named_by("name", "id"))


def _card(card: Record) -> Iterator[Printing]:
    if card.get("digital") is True:
        return
    language = text_or_none(card, "lang") or "en"
    product_id = id_or_none(card.get("tcgplayer_id"))
    etched_id = id_or_none(card.get("tcgplayer_etched_id"))
    name = text_in(card, "name")
    picture = address_or_none(_pictures(card).get("normal"))
    for finish in card.get("finishes") or ["nonfoil"]:
        etched = finish == "etched"
        yield Printing(
            GAME,
            text_in(card, "set_name"),
            (text_or_none(card, "set") or "").upper() or None,
            f"{name} (Foil Etched)" if etched and etched_id else name,
            text_in(card, "collector_number"),
            text_or_none(card, "rarity"),
            FINISHES.get(finish),
            _LANGUAGES.get(language, language),
            etched_id or product_id if etched else product_id,
            picture,
            scryfall_id=id_text(card.get("id")),
            cardmarket_id=id_text(card.get("cardmarket_id")),
        )


def _pictures(card: Record) -> Record:
    """Return the URLs of the front's pictures, which a card with two sides has in its first face."""
    faces = card.get("card_faces")
    front = faces[0] if isinstance(faces, list) and faces and isinstance(faces[0], dict) else {}
    return part(card, "image_uris") or part(front, "image_uris")
