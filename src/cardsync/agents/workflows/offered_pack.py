"""Returns the pack that an agent is offered: the newest pack that is not withdrawn."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import errors
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.value_types import JsonObject


class OfferedPack(msgspec.Struct):
    """`pack` and `signature` are sent only to an agent with a lower version. `signature` is the
    base64 Ed25519 signature of the prefix of packs and the pack's canonical JSON. `version` is null
    if every version is withdrawn.
    """

    version: int | None
    """The version of the pack; null: every version is withdrawn"""
    killed: list[int]
    """The versions that are withdrawn"""
    pack: JsonObject | UnsetType = UNSET
    """The pack; only if the agent's version is lower"""
    signature: str | UnsetType = UNSET
    """The Ed25519 signature of the pack, in Base64"""


# The pack itself is read only for an agent that has an older pack.
_OFFERED = text(queries_of(__package__)["offered_pack"])


async def offered_pack(
    session: AsyncSession, marketplace: str, locale: str, have: int
) -> OfferedPack:
    """Return the offer. Raises NotFound."""
    values = {"marketplace": marketplace, "locale": locale, "have": have}
    row = (await session.execute(_OFFERED, values)).one()
    if row.version is None and not row.killed:
        raise errors.NotFound(f"there is no workflow pack for {marketplace} in {locale}")
    if row.pack is None:
        return OfferedPack(row.version, row.killed)
    return OfferedPack(row.version, row.killed, msgspec.json.decode(row.pack), row.signature)
