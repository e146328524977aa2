"""The search language without a database: what a text means, what is refused and where, and the
canonical text.
"""

from decimal import Decimal

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from search_trees import trees

import schedule
from cardsync.catalog.collector_number import read_collector_number
from cardsync.platform.shelf_place import Place
from cardsync.stock.search.fields import QueryError, nearest
from cardsync.stock.search.folding import folded, search_columns, search_text, words
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import (
    EVERYTHING,
    And,
    Named,
    Not,
    Or,
    Phrase,
    Range,
    Term,
    WordTerm,
    asks_for_gone,
    print_query,
)


def term(field, op, *values):
    return Term(field, op, values)


MEANINGS = [
    ("", EVERYTHING),
    (" \t ", EVERYTHING),
    ("price>=5 cond:NM", And((term("price", ">=", Decimal(5)), term("cond", ":", "NM")))),
    ("list:binder is:gone", And((term("list", ":", "binder"), term("is", ":", "gone")))),
    ("box:3", term("box", ":", Decimal(3))),
    ("a b or c", Or((And((WordTerm("a"), WordTerm("b"))), WordTerm("c")))),
    ("a (b OR c)", And((WordTerm("a"), Or((WordTerm("b"), WordTerm("c")))))),
    ("(a b) (c)", And((WordTerm("a"), WordTerm("b"), WordTerm("c")))),
    ('a "or" b', And((WordTerm("a"), Phrase("or"), WordTerm("b")))),
    ("order", WordTerm("order")),
    ("-a b", And((Not(WordTerm("a")), WordTerm("b")))),
    ("-(a b)", Not(And((WordTerm("a"), WordTerm("b"))))),
    ("Niv-Mizzet", WordTerm("Niv-Mizzet")),
    ("box:03", term("box", ":", Decimal(3))),
    ("box:A1", term("box", ":", "A1")),
    ('box:"Binder  3"|7', term("box", ":", "Binder 3", Decimal(7))),
    ("box:1..20", term("box", ":", Range(Decimal(1), Decimal(20)))),
    ("loc:3-12", term("loc", ":", Place(3, 12))),
    ("loc:A1-014", term("loc", ":", Place("A1", 14))),
    ('loc:"Binder 3-7"', term("loc", ":", Place("Binder 3", 7))),
    ("not:foil", Not(term("is", ":", "foil"))),
    ("-not:foil", Not(Not(term("is", ":", "foil")))),
    ("Urza's", WordTerm("Urza's")),
    (r'"say \"hi\" \\"', Phrase('say "hi" \\')),
    ("qty:5..", term("qty", ":", Range(Decimal(5), None))),
    ("quantity=..5", term("qty", ":", Range(None, Decimal(5)))),
    ("price:1..2.50", term("price", ":", Range(Decimal(1), Decimal("2.5")))),
    ("cond=nm|lp", term("cond", ":", "NM", "LP")),
    ("condition<=LP", term("cond", "<=", "LP")),
    ("s:dmu", term("set", ":", "dmu")),
    ('set="Base Set"', term("set", "=", "Base Set")),
    ("cn:006/165", term("number", ":", "006/165")),
    ("number>=100", term("number", ">=", Decimal(100))),
    ("pl:Magic", term("game", ":", "magic")),
    ('game:"Pokemon Japan"', term("game", ":", "pokemon_japan")),
    ("v:No Symbol holo", And((term("v", ":", "No Symbol"), WordTerm("holo")))),
    ("v:4th print", term("v", ":", "1999-2000")),
    ("variant:master ball pattern|staff", term("v", ":", "Master Ball Pattern", "staff")),
    ("v:master ballad", And((term("v", ":", "master"), WordTerm("ballad")))),
    ('v:"No" symbol', And((term("v", ":", "No"), WordTerm("symbol")))),
    ('v:"4th" print', And((term("v", ":", "4th"), WordTerm("print")))),
    ('v:"Master" Ball', And((term("v", ":", "Master"), WordTerm("Ball")))),
    (
        'v:staff|"Team" Rocket Pattern',
        And((term("v", ":", "staff", "Team"), WordTerm("Rocket"), WordTerm("Pattern"))),
    ),
    ('v:No "symbol"', And((term("v", ":", "No"), Phrase("symbol")))),
    ("v:Poké Ball", term("v", ":", "Poke Ball")),
    ("v:POKE\u0301 BALL Páttern", term("v", ":", "Poke Ball Pattern")),
    ("v:ＭＡＳＴＥＲ Ball", term("v", ":", "Master Ball")),
    (
        "v:staff|poké ball|No  Symbol a",
        And((term("v", ":", "staff", "Poke Ball", "No Symbol"), WordTerm("a"))),
    ),
    ("v:No \t Symbol", term("v", ":", "No Symbol")),
    ("v:No\u00a0Symbol", term("v", ":", "No Symbol")),
    ("v:No Symbol\r\na", And((term("v", ":", "No Symbol"), WordTerm("a")))),
    ("v:No Symbol\u00a0a", And((term("v", ":", "No Symbol"), WordTerm("a")))),
    ("v:No Symbol(a or b)", And((term("v", ":", "No Symbol"), Or((WordTerm("a"), WordTerm("b")))))),
    ('v:No Symbol"a b"', And((term("v", ":", "No Symbol"), Phrase("a b")))),
    ("(v:No Symbol)", term("v", ":", "No Symbol")),
    ("v:master ball patterns", And((term("v", ":", "Master Ball"), WordTerm("patterns")))),
    ("v:energy symbol", And((term("v", ":", "energy"), WordTerm("symbol")))),
    ("v:no symbols", And((term("v", ":", "no"), WordTerm("symbols")))),
    ("f:1st", term("printing", ":", "1st")),
    ("lang:JA", term("lang", ":", "ja")),
    ("change>-10%", term("change", ">", Decimal(-10))),
    ("change:-5%..10%", term("change", ":", Range(Decimal(-5), Decimal(10)))),
    ("price:1..1", term("price", ":", Range(Decimal(1), Decimal(1)))),
    ("-order", Not(WordTerm("order"))),
    ('-"or"', Not(Phrase("or"))),
    ("game:Pokémon", term("game", ":", "pokemon")),
    ('pl:"FLESH & blood tcg"', term("game", ":", "flesh_and_blood")),
    ('list:"My Binder"', term("list", ":", Named("My Binder"))),
    ("rule:7", term("rule", ":", Decimal(7))),
    ("rule:Premium", term("rule", ":", Named("Premium"))),
    ("is:in_flux", term("is", ":", "in-flux")),
    ("sku:-3|4", term("sku", ":", Decimal(-3), Decimal(4))),
    ("PRICE>1", term("price", ">", Decimal(1))),
    ("name:a=b", term("name", ":", "a=b")),
    # Names as they are pasted.
    ("Elsa - Snow Queen", And((WordTerm("Elsa"), WordTerm("Snow"), WordTerm("Queen")))),
    ("Daisy – Pirate — Captain", And((WordTerm("Daisy"), WordTerm("Pirate"), WordTerm("Captain")))),
    ("Charizard ex - 125/197", And((WordTerm("Charizard"), WordTerm("ex"), WordTerm("125/197")))),
    ("Umbreon - SWSH050", And((WordTerm("Umbreon"), WordTerm("#SWSH050")))),
    ("Fire // Ice & Snow", And((WordTerm("Fire"), WordTerm("Ice"), WordTerm("Snow")))),
    ("a -- b", And((WordTerm("a"), WordTerm("b")))),
    ("a – (b)", And((WordTerm("a"), WordTerm("b")))),
    ("a –(b) –c", And((WordTerm("a"), Not(WordTerm("b")), Not(WordTerm("c"))))),
    ("Type: Null", And((WordTerm("Type:"), WordTerm("Null")))),
    ("Circle of Protection:", And((WordTerm("Circle"), WordTerm("of"), WordTerm("Protection:")))),
    ("(Type:) or Foo::", Or((WordTerm("Type:"), WordTerm("Foo::")))),
    ('Foo: "bar"', And((WordTerm("Foo:"), Phrase("bar")))),
    ("cond:NM -", term("cond", ":", "NM")),
    ("_____", Phrase("_____")),
    ("- ! //", And((Phrase("-"), Phrase("!"), Phrase("//")))),
    ("_____ Goblin", WordTerm("Goblin")),
    ("-(?)", Not(Phrase("?"))),
    ("-?", Phrase("-?")),
    ("Nidoran ♀", And((WordTerm("Nidoran"), WordTerm("♀")))),
    ("Bolt ®", WordTerm("Bolt")),
]


@pytest.mark.parametrize(("text", "tree"), MEANINGS)
def test_a_text_means_its_tree(text, tree):
    assert parse(text) == tree
    assert parse(print_query(tree)) == tree


REFUSED = [
    ("bolt prise>5", 5, "price"),
    ("is:gon", 0, "gone"),
    ("-is:gon", 1, "gone"),
    ("not:foyl", 0, "foil"),
    ("has:foto", 0, "photo"),
    ("cond:XX", 0, None),
    ("cond<U", 0, None),
    ("price>x", 0, None),
    ("price:..", 0, None),
    ("price>1|2", 0, None),
    ("price>1..2", 0, None),
    ("price:", 0, None),
    ("a price: 5", 2, None),
    ("cond:NM|", 0, None),
    ("lang:klingonish", 0, None),
    ("qty:1e5", 0, None),
    ("id:5.5", 0, None),
    ("box:0", 0, None),
    ("box:A-very-long-label", 0, None),
    ("box:a..b", 0, None),
    ("loc:3", 0, None),
    ("set>a", 0, None),
    ("is!=foil", 0, None),
    (">5", 0, None),
    ("prise:5", 0, "price"),
    ('prise:"5"', 0, "price"),
    ("Foo= bar", 0, None),
    ("Set: Base", 0, None),
    ('a "b', 2, None),
    ("(a", 0, None),
    ("a)", 1, None),
    ("()", 1, None),
    ("a or", 4, None),
    ("or a", 0, None),
    ("a or or b", 5, None),
    ("--a", 0, None),
    ('""', 0, None),
    ('name:" "', 0, None),
    ("́", 0, None),
    ("a -or b", 2, None),
    ("-OR", 0, None),
    ("change:1%0", 0, None),
    ("change:%5", 0, None),
    ("change:5%%", 0, None),
    ("change:1%0..5%", 0, None),
    ("price!=9..1", 0, None),
    ("change:9%..1%", 0, None),
    ("cn:9..1", 0, None),
    ("id:9..1|3", 0, None),
]


@pytest.mark.parametrize(("text", "offset", "nearest"), REFUSED)
def test_what_cannot_be_read_is_refused_where_it_stands(text, offset, nearest):
    with pytest.raises(QueryError) as refused:
        parse(text)
    assert refused.value.offset == offset
    if nearest:
        assert refused.value.nearest == nearest
        assert nearest in str(refused.value)


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        ("a" * 2_000, "a" * 2_001),
        (" ".join("a" * 200), " ".join("a" * 201)),
        ("id:" + "|".join(map(str, range(200))), "id:" + "|".join(map(str, range(201)))),
        ("(" * 20 + "a" + ")" * 20, "(" * 21 + "a" + ")" * 21),
        ("-(" * 20 + "a" + ")" * 20, "-(" * 21 + "a" + ")" * 21),
    ],
)
def test_a_search_has_bounds(within, beyond):
    parse(within)
    with pytest.raises(QueryError):
        parse(beyond)


def test_is_gone_counts_outside_a_negation_only():
    asking = ["is:gone", "a is:gone", "a or is:gone|foil", "(a (b or is:gone))"]
    assert [text for text in asking if not asks_for_gone(parse(text))] == []
    assert [
        text
        for text in ("-is:gone", "not:gone", "-(-is:gone)", "gone", "is:active")
        if asks_for_gone(parse(text))
    ] == []


@pytest.mark.day
@settings(max_examples=schedule.examples(75, 300))
@given(trees)
def test_the_canonical_text_means_the_same(tree):
    assert parse(print_query(tree), canonical=True) == tree


# Searches that are as long and as deep, with as many parts, as a search may be.
AT_THE_LIMITS = [
    "-(" * 20 + "-not:foil" + ")" * 20,
    "-(" * 19 + "a or -(-not:foil|gone b)" + ")" * 19,
    " ".join(["f:abcdefg"] * 200),
    " ".join(["pl:abcdef"] * 200),
    " ".join(["cn:abcdef"] * 200),
    '""'.join(["", *["a"] * 199, ""]).removeprefix('"').removesuffix('"'),
    '"' + "\\a" * 999 + '"',
    " ".join(["list:Ab"] * 200),
    "v:" + "|".join(["no symbol"] * 190),
]


@pytest.mark.parametrize("text", AT_THE_LIMITS)
def test_at_the_limits_too_the_canonical_text_means_the_same(text):
    tree = parse(text)
    assert parse(print_query(tree), canonical=True) == tree


@pytest.mark.parametrize("text", AT_THE_LIMITS[:5])
def test_a_canonical_text_is_no_deeper_and_its_names_are_no_longer(text):
    tree = parse(text)
    assert parse(print_query(tree)) == tree


PIECES = [*'aor-()":=<>!|. \\5', "is:", "price>", "v:no ", 'v:"Nó"', " symbol", "not:", "list:"]


@pytest.mark.day
@settings(max_examples=schedule.examples(250, 1_000))
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text())
@example('v:"')
@example("-")
@example("\ud800")
def test_any_text_is_read_or_refused(text):
    tree = refused = None
    try:
        tree = parse(text)
    except QueryError as e:
        refused = e
    if tree is not None:
        assert parse(print_query(tree), canonical=True) == tree
    else:
        assert 0 <= refused.offset <= len(text)


@pytest.mark.night
@settings(max_examples=10_000, deadline=None)
@given(trees)
def test_the_canonical_text_means_the_same_ten_thousand_times(tree):
    assert parse(print_query(tree), canonical=True) == tree


@pytest.mark.parametrize(
    ("text", "plain", "cut"),
    [
        ("Urza's Tower", "urza's tower", ["urzas", "tower"]),
        ("Urza’s", "urza's", ["urzas"]),
        ("Pokémon", "pokemon", ["pokemon"]),
        ("Niv-Mizzet, Parun", "niv-mizzet, parun", ["niv", "mizzet", "parun"]),
        ("Æther Vial", "aether vial", ["aether", "vial"]),
        ("STRASSE", "strasse", ["strasse"]),
        ("Straße", "strasse", ["strasse"]),
        ("ピカチュウ", "ピカチュウ", ["ピカチュウ"]),
        ("ガ", "ガ", ["ガ"]),
        ("100%_x", "100%_x", ["100", "x"]),
        ("a\tb\x1f", "a b ", ["a", "b"]),
        ("_____", "_____", []),
    ],
)
def test_texts_are_folded_and_cut(text, plain, cut):
    assert folded(text) == plain
    assert words(plain) == cut


@pytest.mark.day
@settings(max_examples=schedule.examples(50, 200))
@given(
    st.lists(
        st.text(max_size=12) | st.text(st.characters(max_codepoint=127), max_size=12),
        min_size=1,
        max_size=8,
    )
)
def test_the_search_texts_of_many_rows_are_those_of_each(texts):
    rows = pl.DataFrame(dict.fromkeys(("product_name", "set_name", "rarity", "number"), texts))
    numbers = [read_collector_number(text) for text in texts]
    made = search_columns(rows)["search_text"].to_list()
    assert made == [
        search_text(t, t, t, n.key, n.total) for t, n in zip(texts, numbers, strict=True)
    ]
    assert [text.count(sign) for text in made for sign in "\x1f\x1e\x1d\x1c\x1b"] == [1] * (
        5 * len(made)
    )


def test_a_long_word_is_no_mistyped_name_and_a_guess_is_cheap():
    assert nearest("bindr", ["other", "binder"]) == "binder"
    assert nearest("B" * 40, ["b" * 100, "c"]) == "b" * 100
    assert nearest("b" * 41, ["b" * 41]) is None
    assert nearest("xyz", ["b"]) is None
    assert nearest("x", []) is None


@given(st.text())
def test_folding_twice_changes_nothing(text):
    assert folded(folded(text)) == folded(text)
