"""Tables of market evidence, shared by all sellers and keyed by the marketplace's product id.

- `market_sale`, `market_listing` and `market_price` have the observations.
- `market_look` has the newest times at which a product's sales and listings were observed (a
  *look*), and `market_sales_look` the earlier looks at sales.
- `market_newest` has the evidence of the newest looks.
- `market_cell` has the existing combinations of condition, printing and language (a *cell*).
- `network_cell` has the listings and sales of each exposed seller of the network, and
  `network_look` the times at which they were read.

Prices are ten-thousandths of a dollar. Old observations are deleted.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Identity, Index, Integer, SmallInteger
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, KeyPart


class MarketCell(Base):
    """A combination of condition, printing and language. Observations refer to a combination by a
    small id, because there are many observations and few combinations.
    """

    __tablename__ = "market_cell"
    __table_args__ = (Index("uq_market_cell", "condition", "printing", "language", unique=True),)
    id: Mapped[int] = mapped_column(SmallInteger, Identity(always=True), primary_key=True)
    condition: Mapped[str]
    printing: Mapped[str]
    language: Mapped[str]


class MarketLook(Base):
    """The newest times at which a product's sales and listings were observed. `fell` is whether the
    supply of some cell had recently fallen; it is null if the observations are deleted.
    """

    __tablename__ = "market_look"
    product_id: Mapped[KeyPart]
    sales_at: Mapped[datetime | None]
    listings_at: Mapped[datetime | None]
    fell: Mapped[bool | None]


class MarketSalesLook(Base):
    """A time at which a product's sales were observed, the last time of each hour. A backtest uses
    the sales that were known at the newest of these times before a moment. The times of listings
    are in `market_listing`.
    """

    __tablename__ = "market_sales_look"
    product_id: Mapped[KeyPart]
    looked_at: Mapped[datetime] = mapped_column(primary_key=True)


class MarketSale(Base):
    """One sale. All columns are its key, so a sale that is observed again is stored once."""

    __tablename__ = "market_sale"
    product_id: Mapped[KeyPart]
    sold_at: Mapped[datetime] = mapped_column(primary_key=True)
    cell: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    price: Mapped[KeyPart]
    quantity: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class MarketNewest(Base):
    """The market of a product's cell at the product's newest look: the number of listings and their
    lowest price; of the sales of thirty days, the number, the median and the newest time.

    An import writes these rows with the observations (`catalog/market/newest.py`), so that a
    pricing run over all cards computes no sums.
    """

    __tablename__ = "market_newest"
    product_id: Mapped[KeyPart]
    cell: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    low: Mapped[BigInt | None]
    listings: Mapped[int]
    median: Mapped[BigInt | None]
    sales: Mapped[int]
    sales_week: Mapped[int]
    newest_sold_at: Mapped[datetime | None]


class MarketListing(Base):
    """The listings of one cell at one moment. The rows of a product and a moment are a snapshot, so
    a cell without a row had no listings.
    """

    __tablename__ = "market_listing"
    product_id: Mapped[KeyPart]
    observed_at: Mapped[datetime] = mapped_column(primary_key=True)
    cell: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    listings: Mapped[int]
    copies: Mapped[int]
    low: Mapped[BigInt]


class MarketPrice(Base):
    """A source's price of a product at one moment, usually once a day."""

    __tablename__ = "market_price"
    product_id: Mapped[KeyPart]
    printing: Mapped[str] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(primary_key=True)
    observed_at: Mapped[datetime] = mapped_column(primary_key=True)
    market: Mapped[BigInt | None]
    low: Mapped[BigInt | None]


class NetworkCell(Base):
    """One exposed seller's listings and sales of thirty days in one cell. `low` and `median` are
    the lowest price and the median of the sales.
    """

    __tablename__ = "network_cell"
    __table_args__ = (Index("ix_network_cell_seller", "seller_id"),)
    product_id: Mapped[KeyPart]
    cell: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    seller_id: Mapped[KeyPart]
    listings: Mapped[int] = mapped_column(Integer)
    low: Mapped[BigInt | None]
    sales: Mapped[int] = mapped_column(Integer)
    sales_week: Mapped[int] = mapped_column(Integer)
    median: Mapped[BigInt | None]
    newest_sold_at: Mapped[datetime | None]


class NetworkLook(Base):
    """The time at which an exposed seller's stock and sales were last read."""

    __tablename__ = "network_look"
    seller_id: Mapped[KeyPart]
    seen_at: Mapped[datetime]
