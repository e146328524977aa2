"""Reads tcgcsv's files: `Groups.csv` lists the sets (groups) of a category, and the file of a group
has a row for each product and printing.

`Groups.csv` is in the folder of the groups' files, or in a folder above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cardsync.catalog.product_lines import CATEGORY_IDS
from cardsync.catalog.sources.source_record import (
    Broken,
    CatalogError,
    Found,
    Printing,
    Record,
    Unfit,
    each,
    id_or_none,
    named_by,
    text_in,
    text_or_none,
)

_GAMES = {category: game for game, category in CATEGORY_IDS.items()}
NEEDED = {"productId", "name", "groupId"}
_GROUPS = {"groupId", "name"}


def read(path: Path, game: str | None) -> Found:
    # Imported late, because the list of sources is often used without reading files.
    from cardsync.catalog.sources import csv_file

    files = sorted(path.glob("**/*.csv")) if path.is_dir() else [path]
    groups = _groups(path)
    products = [file for file in files if columns_of(file) >= NEEDED]
    if not products:
        raise CatalogError(f"{path.name} holds no products: a file with productId, name, groupId")
    if not groups:
        raise CatalogError(
            f"the sets of {path.name} are unknown: put tcgcsv's Groups.csv into the same folder"
        )
    for file in products:
        yield from each(
            csv_file.rows(file),
            lambda row: [_product(groups, game, row)],
            named_by("productId", "name"),
        )


def columns_of(file: Path) -> set[str]:
    """Return the column names of a CSV file; an empty set for any other file."""
    from cardsync.catalog.sources import csv_file

    try:
        return set(csv_file.columns(file))
    except CatalogError:
        return set()


def _groups(path: Path) -> dict[str, Record]:
    """Return the groups by id."""
    from cardsync.catalog.sources import csv_file

    if path.is_dir():
        near: Iterator[Path] = path.glob("**/*.csv")
    else:
        near = (file for up in path.parents[:3] for file in up.glob("*.csv"))
    found: dict[str, Record] = {}
    for file in sorted(near):
        columns = columns_of(file)
        if columns >= _GROUPS and "productId" not in columns:
            found |= {
                row["groupId"]: row for row in csv_file.rows(file) if not isinstance(row, Broken)
            }
    return found


def _product(groups: dict[str, Record], game: str | None, row: Record) -> Printing:
    group = groups.get(text_in(row, "groupId"))
    if group is None:
        raise Unfit(f"group {row['groupId']} is in no file of groups")
    category = id_or_none(row.get("categoryId") or group.get("categoryId"))
    line = _GAMES.get(category) if category is not None else game
    if line is None:
        raise Unfit(f"category {category} is not a known product line")
    number, rarity = text_or_none(row, "extNumber"), text_or_none(row, "extRarity")
    sealed = number is None and rarity is None
    product_id = id_or_none(row.get("productId"))
    if product_id is None:
        raise Unfit("productId is not a number")
    return Printing(
        line,
        text_in(group, "name"),
        text_or_none(group, "abbreviation"),
        text_in(row, "name"),
        number,
        rarity,
        "Sealed" if sealed else text_or_none(row, "subTypeName"),
        "ja" if line == "pokemon_japan" else "en",
        product_id,
    )
