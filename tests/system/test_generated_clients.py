"""Two generators of typed clients read openapi.json without a warning; what they write passes the
checkers of types, and leads a shop through its first hour: the key, an upload, orders, prices.

Only a generator that is not ours finds what of the description no other program can use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.inventories import inventory
from tests.system.node_packages import NODE, with_packages
from tests.system.processes import Seller, Server

ROOT = Path(__file__).parents[2]
PINS = ROOT / "requirements" / "clients.txt"
pytestmark = [pytest.mark.night, pytest.mark.day]

PYTHON_STORY = """
import sys
import time

import httpx

from cardsync_client import AuthenticatedClient
from cardsync_client.api.cards import cards
from cardsync_client.api.inventory import read_upload, request_upload, upload_inventory
from cardsync_client.api.orders import orders, upload_orders
from cardsync_client.api.pricing import explain_price, preview_draft_rule, price_updates
from cardsync_client.api.sync import status
from cardsync_client.models import (
    Accepted, AcceptedRows, CardsPage, DraftAsked, DraftPreview, Explanation, InventoryReport,
    OrdersPage, RuleFields, RuleFieldsPriceSource, UploadInventoryJsonBody, UploadOrdersBodyItem,
    UploadSlot,
)
from cardsync_client.types import File

address, key, file = sys.argv[1:]
stranger = status.sync_detailed(client=AuthenticatedClient(address, "csk_unknown"))
assert stranger.status_code == 401, stranger
shop = AuthenticatedClient(address, key)
# This generator sends the absence of a body as it is, which is no JSON.
slot = request_upload.sync(client=shop, body=None)
assert isinstance(slot, UploadSlot), slot
with open(file, "rb") as rows:
    httpx.put(slot.upload_url, content=rows.read()).raise_for_status()
accepted = upload_inventory.sync(client=shop, body=UploadInventoryJsonBody(key=slot.key))
assert isinstance(accepted, Accepted), accepted
while True:
    report = read_upload.sync(accepted.upload_id, client=shop)
    assert isinstance(report, InventoryReport), report
    if report.state == "done":
        break
    time.sleep(0.2)
assert report.rows > 0, report
found = cards.sync(client=shop, search="quantity>0", per_page=1)
assert isinstance(found, CardsPage) and found.total > 0, found
of_card = found.cards[0].marketplace_id
assert of_card is not None
why = explain_price.sync(of_card, client=shop)
assert isinstance(why, Explanation) and why.steps, why
rule = RuleFields(name="High", query="price>0", price_source=RuleFieldsPriceSource.MARKET, adjust_bp=-300)
draft = preview_draft_rule.sync(client=shop, body=DraftAsked(rule=rule))
assert isinstance(draft, DraftPreview) and draft.cards > 0, draft
one = UploadOrdersBodyItem(order_number="P-1", order_date="2026-11-28", product_amt="6.75")
sent = upload_orders.sync(client=shop, body=[one])
assert isinstance(sent, AcceptedRows), sent
while True:
    page = orders.sync(client=shop, search="P-1")
    assert isinstance(page, OrdersPage), page
    if page.total:
        break
    time.sleep(0.2)
assert page.orders[0].product_amt == "6.75", page
changes = price_updates.sync(client=shop)
assert isinstance(changes, File) and changes.payload.read().startswith(b"TCGplayer Id"), changes
print("done")
"""
TYPESCRIPT_STORY = """
import { readFileSync } from "node:fs";
import openapiFetch from "openapi-fetch";
import type { paths } from "./cardsync.d.ts";

const [address, key, file] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${key}` };
const shop = openapiFetch<paths>({ baseUrl: address, headers });
const pause = () => new Promise((done) => setTimeout(done, 200));
function told<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const stranger = openapiFetch<paths>({ baseUrl: address, headers: { Authorization: "Bearer csk_unknown" } });
const { response } = await stranger.GET("/api/v1/status");
if (response.status !== 401) throw new Error(`${response.status}`);
const slot = told(await shop.POST("/api/v1/sync/upload-request", {}));
await fetch(slot.upload_url, { method: "PUT", body: readFileSync(file) });
const accepted = told(await shop.POST("/api/v1/sync", { body: { key: slot.key } }));
const path = { upload_id: accepted.upload_id };
for (;;) {
  const report = told(await shop.GET("/api/v1/uploads/{upload_id}", { params: { path } }));
  if (report.state === "done") break;
  if (report.state === "failed") throw new Error(JSON.stringify(report));
  await pause();
}
const query = { search: "quantity>0", per_page: 1 };
const found = told(await shop.GET("/api/cards", { params: { query } }));
const marketplace_id = found.cards[0].marketplace_id;
const why = told(
  await shop.GET("/api/v1/pricing/explain/{marketplace_id}", { params: { path: { marketplace_id } } }),
);
if (why.steps.length === 0) throw new Error("no step");
const rule = { name: "High", query: "price>0", price_source: "market" as const, adjust_bp: -300 };
const draft = told(await shop.POST("/api/pricing/preview/draft", { body: { rule } }));
if (!(draft.cards > 0)) throw new Error(JSON.stringify(draft));
const order = { order_number: "T-1", order_date: "2026-11-28", product_amt: "6.75" };
told(await shop.POST("/api/v1/orders", { body: [order] }));
for (;;) {
  const page = told(await shop.GET("/api/orders", { params: { query: { search: "T-1" } } }));
  if (page.total > 0) break;
  await pause();
}
const csv = await shop.GET("/api/v1/export/price-updates", { parseAs: "text" });
if (!String(told(csv)).startsWith("TCGplayer Id")) throw new Error(String(csv.data));
console.log("done");
"""


@pytest.fixture(scope="module")
def seller(server: Server) -> Seller:
    return server.seller()


def ran(*command: str | Path, folder: Path, **env: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout + done.stderr


def test_the_python_client_is_written_typed_and_works(
    server: Server, seller: Seller, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "--target", tools]
    ran(*pip, "-r", PINS, folder=tmp_path)
    settings = ROOT / "deploy" / "openapi-python-client.yml"
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--config", settings]
    url = f"{server.url}/openapi/openapi.json"
    said = ran(*command, "--url", url, "--fail-on-warning", folder=tmp_path, PYTHONPATH=str(tools))
    assert "WARNING" not in said, said
    [package] = tmp_path.glob("*/cardsync_client")
    story = package.parent / "story.py"
    story.write_text(PYTHON_STORY)
    (package.parent / "rows.csv").write_bytes(inventory(30))
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-incremental"]
    paths = {"PYTHONPATH": str(tools)}
    ran(*mypy, package.name, story.name, folder=package.parent, **paths)
    told = [server.url, seller.api_key, "rows.csv"]
    assert ran(sys.executable, story.name, *told, folder=package.parent, **paths) == "done\n"


def test_the_typescript_client_is_written_typed_and_works(
    server: Server, seller: Seller, tmp_path: Path
) -> None:
    with_packages(ROOT / "frontend" / "clients", tmp_path)
    node = tmp_path / NODE
    generate = [
        node,
        "node_modules/openapi-typescript/bin/cli.js",
        f"{server.url}/openapi/openapi.json",
    ]
    said = ran(*generate, "-o", "cardsync.d.ts", folder=tmp_path)
    assert "warn" not in said.lower(), said
    (tmp_path / "story.mts").write_text(TYPESCRIPT_STORY)
    (tmp_path / "rows.csv").write_bytes(inventory(30))
    (tmp_path / "node.d.ts").write_text(
        "declare const process: { argv: string[] };\n"
        'declare module "node:fs" { export function readFileSync(path: string): Blob }\n'
    )
    checks = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext",
              "--lib", "es2022,dom,dom.iterable", "--allowImportingTsExtensions"]  # fmt: skip
    tsc = [node, "node_modules/typescript/bin/tsc", *checks]
    ran(*tsc, "story.mts", "node.d.ts", "cardsync.d.ts", folder=tmp_path)
    told = [server.url, seller.api_key, "rows.csv"]
    assert ran(node, "story.mts", *told, folder=tmp_path).endswith("done\n")
