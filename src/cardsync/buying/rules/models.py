"""The tables of buy rules: `buy_rule` and `buy_rule_test`."""

from __future__ import annotations

from sqlalchemy import Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import TRUE, Base, DefaultNow, KeyPart, RowId
from cardsync.platform.value_types import JsonObject
from cardsync.prices.engine.rules import RuleState


class StoredBuyRule(Base):
    """A buy rule. The fields that define its prices are in `settings`."""

    __tablename__ = "buy_rule"
    __table_args__ = (
        Index(
            "uq_buy_rule_priority",
            "seller_id",
            "priority",
            unique=True,
            postgresql_where=text("state = 'published'"),
        ),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    name: Mapped[str]
    priority: Mapped[int] = mapped_column(Integer)
    enabled: Mapped[bool] = mapped_column(server_default=TRUE)
    state: Mapped[RuleState] = mapped_column(Text, server_default="draft")
    preset: Mapped[str | None]
    query: Mapped[str] = mapped_column(server_default="")
    settings: Mapped[JsonObject] = mapped_column(JSONB)
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]


class BuyRuleTest(Base):
    """A rule test of buying: a search over the shop's cards, and the payment that the seller
    expects for a Near Mint copy of each card.
    """

    __tablename__ = "buy_rule_test"
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    name: Mapped[str]
    search: Mapped[str] = mapped_column(server_default="")
    expectation: Mapped[str]
    created_at: Mapped[DefaultNow]
    updated_at: Mapped[DefaultNow]
