"""Publishes releases and kills versions, for the operator, and lists both.

Every change notifies all processes in its own transaction. A product, version and platform has one
artifact in all channels; publishing the same bytes again changes the stage of the roll-out,
`min_from` and the expiry.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from packaging.version import Version
from sqlalchemy import delete, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.limits import RELEASE_BYTES, RELEASE_NAME_CHARACTERS
from cardsync.agents.releases.known_releases import TOPIC
from cardsync.agents.releases.models import Release, ReleaseKill
from cardsync.agents.releases.offer import LONGEST_VERSION, read_version, same_platform
from cardsync.agents.releases.signing import PACK_DOMAIN, canonical, sign
from cardsync.platform import clock, errors
from cardsync.platform.database.notify import notify
from cardsync.platform.database.session import Database
from cardsync.platform.storage import ObjectExists, Store

_PLATFORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){0,3}")
_CHANNEL = re.compile(r"[A-Za-z0-9._-]{1,50}")


@dataclass(frozen=True)
class Draft:
    """A release as the operator describes it. `read_draft` checks it."""

    product: str
    version: Version
    platform: str
    channel: str
    percentage: int
    min_from: Version | None
    expires_at: datetime


@dataclass(frozen=True)
class Artifact:
    """A file's bytes, hashed and signed."""

    name: str
    content: bytes
    sha256: str
    signature: str

    @property
    def storage_key(self) -> str:
        # The key contains the content's hash, so a second write makes the same object.
        return f"releases/{self.sha256}/{self.name}"


def read_draft(
    product: str,
    version: str,
    platform: str,
    channel: str,
    percentage: int,
    min_from: str | None,
    expires_days: int,
    now: datetime,
) -> Draft:
    if not _PLATFORM.fullmatch(platform) or len(platform) > RELEASE_NAME_CHARACTERS:
        raise errors.CommandError(
            f"platform {platform!r} is not in the form os/arch, like linux/amd64"
        )
    if not _CHANNEL.fullmatch(channel):
        raise errors.CommandError(f"channel {channel!r} must be one word of letters and digits")
    return Draft(
        product=product,
        version=_version("version", version),
        platform=platform,
        channel=channel,
        percentage=percentage,
        min_from=_version("min-from", min_from) if min_from else None,
        expires_at=(now + timedelta(days=expires_days)).replace(microsecond=0),
    )


def _version(name: str, value: str) -> Version:
    version = read_version(value)
    if version is None:
        raise errors.CommandError(f"{name} {value!r} is not a PEP 440 version like 1.4.0")
    return version


def read_artifact(path: Path, key: Ed25519PrivateKey) -> Artifact:
    """Read, hash and sign a file. This is CPU and disk work: call it in a thread."""
    if path.stat().st_size > RELEASE_BYTES:
        raise errors.CommandError(f"{path} is larger than {RELEASE_BYTES:,} bytes")
    content = path.read_bytes()
    if not content:
        raise errors.CommandError(f"{path} is empty")
    if content.startswith(PACK_DOMAIN):
        raise errors.CommandError(f"{path} is not a release: its signature would be that of a pack")
    plain = re.sub(r"[^A-Za-z0-9._+-]", "_", path.name)
    name = plain[-RELEASE_NAME_CHARACTERS:].lstrip(".") or "release"
    return Artifact(
        name,
        content,
        hashlib.sha256(content).hexdigest(),
        sign(key, content),
    )


def record_of(draft: Draft, sha256: str) -> dict[str, object]:
    """Return the record that `release_signature` covers: the bytes' hash, and every field that
    prevents an old build from being served as new.
    """
    return {
        "version": str(draft.version),
        "platform": draft.platform,
        "sha256": sha256,
        "min_from": str(draft.min_from) if draft.min_from else None,
        "expires_at": clock.rfc3339(draft.expires_at),
    }


async def publish(
    database: Database,
    store: Store,
    draft: Draft,
    path: Path,
    key: Ed25519PrivateKey,
) -> Release:
    artifact = await asyncio.to_thread(read_artifact, path, key)
    async with database.shared() as session:
        await _refuse_killed(session, draft)
        await _refuse_other_bytes(session, draft, artifact.sha256)
    await _keep(store, artifact)
    async with database.shared() as session:
        # Lock the table: no other publisher may add a release between the check and the write.
        await session.execute(text("LOCK TABLE release IN SHARE ROW EXCLUSIVE MODE"))
        await _refuse_other_bytes(session, draft, artifact.sha256)
        release = await _write(session, draft, artifact, key)
        await notify(session, TOPIC)
    return release


async def _keep(store: Store, artifact: Artifact) -> None:
    def spool(file: BinaryIO) -> None:
        file.write(artifact.content)
        file.flush()

    with store.spool() as (path, file):
        await asyncio.to_thread(spool, file)
        try:
            await store.write(artifact.storage_key, path)
        except ObjectExists:
            return


def _is_same(version: str, other: str) -> bool:
    return version == other or (
        (read := read_version(other)) is not None and read == read_version(version)
    )


async def _refuse_killed(session: AsyncSession, draft: Draft) -> None:
    kills = await session.scalars(
        select(ReleaseKill.version).where(ReleaseKill.product == draft.product)
    )
    if any(_is_same(str(draft.version), killed) for killed in kills):
        raise errors.CommandError(
            f"{draft.product} {draft.version} is killed, so no installation would be offered it;"
            " give the build a new version"
        )


async def _refuse_other_bytes(session: AsyncSession, draft: Draft, sha256: str) -> None:
    query = select(Release.version, Release.platform).where(
        Release.product == draft.product, Release.sha256 != sha256
    )
    for version, platform in await session.execute(query):
        if read_version(version) == draft.version and same_platform(platform) == same_platform(
            draft.platform
        ):
            raise errors.CommandError(
                f"{draft.product} {version} for {platform} is already published with different contents; give this one a new version"
            )


async def _write(
    session: AsyncSession,
    draft: Draft,
    artifact: Artifact,
    key: Ed25519PrivateKey,
) -> Release:
    record = canonical(record_of(draft, artifact.sha256))
    row = {
        "percentage": draft.percentage,
        "min_from": str(draft.min_from) if draft.min_from else None,
        "expires_at": draft.expires_at,
        "signature": artifact.signature,
        "record": record.decode(),
        "record_signature": sign(key, record),
    }
    statement = insert(Release).values(
        product=draft.product,
        version=str(draft.version),
        platform=draft.platform,
        channel=draft.channel,
        storage_key=artifact.storage_key,
        size=len(artifact.content),
        sha256=artifact.sha256,
        **row,
    )
    unique = (Release.product, Release.version, Release.platform, Release.channel)
    written = await session.scalars(
        statement.on_conflict_do_update(index_elements=unique, set_=row).returning(Release),
        execution_options={"populate_existing": True},
    )
    return written.one()


async def kill(session: AsyncSession, product: str, version: str) -> bool:
    """Kill a version: installations that run it must update before they continue. Any text is
    allowed, because an unreadable version can be killed, too.

    Return whether the version was published here.
    """
    named = version.strip()
    if not 0 < len(named) <= LONGEST_VERSION:
        raise errors.CommandError(f"a version must have 1 to {LONGEST_VERSION} characters")
    await session.execute(
        insert(ReleaseKill).values(product=product, version=named).on_conflict_do_nothing()
    )
    await notify(session, TOPIC)
    published = await session.scalars(select(Release.version).where(Release.product == product))
    return any(_is_same(version, named) for version in published)


async def revive(session: AsyncSession, product: str, version: str) -> bool:
    """Remove the kill of exactly this text; return whether it existed."""
    gone = delete(ReleaseKill).where(
        ReleaseKill.product == product, ReleaseKill.version == version.strip()
    )
    was_killed = (await session.execute(gone.returning(ReleaseKill.version))).first() is not None
    await notify(session, TOPIC)
    return was_killed


async def listed(session: AsyncSession) -> tuple[list[Release], list[ReleaseKill]]:
    releases = await session.scalars(select(Release).order_by(Release.product, Release.id))
    kills = await session.scalars(
        select(ReleaseKill).order_by(ReleaseKill.product, ReleaseKill.killed_at)
    )
    return list(releases), list(kills)
