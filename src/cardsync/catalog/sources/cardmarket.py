"""Reads Cardmarket's product list and its list of expansions, from files in the same folder. They
have no collector numbers, so they create no products, but add Cardmarket's ids to products of other
catalogs.
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
    each,
    id_text,
    named_by,
    text_in,
    text_or_none,
)

# The first word of a category's name, and the game.
GAMES = {
    "Magic": "magic",
    "Yugioh": "yugioh",
    "Pokémon": "pokemon",
    "Flesh": "flesh_and_blood",
    "Digimon": "digimon",
    "One": "one_piece",
    "Lorcana": "lorcana",
    "Star": "star_wars_unlimited",
    "Riftbound": "riftbound",
}


def read(path: Path, _: str | None) -> Found:
    folder = path if path.is_dir() else path.parent
    near = sorted(folder.glob("*.json"))
    products = [file for file in near if b'"idProduct"' in json_file.head(file)]
    sets: dict[int, Record] = {}
    for file in near:
        if file not in products and b'"idExpansion"' in json_file.head(file):
            found = json_file.few(file, "item", "expansion.item")
            sets |= {one["idExpansion"]: one for one in found if isinstance(one, dict)}
    wanted = products if path.is_dir() else [file for file in products if file == path]
    if not wanted or not sets:
        raise CatalogError(
            f"{path.name} needs Cardmarket's list of expansions beside its list of products"
        )
    for file in wanted:
        yield from each(
            json_file.items(file, "products.item"),
            partial(_product, sets),
            named_by("idProduct", "name"),
        )


def _product(sets: dict[int, Record], one: Record) -> Iterator[Printing]:
    of = sets.get(one["idExpansion"])
    if of is None:
        raise Unfit(f"expansion {one['idExpansion']} is not in the list of expansions")
    kind = text_in(one, "categoryName").split()
    game = GAMES.get(kind[0])
    if game is None or kind[-1] != "Single":
        return
    yield Printing(
        game,
        text_in(of, "enName"),
        text_or_none(of, "abbreviation"),
        text_in(one, "name"),
        None,
        None,
        None,
        "en",
        None,
        cardmarket_id=id_text(one.get("idProduct")),
    )
