"""Label sheets: every sheet fits its page, and no two labels touch."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform import errors
from cardsync.stock.printing.sheets import SHEETS, layout, position, sheet_of

KEYS = st.sampled_from(sorted(SHEETS))


@pytest.mark.parametrize("key", SHEETS)
def test_the_labels_of_a_sheet_fit_the_page_and_lie_in_its_middle(key):
    sheet = SHEETS[key]
    last = position(sheet, sheet.labels)
    right = sheet.page.width - last.left - sheet.label.width
    bottom = sheet.page.height - last.top - sheet.label.height
    assert right >= 0
    assert bottom >= 0
    assert abs(right - sheet.left) <= Decimal("0.1")
    assert abs(bottom - sheet.top) <= Decimal("0.1")


@given(KEYS, st.integers(1, 300), st.data())
def test_labels_follow_each_other_from_the_start_and_none_covers_another(key, count, data):
    sheet = SHEETS[key]
    start = data.draw(st.integers(1, sheet.labels))
    places = layout(sheet, count, start)
    assert len(set(places)) == count
    assert (places[0].row - 1) * sheet.columns + places[0].column == start
    assert places[-1].page == -(-(start + count - 1) // sheet.labels)
    assert places == sorted(places, key=lambda place: (place.page, place.row, place.column))
    for one, other in pairwise(places):
        apart = other.left - one.left >= sheet.label.width
        below = other.top - one.top >= sheet.label.height
        assert one.page < other.page or apart or below


def test_a_start_behind_the_sheet_and_an_unknown_sheet_are_refused():
    sheet = SHEETS["avery-5160"]
    for start in (0, 31):
        with pytest.raises(errors.InvalidPayload, match="labels 1 to 30"):
            layout(sheet, 1, start)
    with pytest.raises(errors.NotFound, match="no label sheet 'a4'"):
        sheet_of("a4")
