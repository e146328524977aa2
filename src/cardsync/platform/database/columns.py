"""The declarative base of all tables, with their shared column types and defaults."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, ClassVar

from sqlalchemy import BigInteger, DateTime, Identity, MetaData, Numeric, Text, text
from sqlalchemy.orm import DeclarativeBase, mapped_column

Moment = DateTime(timezone=True)
Money = Numeric(12, 4)
NOW = text("now()")
FALSE = text("false")
TRUE = text("true")
BigInt = Annotated[int, mapped_column(BigInteger)]
# A part of a primary key: the shop, or a row of another table.
KeyPart = Annotated[int, mapped_column(BigInteger, primary_key=True, autoincrement=False)]
# The number that the database gives a row.
RowId = Annotated[int, mapped_column(BigInteger, Identity(always=True), primary_key=True)]
DefaultNow = Annotated[datetime, mapped_column(server_default=NOW)]


class Base(DeclarativeBase):
    type_annotation_map: ClassVar = {str: Text(), datetime: Moment, Decimal: Money}
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
