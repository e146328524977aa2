"""Tables of the inventory: `upload` (accepted files, the truth about pending work), `upload_request`,
`card`, `custom_listing`, `price_observation`, `line_snapshot`, `activity`.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Identity, Index, Integer, Numeric, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.accounts.models import FALSE, NOW, Moment
from cardsync.db import Base

Money = Numeric(12, 4)


class Upload(Base):
    """One accepted file. Rows of one stream are worked off in order of id."""

    __tablename__ = "upload"
    __table_args__ = (
        UniqueConstraint("seller_id", "source_key"),
        Index(
            "ix_upload_open",
            "seller_id",
            "stream",
            "id",
            postgresql_where=text("state IN ('queued', 'processing')"),
        ),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    # inventory; or orders with kind orders, refunds, items or shipping
    stream: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text, server_default="inventory")
    state: Mapped[str] = mapped_column(Text, server_default="queued")
    # The presigned key that the caller named (key form); the worker reads only storage_key.
    source_key: Mapped[str | None] = mapped_column(Text)
    storage_key: Mapped[str] = mapped_column(Text)
    product_line: Mapped[str | None] = mapped_column(Text)
    sync_cycle_id: Mapped[str | None] = mapped_column(Text)
    exported_at: Mapped[datetime] = mapped_column(Moment)
    received_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
    begun_at: Mapped[datetime | None] = mapped_column(Moment)
    finished_at: Mapped[datetime | None] = mapped_column(Moment)
    # Starts that ended in nothing we know of (a killed worker), and failures of the file itself.
    attempts: Mapped[int] = mapped_column(server_default="0")
    failures: Mapped[int] = mapped_column(server_default="0")
    # How often its writing in halves was begun: a writer of an earlier beginning writes nothing more.
    claims: Mapped[int] = mapped_column(server_default="0")
    # Decided once, before the first row is written, so that a run that starts again decides the same.
    verdict: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    confirmed: Mapped[bool] = mapped_column(server_default=FALSE)
    report: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default="{}")
    error_code: Mapped[str | None] = mapped_column(Text)
    error_message: Mapped[str | None] = mapped_column(Text)


class RequestedUpload(Base):
    """The product line that a presigned key was asked for with, until the key is named.

    Keys without a line have no row.
    """

    __tablename__ = "upload_request"
    __table_args__ = (Index("uq_upload_request_key", "seller_id", "key", unique=True),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    key: Mapped[str] = mapped_column(Text)
    product_line: Mapped[str] = mapped_column(Text)
    requested_at: Mapped[datetime] = mapped_column(Moment)


class Card(Base):
    """One inventory row of a seller with the marketplace's newest observation of it and our target.

    In the order of the table: what searches look at stands before what is only shown, for a row is read from its beginning.
    """

    __tablename__ = "card"
    __table_args__ = (
        Index("uq_card_marketplace_id", "seller_id", "marketplace_id", unique=True),
        Index("ix_card_contribution", "seller_id", "contribution", postgresql_where=text("contribution IS NOT NULL")),
        Index("ix_card_custom", "seller_id", "listing_id", postgresql_where=text("custom")),
        # Where in the table a seller's cards lie: searches read all of them, and nobody else's.
        Index(
            "ix_card_seller",
            "seller_id",
            postgresql_using="brin",
            postgresql_ops={"seller_id": "int8_minmax_multi_ops"},
            postgresql_with={"pages_per_range": "16"},
        ),
        {"postgresql_with": {"fillfactor": "85", "autovacuum_vacuum_insert_scale_factor": "0.02"}},
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    marketplace_id: Mapped[int] = mapped_column(BigInteger)
    # The id that the marketplace's own file carries: equal to marketplace_id save for custom listings.
    listing_id: Mapped[int] = mapped_column(BigInteger)
    product_id: Mapped[int] = mapped_column(BigInteger)
    identity_hash: Mapped[int] = mapped_column(BigInteger)
    # Over the newest observation's amounts and quantity: an upload that brings the same writes nothing.
    values_hash: Mapped[int] = mapped_column(BigInteger, server_default="0")
    observed_at: Mapped[datetime] = mapped_column(Moment)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)
    quantity: Mapped[int] = mapped_column(Integer)
    gone: Mapped[bool] = mapped_column(server_default=FALSE)
    custom: Mapped[bool] = mapped_column(server_default=FALSE)
    # What searches compare (search/words.py), made of name, set, rarity and number; and what the number begins with.
    search_text: Mapped[str] = mapped_column(Text(collation="C"), server_default="")
    condition: Mapped[str | None] = mapped_column(Text)
    printing: Mapped[str] = mapped_column(Text)
    language: Mapped[str] = mapped_column(Text)
    product_line: Mapped[str] = mapped_column(Text)
    price: Mapped[Decimal | None] = mapped_column(Money)
    target_price: Mapped[Decimal | None] = mapped_column(Money)
    number_leading: Mapped[int | None] = mapped_column(Integer)
    priced_at: Mapped[datetime | None] = mapped_column(Moment)
    # matched, provisional or ambiguous
    match: Mapped[str] = mapped_column(Text)
    market: Mapped[Decimal | None] = mapped_column(Money)
    low: Mapped[Decimal | None] = mapped_column(Money)
    low_with_shipping: Mapped[Decimal | None] = mapped_column(Money)
    direct_low: Mapped[Decimal | None] = mapped_column(Money)
    product_line_label: Mapped[str] = mapped_column(Text)
    set_name: Mapped[str] = mapped_column(Text)
    product_name: Mapped[str] = mapped_column(Text)
    title: Mapped[str] = mapped_column(Text)
    number: Mapped[str] = mapped_column(Text)
    rarity: Mapped[str] = mapped_column(Text)
    condition_label: Mapped[str] = mapped_column(Text)
    photo_url: Mapped[str] = mapped_column(Text)
    # private, published or retired, of rows that a member added; no file of the marketplace speaks of them.
    contribution: Mapped[str | None] = mapped_column(Text)
    contributed_by: Mapped[int | None] = mapped_column(BigInteger)


class CustomListing(Base):
    """The negative marketplace_id of a custom listing, kept for ever once minted."""

    __tablename__ = "custom_listing"
    __table_args__ = (
        # Titles are as long as cells: their MD5 fits any index.
        Index("uq_custom_listing_title", "seller_id", "listing_id", text("md5(title)"), unique=True),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    marketplace_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    listing_id: Mapped[int] = mapped_column(BigInteger)
    title: Mapped[str] = mapped_column(Text)


class PriceObservation(Base):
    """What a card's prices were, from `observed_at` until the next observation. The newest one stands on the card itself.

    Partitioned by month, so that retention drops a table instead of deleting rows.
    """

    __tablename__ = "price_observation"
    __table_args__ = {"postgresql_partition_by": "RANGE (observed_at)"}  # noqa: RUF012
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    card_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    observed_at: Mapped[datetime] = mapped_column(Moment, primary_key=True)
    quantity: Mapped[int] = mapped_column(Integer)
    price: Mapped[Decimal | None] = mapped_column(Money)
    market: Mapped[Decimal | None] = mapped_column(Money)
    low: Mapped[Decimal | None] = mapped_column(Money)
    low_with_shipping: Mapped[Decimal | None] = mapped_column(Money)
    direct_low: Mapped[Decimal | None] = mapped_column(Money)


class LineSnapshot(Base):
    """The newest believable upload of a product line: every active card of the line was seen then."""

    __tablename__ = "line_snapshot"
    __table_args__ = (ForeignKeyConstraint(["seller_id", "upload_id"], ["upload.seller_id", "upload.id"]),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    product_line: Mapped[str] = mapped_column(Text, primary_key=True)
    upload_id: Mapped[int] = mapped_column(BigInteger)
    observed_at: Mapped[datetime] = mapped_column(Moment)


class Activity(Base):
    """What was done to a seller's prices and stock, written in the transaction that did it."""

    __tablename__ = "activity"
    __table_args__ = (Index("ix_activity_recent", "seller_id", text("created_at DESC")),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    actor: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(Text)
    summary: Mapped[str] = mapped_column(Text)
    request_id: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
