"""The tables of cards: `card`, `custom_listing` and `price_observation`, and the tables of the
cards' pages: `saved_search`, `card_columns`, `seller_set` and `settled_match`.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from sqlalchemy import ARRAY, BigInteger, Index, Integer, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import FALSE, Base, BigInt, DefaultNow, KeyPart, RowId


class Card(Base):
    """One inventory row of a seller, with the newest observation from the marketplace and the
    target.

    The columns have the table's order: columns that searches compare precede columns that are only
    shown, because PostgreSQL reads a row from its beginning.
    """

    __tablename__ = "card"
    __table_args__ = (
        Index("uq_card_marketplace_id", "seller_id", "marketplace_id", unique=True),
        Index(
            "ix_card_contribution",
            "seller_id",
            "contribution",
            postgresql_where=text("contribution IS NOT NULL"),
        ),
        Index("ix_card_product", "seller_id", "product_id"),
        Index("ix_card_custom", "seller_id", "listing_id", postgresql_where=text("custom")),
        # With this index, a search by name reads no rows of cards. It has no texts that are too
        # long for an index; the next index finds the sellers who have such cards.
        Index(
            "ix_card_name",
            "seller_id",
            "search_text",
            "id",
            postgresql_where=text("NOT gone AND octet_length(search_text) < 2000"),
        ),
        Index(
            "ix_card_long_name",
            "seller_id",
            postgresql_where=text("NOT gone AND octet_length(search_text) >= 2000"),
        ),
        # With this index, a search reads only the blocks of the table that contain cards of the
        # seller.
        Index(
            "ix_card_seller",
            "seller_id",
            postgresql_using="brin",
            postgresql_ops={"seller_id": "int8_minmax_multi_ops"},
            postgresql_with={"pages_per_range": "16"},
        ),
        {"postgresql_with": {"fillfactor": "85", "autovacuum_vacuum_insert_scale_factor": "0.02"}},
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[KeyPart]
    marketplace_id: Mapped[BigInt]
    # The id in the marketplace's own file. It equals marketplace_id, except for custom listings.
    listing_id: Mapped[BigInt]
    product_id: Mapped[BigInt]
    identity_hash: Mapped[BigInt]
    # The hash of the newest observation's amounts and quantity: an upload with the same values
    # writes nothing.
    values_hash: Mapped[int] = mapped_column(BigInteger, server_default="0")
    observed_at: Mapped[datetime]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    quantity: Mapped[int] = mapped_column(Integer)
    gone: Mapped[bool] = mapped_column(server_default=FALSE)
    custom: Mapped[bool] = mapped_column(server_default=FALSE)
    # Searches use `search_text`, which search/folding.py builds from name, set, rarity and number,
    # and `number_leading`, the number at the beginning of the collector number.
    search_text: Mapped[str] = mapped_column(Text(collation="C"), server_default="")
    condition: Mapped[str | None]
    printing: Mapped[str]
    language: Mapped[str]
    product_line: Mapped[str]
    price: Mapped[Decimal | None]
    target_price: Mapped[Decimal | None]
    number_leading: Mapped[int | None] = mapped_column(Integer)
    priced_at: Mapped[datetime | None]
    # `match` is matched, provisional or ambiguous.
    match: Mapped[str]
    market: Mapped[Decimal | None]
    low: Mapped[Decimal | None]
    low_with_shipping: Mapped[Decimal | None]
    direct_low: Mapped[Decimal | None]
    product_line_label: Mapped[str]
    set_name: Mapped[str]
    product_name: Mapped[str]
    title: Mapped[str]
    number: Mapped[str]
    rarity: Mapped[str]
    condition_label: Mapped[str]
    photo_url: Mapped[str]
    # `contribution` is private, published or retired if a member added the card by hand, and null
    # if the card is from a marketplace file.
    contribution: Mapped[str | None]
    contributed_by: Mapped[BigInt | None]
    # True if the price is My Store Price, because the file has no marketplace price.
    my_store_priced: Mapped[bool] = mapped_column(server_default=FALSE)


class CustomListing(Base):
    """The negative marketplace_id of a custom listing. Once assigned, it never changes."""

    __tablename__ = "custom_listing"
    __table_args__ = (
        # A title may be as long as a CSV cell, too long for an index, so its MD5 is indexed.
        Index(
            "uq_custom_listing_title",
            "seller_id",
            "listing_id",
            text("md5(title)"),
            unique=True,
        ),
    )
    seller_id: Mapped[KeyPart]
    marketplace_id: Mapped[KeyPart]
    listing_id: Mapped[BigInt]
    title: Mapped[str]


class PriceObservation(Base):
    """A card's prices and quantity from `observed_at` until the next observation. The newest
    observation is in the card's own row.

    The table is partitioned by month, so that retention drops a table instead of deleting rows.
    """

    __tablename__ = "price_observation"
    __table_args__ = {"postgresql_partition_by": "RANGE (observed_at)"}  # noqa: RUF012
    seller_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    observed_at: Mapped[datetime] = mapped_column(primary_key=True)
    quantity: Mapped[int] = mapped_column(Integer)
    price: Mapped[Decimal | None]
    market: Mapped[Decimal | None]
    low: Mapped[Decimal | None]
    low_with_shipping: Mapped[Decimal | None]
    direct_low: Mapped[Decimal | None]


class SavedSearch(Base):
    """A search that a shop saved under a name; `name_key` is the compared form of the name."""

    __tablename__ = "saved_search"
    __table_args__ = (Index("uq_saved_search_name", "seller_id", "name_key", unique=True),)
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    name: Mapped[str]
    name_key: Mapped[str]
    query: Mapped[str]
    position: Mapped[int]
    created_at: Mapped[DefaultNow]


class CardColumns(Base):
    """The columns of the cards' table that a member sees by default; member 0 is the shop."""

    __tablename__ = "card_columns"
    seller_id: Mapped[KeyPart]
    member_id: Mapped[KeyPart]
    columns: Mapped[list[str]] = mapped_column(ARRAY(Text))


class SellerSet(Base):
    """A set of which the seller has imported a card. Without this table, the completion of set
    names in a search would read all cards.
    """

    __tablename__ = "seller_set"
    seller_id: Mapped[KeyPart]
    set_name: Mapped[str] = mapped_column(primary_key=True)


class SettledMatch(Base):
    """The product that a seller chose for a card, and the card's previous match."""

    __tablename__ = "settled_match"
    seller_id: Mapped[KeyPart]
    card_id: Mapped[KeyPart]
    product_id: Mapped[BigInt]
    was_product_id: Mapped[BigInt]
    was_match: Mapped[str]
    settled_by: Mapped[str]
    settled_at: Mapped[DefaultNow]


CARD_ID_BLOCK = 1000
