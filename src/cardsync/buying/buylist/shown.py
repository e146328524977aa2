"""The JSON structs of the public buylist, and the shop as customers see it. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class BuylistSettings(msgspec.Struct):
    """`path` is where strangers see it while `is_open`."""

    is_open: bool
    terms: str
    path: str


class Shop(NamedTuple):
    """The shop's name and its terms, as strangers and customers see it."""

    name: str
    terms: str
