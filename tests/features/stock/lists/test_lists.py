"""Lists of cards: names and slugs, selections in all their forms, caps, cards that are gone, and
callers at the same time.
"""

import asyncio

import pytest
from sqlalchemy import text

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop
from cards_builder import card_ids, found
from cardsync.stock.search.compile import FLAGS
from world import refusal


async def make(seller, name="Binder"):
    answer = await seller.post("/api/lists", json={"name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def add(seller, list_id, **selection):
    answer = await seller.post(f"/api/lists/{list_id}/cards", json=selection)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return told["added"], told["requested"], told["truncated"]


async def remove(seller, list_id, **selection):
    answer = await seller.http.request("DELETE", f"/api/lists/{list_id}/cards", json=selection)
    assert answer.status_code == 200, answer.text
    return answer.json()["removed"]


async def lists(seller, **query):
    answer = await seller.get("/api/lists", params=query)
    assert answer.status_code == 200
    return answer.json()["lists"]


@pytest.fixture
async def seller(a_seller):
    rows = [a_row(id, name=f"Bolt {id}", price=f"{id}.00") for id in range(1, 6)]
    return await a_shop(
        a_seller, *rows, a_row(6, name="Shock"), a_row(7, name="Gone Bolt", quantity=0)
    )


@pytest.mark.night
async def test_a_list_is_made_read_renamed_and_deleted(seller):
    made = await make(seller, "  My Élite Binder! ")
    assert made == {
        "id": made["id"], "name": "My Élite Binder!", "slug": "my-elite-binder", "position": 1,
        "card_count": 0,
        "active_count": 0, "gone_count": 0, "query": "list:my-elite-binder",
    }  # fmt: skip
    envelope = (await seller.get("/api/lists")).json()
    assert envelope == {"lists": [made], "max_cards_per_list": 1_000}
    renamed = await seller.http.patch(f"/api/lists/{made['id']}", json={"name": "Other"})
    assert (renamed.status_code, renamed.json()) == (200, made | {"name": "Other"})
    deleted = await seller.http.delete(f"/api/lists/{made['id']}")
    assert (deleted.status_code, deleted.json()) == (200, {"deleted": True})
    assert await lists(seller) == []


@pytest.mark.night
async def test_a_slug_is_never_used_again(seller):
    first = await make(seller, "Binder")
    assert (await make(seller, "Binder?"))["slug"] == "binder-2"
    await seller.http.delete(f"/api/lists/{first['id']}")
    assert (await make(seller, "BINDER"))["slug"] == "binder-3"
    assert (await make(seller, "ピカ"))["slug"] == "list"


@pytest.mark.parametrize(
    "name",
    [
        None,
        5,
        "",
        "   ",
        "x" * 101,
        ["a"],
        "\u200b",
        "a\nb",
        "a\u0007",
        "a\u2028b",
        " \u2060\ufeff ",
    ],
)
@pytest.mark.night
async def test_a_name_that_is_none_is_refused(seller, name):
    made = await make(seller)
    assert refusal(await seller.post("/api/lists", json={"name": name})) == (422, "invalid_name")
    assert refusal(await seller.http.patch(f"/api/lists/{made['id']}", json={"name": name})) == (
        422,
        "invalid_name",
    )


@pytest.mark.night
async def test_a_name_is_kept_as_it_is_seen(seller):
    assert (await make(seller, " Bin\u200bder\u202e "))["name"] == "Binder"
    assert refusal(await seller.post("/api/lists", json={"name": "\ufeffbinder"})) == (
        422,
        "name_taken",
    )
    # Characters are counted as they are kept: a letter with its accent is one.
    assert (await make(seller, "e\u0301" * 100))["name"] == "\u00e9" * 100
    assert await found(seller, 'list:"bin\u200bder"') == []
    assert (await seller.get("/api/cards", params={"search": 'list:"bin\u200bder"'})).json()[
        "query_errors"
    ] == []


@pytest.mark.night
async def test_a_name_is_one_list_s_alone(seller):
    made, other = await make(seller, "Été"), await make(seller, "Other")
    for same in ("Été", " été ", "E\u0301te\u0301"):
        assert refusal(await seller.post("/api/lists", json={"name": same})) == (422, "name_taken")
        assert refusal(
            await seller.http.patch(f"/api/lists/{other['id']}", json={"name": same})
        ) == (422, "name_taken")
    assert (
        await seller.http.patch(f"/api/lists/{made['id']}", json={"name": "ÉTÉ"})
    ).status_code == 200
    await seller.http.delete(f"/api/lists/{made['id']}")
    await make(seller, "été")


async def test_lists_have_a_limit_whoever_races_for_the_last(seller, limited):
    limited("LISTS_PER_SELLER", 3)
    answers = await asyncio.gather(
        *(seller.post("/api/lists", json={"name": f"L{n}"}) for n in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 201, 201, 422, 422]
    assert {refusal(answer) for answer in answers if answer.status_code == 422} == {
        (422, "list_limit_reached")
    }
    assert sorted(row["position"] for row in await lists(seller)) == [1, 2, 3]


async def test_one_name_raced_for_is_one_list(seller):
    answers = await asyncio.gather(
        *(seller.post("/api/lists", json={"name": "Same"}) for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422, 422]


@pytest.mark.night
async def test_cards_are_selected_in_three_forms(seller):
    ids = await card_ids(seller)
    made = await make(seller)
    assert await add(seller, made["id"], marketplace_ids=[1, 2, 2, 999]) == (2, 2, False)
    assert await add(seller, made["id"], card_ids=[ids[2], ids[3], 10**18]) == (1, 2, False)
    assert await add(seller, made["id"], search="bolt price>=4") == (2, 2, False)
    assert await found(seller, "list:binder") == [1, 2, 3, 4, 5]
    # The first form that is given counts.
    assert await add(seller, made["id"], marketplace_ids=[6], card_ids=[ids[1]], search="bolt") == (
        1,
        1,
        False,
    )
    assert await remove(seller, made["id"], search="bolt", game="Magic") == 5
    assert await found(seller, "list:binder") == [6]


async def test_selected_ids_narrow_whatever_selects(seller):
    ids = await card_ids(seller)
    made = await make(seller)
    assert await add(seller, made["id"], search="bolt", selected_ids=[ids[1], ids[6]]) == (
        1,
        1,
        False,
    )
    assert await add(
        seller, made["id"], marketplace_ids=[1, 2], selected_ids=f"{ids[2]},{ids[3]}"
    ) == (1, 1, False)
    assert await add(seller, made["id"], selected_ids=[ids[6]]) == (1, 1, False)
    for nothing in ([], "", "x", [ids[1], "x"], f"{ids[1]},,"):
        assert await add(seller, made["id"], search="bolt", selected_ids=nothing) == (0, 0, False)


@pytest.mark.night
async def test_ids_of_nothing_select_nothing_and_no_selection_is_refused(seller):
    made = await make(seller)
    for nothing in ({"marketplace_ids": []}, {"card_ids": []}):
        assert await add(seller, made["id"], **nothing) == (0, 0, False)
        assert await remove(seller, made["id"], **nothing) == 0
    for none in (
        {},
        {"search": "  "},
        {"game": ""},
        {"sort": "name"},
        {"search": None},
        {"marketplace_ids": "1"},
        {"card_ids": [True]},
        {"search": "prise>5"},
        {"search": "list:nowhere"},
        {"status": "sold"},
    ):
        assert refusal(await seller.post(f"/api/lists/{made['id']}/cards", json=none)) == (
            422,
            "invalid_payload",
        ), none
        answer = await seller.http.request("DELETE", f"/api/lists/{made['id']}/cards", json=none)
        assert refusal(answer) == (422, "invalid_payload"), none
    assert await lists(seller) == [made]


@pytest.mark.night
async def test_the_cards_of_a_list_are_read_by_no_program_and_open_a_page_in_a_browser(seller):
    path = f"/api/lists/{(await make(seller))['id']}/cards"
    token = await seller.token("mcp:read", "mcp:write")
    for program in (seller.http, token):
        for send in (program.get, program.head):
            answer = await send(path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, OPTIONS, POST")
        assert (await program.get(path)).json()["code"] == "method_not_allowed"
    opened = await (await signed_in(seller)).get(f"{path}?search=bolt")
    assert (opened.status_code, opened.headers["location"].partition("?")[2]) == (
        303, "search=bolt",
    )  # fmt: skip


async def test_a_selection_to_remove_may_stand_in_the_query(seller):
    ids = await card_ids(seller)
    made = await make(seller)
    await add(seller, made["id"], search="bolt or shock")

    async def removed(query):
        answer = await seller.http.delete(f"/api/lists/{made['id']}/cards?{query}")
        return answer.json().get("removed", answer.status_code)

    assert await removed("marketplace_ids=1,2") == 2
    assert await removed(f"card_ids={ids[3]}&card_ids={ids[4]}") == 2
    assert await removed("marketplace_ids=") == 0
    assert await removed("marketplace_ids=x") == 422
    assert await removed("search=") == 422
    assert await removed("") == 422
    assert await removed("search=shock") == 1
    assert await found(seller, "list:binder") == [5]


async def remove_both(seller, list_id, query, **body):
    """With a body and a query."""
    answer = await seller.http.request("DELETE", f"/api/lists/{list_id}/cards?{query}", json=body)
    return answer.json().get("removed", answer.status_code)


@pytest.mark.night
async def test_a_body_and_a_query_are_one_selection(seller):
    ids = await card_ids(seller)
    made = await make(seller)
    await add(seller, made["id"], search="bolt or shock")
    assert await remove_both(seller, made["id"], f"selected_ids={ids[1]}", search="bolt") == 1
    assert await remove_both(seller, made["id"], "selected_ids=", search="bolt") == 0
    assert await remove_both(seller, made["id"], "game=pokemon", search="bolt") == 0
    assert await remove_both(seller, made["id"], "search=shock", search="bolt") == 422
    assert await remove_both(seller, made["id"], f"card_ids={ids[2]}", search="bolt") == 1
    assert await remove_both(seller, made["id"], "search=shock", search=" ") == 1
    assert await found(seller, "list:binder") == [3, 4, 5]


async def test_a_blank_game_hides_no_product_line(seller):
    made = await make(seller)
    assert await add(seller, made["id"], game=" ", product_line="pokemon") == (0, 0, False)
    assert await add(seller, made["id"], search="bolt", game="\t", product_line="Pokemon") == (
        0,
        0,
        False,
    )
    two = {"search": "bolt", "game": "magic", "product_line": "pokemon"}
    assert refusal(await seller.post(f"/api/lists/{made['id']}/cards", json=two)) == (
        422,
        "invalid_payload",
    )
    assert await remove_both(seller, made["id"], "game=%20&product_line=pokemon") == 0
    assert await add(seller, made["id"], search="shock", game=" ", product_line="magic") == (
        1,
        1,
        False,
    )
    for query, status in (
        ("game=%20&product_line=pokemon", 200),
        ("game=magic&product_line=pokemon", 422),
    ):
        answer = await seller.get(f"/api/cards?{query}")
        assert (answer.status_code, answer.json().get("total", 0)) == (status, 0)
    assert (await seller.get("/api/cards?game=Magic&product_line=magic")).json()["total"] == 6


async def test_ids_are_integers_and_nothing_like_them(seller):
    ids = await card_ids(seller)
    made = await make(seller)
    assert await add(seller, made["id"], search="bolt", selected_ids=None) == (0, 0, False)
    assert await add(seller, made["id"], selected_ids=None) == (0, 0, False)
    await add(seller, made["id"], search="bolt")
    assert await remove(seller, made["id"], search="bolt", selected_ids=None) == 0
    for like in ([str(ids[1])], [float(ids[1])], [None], [[ids[1]]]):
        for name in ("card_ids", "marketplace_ids"):
            answer = await seller.post(f"/api/lists/{made['id']}/cards", json={name: like})
            assert refusal(answer) == (422, "invalid_payload"), like
            assert name in answer.json()["error"]
    for like in ("0_1", "١", "1.0", "+1", "1,,2", "1" * 19):
        assert (
            await remove_both(seller, made["id"], f"marketplace_ids={like}".replace("+", "%2B"))
            == 422
        ), like
    assert await remove_both(seller, made["id"], "marketplace_ids=1,%202") == 2


async def test_a_nul_in_a_query_is_no_crash(seller):
    made = await make(seller)
    for query in ("game=%00x", "product_line=%00", "search=%00x", "search=name:%22%00%22"):
        assert await remove_both(seller, made["id"], query) == 0, query
    for query in ("status=%00x", "marketplace_ids=%00", "card_ids=1%00"):
        assert await remove_both(seller, made["id"], query) == 422, query
    assert await remove_both(seller, made["id"], "selected_ids=%001") == 0


@pytest.mark.night
async def test_what_is_gone_stays_on_the_list(seller):
    made = await make(seller)
    await add(seller, made["id"], search="is:gone or bolt")
    await seller.import_csv(
        a_csv(*(a_row(id, name=f"Bolt {id}") for id in (1, 2, 3, 4)), a_row(6, name="Shock"))
    )
    [told] = await lists(seller)
    assert (told["card_count"], told["active_count"], told["gone_count"]) == (6, 4, 2)
    assert await found(seller, "list:binder") == [1, 2, 3, 4]
    assert await found(seller, "list:binder is:gone") == [5, 7]


@pytest.mark.night
async def test_lists_tell_whether_a_card_is_on_them(seller):
    ids = await card_ids(seller)
    one, other = await make(seller, "One"), await make(seller, "Other")
    await add(seller, one["id"], marketplace_ids=[1])
    await add(seller, other["id"], marketplace_ids=[2])
    assert [row["member"] for row in await lists(seller, marketplace_id=1)] == [True, False]
    assert [row["member"] for row in await lists(seller, card_id=ids[2])] == [False, True]
    assert [row["member"] for row in await lists(seller, card_id="x")] == [False, False]
    assert "member" not in (await lists(seller))[0]


@pytest.mark.night
async def test_a_list_takes_cards_in_their_order_up_to_its_cap(seller, limited):
    limited("CARDS_PER_LIST", 3)
    made = await make(seller)
    assert await add(seller, made["id"], marketplace_ids=[5, 3, 4, 1, 2]) == (3, 5, True)
    assert await found(seller, "list:binder") == [3, 4, 5]
    assert refusal(
        await seller.post(f"/api/lists/{made['id']}/cards", json={"search": "bolt"})
    ) == (422, "list_full")
    # Nothing new: nothing that there would be no room for.
    assert await add(seller, made["id"], marketplace_ids=[5, 3]) == (0, 2, False)


@pytest.mark.night
async def test_no_place_is_taken_by_a_card_that_the_caller_does_not_see(seller, limited):
    limited("CARDS_PER_LIST", 2)
    owner, bea = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    private = await bea.post(
        "/api/contributions",
        json={"name": "Mine", "set": "Own", "game": "magic", "condition": "NM", "quantity": 1},
    )
    path = f"/api/lists/{(await make(seller))['id']}/cards"
    assert (await bea.post(path, json={"card_ids": [private.json()["id"]]})).json()["added"] == 1
    told = (await owner.post(path, json={"marketplace_ids": [1, 2, 3]})).json()
    assert (told["added"], told["truncated"], told["list"]["card_count"]) == (2, True, 2)
    assert refusal(await seller.post(path, json={"marketplace_ids": [3]})) == (422, "list_full")
    assert refusal(await bea.post(path, json={"marketplace_ids": [3]})) == (422, "list_full")


@pytest.mark.night
async def test_the_last_place_is_given_once(seller, limited):
    limited("CARDS_PER_LIST", 3)
    made = await make(seller)
    await add(seller, made["id"], marketplace_ids=[1, 2])
    path = f"/api/lists/{made['id']}/cards"
    answers = await asyncio.gather(
        *(seller.post(path, json={"marketplace_ids": [id]}) for id in (3, 4, 5, 6))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 422, 422, 422]
    assert (await lists(seller))[0]["card_count"] == 3


@pytest.mark.parametrize("turn", range(5))
async def test_staff_adds_while_the_owner_deletes_and_no_card_is_left_behind(seller, turn):
    staff, owner = (
        await joined(seller, f"staff-of-{seller.id}@example.invalid"),
        await signed_in(seller),
    )
    made = await make(seller)
    path = f"/api/lists/{made['id']}"
    adds = [
        staff.post(f"{path}/cards", json={"marketplace_ids": [number]}) for number in (1, 2, 3, 4)
    ]
    deleted = owner.send("DELETE", path)
    answers = await asyncio.gather(*adds[:turn], deleted, *adds[turn:])
    gone = answers.pop(turn)
    assert gone.status_code == 200
    # Either before the list was deleted, or there was none.
    assert {answer.status_code for answer in answers} <= {200, 404}
    assert await found(seller, "has:list") == []
    left = "SELECT count(*) FROM card_list_entry WHERE seller_id = :s"
    assert (await seller.service.sql(seller.id, left, s=seller.id))[0]["count"] == 0


@pytest.mark.day
async def test_who_waits_for_a_list_keeps_nobody_else_waiting(seller, a_seller, service):
    """A list that somebody holds: writes to it are refused for now, and take no more than two
    connections of the pool.
    """
    made, other = await make(seller), await a_seller()
    async with service.database.tenant(seller.id) as session:
        held = text("SELECT FROM card_list WHERE seller_id = :seller AND id = :list FOR UPDATE")
        await session.execute(held, {"seller": seller.id, "list": made["id"]})
        path = f"/api/lists/{made['id']}"
        asked = [
            asyncio.create_task(seller.post(f"{path}/cards", json={"search": "bolt"}))
            for _ in range(12)
        ]
        asked += [asyncio.create_task(seller.http.delete(path)) for _ in range(3)]
        # The first callers stand in line by now.
        await asyncio.sleep(0.5)
        await make(other)
        first, _ = await asyncio.wait(asked, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        answers = [task.result() for task in first]
        assert answers
        assert {refusal(answer) for answer in answers} == {(503, "service_unavailable")}
        assert int(answers[0].headers["retry-after"]) > 0
    assert {answer.status_code for answer in await asyncio.gather(*asked)} <= {200, 404, 503}


@pytest.mark.night
@pytest.mark.day
async def test_a_write_that_searches_too_long_is_refused(seller, service, monkeypatch):
    monkeypatch.setitem(FLAGS, "held", "pg_sleep(3) IS NULL")
    made, browser = await make(seller), await signed_in(seller)
    service.app.state.settings = service.settings.model_copy(update={"read_seconds": 1})
    try:
        shelf = {"search": "is:held", "box": 1, "start_slot": 1, "per_slot": 1}
        answers = [
            await seller.post(f"/api/lists/{made['id']}/cards", json={"search": "is:held"}),
            await browser.post("/api/shelves/put_many", json=shelf),
        ]
        for answer in answers:
            assert refusal(answer) == (422, "invalid_payload")
            assert "longer than 1 s" in answer.json()["error"]
        rule = {"name": "Held", "query": "is:held", "priority": 1}
        assert (await seller.post("/api/pricing/rules", json=rule)).status_code == 201
        assert refusal(await seller.get("/api/pricing/rules/analysis")) == (
            503,
            "service_unavailable",
        )
    finally:
        service.app.state.settings = service.settings


@pytest.mark.night
async def test_custom_listings_have_negative_ids(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(7), a_row(7, title="Signed", photo="https://example.invalid/p.jpg"))
    )
    made = await make(seller)
    assert await add(seller, made["id"], marketplace_ids=[-1]) == (1, 1, False)
    assert await found(seller, "list:binder") == [-1]
    assert [row["member"] for row in await lists(seller, marketplace_id=-1)] == [True]


async def test_nothing_of_another_seller_is_reached(seller, a_seller):
    other = await a_seller()
    await other.import_csv(a_csv(a_row(1, name="Bolt"), a_row(50)))
    theirs, made = await card_ids(other), await make(seller)
    their_list = await make(other, "Theirs")
    assert await add(seller, made["id"], card_ids=list(theirs.values())) == (0, 0, False)
    assert await add(seller, made["id"], marketplace_ids=[50]) == (0, 0, False)
    assert await add(seller, made["id"], search="", selected_ids=list(theirs.values())) == (
        0,
        0,
        False,
    )
    for answer in (
        await seller.post(f"/api/lists/{their_list['id']}/cards", json={"search": "bolt"}),
        await seller.http.request(
            "DELETE", f"/api/lists/{their_list['id']}/cards", json={"search": "bolt"}
        ),
        await seller.http.patch(f"/api/lists/{their_list['id']}", json={"name": "Mine"}),
        await seller.http.delete(f"/api/lists/{their_list['id']}"),
    ):
        assert refusal(answer) == (404, "not_found")
    assert len(await lists(other)) == 1


@pytest.mark.night
async def test_what_lists_did_stands_in_the_feed(seller, service):
    made = await make(seller)
    await add(seller, made["id"], search="bolt")
    await remove(seller, made["id"], marketplace_ids=[1])
    await seller.http.patch(f"/api/lists/{made['id']}", json={"name": "Other"})
    await seller.http.delete(f"/api/lists/{made['id']}")
    rows = await service.sql(
        seller.id,
        "SELECT action FROM activity WHERE seller_id = :s AND action LIKE 'list.%' ORDER BY id",
        s=seller.id,
    )
    assert [row["action"] for row in rows] == [
        "list.created",
        "list.cards_added",
        "list.cards_removed",
        "list.renamed",
        "list.deleted",
    ]


@pytest.mark.night
async def test_a_search_by_a_name_that_is_no_more_is_an_error(seller):
    made = await make(seller, "Old Name")
    assert await found(seller, 'list:"old name"') == []
    await seller.http.patch(f"/api/lists/{made['id']}", json={"name": "New"})
    page = (await seller.get("/api/cards", params={"search": 'list:"old name"'})).json()
    assert page["query_errors"][0]["offset"] == 0
    assert await found(seller, "list:old-name") == []


async def test_staff_read_create_and_add_and_leave_the_rest_to_owners(seller):
    staff, owner = (
        await joined(seller, f"staff-of-{seller.id}@example.invalid"),
        await signed_in(seller),
    )
    made = (await staff.post("/api/lists", json={"name": "Binder"})).json()
    assert made["add_cards_url"] == f"/api/lists/{made['id']}/cards"
    added = await staff.post(made["add_cards_url"], json={"search": "bolt"})
    assert (added.json()["added"], added.json()["list"]["add_cards_url"]) == (
        5,
        made["add_cards_url"],
    )
    [told] = (await staff.get("/api/lists")).json()["lists"]
    assert (told["card_count"], told["add_cards_url"]) == (5, made["add_cards_url"])
    assert "add_cards_url" not in (await lists(seller))[0]
    path = f"/api/lists/{made['id']}"
    for_owners = [
        ("PATCH", path, {"name": "X"}),
        ("DELETE", path, None),
        ("DELETE", f"{path}/cards", {"search": "bolt"}),
    ]
    for method, where, body in for_owners:
        assert refusal(await staff.send(method, where, json=body)) == (403, "owner_required")
    assert (await owner.send("PATCH", path, json={"name": "X"})).json()["name"] == "X"
    assert (await owner.send("DELETE", f"{path}/cards", json={"search": "bolt"})).json()[
        "removed"
    ] == 5
    assert (await owner.send("DELETE", path)).json() == {"deleted": True}
