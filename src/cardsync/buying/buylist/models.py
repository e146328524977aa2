"""`public_buylist` (tenant): whether strangers see what the shop buys, and its words to them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, NOW, Base, Moment


class PublicBuylist(Base):
    """A shop without a row has no public buylist."""

    __tablename__ = "public_buylist"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    is_open: Mapped[bool] = mapped_column(server_default=FALSE)
    terms: Mapped[str] = mapped_column(Text, server_default="")
    updated_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
