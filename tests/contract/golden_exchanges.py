"""Plays the agent's interface, one exchange after the other: it sends the named requests of a fresh
service's sellers and keeps the answers, without the parts that differ from run to run.
`tests/contract/golden/NAME.json` has each as it must be.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
import struct
import zlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import delete

from builders import Seller, SellerBuilder, Service, a_csv, a_row
from cardsync.agents.releases.signing import canonical
from cardsync.agents.workflows import publish_packs
from cardsync.agents.workflows.publish_packs import WorkflowPack, WorkflowPackKill
from cardsync.platform import clock
from cardsync.web import bodies
from packs_builder import LOCALE, MARKET, a_pack

SHOWN = (
    "content-type", "content-length", "cache-control", "vary", "etag", "retry-after",
    "www-authenticate", "allow",
    "x-price-export-empty-reason", "ratelimit-policy",
)  # fmt: skip
ALWAYS = ("x-request-id", "ratelimit")
SENT = ("content-type", "if-none-match", "x-idempotency-key", "x-product-line", "x-sync-cycle-id")
# Numbers that count sellers, uploads and seconds of this run; those that the service chooses
# itself.
COUNTED = {
    "ahead",
    "oldest_seconds",
    "upload_id",
    "id",
    "heal_id",
    "transaction_id",
    "cooldown_remaining_seconds",
    "retry_after_seconds",
    "rule_id",
    "run_id",
}
PATTERNS = (
    # Before the key inside it is.
    (re.compile(r"https?://[^\s\"]+(/objects/|X-Amz-)[^\s\"]+"), "<upload url>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"syncs/u\d+/[0-9a-f-]{36}\.csv"), "<object key>"),
    (
        re.compile(
            r"(?<=/uploads/)\d+|(?<=upload )\d+|(?<=/tasks/)\d+|(?<=/cycles/)\d+|(?<=/corrections/)\d+|(?<=task )\d+"
        ),
        "<id>",
    ),
    (re.compile(r'W/"[0-9a-f]{24}"'), 'W/"<fingerprint>"'),
    (re.compile(r"(?<=[?&]agent_id=)[^&]+"), "<agent>"),
)
PICTURE = (
    b"\x89PNG\r\n\x1a\n",
    b"IHDR" + struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0),
    b"IDAT" + zlib.compress(b"\0\0"),
    b"IEND",
)


def png() -> bytes:
    """The smallest picture."""
    signature, *chunks = PICTURE
    return signature + b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        for chunk in chunks
    )


def plain(text: str) -> str:
    for pattern, word in PATTERNS:
        text = pattern.sub(word, text)
    return text


def steady(value: Any, name: str = "") -> Any:
    """A JSON value without what differs from run to run; types stay visible."""
    match value:
        case dict():
            return {key: steady(item, key) for key, item in value.items()}
        case list() if name == "gaps":
            return "<months up to today's>"
        case list():
            return [steady(item) for item in value]
        case int() if name in COUNTED and not isinstance(value, bool):
            return f"<{name}>"
        case str() if name == "claim_token":
            return "<claim token>"
        case str() if name == "request_id":
            return "<request id>"
        case str():
            return plain(value)
    return value


def body_of(content: bytes, kind: str) -> Any:
    """JSON as it is, other text as lines, anything else by its first bytes."""
    if not content:
        return None
    if len(content) > 1_000_000:
        return f"<{len(content):,} bytes>"
    if kind.startswith("application/json"):
        with contextlib.suppress(ValueError):
            return steady(json.loads(content))
    try:
        return plain(content.decode()).splitlines()
    except UnicodeDecodeError:
        return "<gzip>" if bodies.is_gzip(content) else "<binary>"


@dataclass
class Book:
    """The requests and their answers, by name."""

    exchanges: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def ask(
        self, name: str, http: httpx.AsyncClient, method: str, path: str, **options: Any
    ) -> httpx.Response:
        request = http.build_request(method, path, **options)
        answer = await http.send(request)
        assert name not in self.exchanges, name
        assert all(header in answer.headers for header in ALWAYS[:1]), name
        sent = {
            header: plain(request.headers[header]) for header in SENT if header in request.headers
        }
        told = {
            header: plain(answer.headers[header]) for header in SHOWN if header in answer.headers
        }
        if answer.content and "content-length" in told:
            del told["content-length"]
        if "retry-after" in told:
            told["retry-after"] = "<seconds>"
        self.exchanges[name] = {
            "request": {
                "method": method,
                "path": plain(str(request.url).removeprefix(str(http.base_url).rstrip("/"))),
                "headers": sent,
                "body": body_of(request.content, request.headers.get("content-type", "")),
            },
            "response": {
                "status": answer.status_code,
                "headers": told,
                "body": body_of(answer.content, answer.headers.get("content-type", "")),
            },
        }
        return answer


INVENTORY = a_csv(
    a_row(1001, price="1.00", market="1.20"), a_row(1002, price="5.00", market="4.00", low="3.50")
)
ORDER = {
    "order_number": "623394E9-23CAFE-565FC", "buyer_name": "A Buyer", "order_date": "11/03/2026",
    "status": "Completed - Paid",
    "product_amt": 12.50, "shipping_amt": 1.27, "total_amt": 13.77,
}  # fmt: skip


async def whole_surface(service: Service, a_seller: SellerBuilder) -> Book:
    book = Book()
    await without_key(book, service)
    seller = await a_seller(lines=["magic", "pokemon"])
    await a_cycle(book, seller)
    await order_data(book, seller)
    await money(book, await a_seller(lines=["magic"]), await a_seller(lines=["magic"], plan="free"))
    await read_only(book, await a_seller(lines=["magic"], sync_mode="read_only"))
    await looked_back(book, seller)
    await stopping(book, await a_seller(lines=["magic"]))
    await refusals(book, seller)
    return book


async def without_key(book: Book, service: Service) -> None:
    async with service.client() as http:
        await book.ask("401 no key", http, "POST", "/api/v1/heartbeat")
    async with service.client(Authorization="Bearer csk_wrong") as http:
        await book.ask("401 wrong key", http, "GET", "/api/v1/status")


async def a_cycle(book: Book, seller: Seller) -> None:
    """Everything that the agent does from start to end, with the presigned flow, and once more in
    the raw form.
    """
    http, service = seller.http, seller.service
    await book.ask(
        "heartbeat",
        http,
        "POST",
        "/api/v1/heartbeat",
        json={"version": "0.1.0", "platform": "linux/amd64"},
    )
    waits = {"version": "0.1.0", "platform": "linux/amd64"} | {
        "your_turn": "captcha",
        "your_turn_host": "market.example",
    }
    await book.ask("heartbeat your turn", http, "POST", "/api/v1/heartbeat", json=waits)
    await service.app.state.last_seen.flush()
    await book.ask("status before", http, "GET", "/api/v1/status")
    await book.ask("request", http, "POST", "/api/v1/sync/request", json={"kind": "pricing"})
    await book.ask(
        "pending sync", http, "GET", "/api/v1/sync/pending", params={"agent_id": "agent-1"}
    )
    await book.ask(
        "pending in progress", http, "GET", "/api/v1/sync/pending", params={"agent_id": "agent-2"}
    )
    ticket = await book.ask(
        "upload-request",
        http,
        "POST",
        "/api/v1/sync/upload-request",
        json={"product_line": "magic"},
    )
    put = await seller.put(ticket.json()["upload_url"], gzip.compress(INVENTORY))
    assert put.status_code == 200
    body = {"key": ticket.json()["key"], "sync_cycle_id": "cycle-1"}
    accepted = await book.ask("sync key form", http, "POST", "/api/v1/sync", json=body)
    upload = f"/api/v1/uploads/{accepted.json()['upload_id']}"
    await book.ask("upload queued", http, "GET", upload)
    await service.run_jobs()
    await book.ask("upload done", http, "GET", upload)
    await book.ask("export", http, "GET", "/api/v1/export/price-updates")
    await book.ask("explain", http, "GET", "/api/v1/pricing/explain/1001")
    picture = {
        "sync_cycle_id": "cycle-1",
        "step_name": "import_prices",
        "screenshot": base64.b64encode(png()).decode(),
    }
    await book.ask("debug", http, "POST", "/api/v1/sync/debug", json=picture)
    steps = [
        {"name": "upload_inventory", "status": "success", "duration_ms": 900},
        {"name": "import_prices", "status": "failed", "error": "no page"},
    ]
    log = {
        "status": "partial",
        "sync_cycle_id": "cycle-1",
        "steps": steps,
        "agent_version": "0.1.0",
        "platform": "linux/amd64",
        "duration_ms": 1200,
    }
    await book.ask("log", http, "POST", "/api/v1/sync/log", json=log)
    await book.ask("status after", http, "GET", "/api/v1/status")
    raw = {"Content-Type": "application/gzip", "X-Sync-Cycle-Id": "cycle-2"}
    await book.ask(
        "sync raw form",
        http,
        "POST",
        "/api/v1/sync",
        content=gzip.compress(INVENTORY, mtime=0),
        headers=raw,
    )
    await service.run_jobs()
    await book.ask(
        "desktop update",
        http,
        "GET",
        "/api/v1/desktop/update",
        params={"version": "1.0", "platform": "linux/amd64"},
    )
    await packed(book, service, http)
    await book.ask("approve_upload", http, "DELETE", "/api/v1/sync/approve_upload")
    moved = {"marketplace_id": 1001, "old_price": "1.00", "new_price": "1.19"}
    imported = {
        "sync_cycle_id": "cycle-2",
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 1,
        "rows": [moved],
    }
    await book.ask("repricing_events", http, "POST", "/api/v1/repricing_events", json=imported)
    failed = imported | {
        "step": "import_prices",
        "error": {"code": "no_page", "message": "no page"},
    }
    await book.ask(
        "repricing_events failure", http, "POST", "/api/v1/repricing_events/failure", json=failed
    )


async def packed(book: Book, service: Service, http: httpx.AsyncClient) -> None:
    """A workflow pack, signed with a key that is the same in each run."""
    content = canonical(a_pack(2))
    draft = publish_packs.Draft(MARKET, LOCALE, 2, content)
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    async with service.database.shared() as session:
        await publish_packs.publish(session, draft, key)
        await publish_packs.kill(session, MARKET, LOCALE, 1)
    path = f"/api/v1/workflow/packs/{MARKET}"
    for name, have in (("workflow pack", 1), ("workflow pack had", 2)):
        await book.ask(name, http, "GET", path, params={"locale": LOCALE, "have": have})
    async with service.database.shared() as session:
        await session.execute(delete(WorkflowPack))
        await session.execute(delete(WorkflowPackKill))


async def order_data(book: Book, seller: Seller) -> None:
    http, number = seller.http, {"order_number": ORDER["order_number"]}
    await book.ask("orders", http, "POST", "/api/v1/orders", json=[ORDER])
    item = {
        **number,
        "product_name": "Card 1001",
        "product_line": "Magic",
        "condition": "Near Mint",
        "set_name": "Dominaria United",
        "rarity": "C",
        "quantity": 1,
        "sku_id": 1001,
    }
    await book.ask("order_items", http, "POST", "/api/v1/order_items", json=[item])
    await book.ask(
        "order_refunds",
        http,
        "POST",
        "/api/v1/order_refunds",
        json=[
            {**number, "total_amt": 2.00, "refund_type": "partial", "refund_origin": "marketplace"}
        ],
    )
    shipping = {
        **number,
        "shipping_method": "Standard",
        "city": "Springfield",
        "state": "IL",
        "postal_code": "01234",
        "tracking_number": "",
        "item_count": 1,
        "product_weight": None,
    }
    await book.ask("orders shipping", http, "POST", "/api/v1/orders/shipping", json=[shipping])
    await book.ask(
        "order_feedbacks",
        http,
        "POST",
        "/api/v1/order_feedbacks",
        json=[{**number, "rating": 5, "comment": "fast"}],
    )
    report = {
        "date_from": "2026-10-01",
        "date_to": "2026-10-31",
        "report": {"gross_sales": 812.40, "order_count": 61, "net_sales": 780.10},
    }
    await book.ask("sales_report", http, "POST", "/api/v1/sales_report", json=report)
    await book.ask(
        "sales_report empty",
        http,
        "POST",
        "/api/v1/sales_report",
        json={**report, "date_from": "2026-09-01", "date_to": "2026-09-30", "report": {}},
    )
    await book.ask("sales_report months", http, "GET", "/api/v1/sales_report")
    await book.ask("sales_report gaps", http, "GET", "/api/v1/sales_report/gaps")
    await book.ask("orders empty", http, "POST", "/api/v1/orders", json=[])
    await book.ask(
        "orders no number", http, "POST", "/api/v1/orders", json=[ORDER, {"status": "Completed"}]
    )
    await book.ask(
        "orders no json",
        http,
        "POST",
        "/api/v1/orders",
        content=b"[{",
        headers={"Content-Type": "application/json"},
    )
    await book.ask(
        "orders no gzip",
        http,
        "POST",
        "/api/v1/orders",
        content=b"\x1f\x8b\x08 broken",
        headers={"Content-Type": "application/gzip"},
    )
    await book.ask(
        "orders too many",
        http,
        "POST",
        "/api/v1/orders",
        content=gzip.compress(json.dumps([number] * 50_001).encode(), mtime=0),
        headers={"Content-Type": "application/gzip"},
    )


async def money(book: Book, seller: Seller, free: Seller) -> None:
    """Cooldown, credits and skip_wait; both sellers have just completed a cycle."""
    for one in (seller, free):
        await one.import_csv(INVENTORY)
    await seller.set(credits_metering_enabled=True)
    key = {"X-Idempotency-Key": "a3f1c2d4-0000-4000-8000-000000000001"}
    await book.ask("request 402 cooldown", seller.http, "POST", "/api/v1/sync/request")
    await book.ask("request 429 cooldown", free.http, "POST", "/api/v1/sync/request")
    await book.ask("skip_wait no key", seller.http, "POST", "/api/v1/sync/skip_wait")
    await book.ask("skip_wait 402", seller.http, "POST", "/api/v1/sync/skip_wait", headers=key)
    await seller.grant(2)
    await book.ask("skip_wait charged", seller.http, "POST", "/api/v1/sync/skip_wait", headers=key)
    await book.ask("skip_wait replayed", seller.http, "POST", "/api/v1/sync/skip_wait", headers=key)
    other = {"X-Idempotency-Key": "another"}
    await book.ask(
        "skip_wait no charge needed", seller.http, "POST", "/api/v1/sync/skip_wait", headers=other
    )
    await seller.get("/api/v1/sync/pending")
    await book.ask(
        "skip_wait in flight", seller.http, "POST", "/api/v1/sync/skip_wait", headers=other
    )
    await seller.post("/api/v1/sync/cancel")
    await seller.hold_lease("rollback")
    await book.ask(
        "skip_wait 409 mutex held", seller.http, "POST", "/api/v1/sync/skip_wait", headers=other
    )


async def read_only(book: Book, seller: Seller) -> None:
    http = seller.http
    report = await seller.import_csv(INVENTORY)
    assert report["state"] == "done"
    export = await book.ask("export with etag", http, "GET", "/api/v1/export/price-updates")
    again = {"If-None-Match": export.headers["etag"]}
    await book.ask("export 304", http, "GET", "/api/v1/export/price-updates", headers=again)
    await seller.set(past_due=True)
    await book.ask("export past due", http, "GET", "/api/v1/export/price-updates")
    await book.ask("pending wait", http, "GET", "/api/v1/sync/pending")


async def stopping(book: Book, seller: Seller) -> None:
    http, service = seller.http, seller.service
    await book.ask("cancel 409", http, "POST", "/api/v1/sync/cancel")
    await seller.get("/api/v1/sync/pending")
    await book.ask("cancel", http, "POST", "/api/v1/sync/cancel")
    await seller.upload(INVENTORY)
    await seller.hold_lease("sync")
    await book.ask("cancel under way", http, "POST", "/api/v1/sync/cancel")
    clock.shift(timedelta(minutes=2))
    await book.ask("heartbeat ends it", http, "POST", "/api/v1/heartbeat")
    await service.run_jobs()
    # Half of an inventory that is missing has to be confirmed or discarded.
    rows = [a_row(number) for number in range(1, 41)]
    await seller.import_csv(a_csv(*rows))
    for answer in ("confirm", "discard"):
        short = await seller.import_csv(a_csv(*rows[:5]))
        await book.ask(answer, http, "POST", f"/api/v1/uploads/{short['id']}/{answer}")
        if answer == "confirm":
            await service.run_jobs()
            await book.ask("confirm 409", http, "POST", f"/api/v1/uploads/{short['id']}/confirm")
            await seller.import_csv(a_csv(*rows))


async def a_claim(book: Book, http: httpx.AsyncClient) -> None:
    """A task's way from its claim to its end, and a token that does not hold it."""
    asked = {"kinds": ["refresh_orders"], "limit": 2}
    answer = await book.ask("tasks claim", http, "POST", "/api/v1/tasks/claim", json=asked)
    [task] = answer.json()["tasks"]
    path = f"/api/v1/tasks/{task['id']}"
    wrong = {"status": "completed", "claim_token": "another"}
    await book.ask("tasks 409 claim expired", http, "PATCH", path, json=wrong)
    done = {"status": "completed", "claim_token": task["claim_token"], "result": {"orders": 3}}
    await book.ask("tasks completed", http, "PATCH", path, json=done)
    await book.ask("tasks none left", http, "POST", "/api/v1/tasks/claim", json=asked)
    await book.ask("tasks listed", http, "GET", "/api/v1/tasks?kind=refresh_orders")


async def looked_back(book: Book, seller: Seller) -> None:
    """Reports of cycles and uploads, rejected rows mended, and a price under a changed rule."""
    http = seller.http
    cycles = await book.ask("cycles", http, "GET", "/api/v1/sync/cycles")
    cycle_id = cycles.json()["cycles"][0]["id"]
    await book.ask("cycle", http, "GET", f"/api/v1/sync/cycles/{cycle_id}")
    path = "/api/v1/pricing/explain/1001/changed"
    await book.ask("explain changed", http, "POST", path, json={"adjust_bp": 100})
    report = await seller.import_csv(a_csv(a_row(1), a_row(2, quantity="many")))
    await book.ask("uploads", http, "GET", "/api/v1/uploads?per_page=1")
    path = f"/api/v1/uploads/{report['id']}"
    rows = await book.ask("rejected rows", http, "GET", f"{path}/rejected.csv")
    mended = rows.content.replace(b"many", b"3")
    headers = {"Content-Type": "text/csv"}
    await book.ask("mend", http, "POST", f"{path}/mend", content=mended, headers=headers)


async def a_repair(book: Book, http: httpx.AsyncClient) -> None:
    """A selector that finds nothing any more: a proposal, its confirmation, and its failure."""
    asked = {
        "workflow": "pricing",
        "step_name": "export_inventory",
        "selector": 'button:has-text("Export CSV")',
        "page_url": "https://marketplace.invalid/pricing",
        "dom_snippet": '<main><button data-testid="export-pricing">Export CSV</button></main>',
    }
    answer = await book.ask("heal", http, "POST", "/api/v1/workflow/heal", json=asked)
    verified = {
        "heal_id": answer.json()["id"],
        "selector": 'button[data-testid="export-pricing"]',
        "verified": True,
    }
    path = "/api/v1/workflow/corrections"
    answer = await book.ask("correction", http, "POST", path, json=verified)
    path = f"{path}/{answer.json()['id']}/failure"
    await book.ask("correction failed", http, "POST", path, json={"error": "it was not there"})


async def refusals(book: Book, seller: Seller) -> None:
    http = seller.http
    await a_repair(book, http)
    for name in ("task", "task again"):
        await book.ask(name, http, "POST", "/api/v1/tasks", json={"kind": "refresh_orders"})
    await a_claim(book, http)
    await book.ask(
        "404 route", http, "GET", "/api/v1/nothing", headers={"Accept": "application/json"}
    )
    await book.ask("404 upload", http, "GET", "/api/v1/uploads/999999999")
    await book.ask("405", http, "GET", "/api/v1/heartbeat")
    await book.ask(
        "415",
        http,
        "POST",
        "/api/v1/heartbeat",
        content=b"x",
        headers={"Content-Type": "text/plain"},
    )
    await book.ask(
        "400 no json",
        http,
        "POST",
        "/api/v1/heartbeat",
        content=b"{",
        headers={"Content-Type": "application/json"},
    )
    await book.ask("422 wrong shape", http, "POST", "/api/v1/sync/log", json={"status": "splendid"})
    await book.ask(
        "422 object key", http, "POST", "/api/v1/sync", json={"key": "syncs/u1/not-mine.csv"}
    )
    await book.ask(
        "422 csv",
        http,
        "POST",
        "/api/v1/sync",
        content=b"hello",
        headers={"Content-Type": "text/csv"},
    )
    await book.ask(
        "422 gzip",
        http,
        "POST",
        "/api/v1/sync",
        content=INVENTORY,
        headers={"Content-Type": "application/gzip"},
    )
    await book.ask(
        "422 product line",
        http,
        "POST",
        "/api/v1/sync/upload-request",
        json={"product_line": "yugioh"},
    )
    await book.ask(
        "413",
        http,
        "POST",
        "/api/v1/sync",
        content=bytes(10_000_001),
        headers={"Content-Type": "text/csv"},
    )
    await book.ask(
        "debug not a picture",
        http,
        "POST",
        "/api/v1/sync/debug",
        json={"sync_cycle_id": "cycle-1", "screenshot": "aGVsbG8="},
    )
    await seller.set(object_store_pipeline_enabled=False)
    await book.ask("403 pipeline disabled", http, "POST", "/api/v1/sync/upload-request")
    await seller.set(suspended=True)
    await book.ask("403 suspended", http, "POST", "/api/v1/heartbeat")
