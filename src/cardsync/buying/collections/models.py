"""Tables of collections: `collection` (a customer's file), `collection_row` (its cards) and
`collection_columns` (a shop's own meanings of an unknown header's columns).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import NOW, Base
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
    """`sha256` is that of the file's bytes: the same file twice is one collection.

    `read` counts the rows that are matched and stored so far, of `rows`.
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
    # A key of collections/file_formats.py, once the file was read.
    format: Mapped[str] = mapped_column(server_default="")
    # The file's encoding and separators, if they are unusual.
    read_as: Mapped[str] = mapped_column(server_default="")
    header: Mapped[list[str]] = mapped_column(JSONB, server_default="[]")
    samples: Mapped[list[list[str]]] = mapped_column(JSONB, server_default="[]")
    # The meaning of each column, if no format declares it.
    columns: Mapped[dict[str, int] | None] = mapped_column(JSONB(none_as_null=True))
    rows: Mapped[int] = mapped_column(server_default="0")
    read: Mapped[int] = mapped_column(server_default="0")
    # Rows without copies, which are not cards.
    empty: Mapped[int] = mapped_column(server_default="0")
    rejected: Mapped[list[Any]] = mapped_column(JSONB, server_default="[]")
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
    """A card of the file. A line without `product_id` waits for a choice.

    `finish` is empty if the file has none: then the product's own counts (FINISH). `row` is its
    line; if a line is two cards, the second has a number after the last line.
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
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    collection_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    row: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    copies: Mapped[int]
    name: Mapped[str]
    set_name: Mapped[str]
    set_code: Mapped[str]
    number: Mapped[str]
    finish: Mapped[str]
    condition: Mapped[str]
    language: Mapped[str]
    game: Mapped[str]
    sku: Mapped[int | None] = mapped_column(BigInteger)
    product_id: Mapped[int | None] = mapped_column(BigInteger)
    # certain, probable or possible; none if the catalog has no such card.
    certainty: Mapped[str | None]
    how: Mapped[How | None] = mapped_column(Text)
    left_out: Mapped[bool] = mapped_column(server_default=text("false"))
    # Null: the line is `row`.
    line: Mapped[int | None] = mapped_column(BigInteger)
    # Why the row waits or is left out, if the file is the cause; and its text if it was unreadable.
    reason: Mapped[str] = mapped_column(server_default="")
    text: Mapped[str] = mapped_column(server_default="")
    chosen_by: Mapped[str | None]
    chosen_at: Mapped[datetime | None]


class CollectionColumns(Base):
    """`header` is the key of a header (collections/file_formats.py)."""

    __tablename__ = "collection_columns"
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    header: Mapped[str] = mapped_column(primary_key=True)
    # The file's own names, by ours.
    columns: Mapped[dict[str, str]] = mapped_column(JSONB)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
