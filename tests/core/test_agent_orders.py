"""The marketplace's order files become rows: every line is sent or reported, and of the shipping
export no name and no street is either.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync_agent.cells import read_amount, read_date
from cardsync_agent.csv_records import Damaged, header_of, lines_of
from cardsync_agent.orders import (
    EARLIEST,
    FEEDBACK,
    ORDER_LIST,
    PULL_SHEET,
    REFUNDS,
    SALES,
    SHIPPING,
    Kind,
    Parsed,
    Row,
    kind_of,
    parse,
    window_start,
)
from cardsync_agent.parts import parts
from cardsync_agent.sales import months_to_ask, months_to_send, parse_summary, still_unoffered

LIST = (
    "Order #,Buyer Name,Order Date,Status,Shipping Type,Product Amt,Shipping Amt,Total Amt,"
    "Buyer Paid,Carrier Information"
)
SHEET = (
    "Product Line,Product Name,Condition,Number,Set,Rarity,Quantity,Main Photo URL,"
    "Set Release Date,SkuId,Order Quantity"
)
OLD_SHEET = SHEET.removesuffix(",SkuId,Order Quantity")
SHIP = (
    "Order #,FirstName,LastName,Address1,Address2,City,State,PostalCode,Country,Order Date,"
    "Product Weight,"
    "Shipping Method,Item Count,Value Of Products,Shipping Fee Paid,Tracking #,Carrier"
)
REFUND = (
    "order_number,buyer_name,order_date,status,product_amt,shipping_amt,total_amt,refund_type,"
    "refund_origin"
)
ORDER = (
    '"A-1","Ann","Friday, 03 July 2026","Shipped - In Transit","Standard","1.00","1.31","2.31",'
    '"True",""'
)
SHIPPED = (
    '"A-1","Fay","Doe","1 Elm St","Apt 2","Salem","OR","01234-5678","US","7/3/2026","0.21",'
    '"Expedited","3","0.25","1.31","TRK","USPS"'
)
SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data"
SINCE = date(2026, 6, 1)


def read(kind: Kind, header: str, *lines: str, since: date = SINCE) -> Parsed:
    return parse(kind, "\n".join([header, *lines, ""]).encode(), since)


def told(parsed: Parsed) -> list[tuple[int, str]]:
    return [(problem.line, problem.text) for problem in parsed.problems]


# Which file is which


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        (LIST, ORDER_LIST),
        (LIST.removesuffix(",Carrier Information"), ORDER_LIST),
        (LIST.lower(), ORDER_LIST),
        (SHEET, PULL_SHEET),
        (OLD_SHEET, PULL_SHEET),
        (SHIP, SHIPPING),
        (REFUND, REFUNDS),
        ("Order Number,Rating,Comment", FEEDBACK),
        ("date_from,date_to,gross_sales,net_sales", SALES),
        ("TCGplayer Id,Product Line,Set,Product Name,Condition,Quantity", None),
        ("Order #,Buyer Name", None),
        ("", None),
    ],
)
def test_a_file_is_known_by_its_header(header: str, kind: Kind | None) -> None:
    assert kind_of(header.split(",")) is kind
    assert kind_of(header_of(lines_of(b"\xef\xbb\xbf" + header.encode()))) is kind


@pytest.mark.parametrize(
    ("first_sync", "start"), [(True, date(2020, 1, 1)), (False, date(2026, 8, 23))]
)
def test_the_window_is_the_plans(first_sync: bool, start: date) -> None:
    assert window_start(first_sync=first_sync, today=date(2026, 11, 21)) == start


# Cells


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Friday, 03 July 2026", date(2026, 7, 3)),
        ("friday, 3 july 2026", date(2026, 7, 3)),
        ("03 July 2026", date(2026, 7, 3)),
        ("7/3/2026", date(2026, 7, 3)),
        ("07/03/26", date(2026, 7, 3)),
        ("7/3/2026 11:02 PM", date(2026, 7, 3)),
        ("2026-07-03", date(2026, 7, 3)),
        ("2026-07-03T04:05:06Z", date(2026, 7, 3)),
        ("01/01/1990", date(1990, 1, 1)),
        ("2079-12-31", date(2079, 12, 31)),
        # Sent, it would be read as 2020.
        ("07/03/0020", None),
        ("31 December 1989", None),
        ("2080-01-01", None),
        ("Friday, 31 June 2026", None),
        ("Friday, 03 Brumaire 2026", None),
        ("13/13/2026", None),
        ("٧/٣/2026", None),
        ("soon", None),
        ("", None),
    ],
)
def test_dates(text: str, day: date | None) -> None:
    assert read_date(text) == day


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1.31", "1.31"),
        ("$1,234.50", "1234.50"),
        ("-$0.25", "-0.25"),
        ("0", "0"),
        ("12345678.1234", "12345678.1234"),
        ("123456789", None),
        ("1.12345", None),
        ("1,23", "1.23"),
        ("1.234,50", "1234.50"),
        ("12,34,5", None),
        ("1e3", None),
        ("NaN", None),
        ("", None),
    ],
)
def test_amounts(text: str, amount: str | None) -> None:
    assert read_amount(text) == amount


# Order list


def test_an_order_is_a_row() -> None:
    parsed = read(ORDER_LIST, LIST, ORDER)
    assert parsed.rows == [
        {
            "order_number": "A-1", "buyer_name": "Ann", "order_date": "07/03/2026",
            "status": "Shipped - In Transit",
            "product_amt": "1.00", "shipping_amt": "1.31", "total_amt": "2.31",
        }
    ]  # fmt: skip
    assert (parsed.taken, parsed.problems) == (1, [])


@pytest.mark.parametrize(
    ("line", "row", "problems"),
    [
        ("A-2,Bo,7/3/26,Canceled,Standard,1,0,1,True",
         {"buyer_name": "Bo", "order_date": "07/03/2026", "status": "Canceled", "product_amt": "1",
          "shipping_amt": "0", "total_amt": "1"}, []),
        ("A-2,,,,,,,,,", {}, []),
        ("A-2,Bo,someday,,,free,,$2,,", {"buyer_name": "Bo", "total_amt": "2"},
         ["Order Date is no date; sent without", "product_amt is no amount; sent without"]),
        ((
            "A-2,Smith, John,\"Friday, 03 July 2026\",Completed - Paid,Standard,10.00,1.31,"
            "11.31,11.31"
        ), None, ["Status is a date; the columns have shifted"]),
        (",Bo,7/3/26,,,,,,,", None, ["no order number"]),
        (f"{'9' * 201},Bo,7/3/26,,,,,,,", None, ["an order number that is too long"]),
        ("A-2,Bo", None, ["this row has 2 columns; 10 expected"]),
        ("A-2,Bo,7/3/26,,,,,,,,", None, ["this row has 11 columns; 10 expected"]),
        (LIST, None, ["the header again"]),
        ("A-2,B\0o,7/3/26,,,,,,,", None, ["a NUL byte in it"]),
        (f"A-2,{'o' * 4001},7/3/26,,,,,,,", None, ["a cell of more than 4,000 characters"]),
        (f"A-2,{'o' * 200_000},7/3/26,,,,,,,", None, ["a cell of more than 4,000 characters"]),
        ('A-2,"Bo,7/3/26,,,,,,,', None, ["a quote is misplaced or never closed"]),
    ],
)  # fmt: skip
def test_lines_of_an_order_list(line: str, row: dict[str, str] | None, problems: list[str]) -> None:
    parsed = read(ORDER_LIST, LIST, ORDER, line)
    assert parsed.rows[1:] == ([] if row is None else [{"order_number": "A-2", **row}])
    assert told(parsed) == [(3, text) for text in problems]
    assert (parsed.taken, parsed.lost) == ((1, 1) if row is None else (2, 0))


def test_only_the_window_is_sent_and_a_date_that_cannot_be_read_counts_as_in_it() -> None:
    lines = [
        f"A-{n},Bo,{day},,,,,,,"
        for n, day in enumerate(("5/31/2026", "6/1/2026", "12/31/2019", "someday"))
    ]
    parsed = read(ORDER_LIST, LIST, *lines)
    assert [row["order_number"] for row in parsed.rows] == ["A-1", "A-3"]
    assert (parsed.older, parsed.taken) == (2, 2)
    assert len(read(ORDER_LIST, LIST, *lines, since=EARLIEST).rows) == 3


@pytest.mark.parametrize("broken", ['"A-0","x,""",', '"A-0","Bo', '"A-0","x"",1', '"'])
def test_a_quote_that_never_closes_takes_only_its_line(broken: str) -> None:
    parsed = read(ORDER_LIST, LIST, broken, ORDER, ORDER.replace("A-1", "A-2"))
    assert [row["order_number"] for row in parsed.rows] == ["A-1", "A-2"]
    assert [line for line, _ in told(parsed)] == [2]


def test_lines_are_counted_as_an_editor_shows_them() -> None:
    lines = [
        ORDER.replace("Ann", 'Ann\n""the"" Ox'),
        "",
        "A-2,Bo",
        ORDER.replace("A-1", "A-3").replace("Ann", 'A "n" n'),
    ]
    parsed = read(ORDER_LIST, LIST, *lines)
    assert [row["buyer_name"] for row in parsed.rows] == ['Ann\n"the" Ox', 'A "n" n']
    assert told(parsed) == [(5, "this row has 2 columns; 10 expected")]


@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_marks_packing_and_stray_bytes_do_not_matter(packed: bool) -> None:
    content = (
        b"\xef\xbb\xbf" + "\r\n".join([LIST, ORDER.replace("Ann", "Zoë"), ORDER]).encode() + b"\r\n"
    )
    content = content.replace(b'"Ann"', b'"Ren\xe9e"')
    parsed = parse(ORDER_LIST, gzip.compress(content) if packed else content, SINCE)
    assert [row["buyer_name"] for row in parsed.rows] == ["Zoë", "Renée"]


@pytest.mark.parametrize("cut", [b"\x1f\x8bnonsense", gzip.compress(LIST.encode())[:-9]])
def test_damaged_gzip_is_said_to_be(cut: bytes) -> None:
    with pytest.raises(Damaged, match="gzip"):
        parse(ORDER_LIST, cut, SINCE)


# Pull sheet


def item(quantity: str, pairs: str, sku: str = "77", name: str = "Lotus") -> str:
    return (
        f'"Magic","{name}","Near Mint","1","Alpha","R","{quantity}","https://x/p.jpg",'
        f'"01/01/2025 00:00:00","{sku}","{pairs}"'
    )


LOTUS = {
    "product_name": "Lotus", "product_line": "Magic", "condition": "Near Mint", "set_name": "Alpha",
    "rarity": "R",
    "main_photo_url": "https://x/p.jpg",
}  # fmt: skip


def test_the_pairs_of_a_pull_sheet_are_trusted_and_an_orders_lines_stand_together() -> None:
    lines = [item("9", "A:6 | B:2"), item("1", "A:1", "78"), "Orders Contained in Pull Sheet:,A|B"]
    parsed = read(PULL_SHEET, SHEET, *lines)
    assert parsed.rows == [
        {"order_number": "A", **LOTUS, "sku_id": 77, "quantity": 6},
        {"order_number": "A", **LOTUS, "sku_id": 78, "quantity": 1},
        {"order_number": "B", **LOTUS, "sku_id": 77, "quantity": 2},
    ]
    assert (parsed.taken, parsed.problems) == (2, [])


@pytest.mark.parametrize(
    ("lines", "quantities", "problems"),
    [
        ([item("3", "A:1 | A:2")], {"A": 3}, []),
        ([item("1", "A:1"), item("1", "A:1")], {"A": 2}, []),
        ([item("1", "A:one | B:2")], {"B": 2},
         [(2, "a part of Order Quantity is not like ORDER:2")]),
        ([item("1", "A")], {}, [(2, "a part of Order Quantity is not like ORDER:2")]),
        ([item("1", "A:1", sku="x"), item("2", "A:2", sku="")], {"A": 2},
         [(2, "sku_id is no whole number")]),
        ([item("4", ""), "Orders Contained in Pull Sheet:,A"], {"A": 4}, []),
        ([item("4", ""), "Orders Contained in Pull Sheet:,A|B"], {},
         [(2, "no Order Quantity, and the sheet does not hold exactly one order")]),
        (["Orders Contained in Pull Sheet:,"], {}, []),
    ],
)  # fmt: skip
def test_lines_of_a_pull_sheet(
    lines: list[str], quantities: dict[str, int], problems: list[tuple[int, str]]
) -> None:
    parsed = read(PULL_SHEET, SHEET, *lines)
    assert {row["order_number"]: row["quantity"] for row in parsed.rows} == quantities
    assert told(parsed) == problems


def test_the_older_pull_sheet_tells_its_order_only_if_there_is_one() -> None:
    line = '"Magic","Lotus","Near Mint","1","Alpha","R","3","","01/01/2025 00:00:00"'
    parsed = read(PULL_SHEET, OLD_SHEET, line, line, '"Orders Contained in Pull Sheet:","A-1"')
    assert [(row["order_number"], row["quantity"]) for row in parsed.rows] == [
        ("A-1", 3),
        ("A-1", 3),
    ]
    several = read(PULL_SHEET, OLD_SHEET, line, "Orders Contained in Pull Sheet:,A-1|A-2")
    assert (several.rows, len(several.problems)) == ([], 1)


# Shipping export


def test_a_shipment_is_a_row_without_a_person() -> None:
    parsed = read(SHIPPING, SHIP, SHIPPED)
    assert parsed.rows == [
        {
            "order_number": "A-1", "shipping_method": "Expedited", "city": "Salem", "state": "OR",
            "postal_code": "01234-5678",
            "tracking_number": "TRK", "item_count": 3, "product_weight": "0.21",
        }
    ]  # fmt: skip


def test_a_weight_of_zero_and_a_blank_tracking_number_are_missing() -> None:
    [row] = read(SHIPPING, SHIP, SHIPPED.replace('"0.21"', '"0.00"').replace('"TRK"', '""')).rows
    assert {"product_weight", "tracking_number"}.isdisjoint(row)


@pytest.mark.parametrize(
    "line",
    [
        # One column too far right, because a street holds a comma that nobody quoted, and the
        # last one is missing.
        (
            "A-1,Fay,Doe,1 Elm St, Rear house,Apt 2,Salem,OR,01234,US,7/3/2026,0.21,Expedited,3,"
            "0.25,1.31,TRK"
        ),
        "A-1,Fay,Doe,1 Elm St, Rear house,Apt 2,Salem,OR,01234,,,0.21,Expedited,3,0.25,1.31,TRK",
        'zZ",Doe,,1 Elm St,Apt 2,Salem,OR,01234,US,7/3/2026,0.21,Expedited,3,0.25,1.31,TRK,USPS',
        "A-1,Doe,1 Elm St,Apt 2,Salem,OR,01234,US,7/3/2026,0.21,Expedited,3,0.25,1.31,TRK,USPS,",
    ],
)
def test_a_shipment_whose_columns_shifted_is_not_sent(line: str) -> None:
    parsed = read(SHIPPING, SHIP, line)
    assert (parsed.rows, parsed.lost) == ([], 1)
    assert "the columns have shifted" in parsed.problems[0].text


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (SHIP, "A-1,Fay,Doe,,1 Elm St,Salem,OR,01234,,,,,,,,,"),
        ("Order #,Order Date,City,PostalCode,Shipping Method", "A-1,,Salem,01234,Expedited"),
        ("Order #,Address1,City,PostalCode,Shipping Method", "A-1,,1 Elm St,Salem,Expedited"),
        ("Order #,Recipient,City,State,PostalCode,Shipping Method", "A-1,Doe, Fay,Salem,OR,01234"),
        (
            "Order #,Ship To,City,State,PostalCode,Shipping Method",
            "A-1,12 Elm St, Apt 4,Salem,OR,01234",
        ),
    ],
)
def test_a_shipment_that_nothing_speaks_for_is_not_sent(header: str, line: str) -> None:
    parsed = read(SHIPPING, header, line)
    assert (parsed.rows, told(parsed)) == (
        [],
        [(2, "nothing in it shows that no columns have shifted")],
    )


def test_a_shipping_export_without_a_person_needs_nothing_that_speaks_for_its_rows() -> None:
    parsed = read(
        SHIPPING,
        "Order #,Shipping Method,PostalCode,Tracking #",
        "A-1,Expedited,01234,TRK",
        "A-2,Standard,1,",
    )
    assert (parsed.rows, parsed.problems) == (
        [
            {
                "order_number": "A-1",
                "shipping_method": "Expedited",
                "postal_code": "01234",
                "tracking_number": "TRK",
            },
            {"order_number": "A-2", "shipping_method": "Standard", "postal_code": "1"},
        ],
        [],
    )


# Refunds, feedback, sales summaries


@pytest.mark.parametrize("written", ["-10.00", "(10.00)", "$10.00", '"($10.00)"'])
def test_what_went_back_to_the_buyer_has_no_sign(written: str) -> None:
    [row] = read(
        REFUNDS, REFUND, f"A-1,Ann,7/3/2026,Refunded,{written},0,{written},full,marketplace"
    ).rows
    assert (row["product_amt"], row["total_amt"]) == ("10.00", "10.00")


def test_a_refund_without_a_total_is_what_its_parts_add_up_to() -> None:
    lines = [
        "A-1,Ann,7/3/2026,,-10.00,1.31,,full,marketplace",
        "A-2,Ann,7/3/2026,,,,,full,marketplace",
    ]
    parsed = read(REFUNDS, REFUND, *lines)
    assert [row.get("total_amt") for row in parsed.rows] == ["11.31", None]
    assert told(parsed) == [(3, "a refund without an amount")]


def test_refunds_and_feedback_have_columns_named_like_the_fields() -> None:
    parsed = read(
        REFUNDS,
        f"{REFUND},refund_reason",
        "A-1,Ann,7/3/2026,Refunded,$1.00,0,1.00,partial,marketplace,bent",
    )
    assert parsed.rows == [
        {
            "order_number": "A-1", "buyer_name": "Ann", "order_date": "07/03/2026",
            "status": "Refunded", "product_amt": "1.00",
            "shipping_amt": "0", "total_amt": "1.00", "refund_type": "partial",
            "refund_origin": "marketplace",
            "refund_reason": "bent",
        }
    ]  # fmt: skip
    parsed = read(FEEDBACK, "Order #,Rating,Comment", 'A-1,5,"fast,\nsafe"', "A-2,1,", "A-3,6,x")
    assert parsed.rows == [
        {"order_number": "A-1", "rating": 5, "comment": "fast,\nsafe"},
        {"order_number": "A-2", "rating": 1},
    ]
    assert told(parsed) == [(5, "a rating that is not 1 to 5")]


def test_a_refund_of_an_old_order_is_sent() -> None:
    assert len(read(REFUNDS, REFUND, "A-1,Ann,7/3/2021,Refunded,1,0,1,full,marketplace").rows) == 1


def test_a_sales_summary_is_a_report_a_month() -> None:
    header = "Date From,Date To,Gross Sales,Order Count,Net Sales,Total Fees"
    lines = [
        '10/1/2026,10/31/2026,"$1,200.50",40,1000,-12.5',
        "2026-09-01,,0,0,0,",
        "2026-08-02,,1,1,1,",
        "2026-08-01,2026-09-30,1,1,1,",
        "2026-07-01,,much,1.5,1,",
        "short",
    ]
    summary = parse_summary("\n".join([header, *lines]).encode())
    assert summary.months == {
        "2026-10-01": {
            "date_from": "2026-10-01",
            "date_to": "2026-10-31",
            "report": {
                "gross_sales": "1200.50",
                "order_count": 40,
                "net_sales": "1000",
                "total_fees": "-12.5",
            },
        },
        "2026-09-01": {
            "date_from": "2026-09-01",
            "date_to": "2026-09-30",
            "report": {"gross_sales": "0", "order_count": 0, "net_sales": "0"},
        },
        "2026-07-01": {
            "date_from": "2026-07-01",
            "date_to": "2026-07-31",
            "report": {"net_sales": "1"},
        },
    }
    assert [(problem.line, problem.text) for problem in summary.problems] == [
        (4, "date_from is not the first day of a month"),
        (5, "date_to is not in the month of date_from"),
        (6, "gross_sales is no amount; sent without"),
        (6, "order_count is no count; sent without"),
        (7, "this row has 1 column; 6 expected"),
    ]


def test_two_months_a_cycle_oldest_first() -> None:
    gaps = ["2025-01-01", "2025-02-01", "2025-03-01", "2025-04-01"]
    ends = {"2025-04-01": "30", "2025-03-01": "31", "2025-02-01": "28", "2026-01-01": "31"}
    months = {month: {"date_to": month[:8] + day} for month, day in ends.items()}
    assert months_to_send(gaps, months) == ["2025-02-01", "2025-03-01"]


def test_a_report_that_ends_before_its_month_stands_behind_those_that_cover_theirs() -> None:
    gaps = ["2024-02-01", "2024-03-01", "2024-04-01"]
    ends = {"2024-02-01": "28", "2024-03-01": "31", "2024-04-01": "30"}
    months = {month: {"date_to": month[:8] + day} for month, day in ends.items()}
    assert months_to_send(gaps, months) == ["2024-03-01", "2024-04-01"]
    assert months_to_send(gaps[:1], months) == ["2024-02-01"]


def test_months_that_were_not_offered_are_asked_for_again_after_thirty_days():
    gaps = ["2024-03-01", "2024-01-01", "2024-02-01", "2024-04-01"]
    unoffered = {"2024-01-01": "2026-06-15", "2024-03-01": "2026-06-16"}
    assert months_to_ask(gaps, {}, date(2026, 7, 15)) == ["2024-01-01", "2024-02-01"]
    assert months_to_ask(gaps, unoffered, date(2026, 7, 14)) == ["2024-02-01", "2024-04-01"]
    assert months_to_ask(gaps, unoffered, date(2026, 7, 15)) == ["2024-01-01", "2024-02-01"]
    assert still_unoffered(unoffered, date(2026, 7, 15)) == {"2024-03-01": "2026-06-16"}


# Uploads


def test_an_upload_is_never_too_large_and_never_divides_an_order() -> None:
    rows: list[Row] = [{"order_number": f"A-{n // 3}", "n": n} for n in range(30)]
    bodies = [json.loads(body) for body in parts(rows, most_rows=8)]
    assert [row for body in bodies for row in body] == rows
    assert [len(body) for body in bodies] == [6, 6, 6, 6, 6]
    assert [len(json.loads(body)) for body in parts(rows, most_rows=2)] == [
        2,
        1,
    ] * 10  # an order larger than an upload
    assert all(len(body) <= 110 for body in parts(rows, most_bytes=100))
    assert b"".join(parts(rows)) == b"".join(parts(rows))
    assert list(parts([])) == []


def test_an_upload_holds_50_000_rows() -> None:
    rows = [{"order_number": str(n)} for n in range(120_000)]
    assert [body_rows(body) for body in parts(rows)] == [50_000, 50_000, 20_000]


def body_rows(body: bytes) -> int:
    return len(json.loads(gzip.decompress(body)))


def test_what_cannot_be_packed_still_fits() -> None:
    noise = [
        {"order_number": str(n), "x": bytes(range(n % 200, 255)).hex() * 60} for n in range(2000)
    ]
    bodies = list(parts(noise))
    assert len(bodies) > 1
    assert all(
        len(body) < 10_000_000 and len(gzip.decompress(body)) < 10_000_000 for body in bodies
    )


# Anything at all

WORDS = st.text(alphabet="ab1,;:|\" \n'$/-é", max_size=12)
CELL = st.one_of(
    WORDS,
    st.sampled_from(["", "A-1", "A-2:3", "7/3/2026", "Friday, 03 July 2026", "1.31", "$2", "5"]),
)


def written(header: str, rows: list[list[str]], quote: bool) -> str:
    out = io.StringIO()
    csv.writer(
        out, quoting=csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL, lineterminator="\n"
    ).writerows(rows)
    return f"{header}\n{out.getvalue()}"


@given(
    st.sampled_from([LIST, SHEET, OLD_SHEET, SHIP, REFUND, "order_number,rating,comment"]),
    st.data(),
    st.booleans(),
)
def test_every_line_is_sent_or_told_of(header: str, data: st.DataObject, quote: bool) -> None:
    width = header.count(",") + 1
    row = st.lists(CELL, min_size=width - 2, max_size=width + 1)
    rows = data.draw(
        st.lists(row.filter(lambda cells: any(cell.strip() for cell in cells)), max_size=6)
    )
    kind = kind_of(header.split(","))
    assert kind is not None
    parsed = parse(kind, written(header, rows, quote).encode(), SINCE)
    closing = [
        cells for cells in rows if cells[0].strip().casefold().startswith("orders contained")
    ]
    # Records of the wrong width may count as several lines, each reported.
    assert parsed.taken + parsed.older + parsed.lost >= len(rows) - len(closing)
    assert parsed.lost <= len({problem.line for problem in parsed.problems})
    assert all(row["order_number"].strip() for row in parsed.rows)
    if kind is not PULL_SHEET:
        assert len(parsed.rows) == parsed.taken


@given(st.sampled_from([LIST, SHEET, SHIP, REFUND]), st.binary(max_size=400))
def test_no_bytes_at_all_stop_it(header: str, noise: bytes) -> None:
    kind = kind_of(header.split(","))
    assert kind is not None
    if noise[:2] != b"\x1f\x8b":
        parsed = parse(kind, header.encode() + b"\n" + noise, SINCE)
        lines = [line for line in lines_of(noise) if line.strip()]
        assert (
            len(lines) == 0 or parsed.taken + parsed.older + parsed.lost > 0 or kind is PULL_SHEET
        )
        json.dumps(parsed.rows)


PERSON = st.text(alphabet="ab,;' \n\t\"-é.", max_size=8).map(lambda text: f"Zz{text}zZ")
PLACE = st.sampled_from(["Salem", "New York", ""])


@given(
    st.lists(st.tuples(PERSON, PERSON, PERSON, PERSON, PLACE), min_size=1, max_size=4),
    st.booleans(),
    st.integers(0, 3),
    st.data(),
)
def test_no_name_and_no_street_in_any_output(
    people: list[tuple[str, str, str, str, str]], quote: bool, damage: int, data: st.DataObject
) -> None:
    """Whole, and with quotes or commas added or lost in the part where the person stands."""
    text = SHIP + "\n"
    for n, (first, last, street, more, city) in enumerate(people):
        line = written("", [[f"A-{n}", first, last, street, more]], quote)[1:-1]
        for _ in range(damage):
            at = data.draw(st.integers(len(f"A-{n}") + 3, len(line)))
            mark = data.draw(st.sampled_from(['"', ",", "\n", ""]))
            line = line[:at] + mark + line[at + (mark == "") :]
        rest = [
            city,
            "OR",
            "01234",
            "US",
            "7/3/2026",
            "0.21",
            "Standard",
            "2",
            "1.00",
            "1.31",
            "TRK",
            "",
        ]
        text += line + "," + written("", [rest], quote)[1:]
    parsed = parse(SHIPPING, text.encode(), SINCE)
    output = json.dumps([parsed.rows, told(parsed), repr(parsed)])
    assert "Zz" not in output
    assert "zZ" not in output


# The samples


def shared(name: str) -> bytes:
    path = SAMPLES / "samples" / "synthetic" / name
    if not path.is_file():
        pytest.skip("../shared/data is not beside this project")
    return path.read_bytes()


@pytest.mark.parametrize(
    ("name", "kind", "rows"),
    [
        ("orderlist.csv", ORDER_LIST, 300),
        ("shippingexport.csv", SHIPPING, 300),
        ("pullsheet.csv", PULL_SHEET, None),
    ],
)
def test_the_samples_are_read_without_a_problem(name: str, kind: Kind, rows: int | None) -> None:
    content = shared(name)
    assert kind_of(header_of(lines_of(content))) is kind
    parsed = parse(kind, content, EARLIEST)
    assert (parsed.problems, parsed.older) == ([], 0)
    assert rows is None or len(parsed.rows) == rows


def test_the_samples_agree_with_each_other() -> None:
    orders = parse(ORDER_LIST, shared("orderlist.csv"), EARLIEST).rows
    shipping = parse(SHIPPING, shared("shippingexport.csv"), EARLIEST).rows
    items = parse(PULL_SHEET, shared("pullsheet.csv"), EARLIEST).rows
    counts: dict[str, int] = {}
    for row in items:
        counts[row["order_number"]] = counts.get(row["order_number"], 0) + row["quantity"]
    assert counts == {row["order_number"]: row["item_count"] for row in shipping}
    assert set(counts) == {row["order_number"] for row in orders}
    told_of_people = json.dumps([orders, shipping, items])
    assert "Example St" not in told_of_people
    assert "First1" not in told_of_people
