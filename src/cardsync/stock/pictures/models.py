"""The tables of pictures: `picture` (shared), `card_photo` (a seller's own photos) and
`picture_host`.

A row of `picture` or `card_photo` is one address from which the server fetches a picture. The
picture's files are in the object store, named by the digest of the fetched bytes.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base


class Fetched:
    """The columns of an address: `digest` names the stored picture; `next_at` is the time of the
    next fetch, or null if none is needed.
    """

    address: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str]
    digest: Mapped[str | None]
    next_at: Mapped[datetime | None]
    # The number of failed tries, whatever the reason.
    tries: Mapped[int] = mapped_column(server_default="0")


class Picture(Fetched, Base):
    """A picture address of the catalog or of the marketplace, shared by all sellers. No seller can
    assign it to a product.
    """

    __tablename__ = "picture"
    __table_args__ = (
        Index("ix_picture_next", "host", "next_at", postgresql_where=text("next_at IS NOT NULL")),
    )


class CardPhoto(Fetched, Base):
    """A seller's own photo, from the file's `Photo URL`. Only that seller's pages show it."""

    __tablename__ = "card_photo"
    __table_args__ = (
        Index(
            "ix_card_photo_next",
            "seller_id",
            "host",
            "next_at",
            postgresql_where=text("next_at IS NOT NULL"),
        ),
    )
    seller_id: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, autoincrement=False, sort_order=-1
    )


class PictureHost(Base):
    """A host of pictures; no worker sends it a request before `next_at`."""

    __tablename__ = "picture_host"
    host: Mapped[str] = mapped_column(primary_key=True)
    next_at: Mapped[datetime]
    failures: Mapped[int] = mapped_column(server_default="0")
