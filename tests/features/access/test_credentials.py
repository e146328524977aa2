"""Tokens and their scopes: every route of openapi.json with every credential, and what the operator
does with tokens.
"""

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync import clock
from cardsync.access import access_tokens, keys
from credentials import CREDENTIALS, KEY_OR_SESSION, READS, SESSION_ALONE, WRITES, refusal
from requests_of_routes import DOCUMENT, ROUTES, asked
from roles import AGENTS, STRANGERS

BEHIND = sorted(ROUTES - STRANGERS - {"DELETE /api/session"})


def test_every_route_stands_in_exactly_one_table():
    tables = [STRANGERS, AGENTS, SESSION_ALONE, KEY_OR_SESSION, READS, WRITES]
    assert set().union(*tables) == ROUTES
    assert sum(map(len, tables)) == len(ROUTES)


async def senders(seller):
    """The functions that send a request with each credential."""
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    read, write = await seller.token("mcp:read"), await seller.token("mcp:write")
    return {
        "owner": owner.send,
        "staff": staff.send,
        "key": seller.http.request,
        "read": read.request,
        "write": write.request,
    }


@pytest.mark.slow
@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_every_route_takes_the_credentials_that_the_tables_say(a_seller, credential):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00")))
    send = (await senders(seller))[credential]
    found = {route: await asked(send, route) for route in BEHIND}
    refused = {route: code if status == 403 else "" for route, (status, code) in found.items()}
    assert refused == {route: refusal(route, credential) for route in BEHIND}
    assert not [route for route, (status, _) in found.items() if status >= 500]


async def test_a_token_that_only_reads_changes_nothing(a_seller):
    seller = await a_seller()
    token = await seller.token("mcp:read")
    for route in sorted(WRITES):
        assert (await asked(token.request, route))[1] == "insufficient_scope"
    notes = "SELECT count(*) FROM activity WHERE seller_id = :id AND actor LIKE 'token%'"
    assert await seller.service.sql(seller.id, notes, id=seller.id) == [{"count": 0}]


async def test_a_scope_that_is_missing_is_named(a_seller):
    seller = await a_seller()
    answer = await (await seller.token("mcp:read")).post("/api/lists", json={"name": "Binder"})
    origin = seller.service.settings.origin
    assert answer.json()["code"] == "insufficient_scope"
    assert answer.headers["WWW-Authenticate"] == (
        'Bearer realm="cardsync", error="insufficient_scope", scope="mcp:write",'
        f' resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'
    )
    # Before the request is looked at.
    answer = await (await seller.token("mcp:read")).post("/api/lists", content=b"{")
    assert answer.json()["code"] == "insufficient_scope"


async def test_a_token_of_both_scopes_reads_and_writes_in_its_own_name(a_seller):
    seller = await a_seller()
    token = await seller.token("mcp:read", "mcp:write")
    made = await token.post("/api/lists", json={"name": "Binder"})
    assert made.status_code == 201
    assert (await token.get("/api/lists")).json()["lists"][0]["name"] == "Binder"
    [row] = await seller.service.sql(
        seller.id,
        "SELECT actor, request_id FROM activity WHERE seller_id = :id AND action = 'list.created'",
        id=seller.id,
    )
    assert row["actor"].startswith("token ")
    assert row["request_id"] == made.headers["X-Request-Id"]


async def test_only_the_hash_of_a_token_is_stored(a_seller):
    seller = await a_seller()
    token = (await seller.token("mcp:read")).headers["Authorization"].removeprefix("Bearer ")
    assert keys.is_well_formed(token, access_tokens.PREFIX)
    [row] = await seller.service.sql(
        seller.id, "SELECT t::text AS told FROM access_token t WHERE seller_id = :id", id=seller.id
    )
    assert token not in row["told"]
    assert keys.key_hash(token).hex() in row["told"]


async def test_a_revoked_and_an_expired_token_open_nothing(a_seller):
    seller = await a_seller()
    database, now = seller.service.database, clock.now()
    async with database.shared() as session:
        good = await access_tokens.mint(session, seller.id, "a", ["mcp:read"], now)
        past = await access_tokens.mint(
            session, seller.id, "b", ["mcp:read"], now - timedelta(days=2), days=1
        )

    async def status(token):
        async with seller.service.client(Authorization=f"Bearer {token}") as http:
            answer = await http.get("/api/lists")
        return answer.status_code, answer.headers.get("WWW-Authenticate", "")

    invalid = (401, 'Bearer realm="cardsync", error="invalid_token"')
    assert await status(good.token) == (200, "")
    assert await status(past.token) == invalid
    assert await status(access_tokens.PREFIX + "A" * 38) == invalid
    async with database.shared() as session:
        assert await access_tokens.revoke(session, good.token_id, now)
        assert not await access_tokens.revoke(session, 2**40, now)
    assert await status(good.token) == invalid


async def test_the_token_of_a_suspended_account_hears_so(a_seller):
    seller = await a_seller()
    token = await seller.token("mcp:read")
    await seller.set(suspended=True)
    answer = await token.get("/api/lists")
    assert (answer.status_code, answer.json()["code"]) == (403, "account_suspended")


async def test_a_token_reads_its_own_sellers_things_alone(a_seller):
    one, other = await a_seller(), await a_seller()
    await one.post("/api/lists", json={"name": "Binder"})
    token = await other.token("mcp:read")
    assert (await token.get("/api/lists")).json()["lists"] == []


def test_the_interface_tells_the_scope_of_every_route_that_takes_tokens():
    def scopes(route):
        method, path = route.split(" ")
        security = DOCUMENT["paths"][path][method.lower()].get("security", [])
        return [item["token"] for item in security if "token" in item]

    told = {route: scopes(route) for route in ROUTES if scopes(route)}
    assert told == (
        {route: [["mcp:read"]] for route in READS} | {route: [["mcp:write"]] for route in WRITES}
    )


async def test_two_requests_with_a_new_token_are_both_let_in(a_seller):
    seller = await a_seller()
    token = await seller.token("mcp:read")
    answers = await asyncio.gather(*(token.get("/api/lists") for _ in range(4)))
    assert {answer.status_code for answer in answers} == {200}
