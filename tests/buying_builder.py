"""Collections as customers bring them, over HTTP: a catalog of one's own, files of the apps, and the
buy rules of a shop.
"""

from __future__ import annotations

import csv
import io
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from builders import Service
from cardsync.catalog.load_catalog import COLUMNS, import_catalog

PICTURE = "https://cards.scryfall.io/normal/front/0/0/{}.jpg"


class Products(NamedTuple):
    """A set of its own, as products are shared by all sellers."""

    set_name: str
    set_code: str
    ids: dict[str, int]


async def a_catalog(service: Service, folder: Path, *products: dict[str, str]) -> Products:
    """Load the products; each is `{"product_name": …}` with what differs from a common card."""
    mark = uuid.uuid4().hex
    code = "".join(chr(ord("A") + int(digit, 16) % 26) for digit in mark[:6])
    usual = {
        "game": "magic",
        "set_name": f"Set {mark}",
        "set_code": code,
        "rarity": "Common",
        "language": "en",
    }
    path = folder / f"{mark}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(usual | product for product in products)
    await import_catalog(service.database, path, "auto", None, lambda _: None)
    rows = await service.sql(
        1,
        "SELECT id, product_name || ' ' || coalesce(number, '') AS name FROM product"
        " WHERE set_name = :name",
        name=f"Set {mark}",
    )
    return Products(f"Set {mark}", code, {row["name"]: row["id"] for row in rows})


def a_moxfield_file(*rows: dict[str, Any]) -> bytes:
    """Rows of `name`, `set_code`, `number` and what differs from four Near Mint copies."""
    header = (
        "Count,Tradelist Count,Name,Edition,Condition,Language,Foil,Tags,Last Modified,"
        "Collector Number,Alter,Proxy,Purchase Price"
    )
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header.split(","))
    for row in rows:
        usual = {"copies": 4, "condition": "Near Mint", "language": "English", "foil": ""}
        one = usual | row
        cells = [one["copies"], "", one["name"], one["set_code"], one["condition"]]
        writer.writerow([*cells, one["language"], one["foil"], "", "", one["number"], "", "", ""])
    return out.getvalue().encode()


async def brought(who: Any, data: bytes, name: str = "box.csv") -> dict[str, Any]:
    """Bring a file, work it off, and return the collection."""
    answer = await who.post("/api/buying/collections", params={"name": name}, content=data)
    assert answer.status_code == 202, answer.text
    await who.service.run_jobs()
    return await collection(who, answer.json()["id"])


async def collection(who: Any, collection_id: int) -> dict[str, Any]:
    answer = await who.get(f"/api/buying/collections/{collection_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def valued(who: Any, collection_id: int) -> dict[str, Any]:
    answer = await who.get(f"/api/buying/collections/{collection_id}/value")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
