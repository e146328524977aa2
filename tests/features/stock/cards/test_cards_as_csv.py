"""GET /api/cards/export.csv: the cards of a search as a CSV in parts."""

from __future__ import annotations

import csv
import io

import pytest

from builders import a_row, a_shop
from cards_builder import a_list, a_place, card_ids
from cardsync.stock.cards import as_csv


async def exported(seller, **query):
    answer = await seller.get("/api/cards/export.csv", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.fixture
async def seller(a_seller):
    rows = [a_row(id, name=f"Bolt {id}", price=f"{id}.00") for id in range(1, 6)]
    return await a_shop(a_seller, *rows, a_row(6, name='=1+1, "x"'), a_row(7, quantity=0))


@pytest.mark.parametrize("part", [1, 2, 3, 5_000])
async def test_the_file_has_the_cards_of_the_search_once(seller, monkeypatch, part):
    monkeypatch.setattr(as_csv, "PART", part)
    for query in ({}, {"search": "bolt"}, {"search": "price>2"}, {"status": "all"}):
        answer = await seller.get("/api/cards", params=query)
        cards = {str(card["id"]): card for card in answer.json()["cards"]}
        lines = await exported(seller, **query)
        assert [line["id"] for line in lines] == sorted(cards, key=int)
        for line in lines:
            card = cards[line["id"]]
            for name in ("set_name", "price", "target_price", "game", "status", "updated_at"):
                assert line[name] == (card[name] or "")


async def test_places_lists_and_a_text_that_would_be_calculated(seller):
    ids = await card_ids(seller)
    await a_place(seller, ids[6], 1, 2, 3)
    await a_list(seller, "Binder", ids[6])
    [line] = await exported(seller, selected_ids=str(ids[6]))
    assert line["product_name"] == '\'=1+1, "x"'
    assert (line["locations"], line["lists"]) == ("1-2:3", "binder")


async def test_a_search_that_cannot_be_read_is_refused_before_the_file(seller):
    answer = await seller.get("/api/cards/export.csv", params={"search": "prise>1"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert await exported(seller, search="nothing of that name") == []
