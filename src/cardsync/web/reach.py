"""Computes who can reach an address of this service, for advice on pages. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from cardsync.web.public_fetch import is_public

Reach = Literal["computer", "network", "world"]
# Names that public name servers never resolve (RFC 6761, 6762, 8375).
_OWN_NAMES = (".local", ".lan", ".home", ".internal", ".home.arpa")


def reach_of(origin: str) -> Reach:
    """Return who can reach the address: only this computer, computers in its network,
    or the world.
    """
    host = (urlsplit(origin).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return "computer"
    try:
        address = ip_address(host)
    except ValueError:
        return "network" if "." not in host or host.endswith(_OWN_NAMES) else "world"
    if address.is_loopback:
        return "computer"
    return "world" if is_public(address) else "network"
