"""Rows taken together by printing: what is found of a printing goes to each of its rows, as if
each were looked at by itself.
"""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.catalog.match import ROW_KEYS, row_keys
from cardsync.catalog.product_names import _parted, _parts
from cardsync.catalog.products import ROW_COLUMNS, printings
from cardsync.stock.search.folding import search_columns

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "product_line": st.sampled_from(["magic", "pokemon_japan"]),
            "set_name": st.sampled_from(["Alpha", "SV8a: Terastal Fest ex"]),
            "product_name": st.sampled_from(
                ["Lotus", "Lotus: signed", "Pokémon (Jumbo)", "Fire // Ice", "A - Fire"]
            ),
            "number": st.sampled_from(["", "007/86", "7", "TG05/TG30"]),
            "rarity": st.sampled_from(["", "C"]),
            "condition": st.sampled_from(["NM", "LP", "U", None]),
            "printing": st.sampled_from(["Normal", "Foil"]),
            "language": st.sampled_from(["English", "Japanese"]),
            "title": st.sampled_from(["", "", "signed", "other"]),
        }
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.day
@settings(deadline=None)
@given(ROWS)
def test_each_row_gets_the_keys_and_words_that_it_would_have_by_itself(made):
    rows = pl.DataFrame(
        made, schema=dict.fromkeys([*ROW_COLUMNS, "title"], pl.String)
    ).with_row_index("row")
    printed = printings(rows)
    words = search_columns(printed.keyed.with_columns(product_name="listed_name"))
    spread = printed.spread(printed.keyed.select(*ROW_KEYS).hstack(words))
    assert spread["row"].to_list() == rows["row"].to_list()
    assert spread.select(words.columns).equals(search_columns(rows))
    suffix = pl.concat_str(pl.lit(": "), "title")
    named = pl.when(pl.col("title") != "").then(pl.col("product_name").str.strip_suffix(suffix))
    alone = rows.with_columns(
        named.otherwise("product_name").alias("product_name"), game="product_line"
    )
    assert spread.select(*ROW_KEYS).equals(row_keys(alone).select(*ROW_KEYS))


PLAIN = st.text(
    st.one_of(st.sampled_from(" -/(&.'`"), st.characters(max_codepoint=126)), max_size=12
)


@settings(deadline=None)
@given(st.lists(PLAIN, unique=True, max_size=20))
def test_plain_names_fold_to_the_keys_that_all_names_do(names):
    titles = pl.DataFrame({"title": names}, schema={"title": pl.String})
    assert _parts(titles).sort("title").equals(_parted(titles).sort("title"))
