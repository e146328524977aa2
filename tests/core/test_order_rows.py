"""Reading order-data uploads: which bodies are refused and how, what each kind of cell becomes,
and how rows of one key are merged.
"""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform import errors, limits
from cardsync.sales.errors import EmptyPayload, InvalidJson
from cardsync.sales.orders import cells, rows


def read(*given: dict[str, Any], kind: str = "orders") -> rows.Rows:
    return rows.read(json.dumps(given).encode(), kind)


def one(kind: str = "orders", **fields: Any) -> dict[str, Any]:
    """The fields of a single row after reading."""
    read_rows = read({"order_number": "A-1", **fields}, kind=kind)
    [row] = read_rows.frame.rows(named=True)
    return {name: row[name] for name in row if name in fields and row.get(f"has_{name}", True)}


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"", InvalidJson, "not valid JSON"),
        (b"nonsense", InvalidJson, "not valid JSON"),
        (b'[{"order_number": "A"}', InvalidJson, "not valid JSON"),
        (b'[{"order_number": "A", "x": "\xff"}]', InvalidJson, "not valid JSON"),
        (b'[{"order_number": "A", "x": NaN}]', InvalidJson, "not valid JSON"),
        (b'[{"order_number": "A", "x": "\\ud800"}]', InvalidJson, "not valid JSON"),
        (b"[" * 200_000, InvalidJson, "not valid JSON"),
        # Malformed behind a wrong shape is malformed.
        (b"[1, ", InvalidJson, "not valid JSON"),
        (b"{}", errors.InvalidPayload, "not an array of objects"),
        (b'"text"', errors.InvalidPayload, "not an array of objects"),
        (b"null", errors.InvalidPayload, "not an array of objects"),
        (b'[{"order_number": "A"}, 2]', errors.InvalidPayload, "row 2 is not an object"),
        (b'[{"order_number": "A"}, {}]', errors.InvalidPayload, "row 2: order_number is missing"),
        (b'[{"order_number": null}]', errors.InvalidPayload, "row 1: order_number is not a string"),
        (b'[{"order_number": 17}]', errors.InvalidPayload, "row 1: order_number is not a string"),
        (b'[{"order_number": ""}]', errors.InvalidPayload, "row 1: order_number is blank"),
        (
            b'[{"order_number": "A"}, {"order_number": " \\t"}]',
            errors.InvalidPayload,
            "row 2: order_number is blank",
        ),
        (
            b'[{"order_number": "' + b"A" * 201 + b'"}]',
            errors.InvalidPayload,
            "row 1: order_number is longer than 200",
        ),
        (b"[]", EmptyPayload, "empty"),
        (
            b'[{"order_number": "A"}' + b', {"order_number": "A"}' * 50_000 + b"]",
            errors.TooManyRows,
            "50,001 rows",
        ),
    ],
    ids=lambda value: (
        None if isinstance(value, bytes) else value if isinstance(value, str) else value.code
    ),
)
def test_a_body_is_refused_with_its_code_and_row(
    body: bytes, kind: type[errors.Problem], words: str
) -> None:
    with pytest.raises(kind, match=words):
        rows.check(body)


def test_a_full_upload_is_counted() -> None:
    body = b'[{"order_number": "A"}' + b', {"order_number": "A"}' * (limits.UPLOAD_ROWS - 1) + b"]"
    assert rows.check(body) == limits.UPLOAD_ROWS


@pytest.mark.parametrize(
    ("json_text", "stored"),
    [
        ("12.34", "12.34"), ("12.50", "12.50"), ("12", "12"), ("0", "0"), ("0.00", "0.00"),
        ("-3.5", "-3.5"), ("-0.0", "-0.0"),
        ('"12.34"', "12.34"), ('"007.10"', "007.10"), ("99999999.9999", "99999999.9999"),
        ("12.345600", "12.3456"), ("1e2", "100"),
        ("1.25e1", "12.5"), ("1E-2", "0.01"), ("0e9999999", "0"), ("0.000000", "0.0000"),
        ('"0000000000012.5"', "12.5"),
        ("0.1", "0.1"), ("1.10", "1.10"),
        ("13.040000000000001", "13.0400"), ('"12.34565"', "12.3457"), ("1e-5", "0.0000"),
        ("-12.34565", "-12.3457"), ("99999999.99994", "99999999.9999"),
    ],
)  # fmt: skip
def test_a_number_keeps_its_value_and_scale(json_text: str, stored: str) -> None:
    read_rows = rows.read(
        b'[{"order_number": "A", "total_amt": %s}]' % json_text.encode(), "orders"
    )
    assert read_rows.rejected == []
    assert read_rows.frame["total_amt"].to_list() == [stored]


@pytest.mark.parametrize(
    "json_text",
    [
        '"abc"', '""', '" 12.34"', '"$5"', '"1,000.00"', '"1e2"', '"+1"', '".5"', '"5."', '"NaN"',
        '"Infinity"', '"١٢"', "true", "[]", "{}",
        "100000000", "99999999.99995", "1e8", "1e999999999", "1e99999999999999999999", "9" * 30,
        "9" * 6000, '"' + "9" * 30 + '"',
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_what_is_no_number_of_that_size_counts_as_absent_and_is_reported(json_text: str) -> None:
    body = (
        b'[{"order_number": "A", "total_amt": 1.5}, {"order_number": "B", "total_amt": %s}]'
        % json_text.encode()
    )
    assert rows.check(body) == 2
    read_rows = rows.read(body, "orders")
    assert read_rows.frame.select("total_amt", "has_total_amt").rows() == [
        ("1.5", True),
        (None, False),
    ]
    [rejected] = read_rows.rejected
    assert (rejected["row"], rejected["column"], rejected["code"]) == (2, "total_amt", "bad_number")
    assert len(rejected["message"]) < 200
    assert read_rows.rejected_count == 1


@pytest.mark.parametrize(
    ("json_text", "read"),
    [("-5", None), ("-0.0001", None), ('"-5.00"', None), ("-1e2", None), ("-0.00", "-0.00"),
     ("0", "0"), ('"5.00"', "5.00"), ("12.345600", "12.3456"), ("99999999.9999", "99999999.9999"),
     ("100000000", None)],
)  # fmt: skip
def test_a_refunded_amount_is_never_below_zero(json_text: str, read: str | None) -> None:
    body = b'[{"order_number": "A"}, {"order_number": "B", "total_amt": %s}]' % json_text.encode()
    read_rows = rows.read(body, "refunds")
    assert read_rows.rejected_count == (read is None)
    told = read_rows.frame["total_amt"].to_list() if read_rows.carries("total_amt") else [None] * 2
    assert told == [None, read]


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=4, min_value=-(10**8) + 1, max_value=10**8 - 1
    )
)
def test_every_amount_that_fits_comes_through_exactly(amount: Decimal) -> None:
    for text in (f"{amount:f}", f"{amount:E}", json.dumps(f"{amount:f}")):
        read_rows = rows.read(b'[{"order_number": "A", "total_amt": %s}]' % text.encode(), "orders")
        assert Decimal(read_rows.frame["total_amt"][0]) == amount


@given(
    st.one_of(
        st.floats(), st.integers(), st.text(), st.booleans(), st.none(), st.lists(st.integers())
    )
)
def test_whatever_json_an_amount_is_it_is_read_or_reported(value: Any) -> None:
    text = json.dumps(value)
    if "NaN" in text or "Infinity" in text:
        text = json.dumps(str(value))
    read_rows = rows.read(b'[{"order_number": "A", "total_amt": %s}]' % text.encode(), "orders")
    if read_rows.rejected:
        assert "total_amt" not in read_rows.frame.columns
    else:
        [stored] = read_rows.frame["total_amt"]
        assert stored is None if value is None else abs(Decimal(stored)) < 10**8


@pytest.mark.parametrize(
    "text",
    ["07/03/2026", "7/3/26", "7/3/2026", "2026-07-03", "2026-07-03T23:59:00-05:00",
     "2026-07-03 10:00", "Friday, 03 July 2026", "friday, 3 JULY 2026", " 07/03/2026 "],
)  # fmt: skip
def test_four_forms_of_a_date(text: str) -> None:
    assert one(order_date=text) == {"order_date": "2026-07-03"}


@pytest.mark.parametrize(
    "value",
    ["", "yesterday", "13/01/2026", "02/30/2026", "2026-02-30", "20260703", "2026-W27-5",
     "03 July 2026", "Friday, 31 June 2026", "7/3/126", 20260703, True, "07/03/0000", "07/03/0020",
     "7/3/99", "1989-12-31"],
)  # fmt: skip
def test_what_is_no_date_counts_as_absent_and_is_reported(value: Any) -> None:
    read_rows = read({"order_number": "A", "order_date": value})
    assert not read_rows.carries("order_date")
    assert [(row["column"], row["code"]) for row in read_rows.rejected] == [
        ("order_date", "bad_date")
    ]


@given(st.dates(date(1990, 1, 1), date(2079, 12, 31)))
def test_every_date_is_read_in_every_form(day: Any) -> None:
    month = cells._MONTHS[day.month - 1].capitalize()
    forms = [
        f"{day.month:02}/{day.day:02}/{day.year:04}",
        f"{day.month}/{day.day}/{day.year:04}",
        day.isoformat(),
    ]
    forms += [f"{day:%A}, {day.day:02} {month} {day.year:04}"]
    assert {cells.read_date(form) for form in forms} == {day.isoformat()}


def test_a_moment_is_read_as_utc() -> None:
    assert one(order_placed_at="2026-07-03T08:00:00-04:00") == {
        "order_placed_at": "2026-07-03T12:00:00+00:00"
    }
    assert read({"order_number": "A", "order_placed_at": "soon"}).rejected[0]["code"] == "bad_date"


@pytest.mark.parametrize(
    ("kind", "name", "value", "stored"),
    [
        ("items", "quantity", 3, 3), ("items", "quantity", "3", 3), ("items", "quantity", 3.0, 3),
        ("items", "quantity", 0, 0),
        ("items", "quantity", 2**31 - 1, 2**31 - 1), ("items", "quantity", None, None),
        ("items", "sku_id", 2**63 - 1, 2**63 - 1),
        ("items", "sku_id", -12, -12), ("items", "sku_id", "8553809", 8553809),
        ("shipping", "item_count", 7, 7),
    ],
)  # fmt: skip
def test_a_whole_number(kind: str, name: str, value: Any, stored: Any) -> None:
    assert one(kind, **{name: value}) == {name: stored}


@pytest.mark.parametrize(
    ("name", "value"),
    [("quantity", 1.5), ("quantity", -1), ("quantity", 2**31), ("quantity", "many"),
     ("quantity", True), ("sku_id", 2**63), ("sku_id", 1e300), ("sku_id", "12x")],
)  # fmt: skip
def test_what_is_no_such_whole_number_counts_as_absent(name: str, value: Any) -> None:
    read_rows = read({"order_number": "A", name: value}, kind="items")
    assert not read_rows.carries(name)
    assert [row["code"] for row in read_rows.rejected] == ["bad_number"]


def test_texts_stay_byte_for_byte_and_nothing_else_is_a_text() -> None:
    assert one(buyer_name="  O'Née \U0001f600 ") == {"buyer_name": "  O'Née \U0001f600 "}
    assert one(buyer_name="") == {"buyer_name": ""}
    for value in (12, 12.5, True, [], {}):
        read_rows = read({"order_number": "A", "buyer_name": value})
        assert not read_rows.carries("buyer_name")
        assert read_rows.rejected[0]["code"] == "bad_text"


def test_a_nul_is_replaced_and_an_overlong_text_counts_as_absent() -> None:
    assert one(buyer_name="a\0b") == {"buyer_name": "a\ufffdb"}
    assert one(status="x" * 200) == {"status": "x" * 200}
    assert one(status="x" * 201) == {}
    assert read({"order_number": "A\0"}).frame["order_number"].to_list() == ["A\ufffd"]


def test_absent_null_and_a_value_are_three_things() -> None:
    read_rows = read(
        {"order_number": "A", "status": "Paid"},
        {"order_number": "B", "status": None},
        {"order_number": "C"},
    )
    assert read_rows.frame.select("status", "has_status").rows() == [
        ("Paid", True),
        (None, True),
        (None, False),
    ]
    assert not read_rows.always("status")
    assert not read_rows.carries("buyer_name")
    assert read({"order_number": "A", "status": None}).always("status")


def test_of_each_field_the_last_row_that_carries_it_wins() -> None:
    read_rows = read(
        {"order_number": "A", "status": "Paid", "buyer_name": "One", "total_amt": 5},
        {"order_number": "B", "status": "Paid"},
        {"order_number": "A", "status": None, "total_amt": "bad"},
        {"order_number": "A", "buyer_name": "Two"},
    )
    rows_by_number = {row["order_number"]: row for row in read_rows.frame.rows(named=True)}
    merged = rows_by_number["A"]
    assert (merged["status"], merged["has_status"], merged["buyer_name"], merged["total_amt"]) == (
        None,
        True,
        "Two",
        "5",
    )
    assert rows_by_number["B"]["has_buyer_name"] is False
    assert (read_rows.count, read_rows.duplicates) == (4, 2)


def test_items_are_merged_by_order_and_sku_and_stay_apart_without_one() -> None:
    read_rows = read(
        {"order_number": "A", "sku_id": 1, "quantity": 1, "condition": "NM"},
        {"order_number": "A", "product_name": "loose"},
        {"order_number": "A", "sku_id": 1, "quantity": 2},
        {"order_number": "A", "product_name": "loose"},
        {"order_number": "B", "sku_id": 1},
        {"order_number": "A", "sku_id": "bad", "product_name": "loose"},
        kind="items",
    )
    found = [
        (row["order_number"], row["sku_id"], row["quantity"], row["condition"])
        for row in read_rows.frame.rows(named=True)
    ]
    assert found == [
        ("A", None, None, None),
        ("A", 1, 2, "NM"),
        ("A", None, None, None),
        ("B", 1, None, None),
        ("A", None, None, None),
    ]
    assert read_rows.duplicates == 1
    assert [row["row"] for row in read_rows.rejected] == [6]


def test_product_lines_get_their_internal_names_where_they_are_known() -> None:
    labels = ["Magic", "POKEMON JAPAN ", "flesh_and_blood", "Unheard Of", None]
    read_rows = read(
        *({"order_number": "A", "product_line": label} for label in labels), kind="items"
    )
    assert read_rows.frame["product_line"].to_list() == [
        "magic",
        "pokemon_japan",
        "flesh_and_blood",
        "Unheard Of",
        None,
    ]


def test_all_that_is_wrong_is_counted_and_a_thousand_listed_in_order() -> None:
    read_rows = read(
        *({"order_number": str(at), "total_amt": "x", "status": 1} for at in range(800))
    )
    assert read_rows.rejected_count == 1600
    assert len(read_rows.rejected) == limits.REJECTED_LISTED
    assert [row["row"] for row in read_rows.rejected] == [at // 2 + 1 for at in range(1000)]


def test_unknown_fields_and_repeated_names_are_no_trouble() -> None:
    body = b'[{"order_number": "A", "surprise": {"deep": [1.5, "x"]}, "status": "One", "status": "Two"}]'
    assert rows.check(body) == 1
    assert rows.read(body, "orders").frame["status"].to_list() == ["Two"]


_VALUES = st.one_of(
    st.none(), st.integers(0, 99), st.sampled_from(["Paid", "12.50", "07/03/2026", "?"])
)
_SOME_ROWS = st.lists(
    st.fixed_dictionaries(
        {"order_number": st.sampled_from("ABC")},
        optional=dict.fromkeys(("status", "total_amt", "order_date", "product_amt"), _VALUES),
    ),
    min_size=1,
    max_size=12,
)


@given(_SOME_ROWS)
def test_merging_is_what_row_after_row_would_do(given_rows: list[dict[str, Any]]) -> None:
    expected: dict[str, dict[str, Any]] = {}
    for row in given_rows:
        known = expected.setdefault(row["order_number"], {})
        known.update(one(**{name: value for name, value in row.items() if name != "order_number"}))
    read_rows = read(*given_rows)
    found = {
        row["order_number"]: {
            name: row[name] for name in ("status", "total_amt", "order_date", "product_amt")
            if name in row and row.get(f"has_{name}", True)
        }
        for row in read_rows.frame.rows(named=True)
    }  # fmt: skip
    assert found == expected
    assert read_rows.frame.height + read_rows.duplicates == read_rows.count == len(given_rows)
