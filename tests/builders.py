"""Builders: a seller over HTTP, inventory rows and CSV files.

No fixtures of data; each test says what it needs.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import re
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import httpx
from litestar import Litestar
from sqlalchemy import text

import watched_prices
from cardsync.access import access_tokens
from cardsync.agents.agentwork import tasks
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.exported import fingerprint
from cardsync.agents.seller_state.models import SyncState
from cardsync.operations.processes.worker import sweep
from cardsync.platform import clock
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.work.jobs import Work
from cardsync.shop.accounts import sellers
from cardsync.shop.credits import ledger
from described import as_described
from inline_jobs import InlineJobs

HEADER = [
    "TCGplayer Id", "Product Line", "Set Name", "Product Name", "Title", "Number", "Rarity",
    "Condition", "TCG Market Price",
    "TCG Direct Low", "TCG Low Price With Shipping", "TCG Low Price", "Total Quantity",
    "Add to Quantity",
    "TCG Marketplace Price", "Photo URL",
]  # fmt: skip

_numbers = itertools.count(1)
_AS_IT_IS = re.compile(r"(<(textarea|pre|script)\b.*?</\2>)", re.DOTALL)


async def one_line(response: httpx.Response) -> None:
    """Put a page's lines together, as a browser shows them: tests do not depend on where a template
    breaks its lines.
    """
    raw = response.request.extensions.get("raw", False)
    if raw or not response.headers.get("Content-Type", "").startswith("text/html"):
        return
    await response.aread()
    parts = _AS_IT_IS.split(response.text)
    for place in range(0, len(parts), 3):
        parts[place] = re.sub(r"\s*\n\s*", " ", parts[place])
    kept = [part for place, part in enumerate(parts) if place % 3 != 2]
    response._content = "".join(kept).encode(response.encoding or "utf-8")
    del response._text


def environment(settings: Settings) -> dict[str, str]:
    """The variables by which a command finds the database and the store of the settings."""
    given = {
        "CARDSYNC_DATABASE_URL": settings.database_url,
        "CARDSYNC_DATA_DIR": str(settings.data_dir),
        "CARDSYNC_SECRET_KEY": settings.secret_key,
        "CARDSYNC_OBJECT_STORE_URL": settings.object_store_url,
    }
    return {name: value for name, value in given.items() if value is not None}


def a_client(
    app: Litestar, origin: str = "http://test", address: str = "127.0.0.1", **options: Any
) -> httpx.AsyncClient:
    """A client at an address; each answer is held against openapi.json."""
    transport = httpx.ASGITransport(
        app=app,  # type: ignore[arg-type]
        client=(address, 123),
        raise_app_exceptions=False,
    )
    hooks = {"response": [one_line, as_described]}
    return httpx.AsyncClient(transport=transport, base_url=origin, event_hooks=hooks, **options)


@dataclass(frozen=True)
class Service:
    """The application in this process, and what its jobs need."""

    settings: Settings
    app: Litestar
    database: Database
    work: Work
    jobs: InlineJobs

    def client(self, address: str = "127.0.0.1", **headers: str) -> httpx.AsyncClient:
        return a_client(self.app, self.settings.origin, address, headers=headers)

    async def run_jobs(self) -> None:
        """Work off every job that waits, here and now."""
        await self.jobs.run()

    async def objects(self, prefix: str = "") -> list[str]:
        """The keys of the store's objects, of any kind of store."""
        return await self.work.store.keys(prefix)

    async def sql(self, seller_id: int, query: str, **values: Any) -> list[dict[str, Any]]:
        """Rows of a query in a seller's scope, for looking behind the interface."""
        async with self.database.tenant(seller_id) as session:
            if "CARDSYNC_TEST_CITUS_URL" in os.environ:
                # What looks behind the interface need not name its seller.
                await session.execute(text("SET LOCAL citus.multi_task_query_log_level = off"))
            if re.search("UPDATE (card|account)\\b", query):
                await session.execute(text(watched_prices.BY_HAND))
            result = await session.execute(text(query), values)
            return [dict(row) for row in result.mappings()] if result.returns_rows else []


@dataclass
class Seller:
    """A seller with its key: `await seller.get("/api/v1/status")`."""

    service: Service
    id: int
    api_key: str
    email: str
    password: str
    http: httpx.AsyncClient = field(repr=False)

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.http.get(path, **options)

    async def post(self, path: str, **options: Any) -> httpx.Response:
        return await self.http.post(path, **options)

    async def upload(self, data: bytes, *, gzipped: bool = True, **headers: str) -> httpx.Response:
        """POST /sync in the raw form."""
        kind = "application/gzip" if gzipped else "text/csv"
        body = gzip.compress(data) if gzipped else data
        return await self.post(
            "/api/v1/sync", content=body, headers={"Content-Type": kind, **headers}
        )

    async def import_csv(self, data: bytes, **headers: str) -> dict[str, Any]:
        """Upload, run the jobs, and return the upload's report."""
        answer = await self.upload(data, **headers)
        assert answer.status_code == 202, answer.text
        await self.service.run_jobs()
        await self.fingerprint_is_right()
        return await self.report(answer.json()["upload_id"])

    async def made_old(self, table: str, moment: str, days: int) -> None:
        """Let the rows of a table with ids be older."""
        await self.service.sql(
            self.id,
            f"""
            WITH o AS MATERIALIZED (
                SELECT id, {moment} - make_interval(days => :days) AS earlier
                  FROM {table} WHERE seller_id = :id)
            UPDATE {table} t SET {moment} = o.earlier FROM o
             WHERE t.seller_id = :id AND t.id = o.id
            """,
            id=self.id,
            days=days,
        )

    async def sweep(self) -> int:
        """Let the sweep come by. A turn takes a thousand streams, so the work that earlier tests of
        the process left waiting is forgotten first.
        """
        async with self.service.database.shared() as session:
            others = text("DELETE FROM work_due WHERE seller_id <> :id")
            await session.execute(others, {"id": self.id})
        return await sweep(self.service.work)

    async def fingerprint(self) -> str | None:
        """The stored fingerprint of the exported set."""
        async with self.service.database.tenant(self.id) as session:
            return (await session.get_one(SyncState, self.id)).export_fingerprint

    async def fingerprint_is_right(self) -> None:
        """Check that the cards say at the end what the run computed from its frames."""
        async with self.service.database.tenant(self.id) as session:
            known = await fingerprint(session, self.id)
        assert await self.fingerprint() in (None, known)

    async def reserve(self, **body: Any) -> dict[str, Any]:
        """The answer of upload-request: upload_url, key, expires_at."""
        answer = await self.post("/api/v1/sync/upload-request", json=body)
        assert answer.status_code == 200, answer.text
        slot: dict[str, Any] = answer.json()
        return slot

    async def put(self, url: str, data: Any) -> httpx.Response:
        """A PUT to a presigned URL, by somebody without the key: here, or at a bucket."""
        elsewhere = url.startswith("http") and not url.startswith(self.service.settings.origin)
        async with httpx.AsyncClient() if elsewhere else self.service.client() as http:
            return await http.put(url, content=data)

    async def put_object(self, data: bytes) -> str:
        """Upload `data` by a presigned URL; returns its key."""
        slot = await self.reserve()
        answer = await self.put(slot["upload_url"], data)
        assert answer.status_code == 200, answer.text
        return str(slot["key"])

    async def send_key(self, key: Any, **fields: Any) -> httpx.Response:
        """POST /sync in the key form."""
        return await self.post("/api/v1/sync", json={"key": key, **fields})

    async def import_key(self, key: str, **fields: Any) -> dict[str, Any]:
        """Name the object, run the jobs, and return the upload's report."""
        answer = await self.send_key(key, **fields)
        assert answer.status_code == 202, answer.text
        await self.service.run_jobs()
        return await self.report(answer.json()["upload_id"])

    async def send(
        self, path: str, rows: Any, *, gzipped: bool = False, **headers: str
    ) -> httpx.Response:
        """An order-data upload, accepted and not yet applied: `send("/orders", [...])`; bytes are
        sent as they are.
        """
        body = rows if isinstance(rows, bytes) else json.dumps(rows).encode()
        kind = "application/gzip" if gzipped else "application/json"
        content = gzip.compress(body) if gzipped else body
        return await self.post(
            f"/api/v1{path}", content=content, headers={"Content-Type": kind, **headers}
        )

    async def _apply(self, path: str, rows: Any, **options: Any) -> dict[str, Any]:
        answer = await self.send(path, rows, **options)
        assert answer.status_code == 202, answer.text
        await self.service.run_jobs()
        return await self.report(answer.json()["upload_id"])

    async def orders(self, rows: Any, **options: Any) -> dict[str, Any]:
        """Upload orders, run the jobs, and return the upload's report; likewise the next three."""
        return await self._apply("/orders", rows, **options)

    async def refunds(self, rows: Any, **options: Any) -> dict[str, Any]:
        return await self._apply("/order_refunds", rows, **options)

    async def items(self, rows: Any, **options: Any) -> dict[str, Any]:
        return await self._apply("/order_items", rows, **options)

    async def shipping(self, rows: Any, **options: Any) -> dict[str, Any]:
        return await self._apply("/orders/shipping", rows, **options)

    async def feedback(self, rows: Any, **options: Any) -> httpx.Response:
        return await self.send("/order_feedbacks", rows, **options)

    async def stored_orders(self) -> list[dict[str, Any]]:
        """The rows of the table, by order number."""
        return await self.service.sql(
            self.id,
            f"SELECT orders.*, {PLACED_AT} AS order_placed_at FROM orders"
            " WHERE seller_id = :id ORDER BY order_number",
            id=self.id,
        )

    async def stored_order(self, number: str) -> dict[str, Any]:
        [order] = [row for row in await self.stored_orders() if row["order_number"] == number]
        return order

    async def stored_items(self, number: str) -> list[dict[str, Any]]:
        return await self.service.sql(
            self.id,
            "SELECT i.* FROM order_item i"
            " JOIN orders o ON o.seller_id = i.seller_id AND o.id = i.order_id"
            " WHERE i.seller_id = :id AND o.order_number = :number ORDER BY i.id",
            id=self.id,
            number=number,
        )

    async def report(self, upload_id: int) -> dict[str, Any]:
        answer = await self.get(f"/api/v1/uploads/{upload_id}")
        assert answer.status_code == 200, answer.text
        report: dict[str, Any] = answer.json()
        return report

    async def export(self, **headers: str) -> httpx.Response:
        return await self.get("/api/v1/export/price-updates", headers=headers)

    async def cards(self) -> list[dict[str, Any]]:
        return await self.service.sql(
            self.id, "SELECT * FROM card WHERE seller_id = :id ORDER BY marketplace_id", id=self.id
        )

    async def set(self, **values: Any) -> None:
        """Set values as `cardsync admin seller set` does."""
        pairs = [
            f"{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in values.items()
        ]
        async with self.service.database.tenant(self.id) as session:
            await sellers.change_seller(session, self.id, sellers.read_settings(pairs))

    async def hold_lease(self, holder: str, seconds: float = 30) -> None:
        """Somebody writes prices, or died while doing so."""
        async with self.service.database.tenant(self.id) as session:
            assert await sync_state.take_lease(session, self.id, holder, clock.now(), seconds)

    async def applied(self) -> None:
        """The agent has done what an import left for it: no price push waits any more."""
        async with self.service.database.tenant(self.id) as session:
            await tasks.end_tasks(session, self.id, "apply_price_updates", "completed", clock.now())

    async def token(self, *scopes: str) -> httpx.AsyncClient:
        """A client with a new token of these scopes, as `cardsync admin token create` mints it."""
        async with self.service.database.shared() as session:
            minted = await access_tokens.mint(session, self.id, "a test", scopes, clock.now())
        return self.service.client(Authorization=f"Bearer {minted.token}")

    async def grant(self, credits: int, reason: str = "a test") -> None:
        """Grant credits as `cardsync admin credits grant` does."""
        async with self.service.database.tenant(self.id) as session:
            await ledger.grant(session, self.id, credits, reason, clock.now())


@dataclass(frozen=True)
class SellerBuilder:
    service: Service

    async def __call__(
        self,
        *,
        plan: str = "founder",
        lines: list[str] | None = None,
        sync_mode: str = "full",
        capped: bool = False,
        **settings: Any,
    ) -> Seller:
        """Without `capped`, the preset rule has no cap: most tests want to see a target that the
        market alone decides.
        """
        email = f"seller{next(_numbers)}-{id(self)}@example.invalid"
        async with self.service.database.shared() as session:
            made = await sellers.create_seller(
                session,
                name="A Seller",
                email=email,
                plan=plan,
                lines=lines or [],
                sync_mode=sync_mode,
            )
        http = self.service.client(Authorization=f"Bearer {made.api_key}")
        seller = Seller(self.service, made.seller_id, made.api_key, email, made.password, http)
        if not capped:
            await uncap(self.service.database, seller.id)
        if settings:
            await seller.set(**settings)
        return seller

    async def synced(self, **settings: Any) -> Seller:
        """A seller whose full cycle has just completed: inside the cooldown, nothing due."""
        seller = await self()
        await seller.import_csv(a_csv(a_row()))
        await seller.applied()
        if settings:
            await seller.set(**settings)
        return seller


async def a_shop(a_seller: SellerBuilder, *rows: dict[str, str], **options: Any) -> Seller:
    """A seller whose shop holds these rows; the options are those of `a_seller`."""
    seller = await a_seller(**options)
    await seller.import_csv(a_csv(*rows))
    return seller


async def poll(
    seller: Seller, agent: str | None = "agent-1", *, capabilities: str | None = None
) -> dict[str, Any]:
    """The answer to an agent that asks for work."""
    query = {"agent_id": agent, "capabilities": capabilities}
    given = {name: value for name, value in query.items() if value is not None}
    answer = await seller.get("/api/v1/sync/pending", params=given)
    assert answer.status_code == 200, answer.text
    heard: dict[str, Any] = answer.json()
    return heard


async def log(
    seller: Seller, status: str = "success", steps: dict[str, str] | None = None, **body: Any
) -> None:
    """The agent's log of its cycle; `steps` says how each step ended."""
    if steps is not None:
        body["steps"] = [{"name": name, "status": result} for name, result in steps.items()]
    answer = await seller.post("/api/v1/sync/log", json={"status": status, **body})
    assert (answer.status_code, answer.content) == (201, b""), answer.text
    assert answer.headers["Content-Length"] == "0"


async def cancel(seller: Seller) -> tuple[int, Any]:
    """The status of POST /sync/cancel, with its body or the code of its refusal."""
    answer = await seller.post("/api/v1/sync/cancel")
    body = answer.json()
    return answer.status_code, body["code"] if answer.status_code == 409 else body


async def undo_newest(who: Any, action: str) -> httpx.Response:
    """Undo the newest entry of the activity feed with this action."""
    entries = (await who.get("/api/v1/agent/activity")).json()["activity"]
    newest = next(entry for entry in entries if entry["action"] == action)
    answer: httpx.Response = await who.post(f"/api/v1/agent/activity/{newest['id']}/undo")
    return answer


async def uncap(database: Database, seller_id: int) -> None:
    async with database.tenant(seller_id) as session:
        await session.execute(
            text(
                "UPDATE pricing_rule SET settings = settings || '{\"cap\": null}'"
                " WHERE seller_id = :id"
            ),
            {"id": seller_id},
        )


def a_row(id: int = 1001, **cells: Any) -> dict[str, str]:
    """One inventory row: `a_row(7, quantity=2, price="1.00", market="1.20")`; other cells by
    their column name.
    """
    short = {
        "line": "Product Line", "set": "Set Name", "name": "Product Name", "title": "Title",
        "number": "Number",
        "rarity": "Rarity", "condition": "Condition", "market": "TCG Market Price",
        "direct": "TCG Direct Low",
        "low_with_shipping": "TCG Low Price With Shipping", "low": "TCG Low Price",
        "quantity": "Total Quantity",
        "price": "TCG Marketplace Price", "photo": "Photo URL",
    }  # fmt: skip
    row = {
        "TCGplayer Id": str(id), "Product Line": "Magic", "Set Name": "Dominaria United",
        "Product Name": f"Card {id}", "Title": "",
        "Number": str(id), "Rarity": "C", "Condition": "Near Mint", "TCG Market Price": "1.20",
        "TCG Direct Low": "",
        "TCG Low Price With Shipping": "2.3100", "TCG Low Price": "1.0000", "Total Quantity": "1",
        "Add to Quantity": "0",
        "TCG Marketplace Price": "1.0000", "Photo URL": "",
    }  # fmt: skip
    return row | {short.get(name, name): str(value) for name, value in cells.items()}


def an_order(number: str = "A-1", **fields: Any) -> dict[str, Any]:
    """One row of POST /orders: `an_order("A-7", status="Shipped")`; a field given as `...` is
    absent.
    """
    row = {
        "order_number": number, "buyer_name": "Some Buyer", "order_date": "07/03/2026",
        "status": "Completed - Paid", "product_amt": 10.5,
        "shipping_amt": 1.31, "total_amt": 11.81,
    }  # fmt: skip
    return {name: value for name, value in (row | fields).items() if value is not ...}


def a_csv(*rows: dict[str, str], header: list[str] = HEADER, eol: str = "\r\n") -> bytes:
    """A pricing export: bare header, every value quoted."""
    out = io.StringIO()
    out.write(",".join(header) + eol)
    writer = csv.DictWriter(
        out, header, quoting=csv.QUOTE_ALL, lineterminator=eol, extrasaction="ignore"
    )
    writer.writerows(rows)
    return out.getvalue().encode()


def read_csv(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


def a_chunk(kind: bytes, content: bytes) -> bytes:
    """One chunk of a PNG, with its CRC."""
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def a_png(width: int = 1, height: int = 1, text: bytes = b"") -> bytes:
    """A picture in black; `text` makes it as long as a test needs."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\0" * ((width + 7) // 8)) * height)
    comment = a_chunk(b"tEXt", b"Comment\0" + text) if text else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + a_chunk(b"IHDR", header)
        + comment
        + a_chunk(b"IDAT", rows)
        + a_chunk(b"IEND", b"")
    )


# Python's Decimal reads them all; no door of ours does, but for the comma of forms.
NO_AMOUNTS = ("Infinity", "-Infinity", "NaN", "sNaN", "1_000", "1E+5", "4.1e40000", "١٢", "9" * 50)
