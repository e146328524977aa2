"""Finds the client of a request. A client either registered itself, or its `client_id` is the
address of its metadata document. A document is cached for an hour.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import keys
from cardsync.access.grant_models import OAuthClient
from cardsync.assistant.oauth.client_metadata import must_be_public, read_metadata
from cardsync.assistant.oauth.fetch import fetch_json
from cardsync.assistant.oauth.refused import Refused, Unverified
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.web.public_fetch import NotFetched, host_of

PREFIX: Final = "csc_"
DOCUMENT: Final = "document"
REGISTRATION: Final = "registration"
_DOCUMENT_IS_GOOD: Final = timedelta(hours=1)
_UNUSED_FOR: Final = timedelta(days=1)


def has_document(client_id: str) -> bool:
    return client_id.startswith(("https://", "http://"))


async def register(session: AsyncSession, told: object, now: datetime) -> OAuthClient:
    """Register a client. Raises Refused."""
    name, uris = read_metadata(told)
    client = OAuthClient(
        client_id=keys.new_secret(PREFIX),
        known_by=REGISTRATION,
        name=name,
        host=None,
        redirect_uris=uris,
        created_at=now,
        expires_at=now + _UNUSED_FOR,
    )
    session.add(client)
    return client


async def find(
    database: Database, settings: Settings, client_id: str, now: datetime
) -> OAuthClient:
    """Return the client. Raises Unverified if the client is unknown or its document is invalid."""
    async with database.shared() as session:
        known = await session.get(OAuthClient, client_id)
    if known and (
        known.expires_at > now or (known.known_by == REGISTRATION and known.first_used_at)
    ):
        return known
    if not has_document(client_id):
        raise Unverified(
            "This assistant is not registered here, or was registered more than a day ago"
            " and never used. Remove the connection there, and connect again."
        )
    return await _of_document(database, settings, client_id, now)


async def _of_document(
    database: Database, settings: Settings, client_id: str, now: datetime
) -> OAuthClient:
    try:
        told = await fetch_json(client_id, development=settings.development_clients)
        name, uris = read_metadata(told)
        must_be_public(told)
    except NotFetched as e:
        raise Unverified(f"The assistant's description was not read: {e}.") from None
    except Refused as e:
        raise Unverified(f"The assistant's description is not good: {e}.") from None
    if told.get("client_id") != client_id:
        raise Unverified("The assistant's description belongs to another address.")
    values = {
        "known_by": DOCUMENT,
        "name": name,
        "host": host_of(client_id),
        "redirect_uris": uris,
        "fetched_at": now,
        "expires_at": now + _DOCUMENT_IS_GOOD,
    }
    written = insert(OAuthClient).values(client_id=client_id, created_at=now, **values)
    async with database.shared() as session:
        await session.execute(
            written.on_conflict_do_update(index_elements=["client_id"], set_=values)
        )
        return await session.get_one(OAuthClient, client_id)


async def is_known(session: AsyncSession, client_id: str) -> bool:
    return has_document(client_id) or await session.get(OAuthClient, client_id) is not None


async def note_use(session: AsyncSession, client_id: str, now: datetime) -> None:
    """Record that the client was used. A registered client that is never used is deleted."""
    first = update(OAuthClient).where(
        OAuthClient.client_id == client_id, OAuthClient.first_used_at.is_(None)
    )
    await session.execute(first.values(first_used_at=now))


_PAST: Final = """
    DELETE FROM oauth_client
     WHERE expires_at <= :now AND known_by <> 'document' AND first_used_at IS NULL
        OR expires_at <= :long_ago AND known_by = 'document'
    RETURNING 1
"""
# Documents are kept this long, because a code may be redeemed after its client's document has
# expired.
_DOCUMENTS_ARE_KEPT: Final = timedelta(days=1)


async def drop_past(session: AsyncSession, now: datetime) -> int:
    values = {"now": now, "long_ago": now - _DOCUMENTS_ARE_KEPT}
    return len((await session.execute(text(_PAST), values)).all())


async def forget(session: AsyncSession, client_id: str) -> None:
    """Delete a client that is no longer needed."""
    await session.execute(delete(OAuthClient).where(OAuthClient.client_id == client_id))
