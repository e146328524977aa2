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
    killed: list[int]
    pack: dict[str, Any] | UnsetType = UNSET
    signature: str | UnsetType = UNSET
