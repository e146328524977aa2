"""Tokens and their scopes: every route of openapi.json with every credential, and what the operator
does with tokens.
"""

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop
from callers import CALLERS, CREDENTIALS, LINES, STRANGERS, refusal
from cardsync.access import access_tokens, keys
from cardsync.platform import clock
from requests_of_routes import ROUTES, asked

END = "DELETE /api/session"
BEHIND = [*sorted(ROUTES - STRANGERS - {END}), END]


def test_every_route_stands_in_exactly_one_line():
    assert CALLERS.keys() == ROUTES
    assert len(LINES) == len(ROUTES)


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


async def entries(seller):
    counted = "SELECT count(*) FROM activity WHERE seller_id = :id"
    return await seller.service.sql(seller.id, counted, id=seller.id)


@pytest.mark.day
@pytest.mark.parametrize("credential", CREDENTIALS)
async def test_every_route_takes_the_credentials_that_the_table_says(a_seller, credential):
    """Refused requests come first: none of them leaves an entry."""
    # The owner of the only shop decides about catalogs as an operator does.
    await a_seller()
    seller = await a_shop(a_seller, a_row(1, market="2.00"))
    send = (await senders(seller))[credential]
    wanted = {route: refusal(route, credential) for route in BEHIND}
    before = await entries(seller)
    found = {route: await asked(send, route) for route in BEHIND if wanted[route]}
    assert await entries(seller) == before
    found |= {route: await asked(send, route) for route in BEHIND if not wanted[route]}
    refused = {route: code if status == 403 else "" for route, (status, code) in found.items()}
    assert refused == wanted
    assert not [route for route, (status, _) in found.items() if status >= 500]
    assert found[END][0] == (200 if credential in ("owner", "staff") else 403)


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


async def test_two_requests_with_a_new_token_are_both_let_in(a_seller):
    seller = await a_seller()
    token = await seller.token("mcp:read")
    answers = await asyncio.gather(*(token.get("/api/lists") for _ in range(4)))
    assert {answer.status_code for answer in answers} == {200}
