"""Headers, records among rubbish, and the price-updates file."""

from __future__ import annotations

import csv
import io

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.catalog.marketplace_columns import COLUMNS, HEADER_ONLY
from cardsync.imports.csv_format import read as read_pieces
from cardsync.imports.csv_header import Header, accept_check, begin
from cardsync.imports.price_file import price_updates_csv
from cardsync.imports.uncertain_records import MAX_CELL_CHARS
from cardsync.platform.errors import InvalidCsv

BARE = HEADER_ONLY.removesuffix(b"\r\n")
SMALL = b"TCGplayer Id,Product Name,Condition,Total Quantity,TCG Marketplace Price\n"


def read_header(line: bytes) -> Header:
    return begin([line])[0]


@pytest.mark.parametrize(
    "line",
    [
        BARE,
        BARE + b"\r",
        BARE.replace(b",", b";"),
        BARE.replace(b",", b"\t"),
        BARE.decode().encode("utf-16"),
        BARE.decode().encode("utf-16-be"),
        b"sep=;\r\n" + BARE.replace(b",", b";"),
        b"My inventory\n\nfrom 2026-07-01, all games\n" + BARE,
        b"\xef\xbb\xbf" + BARE,
        BARE.upper(),
        BARE.replace(b",", b" , "),
        b'"' + BARE.replace(b",", b'","') + b'"',
        b"\xef\xbb\xbf" + b'"' + BARE.replace(b",", b'","') + b'"\r',
        BARE.replace(b"TCG Low Price With Shipping", b"TCG Low w/ Shipping"),
        BARE.removesuffix(b",Photo URL"),
        SMALL,
        BARE + b",Language,Pending Quantity,Pr\xe9cio",
    ],
)
def test_usable_headers(line):
    positions = read_header(line.removesuffix(b"\n")).positions
    for field in ("listing_id", "product_name", "condition_label", "quantity", "price"):
        assert field in positions
    assert len(positions) == 5 or positions["low_with_shipping"] == 10


def test_columns_are_found_by_name_and_the_first_of_two_counts():
    header = read_header(
        b"TCG Marketplace Price,Condition,Total Quantity,my store price,Product Name,"
        b"TCGplayer ID,TCGplayer Id"
    )
    assert header.positions == {
        "price": 0, "condition_label": 1, "quantity": 2, "my_store_price": 3, "product_name": 4,
        "listing_id": 5,
    }  # fmt: skip
    assert header.name_of("listing_id") == "TCGplayer ID"
    assert header.name_of("title") is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "Missing columns: TCGplayer Id, Product Name"),
        (b"Order #,Buyer Name", "Missing columns: TCGplayer Id"),
        (SMALL.replace(b"Condition", b"Cond"), "Missing columns: Condition"),
        (
            BARE.replace(b",", b";").replace(b"Condition", b"Cond"),
            r"Missing columns: Condition \(read as separated by ;\)",
        ),
        (BARE.replace(b"Condition", b"Cond").decode().encode("utf-16"), r"\(read as UTF-16\)"),
        (b'"TCGplayer Id', "this isn't a TCGplayer pricing export"),
        (BARE + b",x" * 200, "line 1 has 216 columns; at most 200"),
        (b"x," * 40_000_00, "line 1 is longer than 65,536 bytes"),
    ],
)
def test_unusable_headers_say_what_is_wrong(line, says):
    with pytest.raises(InvalidCsv, match=says):
        read_header(line)


def test_two_hundred_columns_are_read():
    assert len(read_header(BARE + b",x" * 184).names) == 200


@pytest.mark.parametrize(
    "head", [HEADER_ONLY, BARE, HEADER_ONLY + b"\r\n  \r\n", b"\xef\xbb\xbf" + SMALL]
)
def test_a_header_alone_is_refused(head):
    with pytest.raises(InvalidCsv, match="no data row"):
        accept_check(head)


def test_a_file_with_a_row_is_accepted_and_rubbish_is_not():
    accept_check(HEADER_ONLY + b"1,")
    accept_check(SMALL + b"\n\nx")
    for rubbish in (b"", b"\0" * 100, b"a" * 300_000, b"\x1f\x8b\x08\0"):
        with pytest.raises(InvalidCsv):
            accept_check(rubbish)


def records(text: bytes, *, piece_bytes: int = 2**22, fast: bool = True):
    """(line, name) of every record of a small-header file, and (line, code) of every fault."""
    data = SMALL + text
    _, blocks = read_pieces(
        (data[at : at + piece_bytes] for at in range(0, len(data), piece_bytes)), fast=fast
    )
    blocks = list(blocks)
    rows = [
        tuple(row)
        for block in blocks
        for row in block.frame.select("line", "product_name").iter_rows()
    ]
    return rows, [(fault.line, fault.code) for block in blocks for fault in block.faults]


@pytest.mark.parametrize(
    ("text", "rows", "faults"),
    [
        (b"1,a,NM,1,1\n2,b,NM,1,1\n", [(2, "a"), (3, "b")], []),
        (b"1,a,NM,1,1\r\n2,b,NM,1,1", [(2, "a"), (3, "b")], []),
        (b'"1","a,b","NM","1","1"\n', [(2, "a,b")], []),
        (b'1,"a ""b"" c",NM,1,1\n', [(2, 'a "b" c')], []),
        (b'1,5" tall,NM,1,1\n', [(2, '5" tall')], []),
        (b'1,"a\nb",NM,1,1\n2,c,NM,1,1\n', [(2, "a\nb"), (4, "c")], []),
        (b'1,"a\r\n\r\nb",NM,1,1\r\n2,c,NM,1,1\r\n', [(2, "a\r\n\r\nb"), (5, "c")], []),
        (b"\n1,a,NM,1,1\n\r\n   \n2,b,NM,1,1\n\n", [(3, "a"), (6, "b")], []),
        (b"1,a,NM\n2,b,NM,1,1\n", [(3, "b")], [(2, "malformed_row")]),
        (b"1,a,NM,1,1,9\n2,b,NM,1,1\n", [(3, "b")], [(2, "malformed_row")]),
        (b'1,""",NM,1,1\n2,b,NM,1,1\n3,c,NM,1,1\n', [(3, "b"), (4, "c")], [(2, "malformed_row")]),
        (b'1,"a,NM,1,1\n2,b,NM,1,1\n', [(3, "b")], [(2, "malformed_row")]),
        (b'1,"a"b,NM,1,1\n2,"c\nd",NM,1,1\n', [(3, "c\nd")], [(2, "malformed_row")]),
        (b'1,""",NM,1,1\n2,""",NM,1,1\n3,c,NM,1,1\n', [(4, "c")],
         [(2, "malformed_row"), (3, "malformed_row")]),
        (b'1,"a\n2,"b\nc",NM,1,1\n', [(3, "b\nc")], [(2, "malformed_row")]),
        (b"1,a\0,NM,1,1\n2,b,NM,1,1\n", [(3, "b")], [(2, "bad_text")]),
        (b"\0\n2,b,NM,1,1\n", [(3, "b")], []),
        (b",\n,,,,,,,,\n\x1a\n2,b,NM,1,1\n", [(5, "b")], []),
        (b"1,a" + b"x" * MAX_CELL_CHARS + b",NM,1,1\n2,b,NM,1,1\n", [(3, "b")],
         [(2, "malformed_row")]),
        (b"1,a\rb,NM,1,1\n2,b,NM,1,1\r\r\n", [(3, "b")], [(2, "malformed_row")]),
        (b'1,"a\rb",NM,1,1\n', [(2, "a\rb")], []),
        (b"1,Pok\xe9mon,NM,1,1\n2,Pok\xc3\xa9mon,NM,1,1\n", [(2, "Pokémon"), (3, "Pokémon")], []),
        (b"1,a\x93b\x94\x81,NM,1,1\n2,\xe2\x80\x9c,NM,1,1\n", [(2, "a\x93b\x94\x81"), (3, "“")],
         []),
        (b"1,a\x93,NM,1,1\n", [(2, "a“")], []),
        (b"1,a,NM,1,1\n" + b"x" * 300_000 + b"\n2,b,NM,1,1\n", [(2, "a"), (4, "b")],
         [(3, "malformed_row")]),
        (b"1,a,NM,1,1\n" + b'"' + b"x," * 150_000 + b"\n2,b,NM,1,1\n", [(2, "a"), (4, "b")],
         [(3, "malformed_row")]),
        (b'1,"a\n' + b"x" * 300_000 + b'\n",NM,1,1\n2,b,NM,1,1\n', [(5, "b")],
         [(at, "malformed_row") for at in (2, 3, 4)]),
        (b"," * 10_000 + b"\n2,b,NM,1,1\n", [(3, "b")], []),
        (b"1," * 10_000 + b"\n2,b,NM,1,1\n", [(3, "b")], [(2, "malformed_row")]),
    ],
)  # fmt: skip
def test_records(text, rows, faults):
    for options in ({}, {"fast": False}, {"piece_bytes": 17}, {"piece_bytes": 70_001}):
        assert records(text, **options) == (rows, faults)


CELL = st.text(st.sampled_from('ab1,"\n\ré\0 '), max_size=6)
LINES = st.lists(
    st.one_of(
        st.lists(CELL, min_size=5, max_size=5).map(lambda cells: ",".join(cells).encode()),
        st.lists(CELL, min_size=5, max_size=5).map(
            lambda cells: ",".join(f'"{cell}"' for cell in cells).encode()
        ),
        st.just(b"7,good,NM,1,1.00"),
        st.just(b'1,""",NM,1,1'),
        st.binary(max_size=12),
    ),
    max_size=12,
).map(b"\n".join)


@pytest.mark.day
@settings(deadline=None)
@given(LINES, st.integers(1, 60))
def test_the_fast_way_the_slow_way_and_pieces_of_any_size_read_the_same(text, piece_bytes):
    whole = records(text)
    assert records(text, fast=False) == whole
    assert records(text, piece_bytes=piece_bytes) == whole


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
# A cell that csv.writer leaves unquoted must not hold a bare CR. It quotes such a cell only where
# CR ends lines.
DIALECTS = [("\r\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL), ("\n", csv.QUOTE_ALL)]


@settings(deadline=None)
@given(st.lists(st.lists(TEXT, min_size=5, max_size=5), max_size=8), st.sampled_from(DIALECTS))
def test_whatever_the_csv_module_writes_is_read_back(rows, dialect):
    end, quoting = dialect
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=quoting).writerows(rows)
    read, faults = records(out.getvalue().encode())
    assert ([name for _, name in read], faults) == ([row[1] for row in rows], [])


@settings(deadline=None)
@given(LINES, LINES)
def test_a_certain_row_survives_whatever_stands_around_it(before, after):
    rows, _ = records(before + b"\n99,survivor,NM,1,1.00\n" + after)
    assert (before.count(b"\n") + 3, "survivor") in rows


@pytest.mark.day
def test_rubbish_of_many_lines_is_bounded():
    for rubbish in (b'"\n', b'1,"x\n', b"\0\n", b"\n"):
        rows, faults = records(rubbish * 150_000 + b"9,good,NM,1,1\n")
        assert rows == [(150_002, "good")]
        assert len(faults) <= 1000 * 2


def test_the_price_updates_file():
    row = {
        "listing_id": 8777517, "product_line_label": "Magic", "set_name": "Köln, \"x\"",
        "product_name": "+2 Mace", "title": "",
        "number": "1", "rarity": "C", "condition_label": "Near Mint", "market": 214700,
        "direct_low": None, "low_with_shipping": 13200,
        "low": 1, "quantity": 3, "price": 100, "target_price": 10_000_001, "photo_url": "",
    }  # fmt: skip
    assert (
        price_updates_csv(pl.DataFrame([row], schema_overrides={"direct_low": pl.Int64}))
        == HEADER_ONLY
        + (
            '"8777517","Magic","Köln, ""x""","+2 Mace","","1","C","Near Mint","21.4700","",'
            '"1.3200","0.0001","3","0","1000.0001",""\r\n'
        ).encode()
    )


def test_no_updates_is_the_header_alone():
    ints = (
        "listing_id",
        "market",
        "direct_low",
        "low_with_shipping",
        "low",
        "quantity",
        "price",
        "target_price",
    )
    schema = {**dict.fromkeys(COLUMNS, pl.String), **dict.fromkeys(ints, pl.Int64)}
    assert price_updates_csv(pl.DataFrame(schema=schema)) == HEADER_ONLY
    assert HEADER_ONLY.startswith(b"TCGplayer Id,Product Line,")
    assert HEADER_ONLY.endswith(b",Photo URL\r\n")
