"""The tables of collections: `collection` (a customer's file), `collection_row` (its cards) and
`collection_columns` (the meanings that a shop gave to the columns of an unknown header).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from sqlalchemy import ForeignKeyConstraint, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart
from cardsync.platform.value_types import Json
from cardsync.platform.work.piece import Piece

CollectionState = Literal["queued", "needs_columns", "done", "failed"]
How = Literal[
    "sku",
    "product_id",
    "scryfall_id",
    "cardmarket_id",
    "cardtrader_id",
    "mtgjson_id",
    "set_and_number",
    "name",
    "chosen",
]


class Collection(Piece, Base):
    """A customer's file. `sha256` is the hash of its bytes, so that a file that is sent twice is
    one collection.

    `read` of its `rows` are matched and stored so far.
    """

    __tablename__ = "collection"
    __table_args__ = (
        Index("uq_collection_file", "seller_id", "sha256", unique=True),
        Index(
            "ix_collection_open",
            "seller_id",
            "id",
            postgresql_where=text("state = 'queued'"),
        ),
    )
    name: Mapped[str]
    sha256: Mapped[str]
    storage_key: Mapped[str]
    state: Mapped[CollectionState] = mapped_column(Text, server_default="queued")
    # The key of the file's format (collections/file_formats.py); empty until the file is read.
    format: Mapped[str] = mapped_column(server_default="")
    # The file's encoding and separators, if they are unusual.
    read_as: Mapped[str] = mapped_column(server_default="")
    header: Mapped[list[str]] = mapped_column(JSONB, server_default="[]")
    samples: Mapped[list[list[str]]] = mapped_column(JSONB, server_default="[]")
    # The column of each field, if no format declares the columns.
    columns: Mapped[dict[str, int] | None] = mapped_column(JSONB(none_as_null=True))
    rows: Mapped[int] = mapped_column(server_default="0")
    read: Mapped[int] = mapped_column(server_default="0")
    # The number of rows without copies, which are not stored.
    empty: Mapped[int] = mapped_column(server_default="0")
    rejected: Mapped[list[Json]] = mapped_column(JSONB, server_default="[]")
    rejected_count: Mapped[int] = mapped_column(server_default="0")
    error: Mapped[str | None]
    created_by: Mapped[str]
    received_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


# The finish of a row `r` with the product `p`.
FINISH: Final = """
    coalesce(nullif(r.finish, ''), nullif(p.finish, 'Sealed'),
             CASE WHEN p.id IS NULL THEN '' ELSE 'Normal' END)
"""


class CollectionRow(Base):
    """A card of a collection. A row without `product_id` waits for a choice, unless it is left out.

    `finish` is empty if the file has no finish: then the product's own finish counts (FINISH).
    `row` is the number of its line; if a line has two cards, `row` of the second card is a number
    after the last line.
    """

    __tablename__ = "collection_row"
    __table_args__ = (
        ForeignKeyConstraint(
            ["seller_id", "collection_id"],
            ["collection.seller_id", "collection.id"],
            ondelete="CASCADE",
        ),
        Index(
            "ix_collection_row_waiting",
            "seller_id",
            "collection_id",
            "row",
            postgresql_where=text("product_id IS NULL AND NOT left_out"),
        ),
    )
    seller_id: Mapped[KeyPart]
    collection_id: Mapped[KeyPart]
    row: Mapped[KeyPart]
    copies: Mapped[int]
    name: Mapped[str]
    set_name: Mapped[str]
    set_code: Mapped[str]
    number: Mapped[str]
    finish: Mapped[str]
    condition: Mapped[str]
    language: Mapped[str]
    game: Mapped[str]
    sku: Mapped[BigInt | None]
    product_id: Mapped[BigInt | None]
    # `certainty` is certain, probable or possible; null if the catalog has no such card.
    certainty: Mapped[str | None]
    how: Mapped[How | None] = mapped_column(Text)
    left_out: Mapped[bool] = mapped_column(server_default=text("false"))
    # The number of the file's line, if it is not `row`.
    line: Mapped[BigInt | None]
    # `reason` is why the row waits or is left out, if the file is the cause. `text` is the row's
    # text if the row is unreadable.
    reason: Mapped[str] = mapped_column(server_default="")
    text: Mapped[str] = mapped_column(server_default="")
    chosen_by: Mapped[str | None]
    chosen_at: Mapped[datetime | None]


class CollectionColumns(Base):
    """The meanings that a shop gave to the columns of a header. `header` is the header's key
    (collections/file_formats.py).
    """

    __tablename__ = "collection_columns"
    seller_id: Mapped[KeyPart]
    header: Mapped[str] = mapped_column(primary_key=True)
    # The names of the file's columns by our fields.
    columns: Mapped[dict[str, str]] = mapped_column(JSONB)
    updated_at: Mapped[DefaultNow]
