"""A search of orders by grams finds what a plain search of all orders finds: at each moment, whoever
applies uploads, and whatever the texts contain.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import schedule
from builders import SellerBuilder, an_order
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.sales.orders import queries, search_grams, search_parts
from cardsync.sales.orders.search_parts import ORDER_SEARCH
from orders_builder import apply_alone

NAMES = (
    "Ännchen Straße", "O'Brien 100%", "under_score", "back\\slash", "ΣΊΣΥΦΟΣ", "İstanbul",
    None, 'say "hi"', "東京 花子さん", "Ann", "ANN SMITH", "smith smithson", "🂡 of hearts",
)  # fmt: skip
WORDS = (
    "ännchen", "STRASSE", "o'b", "100%", "0%", "%", "_sc", "under_", "underxs", "\\sl", "back\\",
    "σίσυφος", "i̇st", "İST", 'y "h', "京 花", "花子さん", "ann", "smith", "smit", "smithson",
    "🂡 of", "s-0", "S-01", "s-012", "s-0122", "012", "nobody here", "ann\x01", "",
)  # fmt: skip
LETTERS = st.text(st.sampled_from("aAbBäÄßıİσς%_\\ '1-京🂡"), min_size=1, max_size=12)
PARTS = "SELECT * FROM order_search_part WHERE seller_id = :id ORDER BY after_id"


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(search_parts, "PART", 7)
    monkeypatch.setattr(search_parts, "UNLISTED", 3)


async def list_orders(seller):
    async with seller.service.database.tenant(seller.id) as session:
        await mark(session, seller.id, Figure.ORDER_SEARCH)
    while await ORDER_SEARCH.work_off(seller.service.work, seller.id):
        pass


async def parts(seller):
    return await seller.service.sql(seller.id, PARTS, id=seller.id)


def order(number, name):
    return an_order(f"S-{number:03}", buyer_name=name)


async def stored(seller):
    rows = await seller.service.sql(
        seller.id,
        "SELECT order_number, buyer_name FROM orders WHERE seller_id = :id ORDER BY 1",
        id=seller.id,
    )
    return [(row["order_number"], row["buyer_name"] or "") for row in rows]


async def numbers(seller, word):
    asked = {"search": word, "sort": "number", "direction": "asc", "per_page": 200}
    told = (await seller.get("/api/orders", params=asked)).json()
    assert told["total"] == len(told["orders"]) == sum(told["status_counts"].values())
    return [one["order_number"] for one in told["orders"]]


async def agrees(seller, words):
    orders = await stored(seller)
    for word in words:
        folded = word.casefold()
        expected = [n for n, name in orders if folded in n.casefold() or folded in name.casefold()]
        assert await numbers(seller, word) == ([] if "\x01" in word else expected), word


@pytest.mark.parametrize("most", [5_000, 1])
async def test_what_a_plain_search_finds(a_seller, small_parts, monkeypatch, most):
    monkeypatch.setattr(search_parts, "FOUND", most)
    listed = []

    async def watched(*given):
        listed.append(await search_parts.may_contain(*given))
        return listed[-1]

    monkeypatch.setattr(queries, "may_contain", watched)
    seller = await a_seller()
    await seller.orders([order(number, NAMES[number % len(NAMES)]) for number in range(30)])
    await agrees(seller, WORDS)
    assert not any(listed)
    await list_orders(seller)
    assert [row["orders"] for row in await parts(seller)] == [7, 7, 7, 7]
    await agrees(seller, WORDS)
    assert any(listed)
    await seller.orders([order(number, NAMES[number % len(NAMES)]) for number in range(30, 34)])
    await agrees(seller, WORDS)
    await list_orders(seller)
    assert [row["orders"] for row in await parts(seller)] == [7, 7, 7, 7, 6]
    await agrees(seller, WORDS)


async def test_a_changed_name_is_found_at_once_and_the_former_one_is_forgotten(
    a_seller, small_parts
):
    seller = await a_seller()
    await seller.orders([order(number, f"Buyer {number}") for number in range(20)])
    await list_orders(seller)
    before = await parts(seller)
    await seller.orders([order(number, f"Buyer {number}") for number in range(20)])
    assert await parts(seller) == before
    await apply_alone(seller, "/orders", [order(8, "Quixote")])
    assert [row["after_id"] for row in await parts(seller)] == [
        row["after_id"] for row in before if row != before[1]
    ]
    words = ("Quixote", "Buyer 8", "Buyer 1", "S-008")
    await agrees(seller, words)
    await list_orders(seller)
    assert [row["last_id"] for row in await parts(seller)] == [row["last_id"] for row in before]
    await agrees(seller, words)
    await apply_alone(seller, "/orders", [order(8, "(deleted)")])
    await list_orders(seller)
    grams = await seller.service.sql(
        seller.id,
        "SELECT 1 FROM order_search_gram WHERE seller_id = :id AND gram = ANY(:grams)",
        id=seller.id,
        grams=search_grams.searched_grams("quixote"),
    )
    assert grams == []
    await agrees(seller, ("Quixote", "(deleted)"))


async def test_a_name_does_not_change_while_its_part_is_stored(a_seller, small_parts):
    seller = await a_seller()
    await seller.orders([order(number, f"Buyer {number}") for number in range(20)])
    async with seller.service.database.tenant(seller.id) as session:
        await locked(session, Lock.ORDER_SEARCH, seller.id)
        asked = SimpleNamespace(seller_id=seller.id)
        await ORDER_SEARCH.refresh(session, asked)
        change = asyncio.create_task(apply_alone(seller, "/orders", [order(2, "Quixote")]))
        await asyncio.sleep(0.5)
        assert not change.done()
    await change
    await agrees(seller, ("Quixote", "Buyer 2"))


async def test_another_sellers_orders_are_never_found(a_seller, small_parts):
    one, other = await a_seller(), await a_seller()
    for seller in (one, other):
        await seller.orders([order(number, f"{seller.id} Smith") for number in range(10)])
        await list_orders(seller)
    await agrees(one, ("smith", f"{one.id} smith", f"{other.id} smith"))


@pytest.fixture(scope="module")
async def filled_shop(service):
    return await SellerBuilder(service)()


@pytest.mark.night
@settings(
    max_examples=schedule.examples(15, 100),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(LETTERS, min_size=1, max_size=12), st.lists(LETTERS, max_size=4))
async def test_random_texts(filled_shop, small_parts, names, words):
    await filled_shop.orders([order(number, name) for number, name in enumerate(names)])
    await list_orders(filled_shop)
    parts_of_names = [name[n : n + 4] for n, name in enumerate(names)]
    await agrees(filled_shop, [word for word in (*words, *parts_of_names) if word.strip()])


@given(st.lists(LETTERS, max_size=30), LETTERS, st.integers(1, 9_000))
def test_grams_miss_no_text(texts, word, more):
    texts = [text.casefold() for text in (*texts, word * 2)] + [word.casefold()] * more
    word = word.casefold()
    lists = dict(zip(*search_grams.orders_by_gram(texts), strict=True))
    grams = search_grams.searched_grams(word)
    assert bool(grams) == (len(word) > 2)
    if grams:
        found = set(search_grams.places_of_all([lists[gram] for gram in grams]).tolist())
        assert found >= {place for place, text in enumerate(texts) if word in text}
        assert found <= {place for place, text in enumerate(texts) if word[:3] in text}


@given(st.lists(st.integers(1, 2**40), unique=True, min_size=1, max_size=50).map(sorted), st.data())
def test_ids_are_packed(ids, data):
    packed = search_grams.packed_ids(ids)
    places = data.draw(st.lists(st.integers(0, len(ids) - 1), unique=True))
    found = search_grams.ids_at(packed, search_grams.np.array(places, "<u2"))
    assert found == [ids[place] for place in places]
