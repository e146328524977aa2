"""The JSON structs of the public buylist. Pure."""

from __future__ import annotations

import msgspec


class BuylistSettings(msgspec.Struct):
    """`path` is where strangers see it while `is_open`."""

    is_open: bool
    terms: str
    path: str
    """Where strangers see it while it is open"""
