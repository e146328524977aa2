"""Builders of catalogs that are installed: a server of this machine that stands for all sources, and
small files in the sources' form.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SCRYFALL = "/api.scryfall.com/bulk-data/default-cards"
SCRYFALL_FILE = "/data.scryfall.io/default-cards/default-cards-1.json"
TCGCSV = "/tcgcsv.com/tcgplayer"


@dataclass
class CatalogSite:
    """`files` are the bodies by path, hosts before the paths; `asked` are the requests in their
    order, each with its headers in lower case. `cut` ends the next answer of a path after so many
    bytes, `slow` pauses so long after each kilobyte, `status` answers a path with a refusal,
    `marks` sends marks of the edition, `ranges` takes ranges, and `packs` sends gzip to who takes it.
    """

    port: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    slow: float = 0
    marks: bool = True
    ranges: bool = True
    packs: bool = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def has_magic(self, cards: list[dict[str, Any]], path: str = SCRYFALL_FILE) -> None:
        """Be Scryfall with these cards."""
        index = {"object": "bulk_data", "download_uri": f"https:/{path}"}
        self.files[SCRYFALL] = json.dumps(index).encode()
        self.files[path] = json.dumps(cards).encode()

    def has_groups(self, category: int, *groups: tuple[int, str, list[str]]) -> None:
        """Be TCGCSV with these groups: an id, a name and the lines of its products."""
        lines = ["groupId,name,abbreviation,isSupplemental,publishedOn,modifiedOn,categoryId"]
        lines += [f"{number},{name},,False,,,{category}" for number, name, _ in groups]
        self.files[f"{TCGCSV}/{category}/Groups.csv"] = "\r\n".join(lines).encode()
        for number, _, products in groups:
            head = "productId,name,categoryId,groupId,extNumber,extRarity,subTypeName"
            path = f"{TCGCSV}/{category}/{number}/ProductsAndPrices.csv"
            self.files[path] = "\r\n".join([head, *products]).encode()


def a_card(a_set: str, name: str, number: int, **more: Any) -> dict[str, Any]:
    """A card as Scryfall writes it."""
    return {
        "object": "card", "id": f"{number:08}", "name": name, "set_name": a_set, "set": "tst",
        "lang": "en", "collector_number": str(number), "rarity": "common",
        "finishes": ["nonfoil"], "digital": False, "tcgplayer_id": number, **more,
    }  # fmt: skip


def some_cards(a_set: str, count: int) -> list[dict[str, Any]]:
    return [a_card(a_set, f"Card {number}", number) for number in range(1, count + 1)]


@contextmanager
def a_catalog_site() -> Iterator[CatalogSite]:
    site = CatalogSite()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            site.asked.append((self.path, headers))
            body = site.files.get(self.path)
            if self.path in site.status or body is None:
                self._head(site.status.get(self.path, 404), {"Content-Length": "0"})
                return
            packed = site.packs and "gzip" in headers.get("accept-encoding", "")
            body = gzip.compress(body, mtime=0) if packed else body
            told = {"Content-Encoding": "gzip"} if packed else {}
            mark = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
            if site.marks:
                told["ETag"] = mark
                if headers.get("if-none-match") == mark:
                    self._head(304, told)
                    return
            begin, status = 0, 200
            wanted = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
            if wanted and site.ranges and headers.get("if-range") == mark:
                begin, status = int(wanted[1]), 206
                told["Content-Range"] = f"bytes {begin}-{len(body) - 1}/{len(body)}"
            rest = body[begin:]
            self._head(status, told | {"Content-Length": str(len(rest))})
            with suppress(ConnectionError):
                rest = rest[: site.cut.pop(self.path, len(rest))]
                for at in range(0, len(rest), 1024):
                    self.wfile.write(rest[at : at + 1024])
                    time.sleep(site.slow)

        def _head(self, status: int, told: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in told.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
