"""Type-ahead: what a seller types finds products of the catalog by words, numbers and both."""

import uuid

import psycopg
import pytest

from browsers import signed_in
from cardsync.catalog.collector_number import read_collector_number
from cardsync.platform.database.urls import libpq_url
from cardsync.stock.quick_add.type_ahead import words

CATALOG = (
    ("Jace, the Mind Sculptor", "006/165"),
    ("Jace's Ingenuity", "60"),
    ("Pokémon Center Lady", "TG05/TG30"),
    ("Mind Stone", "6"),
)


@pytest.fixture
def a_set(owner_url):
    """A set of a code of its own, whose first word no other product has."""
    code = f"q{uuid.uuid4().hex[:10]}"
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        for name, number in CATALOG:
            connection.execute(
                "INSERT INTO product (identity, game, set_name, set_code, product_name, number,"
                " number_key, language)"
                " VALUES (%s, 'magic', 'A Set', %s, %s, %s, %s, 'English')",
                (uuid.uuid4().hex, code, name, number, read_collector_number(number).key),
            )
    return code


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("jace", ["Jace's Ingenuity", "Jace, the Mind Sculptor"]),
        ("jaces", ["Jace's Ingenuity"]),
        ("JACE'S", ["Jace's Ingenuity"]),
        ("mind", ["Mind Stone", "Jace, the Mind Sculptor"]),
        ("mi sculp", ["Jace, the Mind Sculptor"]),
        ("6", ["Mind Stone", "Jace, the Mind Sculptor", "Jace's Ingenuity"]),
        ("006", ["Jace, the Mind Sculptor"]),
        ("006/165", ["Jace, the Mind Sculptor"]),
        ("6/165", ["Jace, the Mind Sculptor"]),
        ("tg5", ["Pokémon Center Lady"]),
        ("tg05/tg30", ["Pokémon Center Lady"]),
        ("pokemon", ["Pokémon Center Lady"]),
        ("pokémon lady", ["Pokémon Center Lady"]),
        ("sculptor mind", ["Jace, the Mind Sculptor"]),
        ("ind", []),
        ("' | x:* & (", []),
    ],
)
async def test_beginnings_of_words_and_numbers(a_seller, a_set, typed, found):
    owner = await signed_in(await a_seller(lines=["magic"]))
    answer = await owner.get("/api/quick_add/products", params={"q": f"{typed} {a_set}"})
    assert answer.status_code == 200, answer.text
    assert [product["product_name"] for product in answer.json()["products"]] == found


async def test_only_products_of_the_accounts_lines_are_found(a_seller, a_set):
    owner = await signed_in(await a_seller(lines=["pokemon"]))
    query = {"q": f"jace {a_set}"}
    assert (await owner.get("/api/quick_add/products", params=query)).json() == {"products": []}
    for typed in ("", "j", "-", "\0"):
        answer = await owner.get("/api/quick_add/products", params={"q": typed})
        assert (answer.status_code, answer.json()) == (200, {"products": []})


async def test_what_was_found_is_drafted_by_its_id(a_seller, a_set):
    seller = await a_seller(lines=["magic"])
    query = {"q": f"tg5 {a_set}"}
    [product] = (await seller.get("/api/quick_add/products", params=query)).json()["products"]
    entry = {"product_id": product["product_id"], "quantity": 1, "condition": "near mint"}
    answer = await seller.post("/api/quick_add", json={"entries": [entry]})
    [made] = answer.json()["entries"]
    assert (made["product_name"], made["condition"]) == ("Pokémon Center Lady", "NM")


def test_words_are_split_as_the_index_splits_them():
    assert words("Jace, the Mind's—TG05/TG30") == ["jace", "the", "minds—tg05", "tg30"]
    assert words("“Daisy” – Pirate & Captain") == ["daisy", "pirate", "captain"]
    assert words("  ") == []
