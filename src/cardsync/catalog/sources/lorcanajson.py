"""Reads LorcanaJSON: an object of sets and cards. A card is one printing in several finishes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.source_record import (
    Found,
    Printing,
    Record,
    Unfit,
    address_or_none,
    each,
    id_or_none,
    id_text,
    named_by,
    part,
    text_in,
    text_or_none,
)

GAME = "lorcana"
# The marketplace lists all promos in this set.
_PROMOS = "Disney Lorcana Promo Cards"
# The rarities that the marketplace writes in brackets after the name.
_TREATMENTS = ("Enchanted", "Epic", "Iconic")
_PLAIN_FOILS = {"None": "Normal", "Silver": "Cold Foil"}
_LANGUAGES = ("en", "fr", "de", "it", "ja", "zh")


def read(path: Path, _: str | None) -> Found:
    sets: dict[str, Record] = {
        code: of for code, of in json_file.pairs(path, "sets") if isinstance(of, dict)
    }
    spoken = next(iter(json_file.items(path, "metadata.language")), "en")
    language = spoken if spoken in _LANGUAGES else "en"
    cards = json_file.items(path, "cards.item")
    yield from each(cards, partial(_card, sets, language), named_by("fullIdentifier", "fullName"))


def _card(sets: dict[str, Record], language: str, card: Record) -> Iterator[Printing]:
    code, rarity = text_in(card, "setCode"), text_or_none(card, "rarity")
    number = _number(card)
    promo = text_or_none(card, "promoGrouping")
    if promo is None and code not in sets:
        raise Unfit(f"set {code} is not in the file")
    name, ids = text_in(card, "fullName"), part(card, "externalLinks")
    for finish in _finishes(card):
        yield Printing(
            GAME,
            _PROMOS if promo else text_in(sets[code], "name"),
            promo or code,
            f"{name} ({rarity})" if rarity in _TREATMENTS else name,
            number,
            rarity,
            finish,
            language,
            id_or_none(ids.get("tcgPlayerId")),
            address_or_none(part(card, "images").get("full")),
            cardmarket_id=id_text(ids.get("cardmarketId")),
            cardtrader_id=id_text(ids.get("cardTraderId")),
        )


def _number(card: Record) -> str:
    """Return the printed number: the part with a slash ("1/P1") of the identifier ("1 TFC • EN •
    1/P1"), or else the number.
    """
    printed = [one.strip() for one in text_in(card, "fullIdentifier").split("•")]
    return next((one for one in printed if "/" in one), None) or str(card["number"])


def _finishes(card: Record) -> list[str | None]:
    """Return the card's finishes. If a card exists only as a foil, its finish is None, because the
    marketplace does not name that finish.
    """
    foils = card.get("foilTypes")
    if not isinstance(foils, list) or len(foils) < 2:
        only = foils[0] if isinstance(foils, list) and foils else None
        return ["Normal" if only == "None" else None]
    return list(dict.fromkeys(_PLAIN_FOILS.get(str(foil), "Cold Foil") for foil in foils))
