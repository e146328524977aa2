"""Reads a catalog's file or folder of any known project, as frames of printings and the broken
records, slice by slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import polars as pl

from cardsync.catalog.product_lines import NAMES
from cardsync.catalog.sources import (
    json_file,
    mtgjson,
    own,
    pokemon_tcg_data,
    scryfall,
    tcgcsv,
    tcgdex,
)
from cardsync.catalog.sources.source_record import Broken, CatalogError, Found, Printing

_READERS: dict[str, Callable[[Path, str | None], Found]] = {
    "tcgcsv": tcgcsv.read,
    "mtgjson": mtgjson.read,
    "scryfall": scryfall.read,
    "pokemon-tcg-data": pokemon_tcg_data.read,
    "tcgdex": tcgdex.read,
}
_OWN = ("csv", "parquet")
FORMS = ("auto", *_OWN, *_READERS)
_AT_ONCE = 20_000
# A word that only this source writes, in the first bytes of a file; the first one found counts.
_SIGNS = (
    (b'"localId"', "tcgdex"),
    (b'"tcgplayer_id"', "scryfall"),
    (b'"collector_number"', "scryfall"),
    (b'"supertype"', "pokemon-tcg-data"),
    (b'"mtgoCode"', "mtgjson"),
    (b'"keyruneCode"', "mtgjson"),
    (b'"baseSetSize"', "mtgjson"),
)


def slices(path: Path, form: str, game: str | None) -> Iterator[tuple[pl.DataFrame, list[Broken]]]:
    """Yield frames with the columns of `Printing` and the records that were skipped; only `game`'s
    if it is given. Raises CatalogError.
    """
    if game is not None and game not in NAMES:
        raise CatalogError(f"{game!r} is not a known product line; known are {', '.join(NAMES)}")
    form = form_of(path) if form == "auto" else form
    if form in _OWN:
        if path.is_dir():
            raise CatalogError(f"{path.name} is a folder; name one of its files")
        found = own.frames(path, form, game)
    else:
        found = map(_frame, _batches(_READERS[form](path, game)))
    for frame, broken in found:
        yield (frame.filter(pl.col("game") == game) if game else frame), broken


def form_of(path: Path) -> str:
    """Find the format by a file's name and its first bytes. Raises CatalogError."""
    if path.is_dir():
        return _form_of_folder(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = next((name for name in reversed(suffixes) if name not in (".gz", ".xz")), "")
    if last == ".parquet":
        return "parquet"
    if last == ".csv":
        return "tcgcsv" if tcgcsv.columns_of(path) >= tcgcsv.NEEDED else "csv"
    if last == ".json":
        start = json_file.head(path)
        for sign, form in _SIGNS:
            if sign in start:
                return form
        if b'"meta"' in start and b'"data"' in start:
            return "mtgjson"
    raise CatalogError(
        f"the format of {path.name} is unknown; name it with --format ({', '.join(FORMS[1:])})"
    )


def _form_of_folder(path: Path) -> str:
    if any(path.glob("**/cards/**/*.json")) and any(path.glob("**/sets/*.json")):
        return "pokemon-tcg-data"
    if any(path.glob("**/*.csv")):
        return "tcgcsv"
    if any(path.glob("**/*.json")):
        return "tcgdex"
    raise CatalogError(f"the folder {path.name} holds no catalog that is known")


def _batches(found: Found) -> Iterator[list[Printing | Broken]]:
    while some := list(islice(found, _AT_ONCE)):
        yield some


def _frame(some: list[Printing | Broken]) -> tuple[pl.DataFrame, list[Broken]]:
    rows = [one for one in some if isinstance(one, Printing)]
    return (
        pl.DataFrame(rows, schema=own.SCHEMA, orient="row"),
        [one for one in some if isinstance(one, Broken)],
    )
