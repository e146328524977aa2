"""The tables of the shelves: `card_location` has the number of copies of a card in a slot of a box;
`shelf_box` has the boxes with a label; `shelf_count` and `shelf_count_line` have the counts with
their expected and counted copies.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import (
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, KeyPart, RowId


class CardLocation(Base):
    """The number of copies of a card in a slot.

    The table has no foreign key to `card`, because rows of `card` are never deleted, and a foreign
    key would slow down every import.
    """

    __tablename__ = "card_location"
    __table_args__ = (
        Index("ix_card_location_slot", "seller_id", "box", "slot"),
        CheckConstraint("box >= 1 AND slot >= 1", name="place"),
        CheckConstraint("quantity >= 1", name="quantity"),
    )
    seller_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    box: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slot: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    quantity: Mapped[int]


class ShelfBox(Base):
    """A box with a label. `box` is its number in the other tables, above the range that members can
    enter; `way` is its rank in the order of the shelves (`shelf_place.way_of`).
    """

    __tablename__ = "shelf_box"
    __table_args__ = (
        UniqueConstraint("seller_id", "way", name="uq_shelf_box_way"),
        CheckConstraint("box > 1000000", name="number"),
        CheckConstraint("char_length(label) BETWEEN 1 AND 12", name="label"),
    )
    seller_id: Mapped[KeyPart]
    box: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    label: Mapped[str]
    way: Mapped[str] = mapped_column(Text(collation="C"))


CountState = Literal["open", "settled", "cancelled", "undone"]


class ShelfCount(Base):
    """A count of a box or of one of its slots. `state` is open, settled, cancelled or undone; a box
    has at most one open count.

    The columns named like outcomes are the numbers of lines with that outcome when the count ended.
    A `moved` line is not corrected, because its place changed during the count; an `unseen` line
    was not counted.
    """

    __tablename__ = "shelf_count"
    __table_args__ = (
        Index(
            "uq_shelf_count_open",
            "seller_id",
            "box",
            unique=True,
            postgresql_where=text("state = 'open'"),
        ),
        Index("ix_shelf_count_box", "seller_id", "box", "ended_at"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    box: Mapped[int]
    # The label of the box, if it has one.
    box_label: Mapped[str | None]
    slot: Mapped[int | None]
    state: Mapped[CountState] = mapped_column(Text, server_default="open")
    begun_by: Mapped[str]
    begun_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    lines: Mapped[int] = mapped_column(server_default="0")
    correct: Mapped[int] = mapped_column(server_default="0")
    wrong: Mapped[int] = mapped_column(server_default="0")
    moved: Mapped[int] = mapped_column(server_default="0")
    unseen: Mapped[int] = mapped_column(server_default="0")


class ShelfCountLine(Base):
    """A card in a slot of a count. `expected` is the number of copies that were recorded in the
    slot when the count began; `seen` is null until a member enters a number.
    """

    __tablename__ = "shelf_count_line"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "count_id"], ["shelf_count.seller_id", "shelf_count.id"]
        ),
    )
    seller_id: Mapped[KeyPart]
    count_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    slot: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    expected: Mapped[int]
    seen: Mapped[int | None]
    # The outcome is correct, wrong, moved or unseen, and null while the count is open.
    outcome: Mapped[str | None]
