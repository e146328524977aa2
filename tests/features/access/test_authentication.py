"""Keys and their refusals: a key is checked before anything else of a request."""

import re

import httpx
import pytest

from builders import a_csv, a_row
from callers import STRANGERS
from cardsync.access import keys
from requests_of_routes import ROUTES

NO_CREDENTIALS = 'Bearer realm="cardsync"'
BAD_CREDENTIALS = 'Bearer realm="cardsync", error="invalid_token"'

# Every route of openapi.json that asks who it is.
BEHIND = sorted(ROUTES - STRANGERS)


async def answers(http) -> dict[str, httpx.Response]:
    """The answer of each of them to a request without a body."""
    return {
        route: await http.request(route.split()[0], re.sub(r"{\w+}", "1", route.split()[1]))
        for route in BEHIND
    }


async def test_without_credentials_every_route_challenges_without_an_error(service):
    told = {"error": "Missing or invalid API key.", "code": "unauthorized"}
    async with service.client() as http:
        found = await answers(http)
    assert {
        route: (answer.status_code, answer.json(), answer.headers["WWW-Authenticate"])
        for route, answer in found.items()
    } == dict.fromkeys(BEHIND, (401, told, NO_CREDENTIALS))


def wrong_check(key: str) -> str:
    return key[:-1] + ("0" if key[-1] != "0" else "1")


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Basic dXNlcjpwYXNz",
        "csk_without_a_scheme",
        f"Bearer {keys.new_key()}",
        f"Bearer {wrong_check(keys.new_key())}",
        "Bearer " + "ü" * 42,
        "Bearer " + "x" * 5000,
    ],
    ids=[
        "scheme-only",
        "blank",
        "nonsense",
        "basic",
        "no-scheme",
        "unknown",
        "mistyped",
        "not-ascii",
        "long",
    ],
)
async def test_bad_credentials_are_named_as_the_error(service, authorization):
    async with service.client() as http:
        answer = await http.get(
            "/api/v1/status", headers={"Authorization": authorization.encode("latin-1")}
        )
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == BAD_CREDENTIALS


async def test_a_good_key_with_one_wrong_character_is_refused(a_seller):
    seller = await a_seller()
    answer = await seller.get(
        "/api/v1/status", headers={"Authorization": f"Bearer {wrong_check(seller.api_key)}"}
    )
    assert answer.status_code == 401


async def test_a_revoked_key_is_refused_at_once(a_seller, service):
    seller = await a_seller()
    assert (await seller.get("/api/v1/status")).status_code == 200
    async with service.database.shared() as session:
        [(key_id, *_)] = await keys.listed(session, seller.id)
        await keys.revoke(session, key_id)
    answer = await seller.get("/api/v1/status")
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, BAD_CREDENTIALS)


async def test_revoking_one_key_leaves_the_others_good(a_seller, service):
    seller = await a_seller()
    async with service.database.shared() as session:
        second = await keys.mint(session, seller.id, "second")
        await keys.revoke(session, second.key_id)
    assert (await seller.get("/api/v1/status")).status_code == 200
    refused = await seller.get(
        "/api/v1/status", headers={"Authorization": f"Bearer {second.api_key}"}
    )
    assert refused.status_code == 401


async def test_a_suspended_account_is_refused_everywhere(suspended):
    told = {"error": "This account is suspended.", "code": "account_suspended"}
    assert {
        route: (answer.status_code, answer.json(), "WWW-Authenticate" in answer.headers)
        for route, answer in (await answers(suspended.http)).items()
    } == dict.fromkeys(BEHIND, (403, told, False))


@pytest.fixture(scope="module")
async def suspended(service):
    from builders import SellerBuilder

    return await SellerBuilder(service)(suspended=True)


async def test_suspending_works_on_the_next_request_and_so_does_its_end(a_seller):
    seller = await a_seller()
    assert (await seller.post("/api/v1/heartbeat")).status_code == 200
    await seller.set(suspended=True)
    assert (await seller.post("/api/v1/heartbeat")).status_code == 403
    await seller.set(suspended=False)
    assert (await seller.post("/api/v1/heartbeat")).status_code == 200


async def test_an_account_that_falls_back_to_free_keeps_its_key(a_seller):
    seller = await a_seller()
    await seller.set(plan="free")
    assert (await seller.get("/api/v1/status")).json()["sync_mode"] == "read_only"


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/v1", "/nothing", "/api/v1/uploads/abc", "/openapi/nothing"]
)
async def test_an_unknown_route_is_not_found_also_without_credentials(service, path):
    async with service.client() as http:
        answer = await http.get(path)
    assert answer.status_code == 404
    assert set(answer.json()) == {"error", "code", "status", "request_id"}
    assert (answer.json()["code"], answer.json()["status"]) == ("not_found", 404)


async def test_an_unknown_upload_is_not_found(a_seller):
    seller = await a_seller()
    answer = await seller.get("/api/v1/uploads/999999999")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert set(answer.json()) == {"error", "code"}


@pytest.mark.parametrize("upload_id", ["0", "-1", "9223372036854775808", "9" * 40])
async def test_an_impossible_upload_id_is_not_found(a_seller, upload_id):
    seller = await a_seller()
    answer = await seller.get(f"/api/v1/uploads/{upload_id}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "action"), [("GET", ""), ("POST", "/confirm"), ("POST", "/discard")]
)
async def test_a_foreign_upload_is_not_found_in_the_very_same_words(a_seller, method, action):
    mine, theirs = await a_seller(), await a_seller()
    upload_id = (await theirs.upload(a_csv(a_row()))).json()["upload_id"]
    foreign = await mine.http.request(method, f"/api/v1/uploads/{upload_id}{action}")
    absent = await mine.http.request(method, f"/api/v1/uploads/999999999{action}")
    assert foreign.status_code == absent.status_code == 404
    assert set(foreign.json()) == {"error", "code"}
    assert foreign.json()["error"].replace(str(upload_id), "N") == absent.json()["error"].replace(
        "999999999", "N"
    )


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/heartbeat",
        "/api/v1/sync/request",
        "/api/v1/sync/log",
        "/api/v1/sync/upload-request",
        "/api/v1/sync",
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
async def test_the_key_is_checked_before_the_body(service, suspended, path, content_type):
    headers = {"Content-Type": content_type}
    async with service.client() as http:
        anonymous = await http.post(path, content=b"{not json", headers=headers)
    locked_out = await suspended.post(path, content=b"{not json", headers=headers)
    assert (anonymous.status_code, locked_out.status_code) == (401, 403)


async def test_the_body_of_a_caller_without_a_key_is_not_even_read(service):
    read = 0

    async def endless():
        nonlocal read
        for _ in range(200):
            read += 1
            yield b"x" * 100_000

    # ASGITransport hands the body over as it is asked for.
    async with service.client() as http:
        answer = await http.post(
            "/api/v1/sync", content=endless(), headers={"Content-Type": "text/csv"}
        )
    assert answer.status_code == 401
    assert read < 200
