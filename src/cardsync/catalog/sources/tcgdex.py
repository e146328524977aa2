"""Reads tcgdex: a card object that contains its set, a list of such cards, a set with its cards, or
a folder of such files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cardsync.catalog.sources import json_file
from cardsync.catalog.sources.source_record import (
    Broken,
    CatalogError,
    Found,
    Printing,
    Record,
    Unfit,
    address_or_none,
    each,
    id_or_none,
    named_by,
    part,
    text_in,
    text_or_none,
)

_PLAIN = {"normal": "Normal", "holo": "Holofoil", "reverse": "Reverse Holofoil"}


def read(path: Path, game: str | None) -> Found:
    files = sorted(path.glob("**/*.json")) if path.is_dir() else [path]
    if not files:
        raise CatalogError(f"{path.name} holds no JSON files")
    for file in files:
        cards = each(_records(file), partial(_card, game or "pokemon"), named_by("id", "name"))
        for answer in cards:
            if isinstance(answer, Broken) and len(files) > 1:
                yield Broken(f"{file.name}, {answer.where}", answer.reason)
            else:
                yield answer


def _records(file: Path) -> Iterator[object]:
    if json_file.head(file).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
        # The folder also has a list of sets, whose items are skipped.
        yield from (one for one in json_file.items(file, "item") if not _is_set(one))
        return
    one = json_file.whole(file)
    cards = one.get("cards") if isinstance(one, dict) else None
    if isinstance(cards, list):
        of = {name: one.get(name) for name in ("id", "name", "cardCount", "abbreviation")}
        yield from ({**card, "set": of} if isinstance(card, dict) else card for card in cards)
    else:
        yield one


def _is_set(one: object) -> bool:
    return isinstance(one, dict) and "cardCount" in one and "localId" not in one


def _card(game: str, card: Record) -> Iterator[Printing]:
    of = part(card, "set")
    if not of:
        raise Unfit("set is missing")
    number, total = text_or_none(card, "localId"), part(of, "cardCount").get("official")
    if number is None:
        raise Unfit("localId is missing")
    printed = f"{number}/{total:03}" if number.isdigit() and isinstance(total, int) else number
    code = text_or_none(part(of, "abbreviation"), "official") or text_or_none(of, "id")
    for finish in _finishes(card) or [None]:
        yield Printing(
            game,
            text_in(of, "name"),
            code,
            text_in(card, "name"),
            printed,
            text_or_none(card, "rarity"),
            finish,
            "ja" if game == "pokemon_japan" else "en",
            id_or_none(part(card, "thirdParty").get("tcgplayer")),
            # The field lacks the picture's quality and file type.
            address_or_none(f"{card.get('image')}/high.webp"),
        )


def _finishes(card: Record) -> list[str | None]:
    """Return the finishes; with both editions if the card has a first edition."""
    variants = card.get("variants")
    if isinstance(variants, list):
        kinds = [one.get("type") for one in variants if isinstance(one, dict)]
        return list(dict.fromkeys(_PLAIN[kind] for kind in kinds if kind in _PLAIN))
    if not isinstance(variants, dict):
        return []
    plain = [finish for kind, finish in _PLAIN.items() if variants.get(kind) is True]
    if variants.get("firstEdition") is not True:
        return list(plain)
    editions: list[str | None] = []
    for finish in plain or ["Normal"]:
        suffix = " Holofoil" if finish == "Holofoil" else ""
        editions += [f"1st Edition{suffix}", f"Unlimited{suffix}"]
    return editions
