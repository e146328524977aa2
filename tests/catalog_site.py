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
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cardsync.platform.settings import Settings

SCRYFALL = "/api.scryfall.com/bulk-data/default-cards"
SCRYFALL_FILE = "/data.scryfall.io/default-cards/default-cards-1.json"
TCGCSV = "/tcgcsv.com/tcgplayer"


@dataclass
class CatalogSite:
    """`files` are the bodies by path, hosts before the paths; `asked` are the requests in their
    order, each with its headers in lower case. `cut` ends the next answer of a path after so many
    bytes, `slow` pauses so long after each kilobyte, `status` answers a path with a refusal, `moved`
    redirects it, `marks` sends marks of the edition, `ranges` takes ranges, and `packs` sends gzip to who takes it.
    """

    port: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
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
            if self.path in site.moved:
                self._head(302, {"Location": site.moved[self.path], "Content-Length": "0"})
                return
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


def everywhere(a_set: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Small files of every source that is downloaded: its game, and the files by their paths; each has
    the set, and two cards or more.
    """
    raw = "/raw.githubusercontent.com"
    fab = f"{raw}/the-fab-cube/flesh-and-blood-cards/develop/json/english"
    pokemon = f"{raw}/PokemonTCG/pokemon-tcg-data/master"
    mtgjson_card = {
        "name": "Opt", "number": "65", "rarity": "common", "language": "English",
        "finishes": ["nonfoil", "foil"], "identifiers": {"tcgplayerProductId": "901"},
    }  # fmt: skip
    mtgjson = {"TST": {"name": a_set, "code": "TST", "cards": [mtgjson_card], "baseSetSize": 1}}
    counted = {"id": "sv03.5", "name": a_set, "cardCount": {"official": 165, "total": 207}}
    brief = [{"id": f"sv03.5-{n}", "localId": n, "name": f"Mew {n}"} for n in ("001", "002")]
    elsa = {
        "id": 1, "fullName": "Elsa - Snow Queen", "number": 41, "rarity": "Uncommon", "setCode": "1",
        "fullIdentifier": "41/204 • EN • 1", "foilTypes": ["None", "Silver"], "externalLinks": {},
    }  # fmt: skip
    snatch = {
        "unique_id": "x", "set_printing_unique_id": "y", "id": "TST167", "set_id": "TST",
        "edition": "A", "foiling": "S", "rarity": "C", "art_variations": [],
    }  # fmt: skip
    magician = [
        {"set_name": a_set, "set_code": f"TST-EN00{n}", "set_rarity": "Ultra Rare"} for n in (1, 2)
    ]
    zoro = {
        "card_name": "Roronoa Zoro (001)", "set_name": a_set, "set_id": "OP-01", "rarity": "L",
        "card_set_id": "OP01-001", "card_image_id": "OP01-001",
    }  # fmt: skip
    optcg = "/optcgapi.com/api"
    return {
        "mtgjson": ("magic", {
            "/mtgjson.com/api/v5/AllPrintings.json.xz": {"meta": {}, "data": mtgjson},
        }),
        "pokemon-tcg-data": ("pokemon", {
            f"{pokemon}/sets/en.json": [{"id": "base1", "name": a_set, "printedTotal": 102}],
            f"{pokemon}/cards/en/base1.json": [
                {"id": f"base1-{n}", "name": f"Card {n}", "supertype": "Pokémon", "number": n}
                for n in ("1", "2")
            ],
        }),
        "tcgdex": ("pokemon", {
            "/api.tcgdex.net/v2/en/sets": [counted],
            "/api.tcgdex.net/v2/en/sets/sv03.5": counted | {"cards": brief},
        }),
        "lorcanajson": ("lorcana", {
            "/lorcanajson.org/files/current/en/allCards.json": {
                "sets": {"1": {"name": a_set, "type": "expansion"}}, "cards": [elsa],
            },
        }),
        "flesh-and-blood-cards": ("flesh_and_blood", {
            f"{fab}/card.json": [
                {"unique_id": "a", "name": "Snatch", "pitch": "1",
                 "printings": [snatch, snatch | {"foiling": "R"}]},
            ],
            f"{fab}/set.json": [{"id": "TST", "name": a_set, "printings": []}],
        }),
        "ygoprodeck": ("yugioh", {
            "/db.ygoprodeck.com/api/v7/cardinfo.php": {
                "data": [{"id": 1, "name": "Dark Magician", "card_sets": magician}],
            },
        }),
        "optcg": ("one_piece", {
            f"{optcg}/allSetCards/": [zoro, zoro | {"card_set_id": "OP01-002"}],
            f"{optcg}/allSTCards/": [],
            f"{optcg}/allPromoCards/": [],
        }),
    }  # fmt: skip


def forget_the_day(here: Settings) -> None:
    """Let the files that are here be of yesterday."""
    for path in here.data_dir.glob("catalogs/*/known.json"):
        known = json.loads(path.read_text())
        for one in known.values():
            one["asked_at"] -= timedelta(days=1).total_seconds()
        path.write_text(json.dumps(known))
