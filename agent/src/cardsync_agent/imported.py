"""`cardsync-agent imported FILE`: the seller imported a price file of exports/ or outbox/ into the
marketplace, or could not.

The file comes in; the server's record of it goes out. It moves the cards' current prices and ends
the task or the rollback that the file was for.
"""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardsync_agent import clock
from cardsync_agent.client import Client

# A request holds at most this many rows. A longer file is reported without its rows, and the next
# inventory brings their prices.
MOST_ROWS = 100_000
_ID, _PRICE = "TCGplayer Id", "TCG Marketplace Price"


class NoPriceFile(Exception):
    """The file is no price file; the message is one sentence for the person at the command line."""


@dataclass(frozen=True)
class PriceFile:
    """`rows` are {marketplace_id, new_price}; the hash is over the file's bytes, and the server
    finds a rollback by it.
    """

    sha256: str
    rows: list[dict[str, Any]]


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
        rows = [_row(path, line, row) for line, row in enumerate(lines, 2)]
    except (UnicodeDecodeError, csv.Error) as trouble:
        raise NoPriceFile(f"{path} is no price file: {trouble}") from trouble
    return PriceFile(hashlib.sha256(content).hexdigest(), rows)


def _row(path: Path, line: int, row: dict[str, str | None]) -> dict[str, Any]:
    id, price = row[_ID] or "", row[_PRICE]
    if not (id.isascii() and id.isdigit()):
        raise NoPriceFile(f"{path}, line {line}: {id[:40]!r} is no {_ID}")
    if price is None:
        raise NoPriceFile(f"{path}, line {line}: the line ends before {_PRICE!r}")
    return {"marketplace_id": int(id), "new_price": price}


def report(client: Client, prices: PriceFile, failure: str | None) -> str:
    """Report the file to the server and return the sentence to print.

    `failure` is the reason why the marketplace did not take the file.
    """
    told: dict[str, Any] = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": len(prices.rows),
        "file_sha256": prices.sha256,
    }
    count = "1 price was" if len(prices.rows) == 1 else f"{len(prices.rows)} prices were"
    if failure is not None:
        error = {"code": "marketplace_refused", "message": failure}
        client.report_prices(
            "repricing_events/failure", told | {"step": "import_prices", "error": error}
        )
        return f"the server knows that {count} not imported; nothing has changed"
    if len(prices.rows) > MOST_ROWS:
        client.report_prices("repricing_events", told)
        return (
            f"the server knows that {count} imported;"
            f" the next inventory shows it the prices of more than {MOST_ROWS} rows"
        )
    client.report_prices("repricing_events", told | {"rows": prices.rows})
    return f"the server knows that {count} imported"
