"""A file of market observations with a broken row: it is listed with its place, and the others are
read, however the file is written.
"""

from __future__ import annotations

import pytest

from cardsync.catalog.market.observation_files import slices

HEAD = "product_id,condition,printing,language,price,quantity,observed_at"
ROWS = [f"{at},NM,Normal,English,1.25,2,2026-11-20" for at in range(1, 101)]


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ('7,"NM,Normal,English,1.25,2,2026-11-20', "quote is misplaced or never closed"),
        ("7,NM,Normal,English,1.25,2,2026-11-20,more", "this row has 8 columns; 7 expected"),
        ("7,NM,Normal,English,dear,2,2026-11-20", "price is not an amount above zero"),
    ],
)
def test_a_broken_row_is_listed_and_the_others_are_read(tmp_path, bad, why, delimiter):
    path = tmp_path / "market.csv"
    text = "\n".join([HEAD, *ROWS[:50], bad, *ROWS[50:]])
    path.write_text(text.replace(",", delimiter))
    found = [*slices(path, "csv")]
    assert sum(one.rows for one in found) == 101
    assert sorted(id for one in found for id in one.listings["product_id"]) == [*range(1, 101)]
    [broken] = [row for one in found for row in one.broken]
    assert broken.where == "row 51"
    assert why in broken.reason
