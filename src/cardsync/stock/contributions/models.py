"""`published_contribution` (tenant): how many copies of a card the marketplace listed when a member
published a contribution of it. The row is deleted when the contribution is retired.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, Moment


class PublishedContribution(Base):
    """`listed` maps the id of each live card that is the same to the most copies of it that were
    listed since then.
    """

    __tablename__ = "published_contribution"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    card_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    published_at: Mapped[datetime] = mapped_column(Moment)
    listed: Mapped[dict[str, int]] = mapped_column(JSONB)
