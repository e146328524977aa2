"""Replaces the installation's secret by a new secret. Both secrets are accepted meanwhile, so the
service keeps running; the next call continues a killed rotation.

The order matters: the database has the new seal before any process uses the new secret, and drops
the old seal when nothing is sealed with the old secret any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import select

from cardsync.access.each_seller import all_sellers
from cardsync.platform import errors, secret
from cardsync.platform.database.locks import Lock, locked_by_connection
from cardsync.platform.database.migrate import drop_seals, keep_seal
from cardsync.platform.database.session import Database
from cardsync.platform.database.urls import connect
from cardsync.platform.settings import Settings
from cardsync.shop.notices.models import Webhook
from cardsync.shop.notices.webhook_signature import Unsealed, sealed, unsealed


class SealedAnew(NamedTuple):
    """`lost` values were sealed with a secret that is lost: their owners must create new values."""

    secrets: int
    lost: int


SealAnew = Callable[[Database, Settings], Awaitable[SealedAnew]]


def rotate(settings: Settings, seal_anew: SealAnew) -> SealedAnew:
    """Replace the secret. `settings` name an existing database. `seal_anew` seals secrets of the
    current or a previous seal with the current seal. Raises CommandError.
    """
    owner = settings.migration_database_url or settings.database_url
    assert owner is not None
    if settings.secret_key and not secret.former_secrets(settings):
        raise errors.CommandError(
            "SECRET_KEY is set: on each host set CARDSYNC_FORMER_SECRET_KEY to it and"
            " CARDSYNC_SECRET_KEY to a new one, start the service again, and call this once more"
        )
    with _alone(owner):
        if not settings.secret_key:
            secret.begin_rotation(settings, lambda seal: keep_seal(owner, seal))
        keep_seal(owner, secret.seal(settings))
        anew = asyncio.run(_sealed_anew(settings, seal_anew))
        # No stored value needs the former secret any more, and whoever has that secret must lose
        # access.
        former = [secret.seal_of(one) for one in secret.former_secrets(settings)]
        drop_seals(owner, former)
        secret.end_rotation(settings)
    return anew


async def _sealed_anew(settings: Settings, seal_anew: SealAnew) -> SealedAnew:
    assert settings.database_url is not None
    async with Database.open(settings.database_url, pool=2, hot_pool=1) as database:
        return await seal_anew(database, settings)


@contextmanager
def _alone(url: str) -> Iterator[None]:
    """Hold the lock of backups: a backup made during the rotation would contain the secret of only
    half of its rows.
    """
    with connect(url, role=None) as connection:
        if not locked_by_connection(connection, Lock.BACKUP):
            raise errors.CommandError(
                "a backup or another rotation is under way: wait until it ends"
            )
        yield


async def seal_anew(database: Database, settings: Settings) -> SealedAnew:
    done = lost = 0
    for seller_id in await all_sellers(database):
        async with database.tenant(seller_id) as session:
            own = select(Webhook).where(Webhook.seller_id == seller_id).order_by(Webhook.id)
            for row in (await session.scalars(own.with_for_update())).all():
                secret = _again(settings, seller_id, row.secret)
                row.secret = secret or row.secret
                done += secret is not None
                lost += secret is None
                if row.former_secret is not None:
                    row.former_secret = _again(settings, seller_id, row.former_secret)
    return SealedAnew(done, lost)


def _again(settings: Settings, seller_id: int, kept: bytes) -> bytes | None:
    """Return the secret sealed again. Return None if the secret cannot be unsealed."""
    try:
        return sealed(settings, seller_id, unsealed(settings, seller_id, kept))
    except Unsealed:
        return None
