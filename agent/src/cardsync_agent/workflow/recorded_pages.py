"""Serves recorded pages of a marketplace on this computer, to try a pack without the site.

A folder has HTML files and index.json. `pages` maps a path to a file, or to `{"file", "type",
"attachment"}`. `clicks` maps a path to the target of a click on an element (CSS), if the page's own
links lead elsewhere. A path may have a query, for another state of the same page. `values` and
`files` are the workflows' inputs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec

INDEX = "index.json"


class PageFile(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    file: str
    type: str = "text/html; charset=utf-8"
    attachment: bool = False


class Index(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    pages: dict[str, str | PageFile]
    clicks: dict[str, dict[str, str]] = {}
    values: dict[str, str] = {}
    files: dict[str, str] = {}

    def page(self, address: str) -> tuple[str, PageFile] | None:
        """Return the recorded page, by path and query or by its path alone."""
        for key in (address, address.partition("?")[0]):
            if (found := self.pages.get(key)) is not None:
                return key, PageFile(found) if isinstance(found, str) else found
        return None


class BadPages(Exception):
    """The folder is not a folder of recorded pages; the message gives the reason."""


def read_index(folder: Path) -> Index:
    """Read index.json. Raises BadPages, also if a file is missing or outside the folder."""
    try:
        index = msgspec.json.decode((folder / INDEX).read_bytes(), type=Index)
    except OSError as missing:
        raise BadPages(f"{folder} has no {INDEX}") from missing
    except msgspec.MsgspecError as bad:
        raise BadPages(f"{folder / INDEX} cannot be read: {bad}") from bad
    names = [one if isinstance(one, str) else one.file for one in index.pages.values()]
    for name in (*names, *index.files.values()):
        file = (folder / name).resolve()
        if not file.is_file() or not file.is_relative_to(folder.resolve()):
            raise BadPages(f"{folder} has no file {name}")
    return index


class RecordedPages:
    """A server of recorded pages, as a context manager. `origin` is its address."""

    def __init__(self, folder: Path, index: Index, origins: Sequence[str]) -> None:
        self._folder, self._index, self._origins = folder, index, origins
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                pages.answer(self)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                pages.answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> RecordedPages:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        found = self._index.page(to.path)
        content = b"no recorded page" if found is None else self._content(*found)
        to.send_response(404 if found is None else 200)
        to.send_header("Content-Type", "text/plain" if found is None else found[1].type)
        if found and found[1].attachment:
            name = Path(found[1].file).name.replace('"', "")
            to.send_header("Content-Disposition", f'attachment; filename="{name}"')
        to.send_header("Content-Length", str(len(content)))
        to.end_headers()
        to.wfile.write(content)

    def _content(self, key: str, page: PageFile) -> bytes:
        content = (self._folder / page.file).read_bytes()
        if not page.type.startswith("text/html"):
            return content
        for origin in self._origins:
            content = content.replace(origin.encode(), self.origin.encode())
        clicks = self._index.clicks.get(key, {})
        return content + (_clicking(clicks) if clicks else b"")


def _clicking(clicks: dict[str, str]) -> bytes:
    """Return a script that navigates to the recorded target of a click."""
    table = json.dumps(clicks).replace("<", "\\u003c")
    return f"""<script>addEventListener('click', (event) => {{
      for (const [selector, to] of Object.entries({table})) {{
        if (!event.target.closest(selector)) continue;
        event.preventDefault(); event.stopImmediatePropagation(); location.href = to; return;
      }}
    }}, true)</script>""".encode()
