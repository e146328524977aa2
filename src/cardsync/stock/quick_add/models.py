"""`quick_add` (tenant): the cards that a seller wants to list, from the draft until the marketplace
lists or rejects them. `quick_add_file` (tenant): the files of these cards that were served to
agents.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart, RowId

Status = Literal["draft", "published", "pending", "listed", "rejected"]


class QuickAdd(Base):
    """A card that a seller wants to list. `status` is draft, published, pending, listed or
    rejected.

    The card's texts have the spelling of the marketplace's file, so that the file of entries is
    made from this table alone.
    """

    __tablename__ = "quick_add"
    __table_args__ = (
        Index(
            "ix_quick_add_open",
            "seller_id",
            "id",
            postgresql_where=text(
                "status IN ('published', 'pending') OR (status = 'listed' AND card_id IS NULL)"
            ),
        ),
        Index(
            "ix_quick_add_listed",
            "seller_id",
            "product_id",
            postgresql_where=text("status = 'listed'"),
        ),
        Index(
            "ix_quick_add_rejected",
            "seller_id",
            postgresql_where=text("status = 'rejected'"),
        ),
        Index(
            "uq_quick_add_contribution",
            "seller_id",
            "contribution_id",
            unique=True,
            postgresql_where=text("contribution_id IS NOT NULL AND status <> 'listed'"),
        ),
        CheckConstraint(
            "status IN ('draft', 'published', 'pending', 'listed', 'rejected')",
            name="status",
        ),
        CheckConstraint("quantity >= 1", name="quantity"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    status: Mapped[Status] = mapped_column(Text, server_default="draft")
    product_id: Mapped[BigInt]
    # The marketplace's id of the card, if the seller or the inventory knows it.
    listing_id: Mapped[BigInt | None]
    product_line: Mapped[str]
    product_line_label: Mapped[str]
    set_name: Mapped[str]
    product_name: Mapped[str]
    number: Mapped[str]
    rarity: Mapped[str]
    condition: Mapped[str]
    condition_label: Mapped[str]
    printing: Mapped[str]
    language: Mapped[str]
    # Only custom listings have a title and a photo.
    title: Mapped[str] = mapped_column(server_default="")
    photo_url: Mapped[str] = mapped_column(server_default="")
    quantity: Mapped[int]
    price: Mapped[Decimal | None]
    cost: Mapped[Decimal | None]
    source: Mapped[str] = mapped_column(server_default="")
    box: Mapped[int | None]
    # The label of the box, if it has one.
    box_label: Mapped[str | None]
    slot: Mapped[int | None]
    # The member's contribution that this entry lists.
    contribution_id: Mapped[BigInt | None]
    # `served` is the number of files with this entry. The next three columns are the newest file's
    # time and SHA-256, and the number of copies that the marketplace listed before that file.
    served: Mapped[int] = mapped_column(server_default="0")
    served_at: Mapped[datetime | None]
    file_sha256: Mapped[str | None]
    quantity_before: Mapped[int | None]
    # The reason why the entry was rejected or is to be served again.
    reason: Mapped[str | None]
    # `settled_by` is agent, import, or the member who settled the entry.
    settled_by: Mapped[str | None]
    # The live card that lists this entry's copies.
    card_id: Mapped[BigInt | None]
    created_by: Mapped[str]
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]
    published_at: Mapped[datetime | None]
    settled_at: Mapped[datetime | None]


class QuickAddFile(Base):
    """A file of entries that was served to an agent. The row is deleted when an entry of the file
    is settled.

    The agent gets the same bytes again until it reports that it has received them.
    """

    __tablename__ = "quick_add_file"
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    # The ids of the entries, in the order of the file's rows.
    entry_ids: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))
    # The agent's credential, and the name that the agent reports for its installation.
    served_to: Mapped[str]
    made_at: Mapped[datetime]
    received_at: Mapped[datetime | None]
