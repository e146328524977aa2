"""Frames through COPY: every cell is read back as it was written."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest
from sqlalchemy import text

from cardsync.platform.database.copy import new_table, read_rows

PLAIN = ["", "Lotus", 'a "quoted", name', "Pokémon ★", " spaced ", "N", "\x1e\x1f", None]
ODD = [
    "\\",
    "\\N",
    "\\.",
    "a\tb",
    "a\nb",
    "a\r\nb",
    "\r",
    "¯\\_(ツ)_/¯",
    "\\t",
    "\x01\x0b\x0c",
    "\\\\n",
]


@pytest.mark.parametrize(
    "texts", [PLAIN, ODD, [*PLAIN, *ODD], [*ODD, None, None], ["\\N"], ["\\", None]]
)
async def test_any_text_comes_out_as_it_went_in(service, texts):
    for other in (
        [None] * len(texts),
        ["\\"] * len(texts),
        [f"{at}\t" for at in range(len(texts))],
    ):
        frame = pl.DataFrame(
            {
                "n": range(len(texts)),
                "a": texts,
                "b": other,
                "amount": [Decimal("1.5000"), *[None] * (len(texts) - 1)],
            },
            schema_overrides={"a": pl.String, "b": pl.String, "amount": pl.Decimal(12, 4)},
        )
        async with service.database.shared() as session:
            await new_table(session, "t", frame, {"n": "int", "amount": "numeric(12,4)"})
            rows = (await session.execute(text("SELECT * FROM t ORDER BY n"))).all()
            back = await read_rows(session, "SELECT * FROM t ORDER BY n", frame.schema)
        assert [tuple(row) for row in rows] == back.rows() == frame.rows()
