"""A single name has the very parts that its column would have."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog import product_names
from cardsync.catalog.collector_number import number_columns, read_collector_number
from cardsync.catalog.one_name import folded, name_parts

NAMES = [
    ("Snivy - 001/086 (Master Ball Pattern)", "001/086"),
    ("Snivy - 001/086", "2/86"),
    ("Porygon-2", "2"),
    ("Nidoran ♀", ""),
    ("Fire // Ice", "12"),
    ("Fire // Ice (Borderless) (Foil)", "0012a"),
    ("Kingdra δ", "12"),
    ("Ödland's Évoli (#12) & Co.", "12"),
    ("(all of it)", "7"),
    ("!?", ""),
    ("", ""),
    ("ピカチュウ ガ", "SWSH099"),
    ("Straße-Æther — Œuvre", "TG05/TG30"),
    ("Mew (12a) - 12a/99 [x]", "12A"),
    ("Unown [?] - #?/28", "%3F/28"),
    ("Forest (274) - Full Art", "274"),
    ("Carapace [Version 2]", ""),
]
PIECES = st.sampled_from(
    ["Mew", "É", "ガ", " - ", "-", "(", ")", "（", "/", " // ", "#12", "012", "12/99", "a", "★", "δ",
     "'", ".", "&", " ", "ß", "Ω", "[", "]", "!", "TG05", "ς", "ǅ", "½", " - Full Art", " [Version 2]"]
)  # fmt: skip


def of_column(name: str, number: str) -> tuple[str, str | None, str]:
    numbered = number_columns(pl.Series([number]))
    rows = numbered.with_columns(pl.Series("product_name", [name], dtype=pl.String))
    [row] = product_names.name_columns(rows).iter_rows(named=True)
    return row["name_key"], row["back_key"], row["variant_key"]


@pytest.mark.parametrize(("name", "number"), NAMES)
def test_known_forms(name, number):
    assert tuple(name_parts(name, read_collector_number(number))) == of_column(name, number)


@pytest.mark.hypothesis
@given(st.lists(PIECES, max_size=8).map("".join), st.sampled_from(["", "12", "12/99", "TG5", "2"]))
def test_any_form(name, number):
    assert tuple(name_parts(name, read_collector_number(number))) == of_column(name, number)
    [column] = pl.select(product_names.folded(pl.lit(name))).to_series()
    assert folded(name) == column
