"""Every CSV that the program hands out is one that a person may open, in which no text is calculated,
or the marketplace's own, whose form is fixed. A new one belongs to one of the tables below.
"""

from __future__ import annotations

import csv
import io
import random
import re
import unicodedata
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import cardsync
from browsers import signed_in
from builders import a_csv, a_row, an_order, read_csv
from pages import PAGES
from requests_of_routes import DOCUMENT

SPAN = "from=2026-07-01&to=2026-07-31"
Fetch = Callable[[Any, Any], Awaitable[bytes]]


def read_at(path: str) -> Fetch:
    async def fetch(owner: Any, upload: int) -> bytes:
        answer = await owner.get(path.format(upload=upload))
        assert answer.status_code == 200, answer.text
        assert isinstance(answer.content, bytes)
        return answer.content

    return fetch


async def previewed(owner: Any, _: int) -> bytes:
    answer = await owner.post("/api/pricing/preview?format=csv", json={})
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.content, bytes)
    return answer.content


FOR_PEOPLE: dict[str, Fetch] = {
    "/api/cards/export.csv": read_at("/api/cards/export.csv"),
    "/api/customers/export.csv": read_at("/api/customers/export.csv"),
    "/api/export/everything": read_at("/api/export/everything"),
    "/api/lists/export.csv": read_at("/api/lists/export.csv"),
    "/api/orders/export.csv": read_at("/api/orders/export.csv"),
    "/api/pricing/preview": previewed,
    "/api/pricing/runs/export.csv": read_at("/api/pricing/runs/export.csv"),
    "/api/buying/lots.csv": read_at("/api/buying/lots.csv"),
    "/api/buying/profit.csv": read_at(f"/api/buying/profit.csv?by=game&{SPAN}"),
    "/api/sales/cards.csv": read_at(f"/api/sales/cards.csv?{SPAN}"),
    "/api/sales/summary.csv": read_at(f"/api/sales/summary.csv?by=game&{SPAN}"),
    "/api/v1/agent/activity/export.csv": read_at("/api/v1/agent/activity/export.csv"),
    "/api/v1/uploads/{upload_id}/rejected.csv": read_at("/api/v1/uploads/{upload}/rejected.csv"),
    "/activity/export.csv": read_at("/activity/export.csv"),
    "/cards/export.csv": read_at("/cards/export.csv"),
    "/customers/export.csv": read_at("/customers/export.csv"),
    "/lists/export.csv": read_at("/lists/export.csv"),
    "/orders/export.csv": read_at("/orders/export.csv"),
    "/pricing/runs/export.csv": read_at("/pricing/runs/export.csv"),
    "/sync/uploads/{upload_id:int}/rejected.csv": read_at("/sync/uploads/{upload}/rejected.csv"),
}
FOR_THE_MARKETPLACE = {
    "/api/pricing/updates.csv",
    "/api/v1/export/price-updates",
    "/sync/prices.csv",
}
# The modules that write a CSV by their own means, beside `platform/kit/csv_table.py`.
WRITERS = {
    "prices/files/content.py": "the marketplace's",
    "platform/database/copy.py": "for PostgreSQL",
    "imports/outcome.py": "for a hash",
    "prices/runs/run_pricing.py": "for a hash",
}
_WRITES = re.compile(r"csv\.writer\(|DictWriter\(|\.write_csv\(|FORMAT csv", re.IGNORECASE)


def answers_a_table(path: str, operation: dict[str, Any]) -> bool:
    kinds = {kind for told in operation["responses"].values() for kind in told.get("content", {})}
    return path.endswith(".csv") or bool(kinds & {"text/csv", "application/zip"})


def test_every_route_and_page_that_answers_a_table_is_in_one_of_the_tables():
    routes = {
        path
        for path, methods in DOCUMENT["paths"].items()
        for operation in methods.values()
        if answers_a_table(path, operation)
    }
    files = {page.route for page in PAGES if page.kind == "file" or page.route.endswith(".csv")}
    assert routes | files == {*FOR_PEOPLE, *FOR_THE_MARKETPLACE}


def test_every_module_that_writes_a_table_is_known():
    src = Path(cardsync.__file__).parent
    found = {
        str(file.relative_to(src)): text
        for file in src.rglob("*.py")
        if _WRITES.search(text := file.read_text())
    }
    assert set(found) == {"platform/kit/csv_table.py", *WRITERS}
    for name, by in WRITERS.items():
        assert by != "safe_texts" or "safe_texts(" in found[name], name


def a_text(dice: random.Random) -> str:
    "Text that a spreadsheet may calculate, or a harmless one that looks like it."
    before = "".join(dice.choices(["", "", "\u200b", " ", "\u00a0", "\ufeff", "\u3000"], k=3))
    sign = dice.choice(["=", "+", "-", "@", "＝", "＋", "－", "＠", "", "'="])
    return f"{before}{sign}{dice.choice(['HYPERLINK(1)', '1+1', 'cmd|x!A0', 'Jaguar'])}"


def is_calculated(cell: str) -> bool:
    if re.fullmatch(r"-?\d+(\.\d+)?", cell):
        return False
    seen = [c for c in unicodedata.normalize("NFKC", cell) if c.isprintable() and not c.isspace()]
    return cell[:1] in ("\t", "\r", "\n") or "".join(seen[:1]) in ("=", "+", "-", "@")


@pytest.fixture
async def shop(a_seller) -> tuple[Any, Any, int]:
    """A seller who writes such texts everywhere, and buyers who do."""
    dice = random.Random(26)
    texts = [a_text(dice) for _ in range(40)] + ["=1+1", "\n=1", "\t@x", "plain"]
    seller = await a_seller(lines=["magic"])
    rows = [
        a_row(n, name=text, set=dice.choice(texts), number=dice.choice(texts), quantity=2,
              Rarity=dice.choice(texts), price="1.00", market="2.00")
        for n, text in enumerate(texts, 1)
    ]  # fmt: skip
    rows.append(a_row("=nothing", name="=1+1", set="'=2"))
    report = await seller.import_csv(a_csv(*rows))
    assert report["rejected_count"] == 1
    orders = [
        an_order(number=f"{text[:9]}{n}", buyer_name=text, feedback_comment=text)
        for n, text in enumerate(texts)
    ]
    await seller.orders(orders)
    stored = await seller.stored_orders()
    items = [
        {"order_number": order["order_number"], "sku_id": sku, "product_name": text,
         "product_line": text, "quantity": 1, "unit_price": 1}
        for sku, (order, text) in enumerate(zip(stored, texts, strict=False), 1)
    ]  # fmt: skip
    await seller.items(items)
    owner = await signed_in(seller)
    for text in ("=1+1", "＝2", "@list", "-x"):
        answer = await owner.post("/api/lists", json={"name": text})
        assert answer.status_code == 201, answer.text
        saved = {"name": text, "query": "price>1"}
        assert (await owner.post("/api/saved_searches", json=saved)).status_code == 201
        rule = {"name": text, "state": "draft"}
        assert (await owner.post("/api/pricing/rules", json=rule)).status_code == 201
    [customer, *_] = (await owner.get("/api/customers")).json()["customers"]
    note = {"note": "\n=1+1"}
    path = f"/api/customers/{customer['key']}/note"
    assert (await owner.send("PUT", path, json=note)).status_code == 200
    return seller, owner, report["id"]


def tables_of(data: bytes) -> dict[str, list[list[str]]]:
    if not data.startswith(b"PK"):
        return {"": list(csv.reader(io.StringIO(data.decode(), newline="")))}
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {
            name: list(csv.reader(io.StringIO(file.read(name).decode(), newline="")))
            for name in file.namelist()
            if name.endswith(".csv")
        }


# No text of a person begins a cell of these.
PLAIN = {
    "/api/buying/lots.csv",
    "/api/pricing/preview",
    "/api/pricing/runs/export.csv",
    "/api/v1/agent/activity/export.csv",
    "/activity/export.csv",
    "/pricing/runs/export.csv",
}


async def test_no_cell_of_any_of_them_is_calculated(shop):
    _, owner, upload = shop
    for route, fetch in FOR_PEOPLE.items():
        tables = tables_of(await fetch(owner, upload))
        cells = [(name, cell) for name, rows in tables.items() for row in rows for cell in row]
        assert [cell for cell in cells if is_calculated(cell[1])] == [], route
        guarded = {name for name, cell in cells if cell[:1] == "'" and is_calculated(cell[1:])}
        if route == "/api/export/everything":
            texts = {"cards", "orders", "order_items", "lists", "saved_searches", "pricing_rules",
                     "customer_notes"}  # fmt: skip
            assert guarded >= {f"{name}.csv" for name in texts}
        else:
            assert bool(guarded) == (route not in PLAIN), route


async def test_parquet_and_the_marketplaces_files_have_the_texts_as_they_are(shop):
    seller, owner, _ = shop
    names = {card["product_name"] for card in await seller.cards()}
    assert any(is_calculated(name) for name in names)
    data = (await owner.get("/api/export/everything")).content
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        cards = pl.read_parquet(file.read("cards.parquet"))
        rows = read_csv(file.read("cards.csv"))
    assert set(cards["product_name"]) == names
    assert [row["price"] for row in rows] == [str(price) for price in cards["price"]]
    exported = read_csv((await seller.export()).content)
    assert {row["Product Name"] for row in exported} == names


async def test_a_rejected_row_is_mended_with_its_texts_as_they_were(shop):
    seller, owner, upload = shop
    path = f"/api/v1/uploads/{upload}"
    [row] = read_csv((await owner.get(f"{path}/rejected.csv")).content)
    told = [row[name] for name in ("TCGplayer Id", "Product Name", "Set Name")]
    assert told == ["'=nothing", "'=1+1", "''=2"]
    row["TCGplayer Id"] = "7777"
    out = io.StringIO()
    lines = csv.DictWriter(out, row)
    lines.writeheader()
    lines.writerow(row)
    sent = await owner.post(f"{path}/mend", content=out.getvalue().encode())
    assert sent.status_code == 202, sent.text
    await seller.service.run_jobs()
    [card] = [card for card in await seller.cards() if card["marketplace_id"] == 7777]
    assert (card["product_name"], card["set_name"]) == ("=1+1", "'=2")
