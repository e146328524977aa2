"""The JSON struct of the packs' route. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class OfferedPack(msgspec.Struct):
    """`pack` and `signature` are sent only to an agent whose version is lower: the base64 Ed25519
    signature of the domain of packs and the pack's canonical JSON. `version` is null if every
    version is withdrawn.
    """

    version: int | None
    """The version of the pack; null: every version is withdrawn"""
    killed: list[int]
    """The versions that are withdrawn"""
    pack: dict[str, Any] | UnsetType = UNSET
    """The agent's knowledge of the marketplace; only where its own is older"""
    signature: str | UnsetType = UNSET
    """The Ed25519 signature of the pack, in Base64"""
