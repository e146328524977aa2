"""Accepts an inventory upload, as bytes or as the key of an object: stores its row, and queues a
job for the worker.

Before the response (202), the bytes are in the object store under a private key, and the row is
committed. The worker does everything else.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from sqlalchemy import ForeignKeyConstraint, Index, delete, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.sync import cancel
from cardsync.agents.sync.cycle_logs import place_cycle
from cardsync.imports.csv_header import accept_check
from cardsync.imports.drain import drain_inventory
from cardsync.imports.errors import (
    InvalidObjectKey,
    InvalidProductLine,
    ObjectStorePipelineDisabled,
)
from cardsync.imports.limits import PRESIGNED_COMPRESSED_BYTES
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.columns import Base, BigInt, KeyPart, RowId
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import ObjectMissing, Store, spool_body
from cardsync.platform.work.jobs import enqueue, mark_due
from cardsync.platform.work.models import Upload
from cardsync.platform.work.streams import private_key
from cardsync.web import bodies


class RequestedUpload(Base):
    """The product line that was requested with a presigned key, until an upload uses the key. A key
    without a product line has no row.
    """

    __tablename__ = "upload_request"
    __table_args__ = (Index("uq_upload_request_key", "seller_id", "key", unique=True),)
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    key: Mapped[str]
    product_line: Mapped[str]
    requested_at: Mapped[datetime]


class LineSnapshot(Base):
    """The newest believable upload of a product line, which contains every active card of the
    line.
    """

    __tablename__ = "line_snapshot"
    __table_args__ = (
        ForeignKeyConstraint(["seller_id", "upload_id"], ["upload.seller_id", "upload.id"]),
    )
    seller_id: Mapped[KeyPart]
    product_line: Mapped[str] = mapped_column(primary_key=True)
    upload_id: Mapped[BigInt]
    observed_at: Mapped[datetime]


OBJECT_KEY = re.compile(
    r"syncs/u(\d{1,19})/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.csv"
)
# The first part of a file, large enough for any sensible header and the first rows.
HEAD_BYTES = 256 * 1024


@dataclass(frozen=True)
class Arrival:
    """The values that the agent sent with the file."""

    product_line: str | None
    sync_cycle_id: str | None
    exported_at: datetime
    # The upload whose rejected rows are corrected in this upload.
    mends: int | None = None


def arrival(
    caller: Caller,
    product_line: str | None,
    sync_cycle_id: str | None,
    exported_at: str | None,
    now: datetime,
) -> Arrival:
    """Check the request's fields. Raises InvalidProductLine.

    An `exported_at` that cannot be read or is in the future counts as absent.
    """
    _refuse_line(caller, product_line)
    moment = clock.read_moment(exported_at)
    return Arrival(product_line, sync_cycle_id, moment if moment and moment <= now else now)


def _need_pipeline(caller: Caller) -> None:
    if not caller.account.object_store_pipeline_enabled:
        raise ObjectStorePipelineDisabled


def _refuse_line(caller: Caller, product_line: str | None) -> None:
    lines = caller.account.product_lines
    if product_line is not None and product_line not in lines:
        raise InvalidProductLine(
            f"product_line {product_line!r} is not one of this account's: {', '.join(lines)}"
        )


class Slot(NamedTuple):
    """The response to a request for an upload URL. `url` accepts one PUT of the object; the URL of
    the local store begins with a slash.
    """

    url: str
    key: str
    expires_at: datetime


async def new_slot(
    session: AsyncSession,
    caller: Caller,
    store: Store,
    settings: Settings,
    product_line: str | None,
    now: datetime,
) -> Slot:
    """Create a URL that accepts one upload. Raises ObjectStorePipelineDisabled,
    InvalidProductLine.
    """
    _need_pipeline(caller)
    key = await new_object_key(session, caller, product_line, now, settings)
    await sync_state.refresh_lock(session, caller.seller_id, now)
    expires_at = (now + timedelta(seconds=limits.PRESIGNED_SECONDS)).replace(microsecond=0)
    return Slot(store.presign_put(key, expires_at), key, expires_at)


async def new_object_key(
    session: AsyncSession,
    caller: Caller,
    product_line: str | None,
    now: datetime,
    settings: Settings,
) -> str:
    """Return an unused object key, and store the product line that a POST /sync with this key has.
    Raises InvalidProductLine.
    """
    _refuse_line(caller, product_line)
    key = f"syncs/u{caller.seller_id}/{uuid.uuid4()}.csv"
    if product_line is not None:
        # Rows of unused keys are deleted at the same age as unused objects.
        past = now - timedelta(days=settings.unclaimed_retention_days)
        of_seller = RequestedUpload.seller_id == caller.seller_id
        await session.execute(
            delete(RequestedUpload).where(of_seller, RequestedUpload.requested_at < past)
        )
        session.add(
            RequestedUpload(
                seller_id=caller.seller_id,
                key=key,
                product_line=product_line,
                requested_at=now,
            )
        )
    return key


def check_file(path: Path, content_type: str) -> None:
    """Read the stored body once, and check that it is complete gzip or plain text, is within the
    size limit, and has a usable header and a row. Blocking.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if bodies.is_gzip(head):
        try:
            head, _ = bodies.check_gzip(path, limits.BODY_INFLATED_BYTES, HEAD_BYTES)
        except bodies.BadGzip as e:
            if content_type == "application/gzip":
                raise errors.InvalidGzip(
                    f"this file is damaged; export it again (gzip: {e})"
                ) from e
            raise errors.InvalidCsv(f"the body is damaged gzip: {e}") from e
    elif content_type == "application/gzip":
        raise errors.InvalidGzip(
            "Content-Type is application/gzip but the body does not begin with 1f 8b"
        )
    accept_check(head)


class NamedObject(msgspec.Struct):
    """The JSON body of POST /sync for an object that was uploaded with PUT before."""

    key: Any = None
    product_line: str | None = None
    sync_cycle_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    exported_at: str | None = None


async def accept_bytes(
    database: Database,
    caller: Caller,
    store: Store,
    settings: Settings,
    body: AsyncIterable[bytes],
    content_type: str,
    arrived: Arrival,
    plain_most: int = limits.BODY_WIRE_BYTES,
) -> int:
    """Accept a POST /sync with the file as its body. Return the id of the committed upload."""
    with store.spool() as (path, file):
        await spool_body(file, body, plain_most, limits.BODY_WIRE_BYTES)
        file.flush()
        await asyncio.to_thread(check_file, path, content_type)
        key = private_key(caller.seller_id, "csv")
        await store.write(key, path)
    async with database.tenant(caller.seller_id) as session:
        return await _accept(session, caller, settings, arrived, source_key=None, storage_key=key)


async def accept_named(
    database: Database,
    caller: Caller,
    store: Store,
    settings: Settings,
    named: NamedObject,
    now: datetime,
) -> int:
    """Accept a POST /sync with the key of an object. Raises ObjectStorePipelineDisabled,
    InvalidProductLine, InvalidObjectKey, PayloadTooLarge.
    """
    _need_pipeline(caller)
    arrived = arrival(caller, named.product_line, named.sync_cycle_id, named.exported_at, now)
    return await accept_key(database, caller, store, settings, named.key, arrived)


async def accept_key(
    database: Database,
    caller: Caller,
    store: Store,
    settings: Settings,
    key: Any,
    arrived: Arrival,
) -> int:
    """Accept the object of a key as an upload, and return the upload's id. A key that was accepted
    before, in any sync, returns the id of its upload.
    """
    match = OBJECT_KEY.fullmatch(key) if isinstance(key, str) else None
    if match is None or int(match[1]) != caller.seller_id:
        raise InvalidObjectKey
    async with database.tenant(caller.seller_id) as session:
        if (known := await _upload_of(session, caller.seller_id, key)) is not None:
            return known
        if arrived.product_line is None:
            arrived = replace(arrived, product_line=await _line_of(session, caller.seller_id, key))
            _refuse_line(caller, arrived.product_line)
    copy = private_key(caller.seller_id, "csv")
    try:
        await store.copy(key, copy)
        # The size of the copy is checked, because a PUT to the URL may still change the original.
        await _check_size(store, copy)
    except ObjectMissing:
        raise InvalidObjectKey from None
    except errors.PayloadTooLarge:
        await store.delete(copy)
        raise
    async with database.tenant(caller.seller_id) as session:
        await sync_state.locked(session, caller.seller_id)
        if (known := await _upload_of(session, caller.seller_id, key)) is not None:
            return known
        await session.execute(
            delete(RequestedUpload).where(
                RequestedUpload.seller_id == caller.seller_id, RequestedUpload.key == key
            )
        )
        return await _accept(session, caller, settings, arrived, source_key=key, storage_key=copy)


async def _line_of(session: AsyncSession, seller_id: int, key: str) -> str | None:
    """Return the product line that was requested with the key."""
    query = select(RequestedUpload.product_line)
    return await session.scalar(
        query.where(RequestedUpload.seller_id == seller_id, RequestedUpload.key == key)
    )


async def _check_size(store: Store, key: str) -> None:
    size = await store.size(key)
    compressed = size > 1 and bodies.is_gzip(await store.head(key, 2))
    cap = PRESIGNED_COMPRESSED_BYTES if compressed else limits.PRESIGNED_PLAIN_BYTES
    if size > cap:
        raise errors.PayloadTooLarge(f"the object is larger than {cap:,} bytes")


async def _upload_of(session: AsyncSession, seller_id: int, key: str) -> int | None:
    return await session.scalar(
        select(Upload.id).where(Upload.seller_id == seller_id, Upload.source_key == key)
    )


async def _accept(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    arrived: Arrival,
    *,
    source_key: str | None,
    storage_key: str,
) -> int:
    now = clock.now()
    # A cancelled sync ends before the upload of this sync is stored; otherwise its end would cancel
    # this upload, too.
    await cancel.end_left(session, caller.seller_id, now)
    # The statement takes the seller's row lock first, so ids commit in the order of acceptance.
    trigger = await sync_state.upload_accepted(session, caller.seller_id, now, settings)
    await place_cycle(session, caller.seller_id, arrived.sync_cycle_id, trigger, now)
    upload = Upload(
        seller_id=caller.seller_id,
        stream="inventory",
        source_key=source_key,
        storage_key=storage_key,
        product_line=arrived.product_line,
        sync_cycle_id=arrived.sync_cycle_id,
        exported_at=arrived.exported_at,
        received_at=now,
    )
    session.add(upload)
    await session.flush()
    if arrived.mends is None:
        summary = f"upload {upload.id}: inventory"
        note(session, caller, "upload.accepted", summary, now)
    else:
        summary = f"upload {upload.id}: the rejected rows of upload {arrived.mends}, corrected"
        note(session, caller, "upload.mended", summary, now)
    await mark_due(session, caller.seller_id, "inventory")
    await enqueue(session, drain_inventory, seller_id=caller.seller_id)
    return upload.id


async def upload_of(
    source: Source,
    seller_id: int,
    upload_id: int,
    *,
    lock: bool = False,
) -> Upload:
    """Return an upload, and lock its row if `lock`. Raises NotFound if the seller has no such
    upload.
    """
    tail = f"AND id = :id{' FOR UPDATE' if lock else ''}"
    found = await rows_as(source, Upload, seller_id, tail, id=upload_id)
    if not found:
        raise errors.NotFound(f"there is no upload {upload_id}")
    return found[0]


async def shown_upload(source: Source, caller: Caller, upload_id: int) -> Upload:
    """Read an upload for its owner. Raises OwnerRequired, NotFound."""
    caller.must_be_owner()
    return await upload_of(source, caller.seller_id, upload_id)


async def watched(
    session: AsyncSession,
    caller: Caller,
    upload_id: int,
    now: datetime,
) -> Upload:
    """Read an upload for its agent or its owner. Raises OwnerRequired, NotFound."""
    upload = await shown_upload(session, caller, upload_id)
    # An agent that reads the report is running, so its sync lock is renewed; a member's page does
    # not renew the lock. While an import runs, the lock cannot become stale, so reading the report
    # does not wait for the import's row lock.
    state = caller.state
    if state.lock_kind is not None and caller.member_id is None and not state.uploads_open:
        await sync_state.refresh_lock(session, caller.seller_id, now)
    return upload
