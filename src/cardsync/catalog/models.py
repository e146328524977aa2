"""Tables of the catalog, shared by all sellers: `product`, `product_elsewhere`, `catalog_import`,
`catalog_install`, `catalog_updates`, and the tables for searches: names, sets, words, and shortened
words to find typos.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, SmallInteger, text
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.platform.database.columns import (
    FALSE,
    TRUE,
    Base,
    BigInt,
    DefaultNow,
    KeyPart,
    RowId,
)
from cardsync.platform.value_types import JsonObject


class Product(Base):
    """One printing. The columns `…_key` have the comparable forms that `match.catalog_keys`
    computes. A provisional product was created from an inventory row.
    """

    __tablename__ = "product"
    __table_args__ = (
        Index("ix_product_set", "game", "set_key"),
        Index("ix_product_set_code", "game", "set_code_key"),
        Index(
            "ix_product_code",
            text("lower(set_code)"),
            postgresql_where=text("set_code IS NOT NULL"),
        ),
        Index("uq_product_identity", "identity", unique=True),
        Index(
            "ix_product_words",
            text("catalog_words(product_name, set_code, number, number_key)"),
            postgresql_using="gin",
            postgresql_where=text("NOT provisional"),
        ),
        Index("ix_product_provisional", "game", postgresql_where=text("provisional")),
        Index("ix_product_name", "game", "name_key", "number_key"),
        Index(
            "ix_product_listing",
            "marketplace_product_id",
            postgresql_where=text("marketplace_product_id IS NOT NULL"),
        ),
        Index(
            "ix_product_provisional_name",
            "game",
            "name_key",
            postgresql_where=text("provisional"),
        ),
    )
    id: Mapped[RowId]
    # The hash of all identifying texts, by which a later load of the same catalog finds the
    # product.
    identity: Mapped[str]
    game: Mapped[str]
    set_name: Mapped[str]
    set_code: Mapped[str | None]
    product_name: Mapped[str]
    number: Mapped[str | None]
    rarity: Mapped[str | None]
    finish: Mapped[str | None]
    language: Mapped[str]
    marketplace_product_id: Mapped[BigInt | None]
    # The URL of the picture in the catalog.
    picture_url: Mapped[str | None]
    provisional: Mapped[bool] = mapped_column(server_default=FALSE)
    adopted_by: Mapped[BigInt | None]
    set_key: Mapped[str | None]
    set_code_key: Mapped[str | None]
    name_key: Mapped[str | None]
    back_key: Mapped[str | None]
    variant_key: Mapped[str | None]
    number_key: Mapped[str | None]
    number_total: Mapped[str | None]
    finish_key: Mapped[str | None]
    language_key: Mapped[str | None]
    sealed: Mapped[bool] = mapped_column(server_default=FALSE)
    # The first catalog that contained the product, and the time since when that catalog no longer
    # contains it.
    source: Mapped[str | None]
    vanished_at: Mapped[datetime | None]
    created_at: Mapped[DefaultNow]


class ProductElsewhere(Base):
    """The id of a product at another project or market. `kind` is the name of the id without "_id"
    (`sources/source_record.py`). The finishes of a card often share an id.
    """

    __tablename__ = "product_elsewhere"
    kind: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    product_id: Mapped[KeyPart]


class CatalogName(Base):
    """A name for searches. `own` has the name's words, `words` also those of its faces and
    variants, and `printings` is the number of its printings.
    """

    __tablename__ = "catalog_name"
    __table_args__ = (Index("ix_catalog_name_words", "words", postgresql_using="gin"),)
    game: Mapped[str] = mapped_column(primary_key=True)
    name_key: Mapped[str] = mapped_column(primary_key=True)
    own: Mapped[str] = mapped_column(TSVECTOR)
    words: Mapped[str] = mapped_column(TSVECTOR)
    printings: Mapped[int] = mapped_column(server_default=text("0"))
    provisional: Mapped[bool] = mapped_column(server_default=FALSE)


class CatalogSet(Base):
    __tablename__ = "catalog_set"
    game: Mapped[str] = mapped_column(primary_key=True)
    set_name: Mapped[str] = mapped_column(primary_key=True)
    words: Mapped[str]


class CatalogWord(Base):
    __tablename__ = "catalog_word"
    word: Mapped[str] = mapped_column(primary_key=True)


class CatalogTypo(Base):
    """A word (`word`) and its form without some letters (`deleted`), by which typos of the word are
    found (`typos.py`).
    """

    __tablename__ = "catalog_typo"
    deleted: Mapped[str] = mapped_column(primary_key=True)
    word: Mapped[str] = mapped_column(primary_key=True)


class CatalogImport(Base):
    __tablename__ = "catalog_import"
    id: Mapped[RowId]
    source: Mapped[str]
    rows: Mapped[int]
    added: Mapped[int]
    adopted: Mapped[int]
    changed: Mapped[int] = mapped_column(server_default=text("0"))
    vanished: Mapped[int] = mapped_column(server_default=text("0"))
    skipped: Mapped[int] = mapped_column(server_default=text("0"))
    finished_at: Mapped[DefaultNow]


class CatalogInstall(Base):
    """The installed or requested catalog of a game from a source: the request, the running install
    with its progress, and the results of the last successful and the last failed install.

    `digest` is the hash of the last loaded files, and `checked_at` the last time at which the
    source had the same files. If the installing process (`holder`) dies, another process takes over
    after `held_until`.
    """

    __tablename__ = "catalog_install"
    game: Mapped[str] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(primary_key=True)
    asked_at: Mapped[datetime | None]
    holder: Mapped[str | None]
    held_until: Mapped[datetime | None]
    step: Mapped[str] = mapped_column(server_default="")
    done: Mapped[int] = mapped_column(BigInteger, server_default="0")
    total: Mapped[int] = mapped_column(BigInteger, server_default="0")
    installed_at: Mapped[datetime | None]
    checked_at: Mapped[datetime | None]
    digest: Mapped[str | None]
    rows: Mapped[int] = mapped_column(BigInteger, server_default="0")
    skipped: Mapped[int] = mapped_column(BigInteger, server_default="0")
    bytes: Mapped[int] = mapped_column(BigInteger, server_default="0")
    failed_at: Mapped[datetime | None]
    failure: Mapped[str | None]
    failures: Mapped[int] = mapped_column(server_default="0")
    next_at: Mapped[datetime | None]
    # True if the request is for the previous version.
    back: Mapped[bool] = mapped_column(server_default=FALSE)
    # The hash of the version in use, and the key of its stored object.
    content: Mapped[str | None]
    kept: Mapped[str | None]
    # The previous version, and the version that a person went back from (`install_state.Version`).
    earlier: Mapped[JsonObject | None] = mapped_column(JSONB)
    refused: Mapped[JsonObject | None] = mapped_column(JSONB)


class CatalogUpdates(Base):
    """The settings of catalog updates, in a single row. `night_zone` is the time zone of nightly
    updates, or null if the installation's setting decides. `tells` is whether notices about old
    catalogs are sent.
    """

    __tablename__ = "catalog_updates"
    __table_args__ = (CheckConstraint("id = 1", name="id"),)
    id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, server_default="1")
    night_zone: Mapped[str | None]
    tells: Mapped[bool] = mapped_column(server_default=TRUE)
