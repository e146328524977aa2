"""Reads CardTrader's blueprints: a list of the expansions, and a file of products for each."""

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
    id_text,
    named_by,
    part,
    text_in,
    text_or_none,
)

# CardTrader's ids of the marketplace's games that we support.
GAMES = {
    1: "magic",
    4: "yugioh",
    5: "pokemon",
    6: "flesh_and_blood",
    8: "digimon",
    15: "one_piece",
    18: "lorcana",
    20: "star_wars_unlimited",
    22: "riftbound",
}


def read(path: Path, _: str | None) -> Found:
    files = sorted(path.glob("**/*.json")) if path.is_dir() else [path]
    near = files if path.is_dir() else sorted(path.parent.glob("*.json"))
    sets: dict[int, Record] = {}
    lists: list[Path] = []
    for file in near:
        first = next(iter(json_file.items(file, "item")), None)
        if isinstance(first, dict) and "expansion_id" in first:
            lists.append(file)
        elif isinstance(first, dict) and {"id", "game_id", "name"} <= first.keys():
            sets |= {one["id"]: one for one in json_file.few(file, "item")}
    wanted = [file for file in lists if file in files]
    if not wanted or not sets:
        raise CatalogError(
            f"{path.name} needs CardTrader's list of expansions beside its blueprints"
        )
    for file in wanted:
        blueprints = json_file.items(file, "item")
        yield from each(blueprints, partial(_blueprint, sets), named_by("id", "name"))


def _blueprint(sets: dict[int, Record], one: Record) -> Iterator[Printing]:
    of = sets.get(one["expansion_id"])
    if of is None:
        raise Unfit(f"expansion {one['expansion_id']} is not in the list of expansions")
    game = GAMES.get(one.get("game_id", of.get("game_id")))
    if game is None:
        return
    fixed = part(one, "fixed_properties")
    number = text_or_none(fixed, "collector_number")
    rarity = next((text_or_none(fixed, name) for name in fixed if name.endswith("_rarity")), None)
    name, version = text_in(one, "name"), text_or_none(one, "version")
    markets = one.get("card_market_ids")
    yield Printing(
        game,
        text_in(of, "name"),
        (text_or_none(of, "code") or "").upper() or None,
        f"{name} ({version})" if version and game != "magic" else name,
        number,
        rarity,
        "Sealed" if number is None and rarity is None else None,
        "ja" if game == "pokemon_japan" else "en",
        id_or_none(one.get("tcg_player_id")),
        address_or_none(one.get("image_url")),
        scryfall_id=id_text(one.get("scryfall_id")),
        cardmarket_id=id_text(markets[0]) if isinstance(markets, list) and markets else None,
        cardtrader_id=id_text(one.get("id")),
    )
