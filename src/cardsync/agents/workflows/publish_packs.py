"""Publishes workflow packs and withdraws versions, for the operator, and lists both.

For each marketplace and locale, a version is published once and must be higher than all earlier
versions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import ColumnElement, delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.agents.releases.signing import PACK_DOMAIN, canonical, sign
from cardsync.agents.workflows import pack_form
from cardsync.platform import errors
from cardsync.platform.database.columns import Base, DefaultNow


class WorkflowPack(Base):
    """`pack` is canonical JSON; `signature` signs the prefix of packs and this JSON."""

    __tablename__ = "workflow_pack"
    marketplace: Mapped[str] = mapped_column(primary_key=True)
    locale: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    pack: Mapped[str]
    signature: Mapped[str]
    published_at: Mapped[DefaultNow]


class WorkflowPackKill(Base):
    """A withdrawn version, whether it was published here or shipped with the agent."""

    __tablename__ = "workflow_pack_kill"
    marketplace: Mapped[str] = mapped_column(primary_key=True)
    locale: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    killed_at: Mapped[DefaultNow]


# A file may contain white space, which the signed content omits.
MOST_FILE_BYTES = 2 * pack_form.MOST_BYTES


@dataclass(frozen=True)
class Draft:
    """A checked pack, with the canonical JSON to sign."""

    marketplace: str
    locale: str
    version: int
    content: bytes


def read_draft(path: Path) -> Draft:
    """Check a pack as an agent would. Raises CommandError."""
    if path.stat().st_size > MOST_FILE_BYTES:
        raise errors.CommandError(f"{path} is larger than {MOST_FILE_BYTES:,} bytes")
    try:
        document = json.loads(path.read_bytes())
        # The signature covers exactly the bytes that are checked.
        content = canonical(document)
        pack = pack_form.read(content)
        for problem in pack_form.misnamed(pack):
            raise pack_form.BadPack(problem)
    except (ValueError, RecursionError) as trouble:
        raise errors.CommandError(f"{path} is not valid JSON: {trouble}") from None
    except pack_form.BadPack as problem:
        raise errors.CommandError(f"{path}: {problem}") from None
    return Draft(pack.marketplace, pack.locale, pack.version, content)


async def publish(session: AsyncSession, draft: Draft, key: Ed25519PrivateKey) -> WorkflowPack:
    """Sign the pack and offer it to agents. Raises CommandError."""
    # Lock the table: no other publisher may add a version between the check and the insert.
    await session.execute(text("LOCK TABLE workflow_pack IN SHARE ROW EXCLUSIVE MODE"))
    await _refuse_used(session, draft)
    row = WorkflowPack(
        marketplace=draft.marketplace,
        locale=draft.locale,
        version=draft.version,
        pack=draft.content.decode(),
        signature=sign(key, PACK_DOMAIN + draft.content),
    )
    session.add(row)
    await session.flush()
    await session.refresh(row)
    return row


async def _refuse_used(session: AsyncSession, draft: Draft) -> None:
    key = (draft.marketplace, draft.locale, draft.version)
    of_name = _named(WorkflowPack, draft.marketplace, draft.locale)
    newest = await session.scalar(select(func.max(WorkflowPack.version)).where(*of_name))
    name = f"{draft.marketplace} {draft.locale}"
    if newest is not None and draft.version <= newest:
        raise errors.CommandError(
            f"version {draft.version} is not higher than {newest}, which is published for {name};"
            " give the pack a higher version"
        )
    if await session.get(WorkflowPackKill, key) is not None:
        raise errors.CommandError(
            f"version {draft.version} for {name} is killed, so no agent would use it;"
            " give the pack a higher version"
        )


def _named(
    table: type[WorkflowPack | WorkflowPackKill], marketplace: str, locale: str
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.marketplace == marketplace, table.locale == locale


async def kill(session: AsyncSession, marketplace: str, locale: str, version: int) -> bool:
    """Withdraw a version, so that agents stop using it. A version that was shipped with the agent
    can be withdrawn, too.

    Return whether the version was published here.
    """
    killed = insert(WorkflowPackKill).values(
        marketplace=marketplace, locale=locale, version=version
    )
    await session.execute(killed.on_conflict_do_nothing())
    return await session.get(WorkflowPack, (marketplace, locale, version)) is not None


async def revive(session: AsyncSession, marketplace: str, locale: str, version: int) -> bool:
    """Remove the kill of this version; return whether the version was killed."""
    gone = delete(WorkflowPackKill).where(
        *_named(WorkflowPackKill, marketplace, locale), WorkflowPackKill.version == version
    )
    found = await session.execute(gone.returning(WorkflowPackKill.version))
    return found.first() is not None


async def listed(session: AsyncSession) -> tuple[list[WorkflowPack], list[WorkflowPackKill]]:
    packs = await session.scalars(
        select(WorkflowPack).order_by(
            WorkflowPack.marketplace, WorkflowPack.locale, WorkflowPack.version
        )
    )
    kills = await session.scalars(
        select(WorkflowPackKill).order_by(
            WorkflowPackKill.marketplace, WorkflowPackKill.locale, WorkflowPackKill.version
        )
    )
    return list(packs), list(kills)
