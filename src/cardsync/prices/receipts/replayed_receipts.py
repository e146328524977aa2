"""Prices the newest pricing run of some shops again from the receipts of a backup, to prove that a
restored shop can explain its prices.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cardsync.platform.database.urls import BACKUP_ROLE, connect
from cardsync.prices.receipts import parquet_file

_NEWEST: Final = """
    SELECT DISTINCT ON (seller_id) id, summary ->> 'receipts' FROM price_run
     WHERE summary ->> 'receipts' IS NOT NULL ORDER BY seller_id, id DESC LIMIT 20
"""


def fault(url: str, objects: Path) -> str | None:
    """Return a sentence on the first run whose prices do not follow from its receipts; None if all
    prices do.
    """
    with connect(url, role=BACKUP_ROLE) as connection:
        newest = connection.execute(_NEWEST).fetchall()
    for run_id, key in newest:
        path = objects / key
        if path.exists() and (differ := parquet_file.replay(path.read_bytes())):
            return f"{differ:,} prices of pricing run {run_id} do not follow from its receipts"
    return None
