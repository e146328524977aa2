"""The demo's data: a small catalog and one seller's pricing export.

Names, sets and collector numbers are real; IDs, prices and quantities are invented. A few rows of
the export are broken on purpose, so that the demo also shows rejected rows.
"""

import csv
from decimal import Decimal
from pathlib import Path

from cardsync_demo import price_walk

_HERE = Path(__file__).resolve().parent

CATALOG: Path = _HERE / "catalog.csv"
INVENTORY: Path = _HERE / "inventory.csv"
# The columns that follow the market, by the program's own names of these amounts.
MARKET = {
    "market": "TCG Market Price",
    "direct_low": "TCG Direct Low",
    "low_with_shipping": "TCG Low Price With Shipping",
    "low": "TCG Low Price",
}
PRICE = "TCG Marketplace Price"


def whole_rows() -> list[dict[str, str]]:
    """Return the rows of today's export, without those that are broken on purpose."""
    with INVENTORY.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        return [row for row in csv.DictReader(file) if _is_whole(row)]


def write_inventory(path: Path, age: int) -> None:
    """Write the export of `age` days ago, without the rows that are broken on purpose."""
    rows = whole_rows()
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        for row in rows:
            amounts = {name: str(amount) for name, amount in amounts_at(row, age).items()}
            writer.writerow(row | amounts)


def amounts_at(row: dict[str, str], age: int) -> dict[str, Decimal]:
    """Return the row's amounts `age` days ago, by column. Columns without an amount are
    left out.
    """
    sku = int(row["TCGplayer Id"])
    walks = {PRICE: price_walk.price_at} | dict.fromkeys(MARKET.values(), price_walk.market_at)
    return {name: walk(sku, age, Decimal(row[name])) for name, walk in walks.items() if row[name]}


def _is_whole(row: dict[str, str]) -> bool:
    if None in row or None in row.values() or not row["TCGplayer Id"].isdigit():
        return False
    amounts = (row[name].replace(".", "", 1) for name in (*MARKET.values(), PRICE) if row[name])
    return all(amount.isdigit() for amount in amounts)
