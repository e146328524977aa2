"""Tables of the inventory: `upload_request` (product lines of presigned keys) and `line_snapshot`
(the newest believable upload of each line). Cards and uploads have their tables elsewhere.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKeyConstraint, Identity, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, Moment


class RequestedUpload(Base):
    """The product line of a presigned key, until an upload names the key.

    Keys without a line have no row.
    """

    __tablename__ = "upload_request"
    __table_args__ = (Index("uq_upload_request_key", "seller_id", "key", unique=True),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    key: Mapped[str] = mapped_column(Text)
    product_line: Mapped[str] = mapped_column(Text)
    requested_at: Mapped[datetime] = mapped_column(Moment)


class LineSnapshot(Base):
    """The newest believable upload of a product line: every active card of the line was seen then."""

    __tablename__ = "line_snapshot"
    __table_args__ = (
        ForeignKeyConstraint(["seller_id", "upload_id"], ["upload.seller_id", "upload.id"]),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    product_line: Mapped[str] = mapped_column(Text, primary_key=True)
    upload_id: Mapped[int] = mapped_column(BigInteger)
    observed_at: Mapped[datetime] = mapped_column(Moment)
