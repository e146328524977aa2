"""Table of Today: `member_visit`, when each member looked at the shop last."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, Moment


class MemberVisit(Base):
    """A member's visits to Today: `seen_at` is the newest look, and `before_at` the last look of
    the visit before this one; null for a first visit.
    """

    __tablename__ = "member_visit"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    member_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    seen_at: Mapped[datetime] = mapped_column(Moment)
    before_at: Mapped[datetime | None] = mapped_column(Moment)
