"""Decides which addresses belong to the marketplace, and which paths match a pattern. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import quote, urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_NEUTRAL = ("about:blank", "about:srcdoc", "")


def origin_of(url: str) -> str:
    """Return `https://host` or `https://host:8443`; empty if the address has none. A blob's origin
    is that of its page.
    """
    url = url.removeprefix("blob:")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return ""
    if parts.scheme not in _DEFAULT_PORTS or not host:
        return ""
    host = f"[{host}]" if ":" in host else host
    plain = port is None or port == _DEFAULT_PORTS[parts.scheme]
    return f"{parts.scheme}://{host}" + ("" if plain else f":{port}")


def is_allowed(url: str, origins: Collection[str]) -> bool:
    """Return whether a page may be at this address."""
    return url in _NEUTRAL or origin_of(url) in {origin_of(origin) for origin in origins} - {""}


def may_download(url: str, origins: Collection[str]) -> bool:
    """Return whether a file may come from this address. `data:` is allowed, because the page itself
    contains the file.
    """
    return url.startswith("data:") or (url not in _NEUTRAL and is_allowed(url, origins))


def fits(pattern: str, url: str) -> bool:
    """Return whether the path of an address matches a pattern in which `*` is any text. A pattern
    with `?` is also compared with the query.
    """
    parts = urlsplit(url)
    path = parts.path or "/"
    if "?" in pattern:
        path += f"?{parts.query}" if parts.query else ""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), path) is not None


def place_in(pattern: str, url: str) -> str:
    """Return the text that the one `*` in a path's pattern matches; empty if there is none."""
    if pattern.count("*") != 1:
        return ""
    found = re.fullmatch("(.+)".join(map(re.escape, pattern.split("*"))), urlsplit(url).path)
    return found[1] if found else ""


def filled(path: str, values: dict[str, str]) -> str:
    """Replace `{name}` by named values, escaped so that none can become another part of the
    address. Raises KeyError.
    """
    return re.sub(r"\{([a-z][a-z0-9_]*)\}", lambda found: quote(values[found[1]], safe=""), path)


def shown(url: str) -> str:
    """Return an address without its query, which may contain private data."""
    parts = urlsplit(url)
    return f"{origin_of(url)}{parts.path}" if origin_of(url) else parts.scheme
