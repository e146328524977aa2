"""Tables of recommendations: `recommendation_event` and `recommendation_scan`."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, Moment


class RecommendationEvent(Base):
    """An event is shown, accepted, auto_applied or expired; each happens once to a revision."""

    __tablename__ = "recommendation_event"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    recommendation_id: Mapped[int] = mapped_column(
        BigInteger,
        primary_key=True,
        autoincrement=False,
    )
    revision: Mapped[datetime] = mapped_column(Moment, primary_key=True)
    kind: Mapped[str] = mapped_column(Text, primary_key=True)
    at: Mapped[datetime] = mapped_column(Moment)
    actor: Mapped[str] = mapped_column(Text)


class RecommendationScan(Base):
    """The newest generation, and how many cards each rule governed then."""

    __tablename__ = "recommendation_scan"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    generated_at: Mapped[datetime] = mapped_column(Moment)
    rule_cards: Mapped[dict[str, int]] = mapped_column(JSONB, server_default="{}")
