import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.stock.search.completion import OwnNames, complete
from cardsync.stock.search.parser import parse

OWN = OwnNames(
    sets=["Base Set", "Dominaria United", 'The "Set"'],
    games=["magic", "pokemon"],
    lists=[
        ("binder", "My Binder"),
        ("old-name", "Café"),
        ("sold-out", "Sold Out"),
        ("the-b", 'The "B"'),
    ],
    rules=["Premium", "7"],
)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("bolt pri", ["price:", "printing:"]),
        ("-un", ["unshelved:", "unsold:"]),
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
        ("list:Caf", ["list:old-name"]),
        ("list=old", ["list=old-name", "list=sold-out"]),
        ('-list:"my b', ["list:binder"]),
        ('list:binder|"sold o', ["list:binder|sold-out"]),
        (r'list:"the \"b', ["list:the-b"]),
        ("list:", ["list:binder", "list:old-name", "list:sold-out", "list:the-b"]),
        ("rule:", ['rule:"7"', "rule:Premium"]),
        ("rule:7", ['rule:"7"']),
        ('name:"a b" is:gon', ["is:gone"]),
        (r'"a \" b" is:gon', ["is:gone"]),
        ('"a (b" -is:gon', ["is:gone"]),
        ('list:"My Binder"|sold', ['list:"My Binder"|sold-out']),
        ('s:"a|dom', []),
        ('is:gone "open is:gon', []),
        ("v:no s", ['v:"No Symbol"']),
        ("v:Nó  s", ['v:"No Symbol"']),
        ("v:poké b", ['v:"Poke Ball Pattern"', 'v:"Poke Ball"']),
        ("v:no\u00a0s", ['v:"No Symbol"']),
        ("a -(variant!=staff|Master Ball P", ['variant!=staff|"Master Ball Pattern"']),
        ('"v:no s', []),
        ("v:staff is:gon", ["is:gone"]),
        ("v:no", ['v:"No Rarity"', 'v:"No Symbol"']),
        ("price:", []),
        ("nothing:", []),
        ('"closed"', []),
    ],
)
def test_a_term_is_completed(text, offered):
    assert [one.text for one in complete(text, OWN)] == offered


def test_lists_tell_their_names():
    assert [(one.text, one.detail, one.at) for one in complete("a list:bin", OWN)] == [
        ("list:binder", "My Binder", 2)
    ]


@given(
    st.sampled_from(
        ["is:", "has:", "cond:", "v:", "set:", "s=", "game:", "list:", "not:", "is:gone|"]
    )
)
def test_what_is_offered_can_be_read(term):
    for one in complete(term, OWN):
        parse(one.text)
