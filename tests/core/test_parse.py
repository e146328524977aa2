"""The cells of an upload: the value of each, the errors that keep a row out, and the mere notes."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.catalog.marketplace_columns import COLUMNS, HEADER_ONLY
from cardsync.imports.parse import FRAME_COLUMNS, Parsed, ProductLines, every_rejected, parse
from cardsync.imports.price_file import price_updates_csv
from cardsync.imports.rejected_rows import rejected_csv
from cardsync.imports.typed_cells import read_price
from cardsync.platform.errors import InvalidCsv

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PRICES = ("market", "direct_low", "low_with_shipping", "low", "price")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is absent")

BY_LABEL = {
    "magic": "magic",
    "pokemon": "pokemon",
    "pokemon japan": "pokemon_japan",
    "flesh & blood tcg": "flesh_and_blood",
}
LINES = ProductLines(BY_LABEL, ("magic", "pokemon", "pokemon_japan"))
DEFAULTS = {
    "listing_id": "7", "product_line_label": "Magic", "set_name": "Alpha", "product_name": "Lotus",
    "number": "1",
    "condition_label": "Near Mint", "market": "1.00", "quantity": "1", "add_to_quantity": "0",
    "price": "2.5000",
}  # fmt: skip


def record(extra: tuple[str, ...] = (), **cells: str) -> bytes:
    values = {**DEFAULTS, **cells}
    texts = [*(values.get(field, "") for field in COLUMNS), *extra]
    return (",".join('"' + text.replace('"', '""') + '"' for text in texts) + "\r\n").encode()


def read(*records: bytes, lines: ProductLines = LINES, product_line: str | None = None) -> Parsed:
    return parse([HEADER_ONLY + b"".join(records)], lines, product_line)


def only(**cells: str) -> dict:
    parsed = read(record(**cells))
    assert (parsed.rows, parsed.rejected, parsed.frame.height) == (1, [], 1)
    return parsed.frame.row(0, named=True)


def test_a_row_becomes_these_columns():
    parsed = read(record(title="My title", photo_url="https://x/1.jpg", low="0.1000"))
    assert parsed.frame.schema == {
        "line": pl.UInt32, "listing_id": pl.Int64, "product_line": pl.String,
        "product_line_label": pl.String,
        "set_name": pl.String, "product_name": pl.String, "title": pl.String, "number": pl.String,
        "rarity": pl.String,
        "condition_label": pl.String, "photo_url": pl.String, "market": pl.Int64,
        "direct_low": pl.Int64,
        "low_with_shipping": pl.Int64, "low": pl.Int64, "price": pl.Int64,
        "my_store_priced": pl.Boolean, "quantity": pl.Int32, "custom": pl.Boolean,
    }  # fmt: skip
    assert parsed.frame.rows() == [
        (2, 7, "magic", "Magic", "Alpha", "Lotus", "My title", "1", "", "Near Mint",
         "https://x/1.jpg", 10_000, None, None, 1000, 25_000, False, 1, True)
    ]  # fmt: skip
    assert parsed.lines == ["magic"]


PRICES_READ = [
    ("1.00", 10_000), ("1", 10_000), ("1.5", 15_000), ("0.0001", 1), ("12.3456", 123_456),
    ("127.0200", 1_270_200),
    ("0.00005", 1), ("0.00004", None), ("1.23455", 12_346), ("1.23454", 12_345),
    ("1.234549", 12_345), ("99999999.9999", 999_999_999_999),
    ("", None), (" ", None), ("0", None), ("0.00", None), ("-1", None), ("-1,234.50", None),
    ("-$5", None), ("$-5", None), ("-0", None),
    ("1,234.50", 12_345_000), ("$5", 50_000), ("$ 5", 50_000), ("$1,234,567.89", 12_345_678_900),
    ("1,50", 15_000), ("3,00", 30_000), ("1,003", 10_030_000), ("1,2345", 12_345),
    ("1.234,50", 12_345_000), ("0,125", 1_250), ("+5", 50_000), ("5 USD", 50_000), ("€5", 50_000),
    (" 2.50 ", 25_000), (".5", 5_000), ("5.", 50_000),
    ("00000000001.5", 15_000),
]  # fmt: skip
NO_PRICES = [
    "NaN", "1e9", "1E2", "inf", "free", "1.2.3", "12,34.5", "12,34,5", "5 bits",
    "--5", "-$-5", "$", ".", "-", "1_000",
    "99999999.99995", "100000000", "123456789012345678901234567890", "0x10", "１", "٣", "1/2",
    "9" * 4000,
]  # fmt: skip


@pytest.mark.parametrize(("text", "units"), PRICES_READ)
@pytest.mark.parametrize("field", PRICES)
def test_prices(text, units, field):
    assert only(**{field: text})[field] == units
    assert read_price(text) == units


@pytest.mark.parametrize("text", NO_PRICES)
def test_what_is_no_amount_is_noted_and_the_row_kept(text):
    parsed = read(record(low=text), record(listing_id="8"))
    assert parsed.frame["low"].to_list() == [None, None]
    assert (parsed.rejected_count, parsed.noted_count) == (0, 1)
    assert (parsed.noted[0].line, parsed.noted[0].column, parsed.noted[0].code) == (
        2,
        "TCG Low Price",
        "bad_price",
    )


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("", 0),
        (" ", 0),
        ("0", 0),
        ("3", 3),
        (" 3 ", 3),
        ("007", 7),
        ("2147483647", 2_147_483_647),
        ("000000000005", 5),
        ("3.0", 3),
        ("3,00", 3),
        ("1,003", 1_003),
    ],
)
def test_quantities(text, quantity):
    assert only(quantity=text)["quantity"] == quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), (" 5 ", 5), ("0012", 12), ("4941626.0", 4941626), (str(2**63 - 1), 2**63 - 1)],
)
def test_ids(text, number):
    assert only(listing_id=text)["listing_id"] == number


@pytest.mark.parametrize(
    ("cells", "code", "column"),
    [
        *(({"quantity": q}, "bad_quantity",
           "Total Quantity") for q in ("x", "-1", "1.5", "1.003", "2147483648", "1e3", "$3",
                                       "9" * 4000, "１", "+1")),
        *(({"listing_id": i}, "bad_id",
           "TCGplayer Id") for i in ("", "0", "00", "-1", "abc", "1.5", str(2**63), "9" * 4000, "１",
                                     "+1")),
        *(({"product_name": n}, "missing_name", "Product Name") for n in ("", "  ")),
        ({"product_line_label": "Marbles"}, "unknown_product_line", "Product Line"),
        ({"product_line_label": "Flesh & Blood TCG"}, "product_line_not_enabled", "Product Line"),
        ({"listing_id": "x", "product_name": "", "quantity": "x"}, "bad_id", "TCGplayer Id"),
        ({"number": "a\0b"}, "bad_text", "Number"),
    ],
)  # fmt: skip
def test_what_keeps_a_row_out(cells, code, column):
    parsed = read(record(listing_id="1"), record(**cells), record(listing_id="9"))
    assert parsed.frame["listing_id"].to_list() == [1, 9]
    assert parsed.frame["line"].to_list() == [2, 4]
    assert (parsed.rows, parsed.rejected_count) == (3, 1)
    assert (parsed.rejected[0].line, parsed.rejected[0].code, parsed.rejected[0].column) == (
        3,
        code,
        column,
    )
    assert len(parsed.rejected[0].message) < 200


@pytest.mark.parametrize(
    ("label", "product_line", "expected"),
    [
        ("Magic", "pokemon", "magic"),
        (" mAGIC ", None, "magic"),
        ("Pokemon Japan", None, "pokemon_japan"),
        ("pokemon_japan", None, "pokemon_japan"),
        ("", "pokemon", "pokemon"),
        ("  ", None, "magic"),
    ],
)
def test_a_row_belongs_to_its_own_cells_line(label, product_line, expected):
    frame = read(record(product_line_label=label), product_line=product_line).frame
    assert frame.select("product_line", "product_line_label").row(0) == (expected, label)


def test_unknown_lines_come_in_only_when_allowed():
    row = record(product_line_label="Life Counters!")
    assert read(row).rejected[0].code == "unknown_product_line"
    parsed = read(row, lines=ProductLines(BY_LABEL, ("magic",), allow_unknown=True))
    assert parsed.frame["product_line"].to_list() == parsed.lines == ["life_counters"]
    assert parsed.new_lines == {"life_counters": "Life Counters!"}
    known = record(product_line_label="Flesh & Blood TCG")
    assert (
        read(known, lines=ProductLines(BY_LABEL, ("magic",), allow_unknown=True)).rejected_count
        == 1
    )


def test_lines_are_those_of_kept_rows():
    parsed = read(record(), record(listing_id="8", product_line_label="Pokemon", quantity="x"))
    assert parsed.lines == ["magic"]


def test_a_blank_line_cell_without_any_line_is_unknown():
    assert (
        read(record(product_line_label=""), lines=ProductLines(BY_LABEL, ())).rejected[0].code
        == "unknown_product_line"
    )


def test_the_last_of_a_duplicated_id_wins():
    parsed = read(
        record(number="a"), record(listing_id="8"), record(number="b"), record(quantity="x")
    )
    assert parsed.frame.select("line", "listing_id", "number").rows() == [(3, 8, "1"), (4, 7, "b")]
    assert (parsed.rows, parsed.duplicates, parsed.rejected_count) == (4, 1, 1)


def test_custom_listings_of_one_id_are_told_apart_by_title():
    custom = {"photo_url": "https://x/1.jpg"}
    parsed = read(
        record(), record(title="one", **custom), record(title="two", **custom),
        record(title="one", number="9", **custom), record(title="x")
    )  # fmt: skip
    assert parsed.frame.select("line", "title", "custom").rows() == [
        (4, "two", True),
        (5, "one", True),
        (6, "x", False),
    ]
    assert parsed.duplicates == 2


def test_missing_extra_and_reordered_columns():
    data = (
        b"Language,TCG Marketplace Price,My Store Price,Total Quantity,Condition,Product Name,"
        b"TCGplayer Id\nde,,3.50,1,NM,Lotus,7\n"
    )
    parsed = parse([data], LINES, "pokemon")
    assert parsed.frame.columns == list(FRAME_COLUMNS)
    row = parsed.frame.row(0, named=True)
    assert (row["listing_id"], row["price"], row["my_store_priced"], row["product_line"]) == (
        7,
        35_000,
        True,
        "pokemon",
    )
    assert (row["set_name"], row["photo_url"], row["market"], row["custom"]) == (
        "",
        "",
        None,
        False,
    )
    noted = parse([data.replace(b"3.50", b"x")], LINES, None).noted
    assert [(n.line, n.column, n.code) for n in noted] == [(2, "My Store Price", "bad_price")]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "this isn't a TCGplayer pricing export"),
        (b"a,b\n1,2\n", "this isn't a TCGplayer pricing export"),
        (HEADER_ONLY, "no data row"),
        (b"\xef\xbb\xbf" + HEADER_ONLY + b"\r\n\r\n", "no data row"),
        (b"x" * 40_000_000, "line 1 is longer"),
    ],
)
def test_unusable_files(data, says):
    with pytest.raises(InvalidCsv, match=says):
        parse([data], LINES, None)


def test_a_file_of_bad_rows_only_is_read():
    parsed = read(b"rubbish\r\n", record(listing_id="x"))
    assert (parsed.rows, parsed.rejected_count, parsed.frame.height, parsed.lines) == (2, 2, 0, [])
    assert parsed.frame.columns == list(FRAME_COLUMNS)


def test_at_most_a_thousand_are_listed_by_line_and_all_are_counted():
    bad = [record(listing_id="x"), b"short\r\n", b'1,"\r\n', record(listing_id="5", low="x")]
    parsed = parse([HEADER_ONLY + b"".join(bad * 2000)], LINES, None)
    assert (parsed.rows, parsed.rejected_count, parsed.noted_count, parsed.duplicates) == (
        8000,
        6000,
        2000,
        1999,
    )
    assert [row.line for row in parsed.rejected] == [at for at in range(2, 1340) if at % 4 != 1][
        :1000
    ]
    assert [row.line for row in parsed.noted] == list(range(5, 4005, 4))


UNICODE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
UNITS = st.none() | st.integers(1, 10**12 - 1)
CARD = st.fixed_dictionaries({
    "set_name": UNICODE, "product_name": UNICODE.filter(str.strip), "title": UNICODE,
    "number": UNICODE, "rarity": UNICODE,
    "condition_label": UNICODE, "photo_url": UNICODE, "quantity": st.integers(0, 2**31 - 1),
    **dict.fromkeys(PRICES, UNITS),
})  # fmt: skip


@settings(deadline=None)
@given(st.lists(CARD, min_size=1, max_size=5))
def test_what_is_written_is_read_back_byte_for_byte(cards):
    schema = dict.fromkeys(PRICES, pl.Int64)
    frame = pl.DataFrame(cards, schema_overrides=schema).with_columns(
        listing_id=pl.int_range(1, pl.len() + 1),
        product_line_label=pl.lit("Magic"),
        target_price=pl.col("price"),
    )
    parsed = parse([price_updates_csv(frame)], LINES, None)
    assert (parsed.rejected, parsed.noted) == ([], [])
    assert parsed.frame.select(*cards[0]).rows() == frame.select(*cards[0]).rows()


@settings(deadline=None)
@given(st.decimals(0, 99_999_999, places=5))
def test_every_price_rounds_half_up_in_both_ways_of_reading(amount):
    expected = int(amount.quantize(Decimal("0.0001"), ROUND_HALF_UP).scaleb(4)) or None
    assert only(low=f"{amount:f}", market=f"${amount:f}", price=f"${amount:,f}") == only() | {
        "market": expected, "price": expected, "low": expected
    }  # fmt: skip


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([r for r, _ in PRICES_READ] + NO_PRICES + ["1.25", "7"]),
        min_size=1,
        max_size=12,
    )
)
def test_the_column_wise_and_the_single_reading_agree(texts):
    parsed = read(*(record(listing_id=str(at), low=text) for at, text in enumerate(texts, 1)))
    expected, bad = [], []
    for text in texts:
        try:
            expected.append(read_price(text))
            bad.append(False)
        except ValueError:
            expected.append(None)
            bad.append(True)
    assert parsed.frame["low"].to_list() == expected
    assert [note.line for note in parsed.noted] == [line for line, was in enumerate(bad, 2) if was]


RUBBISH = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from([
            b'"', b'1,Magic,"Set,', b'1,Magic,S,N,""",1', b",,,,,,,,,,,,,,,", b"\0", b"\xff\xfe",
            b'5,Magic,"a\nb",N,,,,,,,,,1,,1,', b"5,Magic,S,N,,,,,x,,,,-1,,,"
        ]),
    ),
    max_size=8,
).map(b"\n".join)  # fmt: skip


@pytest.mark.day
@settings(deadline=None)
@given(RUBBISH, RUBBISH)
def test_a_good_row_survives_any_neighbours(before, after):
    parsed = read(before, b"\n", record(listing_id="424242"), after)
    assert parsed.frame.filter(listing_id=424242)["line"].to_list() == [before.count(b"\n") + 3]
    assert parsed.rows == parsed.frame.height + parsed.rejected_count + parsed.duplicates


@pytest.mark.day
@settings(deadline=None)
@given(RUBBISH, RUBBISH, st.sampled_from([1, 7, 64, 1 << 16]))
def test_every_rejected_row_is_found_again_in_pieces_of_any_size(before, after, size):
    data = HEADER_ONLY + before + b"\n" + record(listing_id="424242") + after
    parsed = parse([data], LINES, None)
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    again = list(every_rejected(pieces, LINES, None))
    assert again == parsed.rejected
    rows = b"".join(rejected_csv(data, again)).decode()
    assert rows.count("\r\n") >= len({row.line for row in again}) + 1


NUMBERS = st.one_of(
    st.sampled_from(
        [
            "",
            "5",
            "0",
            "5.0000",
            "1.23455",
            "99999999.99995",
            "1,234.50",
            "$5",
            "-1",
            "1e9",
            "+5",
            ".5",
            "5.",
            " 5",
            "NaN",
        ]
    ),
    st.decimals(0, 10**8, places=4, allow_nan=False).map(str),
)


@pytest.mark.day
@settings(deadline=None)
@given(
    st.lists(
        st.tuples(NUMBERS, NUMBERS, st.sampled_from(["1", "7", "", "2.5", "0"])),
        min_size=1,
        max_size=8,
    )
)
def test_numbers_read_the_same_beside_plain_cells_and_odd_ones(cells):
    rows = [
        record(listing_id=str(at + 1), market=market, price=price, quantity=quantity)
        for at, (market, price, quantity) in enumerate(cells)
    ]
    alone = pl.concat([read(row).frame for row in rows])
    # One odd cell has every number of its block looked at by itself.
    beside = read(*rows, record(listing_id="999", low="$1.00")).frame.filter(
        pl.col("listing_id") != 999
    )
    assert read(*rows).frame.drop("line").equals(alone.drop("line"))
    assert beside.drop("line").equals(alone.drop("line"))


@settings(deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_arbitrary_bytes_raise_nothing_but_invalid_csv(data, with_header):
    with contextlib.suppress(InvalidCsv):
        parse([HEADER_ONLY + data if with_header else data], LINES, None)


@needs_data
def test_the_real_sample():
    data = (DATA / "samples" / "pricing_real_864.csv").read_bytes()
    parsed = parse([data], ProductLines({}, ("magic",), allow_unknown=True), None)
    assert (parsed.rows, parsed.frame.height, parsed.rejected_count, parsed.noted_count) == (
        864,
        864,
        0,
        0,
    )
    assert parsed.frame.filter(quantity=0).height == 532
    assert parsed.frame.filter(product_line="magic").height == 853
    assert parsed.frame.row(0, named=True)["price"] == 271_700


@needs_data
def test_triple_quotes_in_the_wild_cost_their_own_rows_only():
    data = (DATA / "samples" / "pricing_broken_triple_quotes.csv").read_bytes()
    for text in (data, data.replace(b"\n", b"\r\n")):
        parsed = parse([text], LINES, None)
        assert [(row.line, row.code) for row in parsed.rejected] == [
            (2, "malformed_row"),
            (4, "malformed_row"),
        ]
        assert parsed.frame.select("line", "listing_id", "price").rows() == [(3, 67890, 25_000)]


def generated(tmp_path: Path, *options: str) -> bytes:
    out = tmp_path / "inventory.csv"
    made = subprocess.run(
        [sys.executable, DATA / "make_inventory.py", *options, "--out", out], capture_output=True
    )
    if made.returncode:
        pytest.skip("make_inventory.py cannot run here: " + made.stderr.decode()[-200:])
    return out.read_bytes()


@pytest.mark.day
@needs_data
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--quote", "minimal", "--eol", "lf"),
        ("--bom", "--my-store"),
        ("--game", "all", "--bom"),
    ],
)
def test_generated_inventories(tmp_path, options):
    data = generated(tmp_path, "--rows", "2000", *options)
    parsed = parse([data], LINES, None)
    assert (parsed.rows, parsed.frame.height, parsed.rejected_count, parsed.noted_count) == (
        2000,
        2000,
        0,
        0,
    )
    assert parsed.frame["line"].to_list() == list(range(2, 2002))


@needs_data
def test_a_dirty_inventory(tmp_path):
    parsed = parse([generated(tmp_path, "--rows", "100", "--dirty", "10")], LINES, None)
    told = [(row.line, row.code, row.column) for row in parsed.rejected]
    assert told == [
        (102, "bad_id", "TCGplayer Id"),
        (103, "bad_quantity", "Total Quantity"),
        (106, "malformed_row", None),
        (111, "bad_quantity", "Total Quantity"),
        (112, "unknown_product_line", "Product Line"),
    ]
    assert [(row.line, row.column) for row in parsed.noted] == [(109, "TCG Marketplace Price")]
    assert parsed.frame.tail(5)["line"].to_list() == [104, 105, 107, 109, 110]
    assert (
        parsed.frame.filter(line=107)["product_name"].item()
        == 'Name with "quotes", comma and\nnewline'
    )


def test_many_rows_with_a_few_bad_ones_are_quick():
    rows = [
        record(listing_id=str(at), market=f"{at % 900}.{at % 100:02}") for at in range(1, 50_001)
    ]
    for at in random.Random(1).sample(range(50_000), 50):
        rows[at] = rows[at].replace(b'"Alpha"', b'""",')
    started = time.process_time()
    parsed = read(*rows)
    assert time.process_time() - started < 2
    assert (parsed.rows, parsed.frame.height, parsed.rejected_count) == (50_000, 49_950, 50)
