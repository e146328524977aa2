"""The batches of an import, and what the marketplace shows of them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync_agent.csv_records import Damaged
from cardsync_agent.marketplace.export_checks import export_problem, in_one, renamed
from cardsync_agent.marketplace.import_journal import ImportJournal
from cardsync_agent.marketplace.price_batches import (
    CANARY,
    Listed,
    adds_stock,
    cards_by_name,
    cards_of,
    differing,
    joined,
    largest_moves,
    listed_of,
    plan,
    refused_of,
    rows_of,
    was_published,
)

HEADER = b'"TCGplayer Id","Product Name","Add to Quantity","TCG Marketplace Price"\r\n'


def a_file(*rows: tuple[int | str, str, int]) -> bytes:
    lines = (f'"{id}","A, ""quoted"" card","{adds}","{price}"\r\n' for id, price, adds in rows)
    return HEADER + "".join(lines).encode()


def shop(**prices: str) -> dict[int, Listed]:
    return {int(id[1:]): Listed(price, 3) for id, price in prices.items()}


@given(st.lists(st.integers(1, 400), unique=True, min_size=1, max_size=120), st.integers(1, 50))
def test_every_row_goes_once_with_its_bytes(ids: list[int], most: int) -> None:
    content = a_file(*((id, f"{id}.00", 0) for id in ids))
    listed = {id: Listed(f"{id}.10", 1) for id in ids}
    made = plan(content, listed, most, canary=True)
    assert made.has_canary == (len(ids) > CANARY)
    rows = [row.record for file in made.files for row in rows_of(file)[1]]
    assert sorted(rows) == sorted(row.record for row in rows_of(content)[1])
    assert all(file.startswith(HEADER) for file in made.files)
    rest = made.files[1:] if made.has_canary else made.files
    assert all(len(rows_of(file)[1]) <= most for file in rest)
    assert rows_of(joined(made.files))[1] == [row for f in made.files for row in rows_of(f)[1]]


def test_the_canary_is_what_changes_least() -> None:
    rows = [(id, f"{10 + id}.00", 0) for id in range(1, 41)]
    listed = {id: Listed("10.00", 1) for id, _, _ in rows}
    [canary, rest] = plan(a_file(*rows), listed, None, canary=True).files
    assert [row.id for row in rows_of(canary)[1]] == list(range(1, CANARY + 1))
    assert len(rows_of(rest)[1]) == 20
    assert largest_moves(a_file(*rows), listed, 2) == [40, 39]


def test_what_does_not_change_is_no_canary() -> None:
    rows = [(id, "5.00", 0) for id in range(1, 31)]
    listed = {id: Listed("5.00" if id <= 27 else "5.10", 1) for id, _, _ in rows}
    [canary, _] = plan(a_file(*rows), listed, None, canary=True).files
    assert [row.id for row in rows_of(canary)[1]] == [28, 29, 30]


def test_where_no_change_can_be_measured_any_twenty_go_first() -> None:
    rows = [(id, "5.00", 0) for id in range(1, 31)]
    [canary, _] = plan(
        a_file(*rows), {id: Listed(None, 1) for id, _, _ in rows}, None, canary=True
    ).files
    assert len(rows_of(canary)[1]) == CANARY


def test_cards_that_are_gone_are_named_and_new_listings_are_not_gone() -> None:
    made = plan(
        a_file((1, "1.00", 0), (2, "2.00", 0), (3, "3.00", 4), ("", "1.00", 1)),
        shop(c1="1.50"),
        None,
        canary=False,
    )
    assert made.gone == [2]
    assert [row.id for row in rows_of(made.files[0])[1]] == [1, 3, None]


@pytest.mark.parametrize(
    ("rows", "after", "expected"),
    [
        ([(1, "2.00", 0)], {1: ("2.00", 3)}, True),
        ([(1, "2.00", 0)], {1: ("1.00", 3)}, False),
        ([(1, "2.00", 0), (2, "2.00", 0)], {1: ("2.00", 3), 2: ("1.00", 3)}, None),
        ([(1, "2.00", 0)], {1: ("1.70", 3)}, None),
        # Nothing that would change is shown.
        ([(1, "1.00", 0)], {1: ("1.00", 3)}, None),
        ([(1, "2.00", 0)], {}, None),
        # Stock: only the whole sum proves that it came.
        ([(1, "1.00", 2)], {1: ("1.00", 5)}, True),
        ([(1, "1.00", 2)], {1: ("1.00", 3)}, None),
        ([(1, "1.00", 2)], {1: ("1.00", 4)}, None),
    ],
)  # fmt: skip
def test_whether_a_batch_came_is_read_off_the_marketplace(rows, after, expected) -> None:
    content = a_file(*rows)
    before = {id: Listed("1.00", 3) for id, _, _ in rows}
    now = {id: Listed(*card) for id, card in after.items()}
    assert was_published(content, before, now) is expected
    assert adds_stock(content) == any(adds for _, _, adds in rows)


def test_with_a_form_new_stock_goes_in_one_card_at_a_time() -> None:
    rows = [(1, "1.00", 0), (2, "2.00", 4), ("", "1.00", 1), (3, "3.00", -1), (4, "4.00", 1)]
    listed = shop(c1="1.50", c2="2.00")
    made = plan(a_file(*rows), listed, None, canary=False, by_form={})
    assert [[row.id for row in rows_of(file)[1]] for file in made.files] == [[1, None, 3]]
    assert [[row.id for row in rows_of(file)[1]] for file in made.added] == [[2], [4]]
    without = plan(a_file(*rows), listed, None, canary=False)
    assert (len(rows_of(without.files[0])[1]), without.added) == (5, [])


def test_a_quantity_that_is_not_shown_proves_nothing() -> None:
    before = listed_of(b"TCGplayer Id,TCG Marketplace Price\r\n1,1.00\r\n")
    assert before == {1: Listed("1.00", None)}
    assert was_published(a_file((1, "1.00", 2)), before, shop(c1="1.00")) is None
    assert was_published(a_file((1, "1.00", 2)), shop(c1="1.00"), before) is None
    assert was_published(a_file((1, "1.00", 3)), before, shop(c1="1.00")) is None


NAMED = (
    b"TCGplayer Id,Set Name,Product Name,Number,Condition,Add to Quantity,TCG Marketplace Price\r\n"
)


def test_a_new_listing_is_the_card_that_the_export_names_alone() -> None:
    export = NAMED + b'7,S,"A, b",1,NM,0,1\r\n8,S,C,2,NM,0,1\r\n9,S,C,2,NM,0,1\r\n'
    new = NAMED + b'"","s","A,  B","1","nm","2","1.25"\r\n"","S","C","2","NM","1","1.00"\r\n'
    made = plan(new, listed_of(export), None, canary=False, by_form=cards_by_name(export))
    [[added]] = [rows_of(file)[1] for file in made.added]
    assert (added.id, added.adds, added.price, added.condition) == (7, 2, Decimal("1.25"), "nm")
    assert [row.id for row in rows_of(made.files[0])[1]] == [None]


def test_exports_of_one_product_line_each_are_put_together() -> None:
    header, other = b"Id,Price\r\n", b"Id,Cost\r\n"
    assert in_one([header + b"1,2", header, header + b"3,4\r\n"]) == header + b"1,2\n3,4\r\n"
    assert in_one([header]) == header
    with pytest.raises(Damaged, match="other columns"):
        in_one([header, other])
    for cut in ([header + b"1", header + b"3,4\r\n"], [header, header + b"3"], [header + b"1"]):
        with pytest.raises(Damaged, match="middle of a line"):
            in_one(cut)


def test_other_prices_than_those_sent_are_found() -> None:
    content = a_file((1, "2.00", 0), (2, "3.00", 0), (3, "4.00", 0))
    shown = shop(c1="2.0000", c2="3.10") | {9: Listed(None, 0)}
    assert differing(content, shown) == [(2, Decimal("3.00"), Decimal("3.10"))]
    assert cards_of(content, shown) == {1: shown[1], 2: shown[2]}


def test_the_marketplaces_report_names_what_it_refused() -> None:
    report = b"Line,TCGplayer Id,Reason\r\n2,11,price too low\r\n3,12,\r\n4,,no card\r\n"
    assert refused_of(report) == {11: "price too low", 12: "the marketplace refused it"}


WHOLE = (
    b'"TCGplayer Id","Product Name","Condition","Total Quantity","TCG Marketplace Price"\r\n'
    b'"1","A","Near Mint","1","1.00"\r\n'
)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (WHOLE, None),
        (WHOLE.rstrip(b"\r\n"), None),
        (WHOLE.split(b"\r\n")[0] + b"\r\n", "no row"),
        (WHOLE.replace(b"Condition", b"State"), "lacks the column Condition"),
        (b"<html>", "is a web page"),
        (b"", "lacks the column"),
        (b"\x1f\x8bnonsense", "damaged gzip"),
    ],
)
def test_an_export_that_is_not_whole_is_not_used(content: bytes, says: str | None) -> None:
    problem = export_problem(content)
    assert problem is None if says is None else says in (problem or "")


def test_columns_get_our_names_and_rows_keep_their_bytes() -> None:
    content = b'\xef\xbb\xbf"Id","Low w/ Ship"\r\n"1","2, 3"\r\n'
    made = renamed(content, {"low w/ ship": "TCG Low Price With Shipping"})
    assert made == b'\xef\xbb\xbf"Id","TCG Low Price With Shipping"\r\n"1","2, 3"\r\n'
    assert renamed(content, {}) is content


@pytest.mark.parametrize("published", [True, False])
def test_a_persons_report_ends_an_import_whose_end_nobody_knew(tmp_path, published) -> None:
    journal = ImportJournal(tmp_path)
    content = a_file((1, "1.00", 2))
    made = journal.begin("prices.csv", content, plan(content, {}, None, canary=False), "pack 1")
    made.batches[0].state = "publishing"
    journal.save(made)
    journal.settle("other.csv", published=published)
    assert journal.of("prices.csv") == made
    journal.settle("prices.csv", published=published)
    last = journal.last()
    assert last is not None
    assert last.is_done is published
    # Nothing is left that the next import would have to find out, and a refused file stays out.
    assert "publishing" not in {batch.state for batch in last.batches}
    assert (last.stopped is None) is published
