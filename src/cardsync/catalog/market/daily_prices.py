"""Reads the daily prices of products and printings from public sources (MTGJSON's AllPrices and
tcgcsv's files) in slices, and lists the unusable records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Final

import polars as pl

from cardsync.catalog.market.observation_files import MarketFileError
from cardsync.catalog.printings import NORMAL, printing_named
from cardsync.catalog.sources import csv_file, json_file, mtgjson
from cardsync.catalog.sources.source_record import Broken, CatalogError, id_or_none, part
from cardsync.platform import clock
from cardsync.platform.money import read_amount, to_units
from cardsync.platform.table_text import HEAD_BYTES, NotATable, read_table, refuse_other_kinds

_AT_ONCE: Final = 100_000
_SCHEMA: Final[dict[str, pl.DataType | type[pl.DataType]]] = {
    "product_id": pl.Int64,
    "printing": pl.String,
    "source": pl.String,
    "observed_at": pl.Datetime("us", "UTC"),
    "market": pl.Int64,
    "low": pl.Int64,
}
_TABLES: Final = (".csv", ".tsv", ".tab", ".txt")
_TCGCSV: Final = frozenset({"productId", "marketPrice", "lowPrice"})
_DAY: Final = re.compile(r"(?<!\d)(20\d\d-\d\d-\d\d)(?!\d)")

Row = tuple[int, str, str, datetime, int | None, int | None]
Frames = Iterator[tuple[pl.DataFrame, list[Broken]]]


def form_of(path: Path) -> str:
    """Return the format of a file from its name and its columns. Raises MarketFileError."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = next((name for name in reversed(suffixes) if name not in (".gz", ".xz")), "")
    if last == ".parquet":
        return "parquet"
    if last in _TABLES:
        return "tcgcsv" if _columns(path) >= _TCGCSV else "csv"
    if last == ".json":
        return "tcgcsv" if b'"results"' in _head(path)[:4096] else "mtgjson"
    if path.name == "prices":
        # tcgcsv's archive names its files like this.
        return "tcgcsv"
    try:
        refuse_other_kinds(_head(path))
    except NotATable as e:
        raise MarketFileError(f"{path.name}: {e}") from e
    raise MarketFileError(f"the format of {path.name} is unknown; name it with --format")


def slices(
    path: Path,
    form: str,
    observed_at: datetime | None,
    printings: Path | None,
) -> Frames:
    """Yield frames of prices and the skipped records. Raises MarketFileError."""
    try:
        if form == "mtgjson":
            found = _mtgjson(path, printings)
        else:
            found = _tcgcsv(path, observed_at or _day_in(path))
        yield from _frames(found)
    except CatalogError as e:
        raise MarketFileError(str(e)) from e
    except (pl.exceptions.PolarsError, OSError) as e:
        raise MarketFileError(f"{path.name} cannot be read as {form}: {e}") from e


def _frames(found: Iterator[Row | Broken]) -> Frames:
    while some := list(islice(found, _AT_ONCE)):
        rows = [one for one in some if not isinstance(one, Broken)]
        yield (
            pl.DataFrame(rows, schema=_SCHEMA, orient="row"),
            [one for one in some if isinstance(one, Broken)],
        )


def _columns(path: Path) -> set[str]:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        return set(read_table(head, lambda cells: set(cells) >= _TCGCSV).header)
    except NotATable as e:
        raise MarketFileError(f"{path.name}: {e}") from e
    except OSError as e:
        raise MarketFileError(f"{path.name} cannot be read as csv: {e}") from e


def _head(path: Path) -> bytes:
    try:
        return json_file.head(path)
    except CatalogError as e:
        raise MarketFileError(str(e)) from e


def _day_in(path: Path) -> datetime:
    """Return the day in a file's name, or else in the names of its folders."""
    for name in reversed(path.absolute().parts):
        found = _DAY.search(name)
        if found and (day := clock.read_moment(found[1])) is not None:
            return day
    raise MarketFileError(
        f"the day of {path.name} is unknown: it is not in the file name or folder names, so give it with --observed-at"
    )


def _tcgcsv(path: Path, observed_at: datetime) -> Iterator[Row | Broken]:
    records: Iterable[object]
    if path.suffix.lower() == ".csv":
        records = csv_file.rows(path)
    else:
        records = json_file.items(path, "item", "results.item")
    for at, record in enumerate(records, 1):
        if isinstance(record, Broken):
            yield record
            continue
        if not isinstance(record, Mapping):
            yield Broken(f"record {at:,}", "it is not an object")
            continue
        product_id = id_or_none(record.get("productId"))
        printing = printing_named(str(record.get("subTypeName") or NORMAL))
        if not product_id:
            yield Broken(f"record {at:,}", "productId is not a number")
        elif printing is None:
            yield Broken(
                f"record {at:,}", f"{str(record['subTypeName'])[:80]} is not a known printing"
            )
        else:
            market, low = units_of(record.get("marketPrice")), units_of(record.get("lowPrice"))
            if market is not None or low is not None:
                yield (product_id, printing, "tcgcsv", observed_at, market, low)


def _mtgjson(path: Path, printings: Path | None) -> Iterator[Row | Broken]:
    if printings is None:
        raise MarketFileError(
            f"{path.name} names cards by MTGJSON's own IDs; name AllPrintings with --printings"
        )
    ids = _mtgjson_ids(printings)
    for uuid, found in json_file.pairs(path, "data"):
        products = ids.get(uuid)
        retail = part(part(part(found, "paper"), "tcgplayer"), "retail") if found else {}
        if not isinstance(retail, dict) or not retail:
            continue
        if products is None:
            yield Broken(f"card {uuid[:80]}", f"{printings.name} does not name its product")
            continue
        for finish, by_day in retail.items():
            product_id, printing = (
                products.get(finish),
                mtgjson.FINISHES.get(_FINISH.get(finish, "")),
            )
            if product_id is None or printing is None or not isinstance(by_day, dict):
                continue
            for day, price in by_day.items():
                moment, market = clock.read_moment(day), units_of(price)
                if moment is None or market is None:
                    yield Broken(
                        f"card {uuid[:80]}, {finish}, {day[:20]}", "it has no day or price"
                    )
                else:
                    yield (product_id, printing, "mtgjson", moment.astimezone(UTC), market, None)


_FINISH: Final = {"normal": "nonfoil", "foil": "foil", "etched": "etched"}


def _mtgjson_ids(path: Path) -> dict[str, dict[str, int]]:
    """Return the marketplace's product ids of each MTGJSON card, by finish."""
    found: dict[str, dict[str, int]] = {}
    for _, of in json_file.pairs(path, "data"):
        if not isinstance(of, dict):
            continue
        # A value of AllIdentifiers is a card; a value of AllPrintings is a set with cards.
        cards = chain(*(value for value in (of.get("cards"), of.get("tokens")) if value))
        for card in [of] if "identifiers" in of else cards:
            ids = part(card, "identifiers")
            product = id_or_none(ids.get("tcgplayerProductId"))
            etched = id_or_none(ids.get("tcgplayerEtchedProductId"))
            uuid = card.get("uuid")
            if isinstance(uuid, str) and (special := etched or product):
                plain = {"normal": product, "foil": product} if product else {}
                found[uuid] = {**plain, "etched": special}
    return found


def units_of(value: object) -> int | None:
    """Return a price as ten-thousandths; a blank, zero, negative or infinite price is null."""
    try:
        return max(to_units(read_amount(value)), 0) or None
    except ValueError:
        return None
