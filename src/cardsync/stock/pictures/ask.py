"""Stores, after an import, the addresses of pictures that a seller's cards need and the server does
not have yet. The module defines a stream of `platform/work/runner.py`, which the import marks as
due. `fetch_pictures.py` fetches the pictures.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import procrastinate
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import clock
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.derived.kept_figures import OneAtATime, forget, give_up, mark_of
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import Work, WorkDue, jobs, mark_due, mark_due_by
from cardsync.stock.pictures.objects import delete_photo
from cardsync.stock.pictures.picture_addresses import (
    LONGEST,
    OF_MARKETPLACE,
    OF_PRODUCT,
    host,
    read_hosts,
)

ASK: Final = "pictures"
FILES: Final = "picture_files"

_HOSTS: Final = """
    INSERT INTO picture_host (host, next_at)
    SELECT host, :now FROM unnest(CAST(:hosts AS text[])) AS host
    ON CONFLICT (host) DO NOTHING
"""
# The order of fetching: pictures of the most expensive cards in stock are first.
_WORTH: Final = "coalesce(c.price, 0) * least(c.quantity, 1)"
_OF_PRODUCTS: Final = queries_of(__package__)["of_products"].format(
    worth=_WORTH,
    of_product=OF_PRODUCT,
    of_marketplace=OF_MARKETPLACE,
    host=host("address"),
    longest=LONGEST,
)
_PHOTOS: Final = f"""
    INSERT INTO card_photo (seller_id, address, host, next_at)
    SELECT DISTINCT c.seller_id, c.photo_url, {host("c.photo_url")}, CAST(:now AS timestamptz)
      FROM card c
     WHERE c.seller_id = :seller AND NOT c.gone AND c.photo_url <> ''
       AND {OF_MARKETPLACE} IS NULL AND {host("c.photo_url")} = ANY(:hosts)
       AND length(c.photo_url) <= {LONGEST}
    ON CONFLICT (seller_id, address) DO NOTHING
"""
_UNUSED: Final = """
    FROM card_photo k
   WHERE k.seller_id = :seller AND NOT EXISTS (
         SELECT FROM card c WHERE c.seller_id = :seller AND c.photo_url = k.address AND NOT c.gone)
"""
_UNUSED_FILES: Final = f"""
    SELECT digest {_UNUSED} AND digest IS NOT NULL
    EXCEPT
    SELECT k.digest FROM card_photo k JOIN card c ON c.photo_url = k.address AND NOT c.gone
     WHERE k.seller_id = :seller AND c.seller_id = :seller
"""


async def ask_for_pictures(session: AsyncSession, seller_id: int) -> None:
    """Mark that the seller's cards may lack pictures, in the transaction that ends an import."""
    await mark_due(session, seller_id, ASK)


async def _note(work: Work, hold: WorkDue, due: WorkDue) -> None:
    """Store the picture addresses of this seller's cards, and delete the photos that no card uses
    any more.
    """
    hosts = list(read_hosts(work.settings.picture_hosts))
    values: dict[str, object] = {"seller": due.seller_id, "hosts": hosts, "now": clock.now()}
    async with work.database.tenant(due.seller_id) as session:
        unused = (await session.scalars(text(_UNUSED_FILES), values)).all()
    # The rows are deleted after the files, so that the next turn deletes the rest if this turn is
    # killed in between.
    for digest in unused:
        await delete_photo(work.store, due.seller_id, digest)
    async with work.database.tenant(due.seller_id) as session:
        await run(session, f"DELETE {_UNUSED}", values)
        if hosts:
            await run(session, _PHOTOS, values)
            # Without this lock, two sellers who insert the same addresses in different orders would
            # deadlock.
            await locked(session, Lock.PICTURE_ADDRESSES)
            await run(session, _HOSTS, values)
            await run(session, _OF_PRODUCTS, values)
            await mark_due_by(session, due.seller_id, FILES, clock.now())
        await forget(session, due)


STREAM: Final[runner.Stream[WorkDue, WorkDue]] = runner.Stream(
    ASK, OneAtATime(), oldest=partial(mark_of, ASK), work=_note, fail=give_up
)


@jobs.task(name="pictures.ask", queue="housekeeping", pass_context=True)
async def note_addresses(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(STREAM, note_addresses, context, seller_id)
