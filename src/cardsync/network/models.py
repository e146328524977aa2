"""Tables of the network, shared by all sellers. `network_seller` has the part of each seller that
buyers may see, `network_offer` every seller's cheapest price and quantity by product and condition,
`network_miss` the requested products that nobody offered.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base


class NetworkSeller(Base):
    """`exposed` is whether both switches are on. Each answer also checks `suspended` and
    `paid_until`, so that a change affects the next answer.
    """

    __tablename__ = "network_seller"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    exposed: Mapped[bool] = mapped_column(server_default=FALSE)
    suspended: Mapped[bool] = mapped_column(server_default=FALSE)
    # Null means a plan without an end; an unpaid plan has the time at which that was recorded.
    paid_until: Mapped[datetime | None]
    store_name: Mapped[str | None]
    listing_url_template: Mapped[str | None]
    postage_steps: Mapped[str | None]
    refreshed_at: Mapped[datetime | None]
    # Both count only offers that have a price.
    printings: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    copies: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))


class NetworkOffer(Base):
    """A null price means that the seller has the card without a price."""

    __tablename__ = "network_offer"
    __table_args__ = (Index("ix_network_offer_seller", "seller_id"),)
    product_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    # The code of the condition, empty if the label could not be read.
    condition: Mapped[str] = mapped_column(primary_key=True)
    price: Mapped[Decimal | None]
    quantity: Mapped[int] = mapped_column(Integer)


class NetworkMiss(Base):
    """A caller asked for a product that no exposed seller offered. `caller` is a keyed hash that
    differs for each product, so that it identifies no one and links nothing.
    """

    __tablename__ = "network_miss"
    __table_args__ = (Index("ix_network_miss_asked_on", "asked_on"),)
    product_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    caller: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    asked_on: Mapped[date]
