"""Boxes and places as people write them, and the order in which people walk."""

import string
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform import limits
from cardsync.platform.shelf_place import Place, box_in, boxes_between, place_in, way_of

LABELS = st.text(
    st.sampled_from(string.ascii_letters + string.digits + " -.#_äÉß箱"), min_size=1, max_size=12
)
NUMBERS = st.integers(1, limits.SHELF_NUMBER)


def readable(text):
    try:
        return box_in(text)
    except ValueError:
        return None


BOXES = NUMBERS | LABELS.map(readable).filter(lambda box: box is not None)


@pytest.mark.parametrize(
    ("written", "box"),
    [
        ("3", 3),
        (" 007 ", 7),
        ("1000000", 1_000_000),
        ("1000001", "1000001"),
        ("0001000001", "1000001"),
        ("20261129", "20261129"),
        ("A1", "A1"),
        ("a1", "a1"),
        ("  Binder \u00a0 3 ", "Binder 3"),
        ("A-1", "A-1"),
        ("３", 3),
        ("Ａ１", "A1"),
        ("e\u0301tage", "étage"),
        ("=1+1", "=1+1"),
        ("put", "put"),
        ("ABCDEFGHIJKL", "ABCDEFGHIJKL"),
    ],
)
def test_a_box_is_read_as_people_write_it(written, box):
    assert box_in(written) == box


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "letter or a digit"),
        ("  ", "letter or a digit"),
        ("..", "letter or a digit"),
        ("-", "letter or a digit"),
        ("0", "1 or more"),
        ("000", "1 or more"),
        ("ABCDEFGHIJKLM", "12 characters"),
        ("1234567890123", "12 characters"),
        ("A\x00", "invisible"),
        ("A\tB", "invisible"),
        ("A\u200bB", "invisible"),
        ("A\u202eB", "invisible"),
        ("A/1", "slash"),
        ("A／1", "slash"),
    ],
)
def test_a_box_that_cannot_be_read_says_why(written, why):
    with pytest.raises(ValueError, match=why):
        box_in(written)


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("3-12", Place(3, 12)),
        ("3/12", Place(3, 12)),
        ("3 12", Place(3, 12)),
        (" 3 - 12 ", Place(3, 12)),
        ("A1-014", Place("A1", 14)),
        ("A1/14", Place("A1", 14)),
        ("A-1-14", Place("A-1", 14)),
        ("Binder 3-7", Place("Binder 3", 7)),
        ("Binder 3 - 7", Place("Binder 3", 7)),
        ("3-1000000", Place(3, 1_000_000)),
    ],
)
def test_a_place_is_read_up_to_its_last_hyphen(written, place):
    assert place_in(written) == place


@pytest.mark.parametrize(
    "written", ["", "3", "A1", "Binder 3", "3-", "-3", "3-0", "3-1000001", "A1-x", "A/1-3", "0-3"]
)
def test_what_is_no_place_is_refused(written):
    with pytest.raises(ValueError):
        place_in(written)


def test_boxes_are_sorted_as_people_sort():
    walked = [1, 2, "2a", "2B", 3, 10, "10 extra", "1000001", "A1", "a2", "A10", "B", "Binder 2",
              "binder 10", "Binder 10 b", "Ä1", "箱 2", "箱 10"]  # fmt: skip
    assert all(way_of(one) < way_of(other) for one, other in pairwise(walked))


@pytest.mark.parametrize(
    ("one", "other"),
    [("A1", "a1"), ("A1", "A01"), ("Straße", "STRASSE"), ("Binder 3", "BINDER 03")],
)
def test_case_and_zeros_in_front_tell_no_two_boxes_apart(one, other):
    assert way_of(one) == way_of(other)


@given(BOXES, BOXES)
def test_numbers_are_sorted_as_numbers_and_before_letters(one, other):
    if isinstance(one, int) and isinstance(other, int):
        assert (way_of(one) < way_of(other)) == (one < other)
    elif isinstance(one, int) and str(other)[0] not in string.digits:
        assert way_of(one) < way_of(other)


@given(LABELS)
def test_a_box_that_was_read_reads_as_itself(text):
    box = readable(text)
    if box is not None:
        assert box_in(str(box)) == box
        assert isinstance(box, int) or 1 <= len(box) <= limits.BOX_LABEL


@given(BOXES, NUMBERS)
def test_a_code_names_its_place(box, slot):
    assert place_in(Place(box, slot).code) == Place(box, slot)


@pytest.mark.parametrize(
    ("first", "last", "boxes"),
    [
        (1, 3, [1, 2, 3]),
        ("A9", "A11", ["A9", "A10", "A11"]),
        ("A09", "a11", ["A09", "A10", "A11"]),
        ("Foils", "foils", ["Foils"]),
        ("999999", 1_000_001, [999_999, 1_000_000, "1000001"]),
        ("A1", "B3", []),
        ("A3", "A1", []),
        (1, 11, []),
        (1, "A3", []),
    ],
)
def test_boxes_between_two(first, last, boxes):
    assert boxes_between(box_in(str(first)), box_in(str(last)), 10) == boxes
