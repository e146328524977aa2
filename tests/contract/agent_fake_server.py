"""A server for the agent's tests: plays the spec'd answers over real HTTP, remembers what it was
asked, fails on request.

Not the real server's twin: one seller, one upload at a time, everything in memory.
"""

from __future__ import annotations

import gzip
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "csk_test"
HEADER = (
    b"TCGplayer Id,Product Line,Set Name,Product Name,Title,Number,Rarity,Condition,"
    b"TCG Market Price,TCG Direct Low,"
    b"TCG Low Price With Shipping,TCG Low Price,Total Quantity,Add to Quantity,TCG Marketplace"
    b" Price,Photo URL\r\n"
)
ROW = (
    b'"%d","Magic","Alpha","Lotus, Black","","1","R","Near Mint","9.00","","","","1","0",'
    b'"9.99",""\r\n'
)
ORDER_PATHS = ("orders", "order_refunds", "order_items", "orders/shipping", "order_feedbacks")


def pricing_csv(rows: int = 2, first_id: int = 1) -> bytes:
    return HEADER + b"".join(ROW % (first_id + n) for n in range(rows))


@dataclass
class Fault:
    """Answer `status` (0: hang up) to the next `times` calls that contain (or `whole`: are)
    `path`, before or `after` doing the work.
    """

    path: str
    status: int
    times: int = 1
    after: bool = False
    whole: bool = False
    code: str = "fault"
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | None = None


class FakeServer:
    def __init__(self) -> None:
        self.sync_mode, self.due, self.requested = "full", True, False
        self.force_update, self.plan = False, None
        self.approved: bool | None = False
        self.kind, self.first_sync = "pricing", False
        self.cancel_after = ""  # the seller cancels right after this call
        self.extra: dict[str, Any] = {}  # what a later server adds to every answer
        self.key_flow = True
        self.upload_states = ["queued", "processing", "done"]
        self.upload_error: dict[str, str] | None = None
        self.prices, self.empty_reason, self.etag = pricing_csv(3), "", None
        self.upload_origin = ""
        self.faults: list[Fault] = []
        self.calls: list[str] = []
        self.heartbeats: list[dict[str, Any]] = []
        self.objects: dict[str, bytes] = {}
        self.put_headers: list[dict[str, str]] = []
        self.uploads: dict[int, dict[str, Any]] = {}
        self.logs: list[dict[str, Any]] = []
        self.log_agents: list[str] = []
        self.rows: dict[
            str, list[list[dict[str, Any]]]
        ] = {}  # by path, the rows of each accepted request
        self.row_bodies: list[bytes] = []
        self.row_states: list[str] = []
        self.sales: list[dict[str, Any]] = []
        self.gaps: list[str] = []
        self.capabilities: list[str] = []
        self.debugs: list[dict[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []  # those that wait
        self.claimed: dict[int, dict[str, Any]] = {}
        self.outcomes: list[tuple[int, dict[str, Any]]] = []
        self.export_kind = ""
        self.holder: tuple[str, str] | None = None
        self._tickets = 0
        self._lock = threading.Lock()

    def __enter__(self) -> FakeServer:
        self._start(0)
        return self

    def __exit__(
        self, kind: type | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def _start(self, port: int) -> None:
        fake, self._is_down = self, False

        class Handler(_Handler):
            server_state = fake

        ThreadingHTTPServer.allow_reuse_address = True
        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def down(self) -> None:
        self._is_down = True
        self._http.shutdown()
        self._http.server_close()

    def up(self) -> None:
        self._start(self.port)

    def cancel(self) -> None:
        """POST /sync/cancel, save for its answer."""
        self.holder = None
        for upload in self.uploads.values():
            if upload["states"][0] in ("queued", "processing"):
                upload["states"] = ["cancelled"]

    # The tests read the following.
    def contents(self) -> list[bytes]:
        """The accepted files, inflated."""
        raw = [upload["content"] for upload in self.uploads.values()]
        return [gzip.decompress(c) if c[:2] == b"\x1f\x8b" else c for c in raw]

    def cycles(self) -> dict[str, dict[str, Any]]:
        """The log rows: the last report of each cycle."""
        return {log["sync_cycle_id"]: log for log in self.logs}

    # The answers: (status, body, headers).
    def handle(
        self, method: str, target: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        with self._lock:
            if self._is_down:  # connections that were open before
                return 0, None, {}
            path = urlsplit(target).path
            call = f"{method} {path}"
            self.calls.append(call)
            if self.cancel_after and call.endswith(self.cancel_after):
                self.cancel_after = ""
                answer = self._answer(method, path, target, headers, content)
                self.cancel()
                return answer
            fault = next(
                (
                    f
                    for f in self.faults
                    if f.times and (f.path == call if f.whole else f.path in call)
                ),
                None,
            )
            if fault:
                fault.times -= 1
                if fault.after:
                    self._answer(method, path, target, headers, content)
                body = fault.body or {"error": "told to fail", "code": fault.code}
                return fault.status, body, fault.headers
            return self._answer(method, path, target, headers, content)

    def _answer(
        self, method: str, path: str, target: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        if path.startswith("/objects/"):
            return self._put(path.removeprefix("/objects/"), headers, content)
        if headers.get("authorization") != f"Bearer {KEY}":
            return 401, {"error": "invalid or missing key", "code": "unauthorized"}, {}
        name = path.removeprefix("/api/v1/")
        if name.startswith("uploads/"):
            return self._upload(int(name.removeprefix("uploads/")))
        if name == "sync":
            return self._sync(headers, content)
        if name == "sync/pending":
            query = parse_qs(urlsplit(target).query)
            self.capabilities.append(query["capabilities"][0])
            return self._pending(query["agent_id"][0])
        if name == "export/price-updates":
            return self._prices(headers)
        if (method, name) == ("DELETE", "sync/approve_upload"):
            self.approved = False
            return 200, {"status": "ok", "upload_approved": False}, {}
        if name in ORDER_PATHS:
            return self._rows(name, content)
        if name == "tasks/claim":
            return self._claim(json.loads(content))
        if name.startswith("tasks/"):
            return self._end_task(int(name.removeprefix("tasks/")), json.loads(content))
        if name == "sales_report":
            return self._sales_report(json.loads(content))
        if name == "sales_report/gaps":
            return 200, {"gaps": self.gaps}, {}
        if name == "sync/log":
            self.log_agents.append(parse_qs(urlsplit(target).query)["agent_id"][0])
        return self._small(name, json.loads(content) if content else {})

    def _rows(self, name: str, content: bytes) -> tuple[int, Any, dict[str, str]]:
        self.row_bodies.append(content)
        rows = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        assert isinstance(rows, list)
        assert rows
        assert all(row["order_number"] for row in rows)
        self.rows.setdefault(name, []).append(rows)
        if name == "order_feedbacks":
            return 200, {"status": "ok", "updated": len(rows)}, {}
        return (
            202,
            {"status": "accepted", "count": len(rows), "upload_id": 1000 + len(self.row_bodies)},
            {},
        )

    def add_task(self, kind: str, **payload: Any) -> int:
        task_id = 1 + len(self.tasks) + len(self.claimed)
        self.tasks.append({"id": task_id, "kind": kind, "payload": payload, "attempt": 0})
        return task_id

    def expire_claims(self) -> None:
        """Ten minutes pass: what was claimed waits again, and the old tokens mean nothing."""
        for task in self.claimed.values():
            self.tasks.append({**task, "attempt": task["attempt"] + 1})
        self.claimed.clear()

    def _claim(self, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        task = next((task for task in self.tasks if task["kind"] in body["kinds"]), None)
        if task is None:
            return 200, {"tasks": []}, {}
        self.tasks.remove(task)
        self.claimed[task["id"]] = task
        token = f"token-{task['id']}-{task['attempt']}"
        return 200, {"tasks": [{**task, "claim_token": token}]}, {}

    def _end_task(self, task_id: int, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        task = self.claimed.get(task_id)
        if task is None or body["claim_token"] != f"token-{task_id}-{task['attempt']}":
            return 409, {"error": "the claim has run out", "code": "claim_expired"}, {}
        if (task_id, body) not in self.outcomes:
            self.outcomes.append((task_id, body))
        return 200, {"id": task_id, "status": body["status"]}, {}

    def _sales_report(self, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        self.sales.append(body)
        self.gaps = [month for month in self.gaps if month != body["date_from"]]
        return 200, {"status": "ok", "month": body["date_from"][:7]}, {}

    def _small(self, name: str, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        if name == "heartbeat":
            self.heartbeats.append(body)
            flags = {
                "update_available": self.force_update,
                "force_update": self.force_update,
                "has_pending_tasks": bool(self.tasks),
            }
            if self.approved is not None:  # a server of before
                flags["upload_approved"] = self.approved
            return (
                200,
                {**flags, "product_lines": [], "sync_mode": self.sync_mode, **self.extra},
                {},
            )
        if name == "status":
            if self._cycle_uploaded:
                self._upload(len(self.uploads))  # time passes, and the worker works
            return (
                200,
                {
                    "sync_in_progress": self.holder is not None,
                    "phase": "idle",
                    "last_sync_at": self.last_sync_at,
                },
                {},
            )
        if name == "sync/request":
            self.requested, self.kind = True, body["kind"]
            return 200, {"status": "requested"}, {}
        if name == "sync/upload-request":
            if not self.key_flow:
                return 403, {"error": "off", "code": "object_store_pipeline_disabled"}, {}
            self._tickets += 1
            key = f"syncs/u1/{self._tickets}.csv"
            url = f"{self.upload_origin}/objects/{key}?expires=1&signature=x"
            return 200, {"upload_url": url, "key": key, "expires_at": "2026-11-21T08:10:00Z"}, {}
        if name == "sync/debug":
            self.debugs.append(body)
            return 201, None, {}
        assert name == "sync/log"
        self.logs.append(body)
        self.holder = None
        return 201, None, {}

    def _pending(self, agent_id: str) -> tuple[int, Any, dict[str, str]]:
        wait = {"action": "wait", "sync_requested": self.requested}
        if self.holder and (self.holder[0] != agent_id or self._cycle_uploaded):
            return 200, {**wait, "reason": "in_progress"}, {}
        if not (self.holder or self.requested or self.due):
            return 200, {**wait, "reason": "no_sync_needed"}, {}
        if self.plan and self.plan.get("error"):
            return (
                200,
                {
                    "action": "sync",
                    "reason": "scheduled",
                    "sync_requested": False,
                    "plan": self.plan,
                },
                {},
            )
        reason = (
            self.holder[1] if self.holder else "manual_request" if self.requested else "scheduled"
        )
        if self.holder is None:
            self._cycle_uploaded = False
        self.holder, self.requested, self.due = (agent_id, reason), False, False
        body = {
            "action": "sync",
            "reason": reason,
            "sync_requested": False,
            "first_sync": self.first_sync,
        }
        return (
            200,
            {**body, "kind": self.kind, **({"plan": self.plan} if self.plan else {}), **self.extra},
            {},
        )

    _cycle_uploaded = False
    last_sync_at: str | None = None

    def _put(
        self, key: str, headers: dict[str, str], content: bytes
    ) -> tuple[int, Any, dict[str, str]]:
        self.put_headers.append(headers)
        if key in self.objects:
            return 409, {"error": "used", "code": "already_used"}, {}
        self.objects[key] = content
        return 200, None, {}

    def _sync(self, headers: dict[str, str], content: bytes) -> tuple[int, Any, dict[str, str]]:
        if headers["content-type"] != "application/json":
            facts = {
                "cycle": headers["x-sync-cycle-id"],
                "exported_at": headers["x-exported-at"],
                "key": None,
            }
            return self._accept({**facts, "content": content})
        form = json.loads(content)
        for upload_id, upload in self.uploads.items():
            if upload["key"] == form["key"]:
                return 202, {"status": "accepted", "upload_id": upload_id}, {}
        if form["key"] not in self.objects:
            return 422, {"error": "no such object", "code": "invalid_object_key"}, {}
        facts = {
            "cycle": form["sync_cycle_id"],
            "exported_at": form["exported_at"],
            "key": form["key"],
        }
        return self._accept({**facts, "content": self.objects[form["key"]]})

    def _accept(self, upload: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        upload_id = len(self.uploads) + 1
        self.uploads[upload_id] = {**upload, "states": list(self.upload_states)}
        self._cycle_uploaded = True
        return 202, {"status": "accepted", "upload_id": upload_id}, {}

    def _upload(self, upload_id: int) -> tuple[int, Any, dict[str, str]]:
        if upload_id > 1000:  # rows
            state = self.row_states.pop(0) if self.row_states else "done"
            error = (
                {"code": "processing_failed", "message": "it could not"}
                if state == "failed"
                else None
            )
            return 200, {"id": upload_id, "state": state, "error": error}, {}
        if upload_id not in self.uploads:
            return 404, {"error": "no such upload", "code": "not_found"}, {}
        states = self.uploads[upload_id]["states"]
        state = states.pop(0) if len(states) > 1 else states[0]
        if state not in ("queued", "processing"):
            self.holder = None
            self.last_sync_at = "2026-11-21T08:00:00Z" if state == "done" else self.last_sync_at
        report = {
            "id": upload_id,
            "state": state,
            "rows": 2,
            "changed": 3,
            "rejected_count": 0,
            "error": self.upload_error,
        }
        return 200, report, {}

    def _prices(self, headers: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        tag = {"ETag": self.etag} if self.etag else {}
        if self.etag and headers.get("if-none-match") == self.etag:
            return 304, b"", tag
        reason = {"X-Price-Export-Empty-Reason": self.empty_reason} if self.empty_reason else {}
        kind = {"X-Price-Export-Kind": self.export_kind} if self.export_kind else {}
        return 200, self.prices, {**tag, **reason, **kind, "Content-Type": "text/csv"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # head and body in one packet; else Nagle's 40 ms a request
    server_state: FakeServer

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        if len(content) < length:  # whoever sent it has gone
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, body, extra = self.server_state.handle(self.command, self.path, headers, content)
        if status == 0:
            self.close_connection = True
            return
        payload = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        # A test may set the server's own clock.
        self.send_response_only(status)
        length = {"Content-Length": str(len(payload))}
        moment = {"Date": self.date_time_string()}
        kind = {"Content-Type": "application/json"}
        for name, value in {**moment, **kind, **length, **extra}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)
        # Whoever announced more than comes was cut off.
        self.close_connection = self.close_connection or len(payload) < int(
            extra.get("Content-Length", 0)
        )

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def log_message(self, format: str, *args: object) -> None:
        pass
