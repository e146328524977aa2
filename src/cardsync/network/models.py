"""The tables of the network, which are shared by all sellers. `network_seller` has the fields of a
seller that buyers may see, `network_offer` each seller's cheapest price and quantity by product and
condition, and `network_miss` the requested products that nobody offered.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, KeyPart


class NetworkSeller(Base):
    """A seller's fields for the network. `exposed` is true if both switches of the account, consent
    and publication, are on. Each answer also checks `suspended` and `paid_until`.
    """

    __tablename__ = "network_seller"
    seller_id: Mapped[KeyPart]
    exposed: Mapped[bool] = mapped_column(server_default=FALSE)
    suspended: Mapped[bool] = mapped_column(server_default=FALSE)
    # Null if the plan has no end. For an unpaid plan, the time at which the row was updated.
    paid_until: Mapped[datetime | None]
    store_name: Mapped[str | None]
    listing_url_template: Mapped[str | None]
    postage_steps: Mapped[str | None]
    refreshed_at: Mapped[datetime | None]
    # `printings` and `copies` are counts of the offers with a price.
    printings: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    copies: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))


class NetworkOffer(Base):
    """A seller's offer of a product in a condition. A null price means that the seller has the card
    without a price.
    """

    __tablename__ = "network_offer"
    __table_args__ = (Index("ix_network_offer_seller", "seller_id"),)
    product_id: Mapped[KeyPart]
    seller_id: Mapped[KeyPart]
    # The code of the condition; empty if the condition's label is unknown.
    condition: Mapped[str] = mapped_column(primary_key=True)
    price: Mapped[Decimal | None]
    quantity: Mapped[int] = mapped_column(Integer)


class NetworkMiss(Base):
    """A request of a caller for a product that no exposed seller offered. `caller` is a keyed hash
    of caller and product, so that it neither reveals the caller nor connects the caller's requests.
    """

    __tablename__ = "network_miss"
    __table_args__ = (Index("ix_network_miss_asked_on", "asked_on"),)
    product_id: Mapped[KeyPart]
    caller: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    asked_on: Mapped[date]
