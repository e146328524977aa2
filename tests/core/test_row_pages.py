"""Pages of rows: pages by key together hold every row once, and the last one says so."""

from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform import limits
from cardsync.platform.kit.row_pages import Paging, cut, read_paging


@given(st.sets(st.integers(1, 500), max_size=40), st.integers(1, 10))
def test_pages_by_key_hold_every_row_once(keys, most):
    rows, pages, cursor = sorted(keys, reverse=True), [], None
    while True:
        behind = [key for key in rows if cursor is None or key < cursor]
        page = cut(behind[: most + 1], most, lambda row: row)
        pages.append(page)
        if (cursor := page.next) is None:
            break
    assert [row for page in pages for row in page.rows] == rows
    assert len(pages) == max(1, -(-len(rows) // most))


@given(st.integers(0, 10_000), st.integers(1, 200))
def test_numbered_pages_reach_the_last_row_and_not_beyond(total, per_page):
    pages = Paging(1, per_page).of(total).total_pages
    assert Paging(pages, per_page).offset < total or total == 0
    assert Paging(pages + 1, per_page).offset >= total


def test_a_query_that_says_no_number_gets_the_default():
    for text in (None, "", "two", "1.5", "9" * 5_000):
        assert read_paging(text, text, 50, 200) == Paging(1, 50)
    assert read_paging("-3", "0", 50, 200) == Paging(1, 1)
    assert read_paging("9" * 30, "201", 50, 200) == Paging(limits.PAGE_MOST, 200)
