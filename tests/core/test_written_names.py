"""A name of a catalog, in any form in which it is written, is a search that finds a card of that name:
by its words alone, where the language does not read it otherwise.
"""

from pathlib import Path

import pytest

from cardsync.stock.search.doubtful_names import is_doubtful, readable, spans, written
from cardsync.stock.search.tree import Tree
from search_evaluator import holds
from written_names import forms, of_catalogs


def test_every_name_of_the_catalogs_finds_its_card_in_every_form(shared_data: Path) -> None:
    missed = []
    for name, number in of_catalogs(shared_data, 1_500):
        card = {"product_name": name, "number": number}
        for form in dict.fromkeys(forms(name, number)):
            tree = readable(form)
            # The shop's names decide about these: tests/features/stock/search/test_own_names.py.
            if tree is not None and is_doubtful(tree, form):
                continue
            if tree is None or not holds(None, card, tree):
                missed.append((name, form))
    assert missed == []


@pytest.mark.parametrize(
    "text",
    ["bolt", "lightning bolt", "Elsa - Snow Queen", "Type: Null", "bolt cond:NM -is:foil",
     '"a or b"', "(bolt) price>5", "- !", "Wooper 027/092", "a not:foil", ""],
)  # fmt: skip
def test_a_search_that_can_only_mean_itself_asks_for_no_names(text: str) -> None:
    tree = readable(text)
    assert tree is not None
    assert not is_doubtful(tree, text)


def names_in(text: str) -> list[str]:
    return [span.text for span in spans(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Now or Never", ["Now or Never"]),
        ("Wooper -027/092", ["Wooper -027/092"]),
        ("Wooper -027/092 cond:NM Now  or Never",
         ["Wooper -027/092", "Now or Never"]),
        ("a or b or c", ["a or b or c", "a or b", "b or c"]),
        ("(Now or Never) cond:NM", ["(Now or Never)", "Now or Never"]),
        ("bolt prise>5", ["bolt prise>5", "prise>5"]),
        ('7" Figure', ['7" Figure', '" Figure']),
        ("Delver // Insect is:foil", ["Delver // Insect"]),
        ("or", ["or"]),
        ("Set: Base", ["Set: Base", "Set:"]),
        ("-(a) b", ["-(a) b"]),
        ("S:P Little Knight cond:NM", ["S:P Little Knight"]),
        ("x" * 3_000 + " or b", []),
    ],
)  # fmt: skip
def test_parts_that_may_be_names_stand_between_operators(text: str, names: list[str]) -> None:
    assert sorted(names_in(text)) == sorted(names)


def meaning(text: str, *names: str) -> Tree | None:
    """What a search means where a shop has cards of these names."""
    known = {}
    for span in spans(text):
        own = [*filter(span.is_name_of, names)]
        fronts = [*filter(span.has_front, names)] if span.front else []
        if span.odd and own:
            known[span] = span.as_name(own)
        elif fronts:
            known[span] = span.or_front(fronts)
    return readable(written(text, known))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Now or Never", '"Now or Never"'),
        ("now OR never cond:NM", '"now OR never" cond:NM'),
        ("Now or Never or Wooper -027/092", '"Now or Never" or "Wooper -027/092"'),
        ("Wooper -027/092 -is:foil", '"Wooper -027/092" -is:foil'),
        ("Wooper -027", "Wooper -027"),
        ("S:P Little Knight price>1", '"S:P Little Knight" price>1'),
        ("S:P Little", "S:P Little"),
        ("Now or", None),
        ("Delver of Secrets // Insectile Aberration",
         '(Delver of Secrets // Insectile Aberration or name="Delver of Secrets")'),
        ("Fire // Ice", '(Fire // Ice or name="Fire")'),
        ("Night // Day", "Night // Day"),
        ("Fire // Water", '(Fire // Water or name="Fire")'),
        ("Do or Die", 'name="Do  or  Die"'),
    ],
)  # fmt: skip
def test_a_name_of_the_shop_is_read_as_a_name(text: str, same: str | None) -> None:
    shop = ("Now or Never", "Now or Never (Foil)", "Wooper -027/092", "Delver of Secrets")
    shop += ("S:P Little Knight", "Fire // Ice", "Fire", "Night // Day", "Do  or  Die")
    if same is None:
        assert meaning(text, *shop) is None
    else:
        assert meaning(text, *shop) == readable(same)
