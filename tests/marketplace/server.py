"""Serves the simulated marketplace over HTTP/1.1, a thread a connection, and plays the faults that
are the network's.
"""

from __future__ import annotations

import socket
import threading
import time
from datetime import date, datetime
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from . import answers, goods, site
from .answers import Answer
from .shop import Shop
from .site import COOKIE, Site

_MOST_BODY = 100_000_000


class Server:
    """A marketplace that serves until `stop`."""

    def __init__(self, market: Site, port: int) -> None:
        self.site = market
        handler = type("Handler", (_Handler,), {"site": market})
        self._http = _Http(("127.0.0.1", port), handler)
        self.port = self._http.server_address[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def control(self, **told: Any) -> dict[str, Any]:
        """As POST /_control, from within the process. Raises BadFault."""
        return site.control(self.site, told)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client may leave when it likes."""


def started(
    *,
    port: int = 0,
    design: int = 1,
    rows: int = 200,
    orders: int = 120,
    today: date | None = None,
    state: Path | None = None,
) -> Server:
    # Its months end at the marketplace, as those of the service do.
    day = today or datetime.now(ZoneInfo("America/New_York")).date()
    return Server(Site(Shop(goods.make(rows, orders, day), day, design, state)), port)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    site: Site

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        size = min(int(self.headers.get("Content-Length") or 0), _MOST_BODY)
        if self.site.faults.take("half_upload", path):
            self.rfile.read(size // 2)
            self._hang_up()
            return
        body = self.rfile.read(size)
        if path == "/_control":
            self._send(site.controlled(self.site, body))
        else:
            self._answer(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: /_state is the log."""

    def _answer(self, body: bytes) -> None:
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        asked = answers.request(
            "POST" if self.command == "POST" else "GET",
            self.path,
            cookie.value if cookie else "",
            self.headers.get("Content-Type", ""),
            body,
        )
        if asked.path == "/_state":
            self._send(self.site.answer(asked))
            return
        faults, path = self.site.faults, asked.path
        if fault := faults.take("latency", path):
            time.sleep(float(fault.details.get("seconds", 1)))
        if faults.take("hang_up", path):
            self._hang_up()
            return
        self._send(self._refusal(path) or self.site.answer(asked), path)

    def _refusal(self, path: str) -> Answer | None:
        """What a fault has answered in place of the page."""
        faults = self.site.faults
        text = {"Content-Type": "text/html; charset=utf-8"}
        if fault := faults.take("too_many", path):
            rest = str(fault.details.get("retry_after", 1))
            return Answer(429, b"<h1>Too many requests</h1>", text | {"Retry-After": rest})
        if fault := faults.take("error", path):
            status = int(fault.details.get("status", 500))
            return Answer(status, b"<h1>Something broke on our side</h1>", text)
        if fault := faults.take("other_origin", path):
            return answers.redirect(str(fault.details.get("to", "http://localhost:9/")))
        return None

    def _send(self, answer: Answer, path: str = "") -> None:
        body, whole = answer.body, True
        if answer.file:
            if fault := self.site.faults.take("wrong_type", path):
                body = b"<!doctype html><title>Sorry</title><h1>Please try again later</h1>"
                answer.headers["Content-Type"] = "text/html; charset=utf-8"
                if fault.details.get("inline"):
                    del answer.headers["Content-Disposition"]
            whole = not self.site.faults.take("half_download", path)
            self.site.shop.note_download(path, answer.file, body, whole=whole)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body if whole else body[: len(body) // 2])
        self.wfile.flush()
        if not whole:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
