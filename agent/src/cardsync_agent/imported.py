"""The command `cardsync-agent imported FILE`: the seller reports that a price file of exports/ or
outbox/ was imported into the marketplace, or could not be.

The server then updates the cards' prices and ends the task or the rollback of the file.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cardsync_agent import clock, durable
from cardsync_agent.client import Client
from cardsync_agent.state import HOME

# A request has at most this many rows. A longer file is reported without its rows, and the next
# inventory updates their prices.
MOST_ROWS = 100_000
MOST_REASON = 300
_ID, _PRICE = "TCGplayer Id", "TCG Marketplace Price"


class NoPriceFile(Exception):
    """The file is not a price file; the message is one sentence for the person at the command line."""


@dataclass(frozen=True)
class PriceFile:
    """`rows` are {marketplace_id, new_price}. The hash covers the bytes that the server served; it
    identifies a rollback or new listings.
    """

    sha256: str
    rows: list[dict[str, Any]]
    # New listings have no marketplace ID yet.
    without_id: int = 0
    # The server's entry for each line of a file of new listings; the header is line 1.
    entries: Mapping[int, int] = field(default_factory=dict)

    @property
    def ids(self) -> set[int]:
        return {row["marketplace_id"] for row in self.rows}


def read_prices(path: Path) -> PriceFile:
    """Parse a price file. Raises NoPriceFile, whose message names the line."""
    try:
        content = path.read_bytes()
    except OSError as trouble:
        raise NoPriceFile(f"{path} cannot be read: {trouble.strerror or trouble}") from trouble
    try:
        lines = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        if not {_ID, _PRICE} <= set(lines.fieldnames or ()):
            raise NoPriceFile(f"{path} is no price file: it has no column {_ID!r} or {_PRICE!r}")
        read = [_row(path, line, row) for line, row in enumerate(lines, 2)]
    except (UnicodeDecodeError, csv.Error) as trouble:
        raise NoPriceFile(f"{path} is no price file: {trouble}") from trouble
    served = _as_served(path)
    rows = [row for row in read if row is not None]
    sha256 = hashlib.sha256(served or content).hexdigest()
    return PriceFile(sha256, rows, len(read) - len(rows), _entries_of(path, len(read)))


def remember_entries(home: Path, name: str, entries: Sequence[int]) -> None:
    """Store the server's entry for each row of a file of new listings."""
    if entries:
        durable.write(home / f"{name}.entries", ",".join(map(str, entries)).encode())


def _entries_of(path: Path, rows: int) -> dict[int, int]:
    """Return the stored entry of each line; empty for a copy that lacks rows."""
    try:
        kept = (path.parent.parent / HOME / f"{path.name}.entries").read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return {}
    ids = [int(id) for id in kept.split(",") if id.isdigit()]
    return dict(enumerate(ids, 2)) if len(ids) == rows else {}


def _as_served(path: Path) -> bytes | None:
    """Return the file of exports/ that a file of outbox/ was copied from: the copy may lack the
    rows of paused cards.
    """
    if path.parent.name != "outbox":
        return None
    try:
        return (path.parent.parent / "exports" / path.name).read_bytes()
    except OSError:
        return None


@dataclass(frozen=True)
class Refused:
    """Why the marketplace refused cards: `cards` has the reasons by the marketplace's IDs, and
    `entries`, for new listings, the reasons by the server's entries.
    """

    cards: dict[int, str] = field(default_factory=dict)
    entries: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cards) + len(self.entries)


def read_rejected(texts: Sequence[str], prices: PriceFile) -> Refused:
    """Parse `ID`, `line-N` or `entry-N`, each with or without `=REASON`. Raises NoPriceFile."""
    refused = Refused()
    for text in texts:
        name, _, reason = text.partition("=")
        name, reason = name.strip(), reason.strip()[:MOST_REASON] or "the marketplace refused it"
        kind, dash, number = name.partition("-")
        if dash and kind in ("line", "entry"):
            refused.entries[_entry(kind, number, prices)] = reason
            continue
        if not (name.isascii() and name.isdigit() and int(name) in prices.ids):
            raise NoPriceFile(f"--rejected {name[:40]}: the file has no card of this id")
        refused.cards[int(name)] = reason
    return refused


def _entry(kind: str, number: str, prices: PriceFile) -> int:
    known = prices.entries if kind == "line" else {id: id for id in prices.entries.values()}
    if not (number.isascii() and number.isdigit() and int(number) in known):
        raise NoPriceFile(
            f"--rejected {kind}-{number[:40]}: the file has no such {kind} of new listings;"
            " take the whole file, of exports/ in the sync app's folder"
        )
    return known[int(number)]


def _row(path: Path, line: int, row: dict[str, str | None]) -> dict[str, Any] | None:
    """Parse a line. A new listing has no ID yet, so the result is None."""
    id, price = row[_ID] or "", row[_PRICE]
    if not id and (row.get("Add to Quantity") or "0") != "0":
        return None
    if not (id.isascii() and id.isdigit()):
        raise NoPriceFile(f"{path}, line {line}: {id[:40]!r} is no {_ID}")
    if price is None:
        raise NoPriceFile(f"{path}, line {line}: the line ends before {_PRICE!r}")
    return {"marketplace_id": int(id), "new_price": price}


def report(
    client: Client,
    prices: PriceFile,
    failure: str | None,
    refused: Refused,
    paused: Collection[int],
) -> str:
    """Report the file to the server and return the sentence to print.

    `failure` is why the marketplace refused the file, `refused` has the reasons of refused cards,
    `paused` the cards that the agent omits from now on.
    """
    rows = [row for row in prices.rows if row["marketplace_id"] not in refused.cards]
    all_rows = len(prices.rows) + prices.without_id - len(refused)
    told: dict[str, Any] = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": max(all_rows, 0),
        "file_sha256": prices.sha256,
    }
    if refused:
        told["rejected"] = [
            *({"marketplace_id": id, "message": why} for id, why in refused.cards.items()),
            *({"entry_id": id, "message": why} for id, why in refused.entries.items()),
        ]
    if paused:
        told["paused"] = sorted(paused)
    count = "1 price was" if all_rows == 1 else f"{all_rows} prices were"
    if failure is not None:
        error = {"code": "marketplace_refused", "message": failure}
        client.report_prices(
            "repricing_events/failure", told | {"step": "import_prices", "error": error}
        )
        return f"the server knows that {count} not imported; nothing has changed"
    if len(rows) > MOST_ROWS:
        client.report_prices("repricing_events", told)
        return (
            f"the server knows that {count} imported;"
            f" the next inventory shows it the prices of more than {MOST_ROWS} rows"
        )
    client.report_prices("repricing_events", told | {"rows": rows})
    return f"the server knows that {count} imported" + (
        f", and that {len(refused)} were refused" if refused else ""
    )
