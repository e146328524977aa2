"""Finds the address of a request's client: the peer's, or the one that trusted proxies report in
X-Forwarded-For. Pure.

An IPv6 address is reduced to its /64, because providers give each customer a /64.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from cardsync.platform.setting_groups.access_settings import Network

Address = IPv4Address | IPv6Address
UNKNOWN = "unknown"


def read_address(text: str) -> Address | None:
    """Read an address like `192.0.2.7`, `192.0.2.7:443`, `2001:db8::7` or `[2001:db8::7]:443`.
    Return None for any other text.
    """
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


def client_of(peer: str | None, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the rightmost address that is not a trusted proxy. `forwarded` are the X-Forwarded-For
    headers in their order.
    """
    client = read_address(peer or "")
    hops = [hop for header in forwarded for hop in header.split(",")]
    while client is not None and hops and any(client in network for network in trusted):
        before = read_address(hops.pop())
        if before is None:
            # If a proxy hides its client, the proxy counts as the client.
            break
        client = before
    return _holder(client)


def _holder(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address or UNKNOWN)
