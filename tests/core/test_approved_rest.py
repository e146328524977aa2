"""An approved upload that fails leaves the marketplace alone for longer each time."""

from __future__ import annotations

from cardsync_agent.approved import Rest


def test_each_failure_of_a_file_doubles_the_rest_up_to_a_quarter_of_an_hour() -> None:
    rest = Rest()
    rests = [rest.begin("a.csv", 30.0) for _ in range(7)]
    assert rests == [60.0, 120.0, 240.0, 480.0, 900.0, 900.0, 900.0]
    assert rest.holds("a.csv")


def test_a_newer_file_and_a_new_approval_are_tried_at_once() -> None:
    rest = Rest()
    rest.begin("a.csv", 30.0)
    assert not rest.holds("b.csv")
    assert rest.begin("b.csv", 30.0) == 60.0
    rest.end()
    assert not rest.holds("b.csv")


def test_a_rest_ends_by_itself() -> None:
    rest = Rest()
    rest.begin("a.csv", 0.0)
    assert not rest.holds("a.csv")
