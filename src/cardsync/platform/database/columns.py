"""The declarative base of all tables, with their shared column types and defaults."""

from __future__ import annotations

from sqlalchemy import DateTime, MetaData, Numeric, text
from sqlalchemy.orm import DeclarativeBase


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


Moment = DateTime(timezone=True)
NOW = text("now()")
FALSE = text("false")
TRUE = text("true")


Money = Numeric(12, 4)
