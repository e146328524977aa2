"""Finds the client's address of a request: the peer, or the address that trusted proxies report in
X-Forwarded-For. Pure.

An IPv6 address is cut to its /64, because a provider gives each customer a /64.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from cardsync.platform.setting_groups.access_settings import Network

Address = IPv4Address | IPv6Address
UNKNOWN = "unknown"


def read_address(text: str) -> Address | None:
    """Read `192.0.2.7`, `192.0.2.7:443`, `2001:db8::7`, `[2001:db8::7]:443`; None for any other
    text.
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
    """Return the rightmost hop that is not a trusted proxy. `forwarded` holds the X-Forwarded-For
    headers in order.
    """
    client = read_address(peer or "")
    hops = [hop for header in forwarded for hop in header.split(",")]
    while client is not None and hops and any(client in network for network in trusted):
        before = read_address(hops.pop())
        if before is None:
            # A proxy that hides its client is treated as the client.
            break
        client = before
    return _holder(client)


def _holder(address: Address | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address or UNKNOWN)
