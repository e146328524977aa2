import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.search.completion import OwnNames, complete
from cardsync.search.parser import parse

OWN = OwnNames(
    sets=["Base Set", "Dominaria United", 'The "Set"'],
    games=["magic", "pokemon"],
    lists=[("binder", "My Binder"), ("sold-out", "Sold Out")],
    rules=["Premium"],
)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("bolt pri", ["price:", "printing:"]),
        ("-un", ["unshelved:"]),
        ("is:un", ["is:underpriced", "is:unpriced", "is:unshelved"]),
        ("(bolt or not:loc", ["not:location-drift"]),
        ("has:ph", ["has:photo"]),
        ("cond:NM|l", ["cond:NM|LP"]),
        ("cond<=d", ["cond<=DMG"]),
        ("s:dom", ['s:"Dominaria United"']),
        ('s:"base s', ['s:"Base Set"']),
        ('set:"the', [r'set:"The \"Set\""']),
        ("game:", ["game:magic", "game:pokemon"]),
        ("list:sold", ["list:sold-out"]),
        ("rule:", ["rule:Premium"]),
        ("v:no", ['v:"No Rarity"', 'v:"No Symbol"']),
        ("price:", []),
        ("nothing:", []),
        ('"closed"', []),
    ],
)
def test_a_term_is_completed(text, offered):
    assert [one.text for one in complete(text, OWN)] == offered


def test_lists_tell_their_names():
    assert [(one.text, one.told, one.at) for one in complete("a list:bin", OWN)] == [("list:binder", "My Binder", 2)]


@given(st.sampled_from(["is:", "has:", "cond:", "v:", "set:", "s=", "game:", "list:", "not:", "is:gone|"]))
def test_what_is_offered_can_be_read(term):
    for one in complete(term, OWN):
        parse(one.text)
