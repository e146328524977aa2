"""The rights of each role: every route of openapi.json is asked for by staff and by an owner.

The tables of `roles.py` say who may do what.
"""

import json

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from credentials import KEY_OR_SESSION
from requests_of_routes import DOCUMENT, ROUTES, asked
from roles import AGENTS, MORE_FOR_OWNERS, OPERATORS, OWNERS, STAFF, STRANGERS

MEMBERS = STAFF | OWNERS


def test_every_route_stands_in_exactly_one_table():
    tables = [STRANGERS, AGENTS, STAFF, OWNERS, OPERATORS]
    assert set().union(*tables) == ROUTES
    assert sum(map(len, tables)) == len(ROUTES)


async def refused_to(browser, wanted):
    """The wanted routes that refuse the member with the code."""
    found = {
        route: await asked(browser.send, route)
        for route in sorted(wanted - {"DELETE /api/session"})
    }
    assert not [route for route, (status, _) in found.items() if status >= 500]
    return {route: code for route, (status, code) in found.items() if status == 403}


async def writes(seller):
    rows = await seller.service.sql(
        seller.id,
        "SELECT action FROM activity WHERE seller_id = :id AND actor LIKE 'member %' ORDER BY id",
        id=seller.id,
    )
    return [row["action"] for row in rows]


async def a_shop(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00")))
    return seller


@pytest.mark.slow
async def test_staff_may_do_what_is_listed_and_nothing_else(a_seller):
    seller = await a_shop(a_seller)
    staff = await joined(seller, f"staff-{seller.email}")
    before = await writes(seller)
    assert await refused_to(staff, OWNERS) == dict.fromkeys(OWNERS, "owner_required")
    assert await writes(seller) == before
    assert await refused_to(staff, STAFF) == {}
    assert (await staff.sign_out()).status_code == 200


@pytest.mark.slow
async def test_an_owner_may_do_everything_that_members_do(a_seller):
    seller = await a_shop(a_seller)
    owner = await signed_in(seller)
    assert await refused_to(owner, MEMBERS) == {}
    assert (await owner.sign_out()).status_code == 200


async def test_the_installation_is_refused_to_everybody_but_operators(a_seller):
    seller = await a_shop(a_seller)
    for member in (await signed_in(seller), await joined(seller, f"staff-{seller.email}")):
        assert await refused_to(member, OPERATORS) == dict.fromkeys(OPERATORS, "operator_required")


async def test_what_agents_do_takes_a_key_whoever_is_signed_in(a_seller):
    seller = await a_shop(a_seller)
    for member in (await signed_in(seller), await joined(seller, f"staff-{seller.email}")):
        assert await refused_to(member, AGENTS) == dict.fromkeys(AGENTS, "key_required")


def test_the_interface_says_who_is_refused():
    def codes(route):
        method, path = route.split(" ")
        return json.dumps(DOCUMENT["paths"][path][method.lower()]["responses"].get("403", {}))

    assert {route for route in ROUTES if '"owner_required"' in codes(route)} == (
        OWNERS | MORE_FOR_OWNERS
    )
    assert {route for route in ROUTES if '"operator_required"' in codes(route)} == OPERATORS
    assert {
        route for route in ROUTES if '"key_required"' in codes(route)
    } == AGENTS | KEY_OR_SESSION


async def test_staff_can_not_set_prices_by_any_way(a_seller):
    """They could once: their sessions made rules, pins and sales and let them run."""
    seller = await a_shop(a_seller)
    staff = await joined(seller, f"staff-{seller.email}")
    before = (await seller.get("/api/pricing/rules")).json()
    target = (await seller.cards())[0]["target_price"]
    sale = {
        "name": "All",
        "adjust_bp": -9000,
        "starts_at": "2020-01-01T00:00:00Z",
        "ends_at": "2099-01-01T00:00:00Z",
    }
    rule = {
        "name": "Cheap",
        "price_source": "market",
        "adjust_bp": -9000,
        "state": "published",
        "priority": 1,
    }
    tries = [
        await staff.post("/api/pricing/rules", json=rule),
        await staff.send("PUT", "/api/pricing/pins/1", json={"price": "0.01"}),
        await staff.post("/api/pricing/sales", json=sale),
        await staff.post("/api/pricing/reprice"),
    ]
    assert {(answer.status_code, answer.json()["code"]) for answer in tries} == {
        (403, "owner_required")
    }
    await seller.service.run_jobs()
    assert (await seller.get("/api/pricing/rules")).json() == before
    assert (await seller.cards())[0]["target_price"] == target


async def test_a_session_without_its_csrf_token_writes_nothing_of_the_agents_surface(a_seller):
    seller = await a_shop(a_seller)
    owner = await signed_in(seller)
    for path in ("request", "cancel", "skip_wait"):
        answer = await owner.http.post(f"/api/v1/sync/{path}", headers={"X-Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["code"]) == (403, "csrf_failed")
    assert not (await seller.get("/api/v1/sync/pending")).json()["sync_requested"]


async def test_a_session_asks_for_a_sync_and_cancels_it_as_a_key_does(a_seller):
    seller = await a_seller.synced()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    assert (await staff.post("/api/v1/sync/request", json={"kind": "orders"})).json() == {
        "status": "requested"
    }
    assert (await seller.get("/api/v1/sync/pending")).json()["kind"] == "orders"
    assert (await owner.get("/api/v1/status")).json()["phase"] == "collecting"
    assert (await owner.post("/api/v1/sync/cancel")).json() == {"status": "cancelled"}
    headers = {"X-Idempotency-Key": "once"}
    await seller.grant(1)
    spent = await owner.post("/api/v1/sync/skip_wait", headers=headers)
    assert (spent.status_code, spent.json()["status"]) == (200, "charged")


async def test_an_owner_watches_an_upload_without_keeping_its_agent_alive(a_seller):
    """A page that is left open must not hold the sync lock of an agent that has died."""
    seller = await a_seller()
    owner = await signed_in(seller)
    upload = (await seller.import_csv(a_csv(a_row(1))))["id"]
    await seller.post("/api/v1/sync/request")
    await seller.get("/api/v1/sync/pending")
    lock = "SELECT lock_refreshed_at FROM sync_state WHERE seller_id = :id"
    before = await seller.service.sql(seller.id, lock, id=seller.id)
    told = await owner.get(f"/api/v1/uploads/{upload}")
    assert (told.status_code, told.json()["state"]) == (200, "done")
    assert await seller.service.sql(seller.id, lock, id=seller.id) == before
    await seller.get(f"/api/v1/uploads/{upload}")
    assert await seller.service.sql(seller.id, lock, id=seller.id) != before
    explained = await owner.get("/api/v1/pricing/explain/1")
    assert (explained.status_code, explained.json()["marketplace_id"]) == (200, 1)
