"""Every refusal of the authorization server, as tables: of an authorization request, of a token
request, and of what a grant brought once it no longer holds.
"""

import asyncio
import logging
import re
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from browsers import joined, signed_in
from builders import SellerBuilder
from cardsync.access import access_tokens
from cardsync.assistant.oauth.refused import CODES
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.shop.accounts import roster
from oauth_builder import REDIRECT, connected, consented, registered, told_in


@pytest.fixture(scope="module")
async def a_shop_to_connect(service):
    """A seller, the owner's browser and a client, for requests that are refused."""
    seller = await SellerBuilder(service)()
    return seller, await signed_in(seller), await registered(service)


def test_the_docs_tell_every_refusal():
    page = (Path(__file__).parents[3] / "docs" / "assistants-authorization.md").read_text()
    told = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(told) == sorted(CODES)


UNVERIFIED = {
    "no client": {"client_id": None},
    "an unknown client": {"client_id": "csc_unknown"},
    "two clients": {"client_id": ["a", "b"]},
    "no redirect": {"redirect_uri": None},
    "a client that nobody stores": {"client_id": "csc_\0"},
    "more than can be read": {f"field{number}": "x" for number in range(30)},
    "two redirects": {"redirect_uri": [REDIRECT, REDIRECT]},
    "another redirect": {"redirect_uri": "https://assistant.example/callback/more"},
    "another host": {"redirect_uri": "https://assistant.example.evil.example/callback"},
    "a query more": {"redirect_uri": REDIRECT + "?next=x"},
    "a port more": {"redirect_uri": "https://assistant.example:444/callback"},
    "a script": {"redirect_uri": "javascript:alert(1)"},
    "a document inside": {"client_id": "https://127.0.0.1/client.json"},
    "a document by http": {"client_id": "http://assistant.example/client.json"},
}


@pytest.mark.parametrize("what", UNVERIFIED)
async def test_before_the_redirect_is_known_a_page_says_so(a_shop_to_connect, what):
    _, browser, assistant = a_shop_to_connect
    answer = await browser.get("/oauth/authorize", params=assistant.request(**UNVERIFIED[what]))
    assert answer.status_code == 400
    assert "Location" not in answer.headers
    assert "This cannot be connected" in answer.text


TOLD = {
    "a token at once": ({"response_type": "token"}, "unsupported_response_type"),
    "no kind": ({"response_type": None}, "unsupported_response_type"),
    "a fragment": ({"response_mode": "fragment"}, "invalid_request"),
    "no challenge": ({"code_challenge": None}, "invalid_request"),
    "no PKCE": ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
    "plain": ({"code_challenge_method": "plain"}, "invalid_request"),
    "plain by default": ({"code_challenge_method": None}, "invalid_request"),
    "a short challenge": ({"code_challenge": "x" * 42}, "invalid_request"),
    "another resource": ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
    "one more resource": (
        {"resource": ["http://127.0.0.1:8000/mcp", "https://elsewhere.example/mcp"]},
        "invalid_target",
    ),
    "two scopes": ({"scope": ["mcp:read", "mcp:write"]}, "invalid_request"),
    "a long state": ({"state": "x" * 1001}, "invalid_request"),
}


@pytest.mark.parametrize("what", TOLD)
async def test_after_that_the_client_is_told(a_shop_to_connect, what):
    seller, browser, assistant = a_shop_to_connect
    change, error = TOLD[what]
    request = assistant.request(**change)
    answer = await browser.get("/oauth/authorize", params=request)
    assert answer.headers["Location"].startswith(f"{REDIRECT}?")
    told = told_in(answer)
    assert told["error"] == error
    assert told["iss"] == seller.service.settings.origin
    assert told["state"] == request["state"]
    assert "code" not in told


async def test_a_missing_resource_means_this_service(a_shop_to_connect):
    _, browser, assistant = a_shop_to_connect
    code = told_in(await consented(browser, assistant.request(resource=None)))["code"]
    other = assistant.exchange(code, resource="https://elsewhere.example/mcp")
    answer = await assistant.post("/oauth/token", other)
    assert answer.json()["error"] == "invalid_target"
    tokens = (await assistant.post("/oauth/token", assistant.exchange(code))).json()
    async with assistant.bearer(tokens) as http:
        assert (await http.get("/api/lists")).status_code == 200


OF_CODE = {
    "a wrong verifier": ({"code_verifier": "x" * 43}, "invalid_grant"),
    "a short verifier": ({"code_verifier": "x"}, "invalid_grant"),
    "no verifier": ({"code_verifier": None}, "invalid_request"),
    "another redirect": ({"redirect_uri": "https://assistant.example/other"}, "invalid_grant"),
    "another resource": ({"resource": "https://elsewhere.example/"}, "invalid_target"),
    "an unknown client": ({"client_id": "csc_unknown"}, "invalid_client"),
    "no client": ({"client_id": None}, "invalid_request"),
    "an unknown code": ({"code": "cco_unknown"}, "invalid_grant"),
    "no code": ({"code": None}, "invalid_request"),
    "two codes": ({"code": ["a", "b"]}, "invalid_request"),
    "a password": ({"grant_type": "password"}, "unsupported_grant_type"),
    "no kind": ({"grant_type": None}, "invalid_request"),
}


async def test_a_token_request_that_is_refused_spends_nothing(a_shop_to_connect):
    seller, browser, assistant = a_shop_to_connect
    code, other = await assistant.code(browser), await registered(seller.service)
    changes = {**OF_CODE, "another client": ({"client_id": other.client_id}, "invalid_grant")}
    for what, (change, error) in changes.items():
        answer = await assistant.post("/oauth/token", assistant.exchange(code, **change))
        assert (what, answer.json()["error"]) == (what, error)
        assert answer.status_code == (401 if error == "invalid_client" else 400)
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.json()["error_description"]
    async with seller.service.client() as http:
        answer = await http.post("/oauth/token", json=assistant.exchange(code))
        assert answer.json()["error"] == "invalid_request"
    assert (await assistant.post("/oauth/token", assistant.exchange(code))).status_code == 200


async def test_a_code_is_good_for_a_minute(a_shop_to_connect):
    _, browser, assistant = a_shop_to_connect
    clock.stop()
    early, late = await assistant.code(browser), await assistant.code(browser)
    clock.shift(timedelta(seconds=59))
    assert (await assistant.post("/oauth/token", assistant.exchange(early))).status_code == 200
    clock.shift(timedelta(seconds=1))
    answer = await assistant.post("/oauth/token", assistant.exchange(late))
    assert answer.json()["error"] == "invalid_grant"


async def test_a_code_used_twice_ends_what_came_of_it(a_shop_to_connect):
    _, browser, assistant = a_shop_to_connect
    form = assistant.exchange(await assistant.code(browser))
    tokens = (await assistant.post("/oauth/token", form)).json()
    # However late, and whoever asks.
    clock.shift(timedelta(minutes=5))
    answer = await assistant.post("/oauth/token", form | {"code_verifier": "x" * 43})
    assert answer.json()["error"] == "invalid_grant"
    await holds_no_more(assistant, tokens)


async def test_a_refresh_token_used_twice_ends_the_grant(a_shop_to_connect):
    _, browser, assistant = a_shop_to_connect
    first = await assistant.tokens(browser)
    second = (await assistant.refresh(first["refresh_token"])).json()
    third = (await assistant.refresh(second["refresh_token"])).json()
    async with assistant.bearer(third) as http:
        assert (await http.get("/api/lists")).status_code == 200
    answer = await assistant.refresh(first["refresh_token"])
    assert answer.json()["error"] == "invalid_grant"
    for tokens in (second, third):
        await holds_no_more(assistant, tokens)


async def test_a_refresh_token_of_another_client_is_refused_and_kept(a_shop_to_connect):
    seller, browser, assistant = a_shop_to_connect
    tokens, other = await assistant.tokens(browser), await registered(seller.service)
    answer = await other.refresh(tokens["refresh_token"])
    assert answer.json()["error"] == "invalid_grant"
    for change, error in (
        ({"resource": "https://elsewhere.example/"}, "invalid_target"),
        ({"refresh_token": ""}, "invalid_request"),
    ):
        answer = await assistant.refresh(tokens["refresh_token"], **change)
        assert answer.json()["error"] == error
    assert (await assistant.refresh(tokens["refresh_token"])).status_code == 200


async def test_a_refresh_token_expires(a_shop_to_connect):
    _, browser, assistant = a_shop_to_connect
    tokens = await assistant.tokens(browser)
    clock.shift(timedelta(days=30))
    answer = await assistant.refresh(tokens["refresh_token"])
    assert answer.json()["error"] == "invalid_grant"


async def holds_no_more(assistant, tokens, status=401, error="invalid_grant"):
    async with assistant.bearer(tokens) as http:
        answer = await http.get("/api/lists")
    assert answer.status_code == status
    refreshed = await assistant.refresh(tokens["refresh_token"])
    assert refreshed.json().get("error") == error
    return answer.json()["code"]


async def test_two_at_once_with_the_same_code(a_shop_to_connect):
    _, browser, assistant = a_shop_to_connect
    form = assistant.exchange(await assistant.code(browser))
    answers = await asyncio.gather(*(assistant.post("/oauth/token", form) for _ in range(2)))
    assert sorted(answer.status_code for answer in answers) == [200, 400]
    [won] = [answer.json() for answer in answers if answer.status_code == 200]
    await holds_no_more(assistant, won)


async def test_two_at_once_with_the_same_refresh_token(a_shop_to_connect):
    _, browser, assistant = a_shop_to_connect
    first = await assistant.tokens(browser)
    answers = await asyncio.gather(*(assistant.refresh(first["refresh_token"]) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400]
    [won] = [answer.json() for answer in answers if answer.status_code == 200]
    await holds_no_more(assistant, won)


async def test_a_revocation_beside_a_refresh_leaves_no_token(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    for _ in range(4):
        assistant, tokens = await connected(seller)
        [shown] = (await owner.get("/api/assistants")).json()["assistants"]
        refreshed, revoked = await asyncio.gather(
            assistant.refresh(tokens["refresh_token"]),
            owner.send("DELETE", f"/api/assistants/{shown['id']}"),
        )
        assert revoked.status_code == 200
        if refreshed.status_code == 200:
            await holds_no_more(assistant, refreshed.json())


async def test_the_grant_of_a_suspended_account_or_a_lapsed_plan(a_seller):
    seller = await a_seller()
    assistant, tokens = await connected(seller)

    async def refused():
        async with assistant.bearer(tokens) as http:
            answer = await http.get("/api/lists")
        refreshed = await assistant.refresh(tokens["refresh_token"])
        return answer.status_code, answer.json().get("code"), refreshed.json().get("error")

    await seller.set(suspended=True)
    assert await refused() == (403, "account_suspended", "invalid_grant")
    await seller.set(suspended=False, plan="free")
    assert await refused() == (403, "paid_plan_required", "invalid_grant")
    page = await (await signed_in(seller)).get("/oauth/authorize", params=assistant.request())
    assert page.status_code == 403
    assert "Assistants need a paid plan" in page.text
    # Nothing was spent: once it is paid again, the assistant goes on.
    await seller.set(plan="paid")
    async with assistant.bearer(tokens) as http:
        assert (await http.get("/api/lists")).status_code == 200
    assert (await assistant.refresh(tokens["refresh_token"])).status_code == 200


@pytest.mark.parametrize("leaves", ["is removed", "becomes staff"])
async def test_the_grant_of_an_owner_who_leaves(a_seller, leaves):
    seller = await a_seller()
    second = await joined(seller, f"second-{seller.email}", "owner")
    assistant = await registered(seller.service)
    tokens = await assistant.tokens(second)
    code = await assistant.code(second)
    async with seller.service.database.shared() as session:
        if leaves == "is removed":
            await roster.remove(session, second.member_id)
        else:
            await roster.change_role(session, second.member_id, "staff")
    await holds_no_more(assistant, tokens)
    answer = await assistant.post("/oauth/token", assistant.exchange(code))
    assert answer.json()["error"] == "invalid_grant"
    owner = await signed_in(seller)
    assert (await owner.get("/api/assistants")).json() == {"assistants": []}


async def test_a_token_for_another_audience_opens_nothing(a_seller):
    seller = await a_seller()
    assistant, tokens = await connected(seller)
    url = seller.service.settings.migration_database_url
    async with (
        Database.open(url, pool=1, hot_pool=1, role=None) as database,
        database.tenant(seller.id) as session,
    ):
        for table in ("oauth_grant", "access_token"):
            elsewhere = f"UPDATE {table} SET audience = 'https://elsewhere.example/mcp'"
            await session.execute(text(f"{elsewhere} WHERE seller_id = :id"), {"id": seller.id})
    await holds_no_more(assistant, tokens, error="invalid_target")


async def test_an_account_that_is_deleted_ends_its_grants(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    assistant, tokens = await connected(seller)
    code = await assistant.code(browser)
    answer = await browser.post("/api/account/deletion", json={"confirm": seller.email})
    assert answer.status_code < 300, answer.text
    await holds_no_more(assistant, tokens)
    answer = await assistant.post("/oauth/token", assistant.exchange(code))
    assert answer.json()["error"] == "invalid_grant"
    # Nor does the owner, who may still come back, let anybody in meanwhile.
    answer = await consented(await signed_in(seller), assistant.request())
    assert answer.status_code == 409
    assert "about to be deleted" in answer.text


async def test_a_token_of_the_operator_needs_no_grant_and_is_not_given_up(a_seller):
    seller = await a_seller(plan="free")
    token = await seller.token("mcp:read")
    text = token.headers["Authorization"].removeprefix("Bearer ")
    async with seller.service.client() as http:
        assert (await http.post("/oauth/revoke", data={"token": text})).status_code == 200
    assert (await token.get("/api/lists")).status_code == 200
    await connected(await a_seller())
    async with seller.service.database.shared() as session:
        assert len(await access_tokens.listed(session, seller.id)) == 1


async def test_no_secret_is_in_the_log(a_seller, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    seller = await a_seller()
    browser, assistant = await signed_in(seller), await registered(seller.service)
    code = await assistant.code(browser)
    tokens = (await assistant.post("/oauth/token", assistant.exchange(code))).json()
    async with assistant.bearer(tokens) as http:
        await http.get("/api/lists")
    renewed = (await assistant.refresh(tokens["refresh_token"])).json()
    await assistant.post("/oauth/revoke", {"token": renewed["refresh_token"]})
    written = "".join([*capfd.readouterr(), caplog.text])
    for secret in (code, assistant.verifier, *tokens.values(), renewed["access_token"]):
        if isinstance(secret, str) and len(secret) > 20:
            assert secret not in written
