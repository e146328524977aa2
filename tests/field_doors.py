"""The doors through which the field's files come: each puts one file or text through the service and
returns what came of it in one simple shape.
"""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from httpx import Response

from browsers import signed_in
from builders import Seller
from buying_builder import brought, valued
from cards_builder import found, search
from cardsync.cli import program
from discovery_builder import PATH

Answer = dict[str, Any]
Door = Callable[[Seller, bytes, Path], Awaitable[Answer]]


async def inventory(seller: Seller, data: bytes, folder: Path) -> Answer:
    """The report of an upload, and every card of the shop by its marketplace id."""
    answer = await seller.upload(data, gzipped=False)
    report = {}
    if answer.status_code == 202:
        await seller.service.run_jobs()
        report = await seller.report(answer.json()["upload_id"])
    refused = answer.json()["error"] if not report else (report["error"] or {}).get("message")
    shown = (await search(seller, per_page=200))["cards"]
    foils, reviews = [set(await found(seller, text)) for text in ("is:foil", "is:review")]
    matches = {card["marketplace_id"]: card["match"] for card in await seller.cards()}
    cards = {
        str(id): {
            "name": card["product_name"],
            "set": card["set_name"],
            "foil": id in foils,
            "review": id in reviews,
            "match": matches[id],
            **{name: card[name] for name in _OF_CARD},
        }
        for card in shown
        for id in [card["marketplace_id"]]
    }
    counts = {name: report.get(name) for name in _OF_REPORT}
    counts["products"] = len({card["product_id"] for card in shown})
    status = report.get("state", "refused")
    return {
        "status": status,
        "refused": refused,
        "counts": counts,
        "report": report,
        "cards": cards,
    }


_OF_CARD = (
    "number", "condition", "condition_label", "printing", "language", "quantity", "price",
    "market_price", "product_line", "product_id", "status",
)  # fmt: skip
_OF_REPORT = ("rows", "applied", "rejected_count", "matched", "provisional", "ambiguous", "gone")


async def find(seller: Seller, data: bytes, folder: Path) -> Answer:
    """The names that each line of a text finds, or what is wrong with it."""
    told: Answer = {}
    for line in data.decode().splitlines():
        page = await search(seller, line, per_page=200)
        errors = [one["message"] for one in page["query_errors"]]
        told[line] = "; ".join(errors) or sorted({card["product_name"] for card in page["cards"]})
    return told


async def collection(seller: Seller, data: bytes, folder: Path) -> Answer:
    """A file or a pasted text as a customer's collection; `row` is the line of the file."""
    told = await brought(seller, data)
    path = f"/api/buying/collections/{told['id']}"
    rows = (await seller.get(f"{path}/rows")).json()["rows"]
    waiting = (await seller.get(f"{path}/waiting")).json()["rows"]
    candidates = {row["row"]: row["candidates"] for row in waiting}
    for row in rows:
        row["product"] = row["product_name"]
        row["candidates"] = candidates.get(row["row"], [])
    return told | {"rows": rows, "count": told["rows"]}


async def _refusal(sent: Awaitable[Response]) -> Answer:
    """What is said of a file that is put through a door of other files."""
    answer = await sent
    return {"refused": answer.json()["error"] if answer.is_error else None}


async def collection_refused(seller: Seller, data: bytes, folder: Path) -> Answer:
    return await _refusal(seller.post("/api/buying/collections", content=data))


async def lots(seller: Seller, data: bytes, folder: Path) -> Answer:
    return await _refusal(seller.post("/api/buying/lots/file", json={"csv": data.decode()}))


async def orders(seller: Seller, data: bytes, folder: Path) -> Answer:
    return await _refusal(seller.send("/orders", data))


async def value(seller: Seller, data: bytes, folder: Path) -> Answer:
    """What a collection brings by the preset Standard."""
    owner = await signed_in(seller)
    assert (await owner.post("/api/buying/presets/standard")).status_code == 200
    return await valued(seller, (await brought(seller, data))["id"])


async def discovery(seller: Seller, data: bytes, folder: Path) -> Answer:
    """The result of each reference, given as a JSON list, by its place from 1."""
    told = {}
    for place, card in enumerate(json.loads(data), 1):
        answer = await seller.post(PATH, json=card)
        assert answer.status_code == 200, answer.text
        [told[str(place)]] = answer.json()["results"]
    return told


async def catalog_match(seller: Seller, data: bytes, folder: Path) -> Answer:
    """What `cardsync catalog match` says, and the rows that it writes into its report, by id."""
    file, report = folder / "shop.csv", folder / "report.csv"
    file.write_bytes(data)
    words = ["catalog", "match", str(file), "--report", str(report)]
    done = await asyncio.to_thread(CliRunner().invoke, program, words)
    assert done.exit_code == 0, done.output
    with report.open(newline="") as lines:
        left = {row["listing_id"]: row for row in csv.DictReader(lines)}
    return {"said": done.stdout.strip(), "left": left}


DOORS: dict[str, Door] = {
    "inventory": inventory,
    "search": find,
    "collection": collection,
    "collection_refused": collection_refused,
    "lots": lots,
    "orders": orders,
    "value": value,
    "discovery": discovery,
    "catalog_match": catalog_match,
}
