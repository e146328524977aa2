"""Reads MTGJSON's AllPrintings: an object of sets, each with its cards, tokens and sealed products.

All finishes of a card have one product id of the marketplace, except an etched foil, which is a
separate product.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from cardsync.catalog.condition import LANGUAGES, WITHOUT_SKU
from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.source_record import (
    Broken,
    Found,
    Printing,
    Record,
    each,
    id_or_none,
    id_text,
    named_by,
    part,
    text_in,
    text_or_none,
)

GAME = "magic"
# The URL of Scryfall's picture contains the card's Scryfall id, also for tokens and cards in other
# languages.
_PICTURE = "https://cards.scryfall.io/normal/front/{0[0]}/{0[1]}/{0}.jpg"
_SCRYFALL_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FINISHES = {"nonfoil": "Normal", "foil": "Foil", "etched": "Foil"}
_LANGUAGES = {name: code for name, code in LANGUAGES.items() if code not in WITHOUT_SKU}


def read(path: Path, _: str | None) -> Found:
    for code, found in json_file.pairs(path, "data"):
        if not isinstance(found, dict) or not isinstance(found.get("name"), str):
            yield Broken(f"set {code}", "its name is missing")
            continue
        named = named_by("name", "number")
        cards = chain(_list(found, "cards"), _list(found, "tokens"))
        boxes = _list(found, "sealedProduct")
        for answer in chain(
            each(cards, partial(_card, found), named),
            each(boxes, partial(_box, found), named),
        ):
            if isinstance(answer, Broken):
                yield Broken(f"set {code}, {answer.where}", answer.reason)
            else:
                yield answer


def _list(record: Record, field: str) -> list[object]:
    value = record.get(field)
    return value if isinstance(value, list) else []


def _card(of: Record, card: Record) -> Iterator[Printing]:
    # The file has a record for each face of a card; only the first face is read.
    if card.get("side") not in (None, "a") or card.get("isOnlineOnly") is True:
        return
    ids = part(card, "identifiers")
    product_id = id_or_none(ids.get("tcgplayerProductId"))
    etched_id = id_or_none(ids.get("tcgplayerEtchedProductId"))
    name, number = text_in(card, "name"), text_in(card, "number")
    scryfall_id = str(ids.get("scryfallId"))
    picture = _PICTURE.format(scryfall_id) if _SCRYFALL_ID.fullmatch(scryfall_id) else None
    for finish in card.get("finishes") or ["nonfoil"]:
        etched = finish == "etched"
        yield Printing(
            GAME,
            text_in(of, "name"),
            text_or_none(of, "code"),
            f"{name} (Foil Etched)" if etched and etched_id else name,
            number,
            text_or_none(card, "rarity"),
            FINISHES.get(finish),
            _LANGUAGES.get(str(card.get("language", "English")), "en"),
            etched_id or product_id if etched else product_id,
            picture,
            scryfall_id=id_text(ids.get("scryfallId")),
            cardmarket_id=id_text(ids.get("mcmId")),
            cardtrader_id=id_text(ids.get("cardtraderId")),
            mtgjson_id=id_text(card.get("uuid")),
        )


def _box(of: Record, box: Record) -> Iterator[Printing]:
    ids = part(box, "identifiers")
    yield Printing(
        GAME,
        text_in(of, "name"),
        text_or_none(of, "code"),
        text_in(box, "name"),
        None,
        None,
        "Sealed",
        "en",
        id_or_none(ids.get("tcgplayerProductId")),
        cardmarket_id=id_text(ids.get("mcmId")),
        mtgjson_id=id_text(box.get("uuid")),
    )
