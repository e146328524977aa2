"""The contributed copies that uploads show: each copy that is new counts for one contribution."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cardsync.stock.contributions.newly_listed import (
    Live,
    Place,
    Published,
    TakenOver,
    listed_before,
    moved,
    taken,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
EARLIER, LATER = AT - timedelta(hours=1), AT + timedelta(hours=1)

contributions = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=4
)


@given(contributions, st.integers(0, 9), st.integers(0, 9))
def test_the_copies_are_those_that_a_look_at_each_single_copy_gives(drawn, first, second):
    """The model looks at the copies one by one: it knows no ranges and no sorting."""
    published = [
        Published(n, quantity, AT, {7: one, 8: two}) for n, (quantity, one, two) in enumerate(drawn)
    ]
    live = [Live(7, first, EARLIER, LATER), Live(8, second, EARLIER, LATER)]
    left = {one.id: one.quantity for one in published}
    expected: dict[tuple[int, int], int] = {}
    for card in live:
        for copy in range(1, card.quantity + 1):
            may = [one for one in published if left[one.id] and one.listed[card.id] < copy]
            if may:
                one = min(may, key=lambda one: (one.listed[card.id], one.id))
                left[one.id] -= 1
                expected[one.id, card.id] = expected.get((one.id, card.id), 0) + 1
    assert {(one.contributed, one.live): one.copies for one in taken(published, live)} == expected


def test_what_a_file_from_before_shows_and_a_card_that_turns_out_to_be_the_same_say_nothing():
    published = Published(1, 2, AT, {7: 3})
    assert listed_before(published, Live(7, 5, EARLIER, LATER)) == 3
    assert listed_before(published, Live(7, 5, EARLIER, EARLIER)) == 5
    assert listed_before(published, Live(7, 2, EARLIER, EARLIER)) == 3
    assert listed_before(published, Live(8, 5, EARLIER, LATER)) == 5
    assert listed_before(published, Live(8, 5, LATER, EARLIER)) == 5
    assert listed_before(published, Live(8, 5, LATER, LATER)) == 0


places = st.dictionaries(
    st.tuples(st.sampled_from([1, 2]), st.integers(1, 2), st.integers(1, 2)), st.integers(1, 3)
)


@given(places, st.integers(1, 3), st.booleans())
def test_places_change_hands_and_none_is_lost(lying, copies, retired):
    given_places = [Place(*place, quantity) for place, quantity in lying.items()]
    after = moved(given_places, [TakenOver(1, 9, copies)], {1} if retired else set())

    def count(of: list[Place], card: int | None = None) -> dict[tuple[int, int], int]:
        there: dict[tuple[int, int], int] = {}
        for place in of:
            if card in (None, place.card):
                at = (place.box, place.slot)
                there[at] = there.get(at, 0) + place.quantity
        return there

    assert count(after) == count(given_places)
    assert count(after, 2) == count(given_places, 2)
    shelved = sum(count(given_places, 1).values())
    assert sum(count(after, 9).values()) == (shelved if retired else min(copies, shelved))
