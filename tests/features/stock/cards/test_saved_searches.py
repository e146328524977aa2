"""Saved searches and columns of choice over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from browsers import joined, signed_in
from cardsync.stock.limits import SAVED_SEARCHES


@pytest.fixture
async def shop(a_seller):
    return await a_seller()


async def save(http, name, query="price>5"):
    return await http.post("/api/saved_searches", json={"name": name, "query": query})


async def names(http):
    return [one["name"] for one in (await http.get("/api/saved_searches")).json()["saved_searches"]]


async def test_searches_are_saved_changed_moved_and_deleted(shop):
    owner = await signed_in(shop)
    first = (await save(owner, "Dear", "price>50")).json()
    assert first["query"] == "price>50"
    second = (await save(owner, "Foils", "is:foil")).json()
    path = f"/api/saved_searches/{second['id']}"
    changed = await owner.send("PATCH", path, json={"query": "is:foil price>1", "position": 1})
    assert changed.json() == {**second, "query": "is:foil price>1"}
    assert await names(owner) == ["Foils", "Dear"]
    assert (await owner.send("DELETE", path)).json() == {"deleted": True}
    assert await names(owner) == ["Dear"]
    assert (await owner.send("DELETE", path)).status_code == 404


async def test_names_differ_whatever_their_case(shop):
    staff = await joined(shop, "searching@example.invalid")
    assert (await save(staff, "Straße")).status_code == 201
    taken = await save(staff, "STRASSE")
    assert (taken.status_code, taken.json()["code"]) == (422, "name_taken")
    assert (await save(staff, " \u200b ")).json()["code"] == "invalid_name"
    assert (await save(staff, "two\nlines")).json()["code"] == "invalid_name"


async def test_a_query_is_read_before_it_is_saved(shop):
    for query in ("prise>5", "price>", "list:nothing", "", None):
        answer = await save(shop, "Wrong", query)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_query"), query


async def test_of_two_callers_at_once_one_gets_the_name(shop):
    owner = await signed_in(shop)
    answers = await asyncio.gather(*(save(owner, "Mine") for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422, 422]


async def test_there_are_at_most_a_hundred(shop):
    for number in range(SAVED_SEARCHES):
        assert (await save(shop, f"Search {number}")).status_code == 201
    full = await save(shop, "One more")
    assert full.json()["code"] == "saved_search_limit_reached"


async def test_each_change_is_undone(shop):
    owner = await signed_in(shop)
    await save(owner, "Dear", "price>50")
    made = (await save(owner, "Foils", "is:foil")).json()["id"]

    async def undo():
        [entry, *_] = (await owner.get("/api/v1/agent/activity")).json()["activity"]
        return await owner.post(f"/api/v1/agent/activity/{entry['id']}/undo")

    path = f"/api/saved_searches/{made}"
    await owner.send("PATCH", path, json={"name": "Shiny", "position": 1})
    assert await names(owner) == ["Shiny", "Dear"]
    assert (await undo()).status_code == 200
    assert await names(owner) == ["Dear", "Foils"]
    await owner.send("DELETE", path)
    assert (await undo()).status_code == 200
    assert await names(owner) == ["Dear", "Foils"]
    await save(owner, "Last")
    assert (await undo()).status_code == 200
    assert await names(owner) == ["Dear", "Foils"]


async def test_a_search_that_stands_otherwise_stays_and_the_refusal_says_how(shop):
    owner = await signed_in(shop)
    path = f"/api/saved_searches/{(await save(owner, 'Foils', 'is:foil')).json()['id']}"

    async def refused(action):
        found = await owner.get("/api/v1/agent/activity", params={"action": action})
        entry = found.json()["activity"][0]["id"]
        answer = await owner.post(f"/api/v1/agent/activity/{entry}/undo")
        assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")
        return answer.json()["error"]

    await owner.send("PATCH", path, json={"name": "Shiny"})
    assert await refused("search.saved") == "search 'Shiny' was changed in the meantime"
    other = (await save(owner, "foils")).json()["id"]
    assert await refused("search.changed") == "there is now another search 'Foils'"
    await owner.send("DELETE", f"/api/saved_searches/{other}")
    await owner.send("DELETE", path)
    assert await refused("search.changed") == "search 'Shiny' was deleted in the meantime"
    assert await names(owner) == []


async def test_another_shop_sees_and_touches_none(shop, a_seller):
    mine = (await save(shop, "Mine")).json()["id"]
    other = await a_seller()
    assert await names(other) == []
    assert (await other.http.delete(f"/api/saved_searches/{mine}")).status_code == 404


async def test_columns_are_a_members_own_before_the_shops(shop):
    owner = await signed_in(shop)
    staff = await joined(shop, "columns@example.invalid")

    async def keep(http, columns, whose=""):
        return await http.send("PUT", f"/api/card_columns{whose}", json={"columns": columns})

    async def seen(http):
        return (await http.get("/api/card_columns")).json()["columns"]

    ours = await seen(staff)
    assert "price" in ours
    assert (await keep(owner, ["price", "set"], "/shop")).status_code == 200
    assert await seen(staff) == ["price", "set"]
    assert (await keep(staff, ["low", "low", "market"])).json() == {"columns": ["low", "market"]}
    assert (await seen(staff), await seen(owner)) == (["low", "market"], ["price", "set"])
    assert (await keep(staff, ["low"], "/shop")).status_code == 403
    assert (await keep(owner, ["secret"])).json()["code"] == "invalid_payload"
    assert (await keep(owner, [])).status_code == 422
