"""GET /api/cards/{card_id}/behind: scrolling by key finds the same cards as pages do."""

from __future__ import annotations

import pytest

from browsers import joined
from builders import a_row, a_shop
from cardsync.stock.cards.card_filter import Sort

SORTS = Sort.__args__


@pytest.fixture
async def shop(a_seller):
    rows = [
        a_row(n, name=f"Card {n % 3}", number=("", "7", "TG5", "12a")[n % 4], price=str(n % 3 + 1))
        for n in range(1, 14)
    ]
    return await a_shop(a_seller, *rows, a_row(14, market="", low="", price=""))


async def test_every_order_goes_on_behind_a_card_as_its_pages_do(shop):
    cards = [card["id"] for card in await shop.cards()]
    for sort in SORTS:
        for direction in ("asc", "desc"):
            query = f"sort={sort}&direction={direction}"
            whole = (await shop.get(f"/api/cards?{query}&per_page=100")).json()["cards"]
            expected = [card["id"] for card in whole]
            assert sorted(expected) == sorted(cards)
            found, behind = expected[:1], expected[0]
            while behind is not None:
                answer = await shop.get(f"/api/cards/{behind}/behind?{query}&per_page=4")
                assert answer.status_code == 200, answer.text
                found += [card["id"] for card in answer.json()["cards"]]
                behind = answer.json()["behind"]
            assert found == expected, query


async def test_the_search_narrows_it_and_a_wrong_one_is_refused(shop):
    first = (await shop.get("/api/cards?search=price>1")).json()["cards"]
    behind = await shop.get(f"/api/cards/{first[0]['id']}/behind?search=price>1")
    assert behind.json()["cards"] == first[1:]
    assert behind.json()["behind"] is None
    wrong = await shop.get(f"/api/cards/{first[0]['id']}/behind?search=prise>1")
    assert wrong.json()["code"] == "invalid_payload"


async def test_a_card_that_one_does_not_see_is_not_there(shop, a_seller):
    [card, *_] = [card["id"] for card in await shop.cards()]
    other = await a_seller()
    assert (await other.get(f"/api/cards/{card}/behind")).status_code == 404
    staff = await joined(shop, "scrolling@example.invalid")
    assert (await staff.get(f"/api/cards/{card}/behind")).status_code == 200
