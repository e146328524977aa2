"""Columns of people's files: two of them for one field, and those that are missing."""

from __future__ import annotations

from cardsync.platform.kit.csv_columns import CsvColumns

COLUMNS = CsvColumns({"card": "tcgplayer id|sku", "copies": "quantity|qty"}, ("card", "copies"))


def test_of_two_columns_for_one_the_first_counts_or_the_one_with_the_better_name():
    header = ["SKU", "Qty", "Note", "TCGplayer_Id", "Quantity", "quantity"]
    assert COLUMNS.places(header) == {"card": 0, "copies": 1}
    assert COLUMNS.places(header, best=True) == {"card": 3, "copies": 4}


def test_a_header_fits_that_has_what_is_needed_under_any_of_its_names():
    assert COLUMNS.fit(["Sku", "QTY"])
    assert COLUMNS.missing(["Note", "sku"]) == ["copies"]


def test_a_file_is_read_from_the_first_line_that_fits():
    table = COLUMNS.table(b"My cards\nNote;Qty;SKU\nx;3;7\n")
    assert (table.header, [row.cells for row in table.rows]) == (
        ["Note", "Qty", "SKU"],
        [["x", "3", "7"]],
    )
