"""The table of the shelves: a row of `card_location` says how many of a card lie in a slot of a
box.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.database.columns import Base


class CardLocation(Base):
    """The table does not refer to `card`, whose rows are never deleted: every import would pay
    for the reference.
    """

    __tablename__ = "card_location"
    __table_args__ = (
        Index("ix_card_location_slot", "seller_id", "box", "slot"),
        CheckConstraint("box >= 1 AND slot >= 1", name="place"),
        CheckConstraint("quantity >= 1", name="quantity"),
    )
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    card_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    box: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slot: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    quantity: Mapped[int]
