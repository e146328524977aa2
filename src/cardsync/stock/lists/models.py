"""The tables of lists: `card_list` and `card_list_entry`. The row of a deleted list stays in
`card_list`, so that no other list gets its slug.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, text
from sqlalchemy.orm import Mapped

from cardsync.platform.database.columns import Base, DefaultNow, KeyPart, RowId


class CardList(Base):
    """A list of cards. `name_key` is the form of its name that is compared with other names."""

    __tablename__ = "card_list"
    __table_args__ = (
        Index("uq_card_list_slug", "seller_id", "slug", unique=True),
        Index(
            "uq_card_list_name",
            "seller_id",
            "name_key",
            unique=True,
            postgresql_where=text("deleted_at IS NULL"),
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    name: Mapped[str]
    name_key: Mapped[str]
    slug: Mapped[str]
    position: Mapped[int]
    created_at: Mapped[DefaultNow]
    deleted_at: Mapped[datetime | None]


class CardListEntry(Base):
    """A card on a list. A card that is out of stock stays on its lists.

    The table has no foreign key to `card`, because rows of `card` are never deleted, and a foreign
    key would slow down every import.
    """

    __tablename__ = "card_list_entry"
    __table_args__ = (
        ForeignKeyConstraint(["seller_id", "list_id"], ["card_list.seller_id", "card_list.id"]),
        Index("ix_card_list_entry_card", "seller_id", "card_id"),
    )
    seller_id: Mapped[KeyPart]
    list_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    added_at: Mapped[DefaultNow]
