"""GET /api/cards/complete: the terms that may end a search, with the seller's own names."""

from __future__ import annotations

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop


@pytest.fixture
async def shop(a_seller):
    seller = await a_shop(
        a_seller,
        a_row(1, set="Alpha Beta"),
        a_row(2, set="Arabian"),
        a_row(3, set="Gone", quantity=0),
    )
    await (await signed_in(seller)).post("/api/lists", json={"name": "Con box"})
    return seller


async def completed(http, text):
    answer = await http.get("/api/cards/complete", params={"text": text})
    assert answer.status_code == 200, answer.text
    return [(one["at"], one["text"]) for one in answer.json()["completions"]]


async def test_fields_and_own_names_are_offered(shop):
    browser = await signed_in(shop)
    assert (6, "set:") in await completed(browser, "lotus se")
    assert await completed(browser, "lotus set:a") == [
        (6, 'set:"Alpha Beta"'),
        (6, "set:Arabian"),
    ]
    assert await completed(browser, "list:co") == [(0, "list:con-box")]
    assert (0, "is:foil") in await completed(browser, "is:fo")
    assert await completed(browser, 'set:"Alpha Beta"') == []


async def test_a_list_is_described_by_its_name(shop):
    answer = await shop.get("/api/cards/complete?text=list:con")
    assert answer.json() == {"completions": [{"at": 0, "text": "list:con-box", "told": "Con box"}]}


async def test_another_shops_names_are_not_offered(shop, a_seller):
    other = await a_seller()
    assert await completed(other, "set:") == []
    assert await completed(other, "list:") == []


async def test_staff_and_readers_tokens_ask_too(shop):
    staff = await joined(shop, "completing@example.invalid")
    assert await completed(staff, "set:ar") == [(0, "set:Arabian")]
    token = await shop.token("mcp:read")
    assert await completed(token, "set:ar") == [(0, "set:Arabian")]


async def test_a_text_that_is_too_long_is_refused(shop):
    answer = await shop.get("/api/cards/complete?text=" + "a" * 2001)
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_payload"
