"""Small pages of a test for the agent's browser: a site on a port of its own, whose answers a test
sets, and packs for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from cardsync_agent.workflow import pack

CSV = b'"TCGplayer Id","Total Quantity"\r\n"1","2"\r\n'


@dataclass
class Answer:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    # Fewer bytes than the Content-Length says: the connection ends in the middle.
    cut_at: int | None = None


def html(body: str, **headers: str) -> Answer:
    page = f"<!doctype html><html><head><title>t</title></head><body>{body}</body></html>"
    return Answer(page.encode(), headers={"Content-Type": "text/html; charset=utf-8", **headers})


def a_file(content: bytes = CSV, kind: str = "text/csv", cut_at: int | None = None) -> Answer:
    disposition = 'attachment; filename="export.csv"'
    headers = {"Content-Type": kind, "Content-Disposition": disposition}
    return Answer(content, headers=headers, cut_at=cut_at)


def redirect(to: str) -> Answer:
    return Answer(b"", 302, {"Location": to})


class Site:
    """`site.pages[path]` is an Answer, or a function that makes one; `site.asked` lists requests."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer | Callable[[], Answer]] = {}
        self.asked: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                site.answer(self)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                site.answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        path = to.path.partition("?")[0]
        self.asked.append(f"{to.command} {to.path}")
        made = self.pages.get(path) or Answer(b"not here", 404, {"Content-Type": "text/plain"})
        answer = made if isinstance(made, Answer) else made()
        to.send_response(answer.status)
        for name, value in answer.headers.items():
            to.send_header(name, value)
        to.send_header("Content-Length", str(len(answer.body)))
        to.end_headers()
        to.wfile.write(answer.body[: answer.cut_at])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def a_pack(
    origin: str,
    elements: dict[str, Any],
    steps: list[dict[str, Any]],
    *,
    workflow: str = "export_inventory",
    repeat: str | None = None,
    **more: Any,
) -> pack.Pack:
    """Elements are locators (`{"css": …}`), lists of them, or whole elements."""
    whole = {
        name: given if isinstance(given, dict) and "locators" in given
        else {"locators": given if isinstance(given, list) else [given]}
        for name, given in elements.items()
    }  # fmt: skip
    flow = {"steps": steps} | ({"repeat": repeat} if repeat else {})
    content = {
        "format": 1, "marketplace": "tests", "locale": "en", "version": 1, "origins": [origin],
        "elements": whole, "workflows": {workflow: flow}, **more,
    }  # fmt: skip
    return pack.read(msgspec.json.encode(content))


def goto(path: str, **then: Any) -> dict[str, Any]:
    return {"verb": "goto", "name": "open", "path": path, "then": then or {"url": path}}


def click(element: str, /, **more: Any) -> dict[str, Any]:
    then = more.pop("then", {"url": "*"})
    return {"verb": "click", "name": f"press_{element}", "element": element, "then": then, **more}


def step(verb: str, name: str, then: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"verb": verb, "name": name, "then": then or {"url": "*"}, **more}
