"""A card's own name, in any form in which it is written, finds the card, whatever else the search
language could read in it.
"""

from __future__ import annotations

import random

import pytest

import schedule
from browsers import signed_in
from builders import a_row, a_shop
from cards_builder import search
from written_names import ODD, forms, of_catalogs


async def misses(seller, names: list[tuple[str, str]]) -> list[tuple[str, object]]:
    """The forms of names that find no card of the name, each with what they find."""
    missed = []
    for name, number in names:
        for form in dict.fromkeys(forms(name, number)):
            page = await search(seller, form, per_page=200)
            found = {card["product_name"] for card in page["cards"]}
            if page["query_errors"] or (name not in found and page["total"] <= 200):
                missed.append((form, page["query_errors"] or sorted(found)))
    return missed


async def a_shop_of(a_seller, names: list[tuple[str, str]]):
    rows = [a_row(id, name=name, number=number) for id, (name, number) in enumerate(names, 1)]
    return await a_shop(a_seller, *rows)


async def test_names_made_of_the_language_find_their_cards(a_seller):
    """Alone it asks the database for names of signs, operators and fields in every form."""
    seller = await a_shop_of(a_seller, [(name, "") for name in ODD])
    assert not (missed := await misses(seller, [(name, "") for name in ODD])), missed


async def test_names_that_the_language_reads_otherwise_find_their_cards(a_seller, shared_data):
    """Alone it meets names of whole catalogs that hold `or`, `//` and a dash before a letter."""
    names = of_catalogs(shared_data, 10**9)
    doubtful = [one for one in names if " or " in one[0].lower() or "//" in one[0]]
    others = random.Random(schedule.DAY).sample(names, 100)
    some = random.Random(schedule.DAY).sample(doubtful, schedule.examples(20, len(doubtful)))
    seller = await a_shop_of(a_seller, some + others)
    assert not (missed := await misses(seller, some)), missed


async def test_a_name_means_its_card_in_rules_lists_views_and_on_the_page(a_seller):
    seller = await a_shop(
        a_seller,
        a_row(1, name="Now or Never"),
        a_row(2, name="Never"),
        a_row(3, name="Wooper -027/092"),
        a_row(4, name="Wooper"),
    )
    owner = await signed_in(seller)
    rule = {"name": "Own", "query": "Now or Never cond:NM"}
    made = await owner.post("/api/pricing/rules", json=rule)
    assert made.status_code == 201, made.text
    assert made.json()["query"] == '"Now or Never" cond:NM'
    saved = await owner.post("/api/saved_searches", json={"name": "W", "query": "Wooper -027/092"})
    assert saved.json()["query"] == '"Wooper -027/092"'
    made = (await owner.post("/api/lists", json={"name": "Mine"})).json()
    path = f"/api/lists/{made['id']}/cards"
    added = (await owner.post(path, json={"search": "Wooper -027/092"})).json()
    assert added["added"] == 1
    shown = (await owner.get("/cards", params={"search": "Now or Never is:active"})).text
    assert "&#34;Now or Never&#34;" in shown
    assert ">Never<" not in shown


@pytest.mark.parametrize("text", ["prise:5", "prise>5", "bolt prise:5"])
async def test_a_mistyped_field_is_an_error_until_a_card_has_the_text(a_seller, text):
    seller = await a_shop(a_seller, a_row(1, name="Bolt"))
    [error] = (await search(seller, text))["query_errors"]
    assert (error["message"], error["offset"]) == (
        'no filter called "prise". Did you mean price?',
        text.index("prise"),
    )
    other = await a_shop(a_seller, a_row(1, name=f"A {text}"))
    found = await search(other, text)
    assert [card["product_name"] for card in found["cards"]] == [f"A {text}"]
