"""Reads a catalog from a file or folder of any supported source, slice by slice, as frames of
printings and lists of broken records.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import polars as pl

from cardsync.catalog.product_lines import NAMES
from cardsync.catalog.sources import json_file, own, tcgcsv
from cardsync.catalog.sources.declared import BY_NAME, SOURCES
from cardsync.catalog.sources.source_record import Broken, CatalogError, Found, Printing

_OWN = ("csv", "parquet")
FORMS = ("auto", *_OWN, *BY_NAME)
_AT_ONCE = 20_000


def slices(path: Path, form: str, game: str | None) -> Iterator[tuple[pl.DataFrame, list[Broken]]]:
    """Yield frames with the columns of `Printing`, and the skipped records; with `game`, only
    printings of this game. Raises CatalogError.
    """
    if game is not None and game not in NAMES:
        raise CatalogError(f"{game!r} is not a known product line; known are {', '.join(NAMES)}")
    if form not in FORMS:
        raise CatalogError(f"{form!r} is not a known format; known are {', '.join(FORMS)}")
    form = form_of(path) if form == "auto" else form
    if form in _OWN:
        if path.is_dir():
            raise CatalogError(f"{path.name} is a folder; name one of its files")
        found = own.frames(path, form, game)
    else:
        found = map(_frame, _batches(BY_NAME[form].read(path, game)))
    for frame, broken in found:
        yield (frame.filter(pl.col("game") == game) if game else frame), broken


def form_of(path: Path) -> str:
    """Return the format of a file or folder from its name and first bytes. Raises CatalogError."""
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
        for source in SOURCES:
            if any(sign in start for sign in source.signs):
                return source.name
        if b'"meta"' in start and b'"data"' in start:
            return "mtgjson"
    raise CatalogError(
        f"the format of {path.name} is unknown; `cardsync catalog import --format` names it ({', '.join(FORMS[1:])})"
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
