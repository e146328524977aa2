"""Messages in a page's address: a page says only sentences of our table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.dashboard import messages
from cardsync.dashboard.messages import MESSAGES, left, message, sentences, together
from cardsync.platform import errors
from cardsync.platform.shelf_place import Place

PAGES = Path(messages.__file__).parent


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (message("draft_saved"), "Draft saved."),
        (message("drafts_made", 1), "1 draft created."),
        (message("drafts_made", 2_000), "2,000 drafts created."),
        (message("drafts_made", 0), "0 drafts created."),
        (message("copies_put", 1, Place(3, 12)), "1 copy is now in 3-12."),
        (
            message("many_put", 5, Place(1, 2), Place(1, 3)),
            "5 copies are now in 1-2 to 1-3.",
        ),
        (message("copies_put", 1, Place("A1", 14)), "1 copy is now in A1-14."),
        (message("card_moved", Place("Binder_3.~", 7)), "The card is now in Binder_3.~-7."),
        (
            message("many_put", 5, "Regal Ä-2", "Regal Ä-3"),
            "5 copies are now in Regal Ä-2 to Regal Ä-3.",
        ),
        (
            together(message("list_added", 2), message("list_had", 1)),
            "2 cards added to the list. 1 of the selected was already on it.",
        ),
        (message("pinned", 129_900), "Pinned at $1,299.00. It goes live with the next sync."),
        (message("phone_surplus", 1), "1 is no longer needed: put it back in its place."),
    ],
)
def test_a_message_is_a_code_with_values_and_reads_as_a_sentence(given, said):
    assert re.fullmatch(r"[A-Za-z0-9_.~-]+", given)
    assert sentences(given) == said


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Your account is locked. Call 555-0100",
        "drafts_made",
        "drafts_made.",
        "drafts_made.x",
        "drafts_made.-1",
        "drafts_made.1.2",
        "drafts_made.1\n",
        "drafts_made.٣",
        "drafts_made." + "9" * 40,
        "draft_saved.1",
        "card_moved.1",
        "card_moved.A1",
        "card_moved.CALL_20_555_20_0100-1",
        "card_moved.A1_2f_2-1",
        "card_moved._d800_-1",
        "card_moved.x-y",
        "draft_saved~nothing",
        "~",
    ],
)
def test_what_is_no_message_says_nothing(given):
    assert sentences(given) == ""


WORDS = {word for one in MESSAGES.values() for word in re.findall(r"[A-Za-z']+", one)}


@given(st.text() | st.lists(st.sampled_from([*MESSAGES, "1", "2-3", "x", "<b>"])).map(".".join))
def test_nothing_of_an_address_is_said_but_numbers_and_places(text):
    said = sentences(text)
    assert set(re.findall(r"[^\W\d_]+(?:'\w+)?", said)) <= WORDS
    assert not set('<>&"') & set(said)


def test_refusals_are_counted_by_their_kind():
    problems = [errors.NotFound("x"), errors.NotFound("y"), errors.MutexHeld("z")]
    assert sentences(together(*left(problems))) == (
        "2 no longer need review. 1 wasn't approved. See why below."
    )


def test_every_message_that_a_page_names_is_in_the_table():
    files = [*PAGES.glob("pages/*.py"), *PAGES.glob("static/js/*.js")]
    source = "\n".join(path.read_text() for path in files)
    named = set(re.findall(r'message\(\s*"(\w+)"|[?&]done=(\w+)', source))
    named |= set(re.findall(r'message\(\s*"\w+" if [^"]+ else ()"(\w+)"', source))
    codes = {code for pair in named for code in pair if code}
    assert len(codes) > 50
    assert codes <= MESSAGES.keys()
