"""`cardsync-agent imported FILE`: the seller imported a price file of exports/ or outbox/ into the
marketplace, or could not.

The file comes in; the server's record of it goes out. It moves the cards' current prices and ends
the task or the rollback that the file was for.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardsync_agent import clock
from cardsync_agent.client import Client

# A request holds at most this many rows. A longer file is reported without its rows, and the next
# inventory brings their prices.
MOST_ROWS = 100_000
MOST_REASON = 300
_ID, _PRICE = "TCGplayer Id", "TCG Marketplace Price"


class NoPriceFile(Exception):
    """The file is no price file; the message is one sentence for the person at the command line."""


@dataclass(frozen=True)
class PriceFile:
    """`rows` are {marketplace_id, new_price}; the hash is over the bytes that the server served,
    which finds a rollback or new listings by it.
    """

    sha256: str
    rows: list[dict[str, Any]]
    # New listings have no id of the marketplace yet.
    without_id: int = 0

    @property
    def ids(self) -> set[int]:
        return {row["marketplace_id"] for row in self.rows}


def read_prices(path: Path) -> PriceFile:
    """Read a price file. Raises NoPriceFile, whose message names the line."""
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
    return PriceFile(hashlib.sha256(served or content).hexdigest(), rows, len(read) - len(rows))


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


def read_rejected(texts: Sequence[str], prices: PriceFile) -> dict[int, str]:
    """Read `ID` or `ID=REASON`, one a text. Raises NoPriceFile."""
    rejected = {}
    for text in texts:
        name, _, reason = text.partition("=")
        name = name.strip()
        if not (name.isascii() and name.isdigit() and int(name) in prices.ids):
            raise NoPriceFile(f"--rejected {name[:40]}: the file has no card of this id")
        rejected[int(name)] = reason.strip()[:MOST_REASON] or "the marketplace refused it"
    return rejected


def _row(path: Path, line: int, row: dict[str, str | None]) -> dict[str, Any] | None:
    """Read a line; None for a new listing, which has no id yet."""
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
    rejected: Mapping[int, str],
    paused: Collection[int],
) -> str:
    """Report the file to the server and return the sentence to print.

    `failure` is the reason why the marketplace did not take the file, `rejected` the reason of
    each card that it did not take, `paused` the cards that the agent leaves out from now on.
    """
    rows = [row for row in prices.rows if row["marketplace_id"] not in rejected]
    told: dict[str, Any] = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": len(rows) + prices.without_id,
        "file_sha256": prices.sha256,
    }
    if rejected:
        told["rejected"] = [
            {"marketplace_id": id, "message": reason} for id, reason in rejected.items()
        ]
    if paused:
        told["paused"] = sorted(paused)
    all_rows = len(rows) + prices.without_id
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
        f", and that {len(rejected)} were refused" if rejected else ""
    )
