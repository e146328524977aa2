"""Random search trees, as the parser could make them."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from cardsync.platform.shelf_place import Place
from cardsync.stock.search.fields import CONDITIONS, FLAGS, THINGS
from cardsync.stock.search.folding import folded, is_punctuation
from cardsync.stock.search.tree import (
    And,
    Named,
    Not,
    Or,
    Phrase,
    Range,
    Term,
    Tree,
    WordTerm,
    all_of,
    any_of,
)

NAMES = [
    "Lightning Bolt",
    "Pokémon Center",
    "Urza's Tower",
    "100% Pure_Luck",
    'Erase "Me"',
    "Niv-Mizzet",
    "ピカチュウ",
    "Fire // Ice",
    "_____",
    "Straße",
]
SETS = ["Dominaria United", "Base Set (Shadowless)", "Été_100%", ""]
RARITIES = ["Rare", "Holo Rare", "C", ""]
NUMBERS = ["006/165", "6", "7/102", "TG05", "", "12a"]
TEXTS = [
    "bolt",
    "LIGHT",
    "pokemon",
    "Poké",
    "urzas",
    "urza's",
    "%",
    "_",
    "100%",
    '"',
    "niv",
    "mizzet",
    "ピカ",
    "//",
    "e",
    "strasse",
    "dominaria",
    "set (",
    "\\",
    "or",
    "a|b",
    "..",
    "été",
]

# Words that end in a colon, that are collector numbers, and that sources spell with signs.
SPECIAL = ["Type:", "006/165", "#TG05", "#12a", "Bolt™", "urza´s", "ピカ♀", "★"]


def _usable(text: str) -> bool:
    return bool(folded(text).strip())


words = st.one_of(
    st.sampled_from(
        [*SPECIAL, *(t for t in TEXTS if t not in ('"', "or") and not set(t) & set('()" '))]
    ),
    st.text(
        st.characters(exclude_characters='()":=<>!–—\0', exclude_categories=["Cs", "Z", "Cc"]),
        min_size=1,
        max_size=6,
    ),
).filter(
    lambda t: (
        _usable(t)
        and not is_punctuation(t)
        and t[0] != "-"
        and t.lower() != "or"
        and not any(c.isspace() for c in t)
    )
)
texts = st.one_of(
    st.sampled_from(TEXTS + NAMES + SETS[:3]),
    st.text(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6
    ),
).filter(_usable)
numbers = st.one_of(
    st.sampled_from([Decimal(n) for n in ("0", "1", "2", "5", "0.5", "-1", "4.99")]),
    st.integers(-(10**9), 10**9).map(Decimal),
)
whole = st.integers(-9, 12).map(Decimal)


def _ranges(ends):
    pairs = st.tuples(st.none() | ends, st.none() | ends).filter(lambda p: p != (None, None))
    ordered = pairs.map(lambda p: p if None in p else (min(p), max(p)))
    return ordered.map(lambda p: Range(*p))


def _several(values):
    return st.lists(values, min_size=1, max_size=3, unique=True).map(tuple)


def _terms(field: str, ops: list[str], values) -> st.SearchStrategy[Tree]:
    return st.builds(Term, st.just(field), st.sampled_from(ops), values)


def _measured(field: str, ends) -> list[st.SearchStrategy[Tree]]:
    one = ends.map(lambda n: (n,))
    return [
        _terms(field, [":", "!="], _several(ends | _ranges(ends))),
        _terms(field, ["<", "<=", ">", ">="], one),
    ]


RULES = ["Premium", "Draft", "Lost", "None", "Broken", "Behind"]
AMOUNTS = ["price", "target", "market", "low", "lowship", "direct", "cost"]
terms = st.one_of(
    *(_terms(name, [":", "=", "!="], _several(texts)) for name in ("name", "set")),
    _terms("printing", [":", "=", "!="],
           _several(st.sampled_from(["normal", "foil", "1st", "unlimited", "holo", "Limited",
                                     "reverse"]))),
    _terms("rarity", [":", "!="], _several(st.sampled_from(["rare", "HOLO RARE", "c", "%"]))),
    _terms("number", [":", "!="],
           _several(st.sampled_from(["6", "006/165", "6/102", "TG5", "12A", "%"])
                    | _ranges(whole))),
    _terms("number", ["<", ">="], whole.map(lambda n: (n,))),
    _terms("game", [":", "!="], _several(st.sampled_from(["magic", "pokemon", "pokemon_japan"]))),
    _terms("cond", [":", "!="], _several(st.sampled_from(CONDITIONS))),
    _terms("cond", ["<", "<=", ">", ">="], st.sampled_from(CONDITIONS[:5]).map(lambda c: (c,))),
    _terms("lang", [":", "!="], _several(st.sampled_from(["ja", "English", "zh", "Chinese (S)"]))),
    _terms("v", [":", "!="],
           _several(st.sampled_from(["shadowless", "No Symbol", "1999-2000", "No Rarity", "staff",
                                     "%"]))),
    *(part for name in AMOUNTS for part in _measured(name, numbers)),
    *(part
      for name in ("qty", "unshelved", "change", "margin", "age", "unsold", "id", "sku")
      for part in _measured(name, whole)),
    _terms("box", [":", "!="],
           _several(st.sampled_from([Decimal(1), Decimal(2), Decimal(12), "A1", "a01", "Binder 3",
                                     "A..B", '"x|y"', Range(Decimal(1), Decimal(3)),
                                     Range(Decimal(2), None)]))),
    _terms("loc", [":", "!="],
           _several(st.sampled_from([Place(1, 1), Place(1, 2), Place(12, 3), Place("A1", 1),
                                     Place("binder 3", 2)]))),
    _terms("list", [":"],
           _several(st.sampled_from(["binder", Named("My Binder"), Named('The "B"')]))),
    _terms("rule", [":"], _several(st.sampled_from([Named(name) for name in RULES]))),
    _terms("is", [":"], _several(st.sampled_from(FLAGS))),
    _terms("has", [":"], _several(st.sampled_from(THINGS))),
)  # fmt: skip
# A variant and the word behind it that together, unquoted, are the name of another variant.
BEGUN = [
    ("No", "Symbol"), ("no", "RARITY"), ("4TH", "Print"), ("master", "ball"),
    ("Master Ball", "Pattern"), ("Poké", "Ball"),
    ("Energy", "Symbol"), ("energy¨symbol", "Páttern"), ("Cracked", "Ice"),
]  # fmt: skip


def _begun(begun: tuple[str, str], other: list[str]) -> Tree:
    return all_of([Term("v", ":", (*other, begun[0])), WordTerm(begun[1])])


begun_selectors = st.builds(_begun, st.sampled_from(BEGUN), st.lists(st.just("staff"), max_size=1))
leaves = st.one_of(terms, st.builds(WordTerm, words), st.builds(Phrase, texts), begun_selectors)


def _larger(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    parts = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(parts.map(all_of), parts.map(any_of), st.builds(Not, inner))


trees: st.SearchStrategy[Tree] = st.recursive(leaves, _larger, max_leaves=12)


def depth(tree: Tree) -> int:
    match tree:
        case And() | Or():
            return 1 + max(map(depth, tree.parts))
        case Not():
            return 1 + depth(tree.part)
    return 0
