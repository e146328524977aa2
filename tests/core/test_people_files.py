"""The forms in which people save a table, through each door that takes one: every door reads the same
of it, or refuses it in the same sentence.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.buying.collections.collection_cells import read_rows as read_cards
from cardsync.buying.collections.collection_text import read_text
from cardsync.buying.collections.file_formats import BY_KEY, recognize
from cardsync.catalog.market.observation_files import MarketFileError
from cardsync.catalog.market.observation_files import slices as market_slices
from cardsync.imports.parse import ProductLines, parse
from cardsync.imports.rejected_rows import merged, rejected_csv
from cardsync.platform import errors
from cardsync.platform.money import read_amount
from cardsync.platform.table_text import AS_EXPORTED, Row, column_name, read_rows, typed_number
from cardsync.sales.errors import InvalidJson
from cardsync.sales.lots.lot_csv import read_lots
from cardsync.sales.lots.payment_csv import read_payments
from cardsync.sales.orders import rows as rows_of_orders
from cardsync_agent import file_kinds
from cardsync_agent.csv_records import Damaged
from cardsync_agent.inbox import header_problem
from cardsync_agent.orders import ORDER_LIST
from cardsync_agent.orders import parse as parse_orders

DAY = date(2026, 7, 31)
Read = list[tuple[str, str, int]]


def table(rows: list[list[str]], delimiter: str = ",", *, all_quoted: bool = False) -> str:
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=quoting).writerows(rows)
    return out.getvalue()


def with_numbers(rows: list[list[str]], price: str, dear: str, whole: str) -> list[list[str]]:
    """Replace the figures of the plain table: 3.27, 1003.50, and the quantity 1003."""
    small = f"3{whole[-2:]}" if whole[-2:] in (".0", ",0") else "3"
    new = {"3.27": price, "1003.50": dear, "1003": whole, "3": small}
    return [[new.get(cell, cell) for cell in row] for row in rows]


WHOLE = re.compile("[0-9]+")
WHOLE_CELL = re.compile(r"(?:(?<=,)|(?<=\n))([0-9]+)(?=[,\n])")
GERMAN = ("3,27", "1.003,50", "1.003")
Form = Callable[[list[list[str]]], bytes]
FORMS: dict[str, Form] = {
    "plain": lambda rows: table(rows).encode(),
    "all quoted, CRLF, a mark": lambda rows: (
        table(rows, all_quoted=True).replace("\n", "\r\n").encode("utf-8-sig")
    ),
    "CR": lambda rows: table(rows).replace("\n", "\r").encode(),
    "semicolons, decimal commas": lambda rows: table(with_numbers(rows, *GERMAN), ";").encode(),
    "semicolons, decimal points": lambda rows: table(rows, ";").encode(),
    "semicolons quoted, a mark": lambda rows: table(
        with_numbers(rows, "3,27 €", "€ 1.003,50", "1003,0"), ";", all_quoted=True
    ).encode("utf-8-sig"),
    "tabs": lambda rows: table(rows, "\t").encode(),
    "tabs, UTF-16 as Excel writes it": lambda rows: table(rows, "\t").encode("utf-16"),
    "bars": lambda rows: table(rows, "|").encode(),
    "sep=;": lambda rows: ("sep=;\r\n" + table(with_numbers(rows, *GERMAN), ";")).encode(),
    "a mark, quoted sep": lambda rows: ('"sep=,"\n' + table(rows)).encode("utf-8-sig"),
    "sep is a tab": lambda rows: ("sep=\t\n" + table(rows, "\t")).encode("utf-16-le"),
    "UTF-16 little": lambda rows: table(rows).encode("utf-16-le"),
    "UTF-16 big": lambda rows: table(rows).encode("utf-16-be"),
    "UTF-16 big, a mark": lambda rows: ("\ufeff" + table(rows)).encode("utf-16-be"),
    "UTF-16, semicolons": lambda rows: table(with_numbers(rows, *GERMAN), ";").encode("utf-16"),
    "Windows-1252": lambda rows: table(rows).encode("cp1252"),
    "lines before": lambda rows: (
        "My shop, all cards\n\nmade on 07/31/2026\n" + table(rows)
    ).encode(),
    "semicolons, lines before": lambda rows: (
        ";;;\n" + "Export;31.07.2026;;\n" + table(with_numbers(rows, *GERMAN), ";")
    ).encode(),
    "each line one quoted cell": lambda rows: table(
        [[line] for line in table(rows, all_quoted=True).splitlines()]
    ).encode(),
    "all but the header one quoted cell": lambda rows: (
        table(rows[:1])
        + table([[line] for line in table(rows[1:], all_quoted=True).splitlines()], ";")
    ).encode(),
    "floats": lambda rows: table(with_numbers(rows, "3.27", "1003.5", "1003.0")).encode(),
    "thousands, dollars": lambda rows: table(
        with_numbers(rows, "$3.27", "$1,003.50", "1,003")
    ).encode(),
    "decimal commas in quotes": lambda rows: table(
        with_numbers(rows, "3,27", "1003,5", "1,003"), all_quoted=True
    ).encode(),
    "tabs, decimal commas": lambda rows: table(with_numbers(rows, *GERMAN), "\t").encode(),
    "bars, decimal commas, euros": lambda rows: table(
        with_numbers(rows, "3,27 €", "1.003,50 €", "1.003"), "|"
    ).encode(),
    "CR twice before each LF": lambda rows: table(rows).replace("\n", "\r\r\n").encode(),
    "CR behind the header, then LF": lambda rows: table(rows).replace("\n", "\r", 1).encode(),
    "rows of nothing": lambda rows: (
        table(
            [
                row
                for one in rows
                for row in (one, [""] * len(one), [""] * (len(one) + 3), ["", ""], [" ", "\u00a0"])
            ]
        ).encode()
        + b",,,\n\0\0\0\0\n\x1a"
    ),
    "semicolons, rows of nothing": lambda rows: table(
        [*with_numbers(rows, *GERMAN), *([[""] * len(rows[0])] * 3)], ";"
    ).encode(),
    "texts of a spreadsheet": lambda rows: table(
        [
            rows[0],
            *(
                [f'="{cell}"' if WHOLE.fullmatch(cell) else cell for cell in row]
                for row in rows[1:]
            ),
        ]
    ).encode(),
    "texts of a spreadsheet, not quoted": lambda rows: WHOLE_CELL.sub(
        r'="\1"', table(rows)
    ).encode(),
    "a header in capitals with spaces": lambda rows: table(
        [[f" {name.upper().replace(' ', '  ')}\u00a0" for name in rows[0]], *rows[1:]]
    ).encode(),
    "marks in the middle": lambda rows: "\ufeff".join(
        ["\ufeff", *table(rows).splitlines(keepends=True)]
    ).encode(),
    "euros behind": lambda rows: table(
        with_numbers(rows, "3,27 €", "1 003,50 EUR", "1003")
    ).encode(),
}


def inventory(data: bytes, folder: Path, size: int = 1 << 20) -> Read:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    parsed = parse(pieces, ProductLines({"pokemon": "pokemon"}, ("pokemon",)), None)
    assert not parsed.rejected, parsed.rejected
    assert [note.code for note in parsed.noted] in ([], ["read_as"])
    found = parsed.frame.select("product_name", "price", "quantity").iter_rows()
    return [(name, f"{price / 10_000:.2f}", quantity) for name, price, quantity in found]


def inventory_in_pieces(data: bytes, folder: Path) -> Read:
    return inventory(data, folder, 7)


def lots(data: bytes, folder: Path) -> Read:
    read = read_lots(data, DAY)
    assert not read.rejected, read.rejected
    return [(NAMES[lot.marketplace_id], f"{lot.cost:.2f}", lot.quantity) for lot in read.lots]


def collection(data: bytes, folder: Path) -> Read:
    text = read_text(data)
    found = recognize(text.header)
    assert found is not None, text.header
    read = read_cards(text.rows, found, text.header, text.form.decimal)
    assert not read.rejected, read.rejected
    fees = {3: "3.27", 1003: "1003.50"}
    rows = read.frame.select("name", "copies").iter_rows()
    return [(name, fees[copies], copies) for name, copies in rows]


def order_rows(data: bytes, folder: Path) -> Read:
    rows_of_orders.check(data)
    return []


def payments(data: bytes, folder: Path) -> Read:
    read = read_payments(data)
    assert not read.rejected, read.rejected
    copies = {"3.27": 3, "1003.50": 1003}
    return [(one.order_number, f"{one.fees:.2f}", copies[f"{one.fees:.2f}"]) for one in read.paid]


def orders(data: bytes, folder: Path) -> Read:
    parsed = parse_orders(ORDER_LIST, data, date(2020, 1, 1))
    assert not parsed.problems, parsed.problems
    copies = {"3.27": 3, "1003.50": 1003}
    amounts = [(row["buyer_name"], f"{float(row['total_amt']):.2f}") for row in parsed.rows]
    return [(name, amount, copies[amount]) for name, amount in amounts]


def market(data: bytes, folder: Path) -> Read:
    path = folder / "market.csv"
    path.write_bytes(data)
    [read] = market_slices(path, "csv")
    assert not read.broken, read.broken
    found = read.sales.select("product_id", "price", "quantity").iter_rows()
    return [(NAMES[id], f"{price / 10_000:.2f}", copies) for id, price, copies in found]


NAMES = {7: "Pokémon, “Ash”; a|b", 8: 'Five" tall'}
NAME, OTHER = NAMES.values()
TABLES: dict[Any, list[list[str]]] = {
    inventory: [
        ["TCGplayer Id", "Product Name", "Condition", "Total Quantity", "TCG Marketplace Price"],
        ["7", NAME, "Near Mint", "3", "3.27"],
        ["8", OTHER, "Near Mint", "1003", "1003.50"],
    ],
    lots: [
        ["TCGplayer Id", "Card", "Quantity", "Cost", "Bought on"],
        ["7", NAME, "3", "3.27", "2026-07-31"],
        ["8", OTHER, "1003", "1003.50", "07/31/2026"],
    ],
    payments: [
        ["Order Number", "Payment Date", "Fees", "Note"],
        [NAME, "2026-07-31", "3.27", ""],
        [OTHER, "07/31/2026", "1003.50", ""],
    ],
    orders: [
        [
            "Order #", "Buyer Name", "Order Date", "Status", "Shipping Type", "Product Amt",
            "Shipping Amt", "Total Amt", "Buyer Paid", "Carrier Information",
        ],
        ["A-1", NAME, "Friday, 03 July 2026", "Shipped", "Standard", "3.27", "0", "3.27", "", ""],
        ["A-2", OTHER, "7/3/2026", "Shipped", "Standard", "1003.50", "0", "1003.50", "", ""],
    ],
    collection: [
        ["Quantity", "Name", "Set code", "Purchase price", "ManaBox ID"],
        ["3", NAME, "M11", "3.27", "1"],
        ["1003", OTHER, "M11", "1003.50", "2"],
    ],
    market: [
        [
            "product_id", "condition", "printing", "language", "price", "quantity", "sold_at",
            "fetched_at", "said",
        ],
        ["7", "Near Mint", "Normal", "English", "3.27", "3", "2026-07-01", "2026-07-02", NAME],
        ["8", "NM", "Foil", "English", "1003.50", "1003", "2026-07-01", "2026-07-02", OTHER],
    ],
}  # fmt: skip
TABLES[inventory_in_pieces] = TABLES[inventory]
RIGHT = [(NAME, "3.27", 3), (OTHER, "1003.50", 1003)]


@pytest.mark.parametrize("door", TABLES, ids=lambda door: door.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_every_door_reads_every_form(form, door, tmp_path):
    assert door(FORMS[form](TABLES[door]), tmp_path) == RIGHT


def zipped(*names: str, mimetype: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype)
        for name in names:
            archive.writestr(name, "x")
    return out.getvalue()


NO_TABLES = {
    "an Excel workbook (xlsx), not a CSV: open it and save it as CSV": zipped(
        "[Content_Types].xml", "xl/workbook.xml"
    ),
    "an OpenDocument spreadsheet (ods), not a CSV: open it and save it as CSV": zipped(
        mimetype="application/vnd.oasis.opendocument.spreadsheet"
    ),
    "an Excel workbook (xls): open it and save it as CSV": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" * 99,
    "a ZIP archive: unpack it and take the CSV in it": zipped("export.csv"),
    "a PDF: save the table that it was made from as CSV": b"%PDF-1.7\n1 0 obj\n",
    "a web page or XML": b"\xef\xbb\xbf\r\n<!DOCTYPE html><html><body>Sign in</body></html>",
    "a web page or XML, whatever": b"<table><tr><td>TCGplayer Id</td></tr></table>",
}


@pytest.mark.parametrize("door", TABLES, ids=lambda door: door.__name__)
@pytest.mark.parametrize("sentence", NO_TABLES)
def test_every_door_refuses_what_is_no_table_in_the_same_sentence(sentence, door, tmp_path):
    refusals = (errors.InvalidCsv, errors.InvalidPayload, MarketFileError, Damaged)
    with pytest.raises(refusals) as refused:
        door(NO_TABLES[sentence], tmp_path)
    assert f"is {sentence}" in str(refused.value)


ONCE_MORE = [door for door in TABLES if door is not orders]


@pytest.mark.parametrize("door", ONCE_MORE, ids=lambda door: door.__name__)
def test_a_header_that_comes_again_is_no_row(door, tmp_path):
    """A person has joined several files. The agent lists such a line."""
    header, *rows = TABLES[door]
    assert door(FORMS["plain"]([header, rows[0], header, rows[1], header]), tmp_path) == RIGHT


@pytest.mark.parametrize("door", TABLES, ids=lambda door: door.__name__)
def test_quotes_that_are_not_doubled_in_a_quoted_cell_are_read(door, tmp_path):
    rows = [[cell.replace(OTHER, "Kongming") for cell in row] for row in TABLES[door]]
    text = table(rows, all_quoted=True).replace(
        "Kongming", 'Kongming, "Sleeping Dragon", the "2nd"'
    )
    names = NAMES | {8: 'Kongming, "Sleeping Dragon", the "2nd"'}
    before = dict(NAMES)
    NAMES.update(names)
    try:
        found = door(text.encode(), tmp_path)
    finally:
        NAMES.update(before)
    assert found == [RIGHT[0], (names[8], *RIGHT[1][1:])]


def short(*rows: str) -> Any:
    head = "TCGplayer Id,Product Name,Condition,Total Quantity,TCG Marketplace Price,Photo URL,Note"
    parsed = parse(
        ["\n".join([head, *rows]).encode()],
        ProductLines({"pokemon": "pokemon"}, ("pokemon",)),
        None,
    )
    good = parsed.frame.select("product_name", "price", "quantity").rows()
    return good, [(row.line, row.message) for row in parsed.rejected]


@pytest.mark.parametrize(
    "row",
    [
        "7,Ash,Near Mint,3,3.27,,", "7,Ash,Near Mint,3,3.27,", "7,Ash,Near Mint,3,3.27",
        "7,Ash,Near Mint,3,3.27,,,,,", '7,"Ash",Near Mint Foil,3,"3.27"', "7.0,Ash,Near Mint,3,3.27",
    ],
)  # fmt: skip
def test_an_inventory_may_lack_the_blank_cells_at_the_end_of_a_row(row):
    """Excel leaves them out, or adds some. Nothing may have shifted."""
    assert short(row) == ([("Ash", 32_700, 3)], [])


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("7,Jace, the Mind Sculptor,Near Mint,3,3.27,,", 8),
        ("7,Ash,Near Mint,3", 4),
        ("7,Ash,Near Mint,3,3.27,,,,more", 9),
        ("Ash,7,Near Mint,3,3.27", 5),
        ("7,Jace, the Mind Sculptor,Near Mint,3,3.27", 6),
    ],
)
def test_an_inventory_row_that_may_have_shifted_is_rejected(row, cells):
    assert short(row) == ([], [(2, f"this row has {cells} columns; 7 expected")])


@pytest.mark.parametrize("form", FORMS)
def test_the_agent_takes_an_export_in_every_form(form, tmp_path):
    path = tmp_path / "export.csv"
    path.write_bytes(FORMS[form](TABLES[inventory]))
    assert header_problem(path) is None


@pytest.mark.parametrize("sentence", NO_TABLES)
def test_the_agent_says_why_it_leaves_a_file(sentence, tmp_path):
    path = tmp_path / "export.csv"
    path.write_bytes(NO_TABLES[sentence])
    assert (header_problem(path) or "").startswith(f"is {sentence}")


@pytest.mark.parametrize("door", [inventory, lots, payments], ids=lambda door: door.__name__)
@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("semicolons, decimal commas", "read as separated by ;, with decimal commas"),
        ("tabs, UTF-16 as Excel writes it", "read as UTF-16, separated by tabs"),
        ("UTF-16 big", "read as UTF-16"),
        ("bars", "read as separated by |"),
    ],
)
def test_a_file_without_the_columns_is_told_as_what_it_was_read(form, said, door, tmp_path):
    rows = [["A", "B", "C"], ["1", "3.27", "1003"]]
    refusals = (errors.InvalidCsv, errors.InvalidPayload)
    with pytest.raises(refusals, match=r"line 1|Missing columns") as refused:
        door(FORMS[form](rows), tmp_path)
    assert said in str(refused.value)


APP = [
    "Product ID", "TCGplayer Id", "Product Line", "Set Name", "Product Name", "Title", "Number",
    "Rarity", "Condition", "Printing", "TCG Market Price", "TCG Direct Low",
    "TCG Low Price With Shipping", "TCG Low Price", "Total Quantity", "Add to Quantity",
    "TCG Marketplace Price", "Photo URL",
]  # fmt: skip
PULL = [
    "Product Line", "Product Name", "Condition", "Number", "Set", "Rarity", "Quantity",
    "Main Photo URL", "Set Release Date", "SkuId", "Order Quantity",
]  # fmt: skip
SHIPPING = ["Order #", "FirstName", "LastName", "PostalCode", "Order Date", "Shipping Method"]
ELSEWHERE = [
    (inventory, APP, "this is the TCGplayer app's collection export: put it under Collections"),
    (inventory, TABLES[orders][0], "this is TCGplayer's order list: put it into the sync app's"),
    (inventory, PULL, "this is a pull sheet: put it into the sync app's inbox"),
    (
        inventory,
        SHIPPING,
        "this is TCGplayer's shipping export: put it into the sync app's inbox",
    ),
    (
        lots,
        TABLES[inventory][0],
        "this is TCGplayer's pricing export: put it under Inventory",
    ),
    (lots, APP, "this is the TCGplayer app's collection export: put it under Collections"),
    (lots, PULL, "this is a pull sheet: put it into the sync app's inbox"),
    (payments, TABLES[inventory][0], "this is TCGplayer's pricing export: put it under"),
    (payments, TABLES[orders][0], "this is TCGplayer's order list: put it into the sync app's"),
    (
        collection,
        TABLES[orders][0],
        "this is TCGplayer's order list: put it into the sync app's",
    ),
    (collection, PULL, "this is a pull sheet: put it into the sync app's inbox"),
    (collection, SHIPPING, "this is TCGplayer's shipping export: put it into the sync app's"),
    (
        order_rows,
        TABLES[inventory][0],
        "this is TCGplayer's pricing export: put it under Inv",
    ),
    (order_rows, APP, "this is the TCGplayer app's collection export: put it under Collections"),
    (order_rows, TABLES[collection][0], "this is ManaBox's collection export: put it under Coll"),
    (
        order_rows,
        TABLES[orders][0],
        "this is TCGplayer's order list: put it into the sync app's",
    ),
]


@pytest.mark.parametrize(("door", "header", "sentence"), ELSEWHERE)
@pytest.mark.parametrize("form", ["plain", "semicolons, decimal points", "UTF-16 little"])
def test_a_file_of_another_door_is_refused_as_what_it_is(form, door, header, sentence, tmp_path):
    rows = [header, ["1"] * len(header), ["2"] * len(header)]
    refusals = (errors.InvalidCsv, errors.InvalidPayload, InvalidJson)
    with pytest.raises(refusals) as refused:
        door(FORMS[form](rows), tmp_path)
    assert sentence in str(refused.value)


APPS = [
    (key, signs) for key, app in BY_KEY.items() if key != "pricing_export" for signs in app.signs
]


@pytest.mark.parametrize("door", [inventory, lots], ids=lambda door: door.__name__)
@pytest.mark.parametrize(("key", "signs"), APPS)
def test_the_export_of_each_declared_app_goes_to_collections(key, signs, door, tmp_path):
    header = ["A column", *signs, "Another"]
    with pytest.raises((errors.InvalidCsv, errors.InvalidPayload)) as refused:
        door(FORMS["plain"]([header, ["1"] * len(header)]), tmp_path)
    app = BY_KEY[key].label.partition(",")[0].split(" stock")[0].split(" articles")[0]
    told = str(refused.value)
    assert app in told
    assert told.endswith("collection export: put it under Collections")


def test_the_agent_leaves_the_apps_export_to_collections(tmp_path):
    path = tmp_path / "export.csv"
    path.write_bytes(FORMS["plain"]([APP, ["1"] * len(APP)]))
    assert header_problem(path) == file_kinds.APP_EXPORT.told().removeprefix("this ")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "sent_as", ["plain", "semicolons quoted, a mark", "tabs, UTF-16 as Excel writes it"]
)
def test_the_rejected_rows_of_every_form_are_corrected_in_any(form, sent_as):
    good, bad, other = (
        TABLES[inventory][0],
        ["7", NAME, "Near Mint", "x", "3.27"],
        TABLES[inventory][2],
    )
    data = FORMS[form]([good, bad, other])
    lines = ProductLines({"pokemon": "pokemon"}, ("pokemon",))
    [rejected] = parse([data], lines, None).rejected
    csv_of_it = b"".join(rejected_csv(data, [rejected])).decode("utf-8-sig")
    [header, row] = list(csv.reader(io.StringIO(csv_of_it, newline="")))
    assert row[header.index("Line")] == str(rejected.line)
    row[[*map(column_name, header)].index("total quantity")] = "3"
    whole = merged(data, [rejected], FORMS[sent_as]([header, row]))
    assert inventory(whole, Path()) == RIGHT


CELL = st.text(st.sampled_from('ab1,"; \0'), max_size=5)
LINES = st.lists(
    st.one_of(
        CELL,
        st.lists(CELL, min_size=3, max_size=3).map(",".join),
        st.lists(CELL, min_size=3, max_size=3).map(lambda cells: table([cells]).rstrip("\n")),
        st.just("7,good,1"),
    ),
    max_size=12,
)


@given(LINES, LINES, st.sampled_from([1, 3]), st.booleans())
def test_a_record_is_read_alike_alone_and_among_others(before, after, fewest, strict):
    """Many lines are read at once: the rows are those of each line after a line that is none."""
    form = AS_EXPORTED
    lines = ["a,b,c", *before, "99,survivor,1", *after]
    rows = list(read_rows(lines, form, 3, fewest, strict=strict))
    assert Row(len(before) + 2, ["99", "survivor", "1"]) in rows
    apart = [one for line in lines[1:] for one in ("", " ", line)]
    alone = {
        (row.line + 2) // 3: row.cells
        for row in read_rows(["a,b,c", *apart], form, 3, fewest, strict=strict)
    }
    once = [row for row in rows if not any("\n" in cell for cell in row.cells)]
    assert all(alone.get(row.line, []) == row.cells for row in once)


AMOUNTS = st.decimals(0, 99_999_999, places=2)


@given(AMOUNTS, st.sampled_from(["{}", "${}", "{} €", "€{}", " {} ", "EUR {}", "-{}", "({})"]))
def test_an_amount_is_read_however_it_is_written(amount, dress):
    """Each amount with two decimals, in the American and in the European way."""
    american = f"{amount:,.2f}"
    european = american.translate(str.maketrans(",.", ".,"))
    spaced = american.replace(",", "\u202f")
    below = dress in ("-{}", "({})")
    for text in (american, european, spaced, f"{amount:.2f}", f"{amount:.2f}".replace(".", ",")):
        for decimal in ".,":
            read = read_amount(typed_number(dress.format(text), decimal))
            assert read == (-amount if below else amount)
