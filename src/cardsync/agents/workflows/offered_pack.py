"""Reads the pack that an agent is offered: the newest one that is not withdrawn."""

from __future__ import annotations

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.workflows.schemas import OfferedPack
from cardsync.platform import errors

# The pack itself is read only for an agent that has an older one.
_OFFERED = text("""
    WITH killed AS (
        SELECT version FROM workflow_pack_kill
         WHERE marketplace = :marketplace AND locale = :locale
    ), newest AS (
        SELECT version, pack, signature FROM workflow_pack
         WHERE marketplace = :marketplace AND locale = :locale
           AND version NOT IN (SELECT version FROM killed)
         ORDER BY version DESC LIMIT 1
    )
    SELECT newest.version, CASE WHEN newest.version > :have THEN newest.pack END AS pack,
           newest.signature, ARRAY(SELECT version FROM killed ORDER BY version) AS killed
      FROM (VALUES (1)) AS one LEFT JOIN newest ON true
""")


async def offered_pack(
    session: AsyncSession, marketplace: str, locale: str, have: int
) -> OfferedPack:
    """Raises NotFound."""
    values = {"marketplace": marketplace, "locale": locale, "have": have}
    row = (await session.execute(_OFFERED, values)).one()
    if row.version is None and not row.killed:
        raise errors.NotFound(f"there is no workflow pack for {marketplace} in {locale}")
    if row.pack is None:
        return OfferedPack(row.version, row.killed)
    return OfferedPack(row.version, row.killed, msgspec.json.decode(row.pack), row.signature)
