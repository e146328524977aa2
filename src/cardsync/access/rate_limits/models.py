"""The table `rate_limit` (global, unlogged: a crash of the database loses the limits, nothing else)
holds one token bucket per row, in the manner of GCRA.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, Moment


class RateLimit(Base):
    """`bucket` names group and holder (`general:k17`, `anonymous:192.0.2.7`); `tat` is the
    theoretical arrival time.
    """

    __tablename__ = "rate_limit"
    __table_args__ = {"prefixes": ["UNLOGGED"]}  # noqa: RUF012
    bucket: Mapped[str] = mapped_column(Text, primary_key=True)
    tat: Mapped[datetime] = mapped_column(Moment)
