"""Serves the files under `static` that pages link, each at an address that contains a hash of its
content.

A file's address changes with its content, so browsers may cache the file forever. A style sheet is
served as one file together with the sheets that it imports. `make setup` fills `static/vendor`;
without that folder pages work, but without third-party scripts and icons.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.exceptions import NotFoundException
from markupsafe import Markup

from cardsync.web.compression import takes_gzip

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
IMPORT = re.compile(rb'^@import "(css/.+)";$', re.MULTILINE)
FOREVER = "public, max-age=31536000, immutable"
FAVICON = "public, max-age=86400"
SMALLEST_PACKED = 600


@dataclass(frozen=True)
class Asset:
    content: bytes
    packed: bytes | None
    media_type: str


@cache
def _assets() -> tuple[dict[str, Asset], dict[str, str]]:
    """Return the files by their addresses, and each file's address by its name."""
    assets, addresses = {}, {}
    static = files(__package__) / "static"
    for name, file in _walk(static, ""):
        stem, dot, ending = name.rpartition(".")
        if (media_type := TYPES.get(dot + ending)) is None:
            continue
        content = file.read_bytes()
        if ending == "css":
            content = IMPORT.sub(lambda found: (static / found[1].decode()).read_bytes(), content)
        packed = gzip.compress(content, 9, mtime=0) if len(content) >= SMALLEST_PACKED else None
        digest = hashlib.sha256(content).hexdigest()[:12]
        address = f"{stem}.{digest}.{ending}"
        assets[address] = Asset(content, packed, media_type)
        addresses[name] = f"/static/{address}"
    return assets, addresses


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        else:
            found.append((prefix + entry.name, entry))
    return found


def asset_url(name: str) -> str | None:
    """Return the address of a file in `static`; None for a file that `make setup` did
    not download.
    """
    return _assets()[1].get(name)


@get("/favicon.ico", include_in_schema=False, status_code=301)
async def favicon() -> Response[bytes]:
    """Redirect requests for the default icon, /favicon.ico, to the icon that pages link."""
    headers = {"Location": asset_url("mark.svg") or "", "Cache-Control": FAVICON}
    return Response(b"", media_type="image/svg+xml", headers=headers)


def text_of(name: str) -> str | None:
    """Return the text of a file in `static`, for a route that serves it at another address."""
    address = asset_url(name)
    return _assets()[0][address.removeprefix("/static/")].content.decode() if address else None


@cache
def sprite() -> Markup:
    """Return the symbols of all icons, which a page embeds. If they were in another file, a browser
    would resolve each reference to them separately, and hundreds of icons would delay a page more
    than its scripts.
    """
    return Markup((text_of("vendor/icons.svg") or "").replace(' id="', ' id="i-'))  # noqa: S704


@get("/static/{path:path}", include_in_schema=False)
async def static_file(request: Request[object, object, State], path: str) -> Response[bytes]:
    asset = _assets()[0].get(path.lstrip("/"))
    if asset is None:
        raise NotFoundException
    headers = {
        "Cache-Control": FOREVER,
        "Vary": "Accept-Encoding",
    }
    if asset.packed is not None and takes_gzip(request.headers.get("accept-encoding", "")):
        headers["Content-Encoding"] = "gzip"
        return Response(asset.packed, media_type=asset.media_type, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)
