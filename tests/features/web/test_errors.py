"""Failures as callers see them: JSON or HTML, the request id, and nothing of our insides."""

import asyncio
import re

import httpx
import psycopg
import pytest
from litestar import get

from browsers import A_PASSWORD, accept, invited, signed_in
from builders import a_client
from cardsync.access import keys
from cardsync.asgi import create_app
from cardsync.platform.database.urls import libpq_url
from requests_of_routes import DOCUMENT

CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


async def unknown(service, accept: str | None, **headers: str) -> httpx.Response:
    async with service.client() as http:
        del http.headers["Accept"]
        return await http.get(
            "/nothing", headers=headers | ({"Accept": accept} if accept is not None else {})
        )


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        (None, False),
        ("", False),
        ("application/json", False),
        ("*/*", False),
        ("text/html", True),
        (CHROME, True),
        ("TEXT/HTML", True),
        ("text/html, application/json", False),
        ("application/json, text/html", False),
        ("text/html;q=0.9, application/json;q=0.8", True),
        ("text/html;q=0.8, application/json;q=0.9", False),
        ("text/html; q=0.5, */*; q=0.4", True),
        ("text/html;q=0.4, */*;q=0.5", False),
        ("text/html, */*", False),
        ("text/html;q=0.5, application/*;q=0.6", False),
        ("text/html;q=0.5, application/*;q=0.4, */*;q=1", True),
        ("text/html;q=0.5, application/json;q=0.1, */*;q=1", True),
        ("text/*", False),
        ("text/html;q=0", False),
        ("text/html;q=many", False),
        ("text/html;level=1;q=0.7, application/json;q=0.6", True),
        (";;;,,,=", False),
    ],
)
async def test_an_internal_error_is_a_page_for_browsers_and_json_for_all_others(
    service, accept, html
):
    answer = await unknown(service, accept)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html" if html else "application/json")
    assert answer.headers["Vary"].split(", ")[0] == "Accept"


async def test_an_internal_error_in_json_has_exactly_its_four_fields(service):
    answer = await unknown(service, None)
    body = answer.json()
    assert set(body) == {"error", "code", "status", "request_id"}
    assert (body["code"], body["status"]) == ("not_found", 404)


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
async def test_the_request_id_is_the_same_in_header_and_body(service, accept):
    answer = await unknown(service, accept)
    request_id = answer.headers["X-Request-Id"]
    assert re.fullmatch(r"[0-9a-f]{24}", request_id)
    assert request_id in answer.text


async def test_a_caller_may_bring_its_own_request_id(service):
    answer = await unknown(service, None, **{"X-Request-Id": "agent-7.cycle_42"})
    assert answer.headers["X-Request-Id"] == answer.json()["request_id"] == "agent-7.cycle_42"


@pytest.mark.parametrize(
    "given", ["short", "x" * 65, "<script>alert(1)</script>", "with space 123", "öäüöäüöäü"]
)
async def test_a_strange_request_id_is_replaced(service, given):
    answer = await unknown(service, "text/html", **{"X-Request-Id": given.encode("latin-1")})
    assert answer.headers["X-Request-Id"] != given
    assert given not in answer.text


async def test_every_answer_carries_a_request_id_of_its_own(a_seller):
    seller = await a_seller()
    answers = [
        await seller.get("/api/v1/status"),
        await seller.get("/api/v1/uploads/1"),
        await seller.post("/api/v1/heartbeat"),
    ]
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == 3


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/pricing/explain/{}", "/api/v1/uploads/{}", "/api/pricing/rules/{}",
        "/api/pricing/sales/{}", "/api/pricing/runs/{}",
        "/api/pricing/rollbacks/{}", "/api/cards/{}",
    ],
)  # fmt: skip
async def test_an_id_beyond_what_the_database_holds_is_one_that_is_not_there(a_seller, path):
    seller = await a_seller()
    for id in (2**63 - 1, 2**63, 10**30, -(10**30)):
        answer = await seller.get(path.format(id))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/v1/heartbeat", "POST"),
        ("DELETE", "/api/v1/status", "GET"),
        ("PUT", "/api/v1/sync", "POST"),
        ("PATCH", "/api/v1/uploads/1", "GET"),
        ("POST", "/healthz", "GET"),
    ],
)
async def test_a_method_that_a_route_does_not_take_is_405_with_allow(
    a_seller, method, path, allowed
):
    seller = await a_seller()
    answer = await seller.http.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert set(answer.json()) == {"error", "code"}
    assert allowed in [name.strip() for name in answer.headers["Allow"].split(",")]


@pytest.mark.parametrize(
    "path", ["heartbeat", "sync/request", "sync/log", "sync/upload-request", "sync"]
)
@pytest.mark.parametrize("declared", [True, False], ids=["content-length", "chunked"])
async def test_a_body_over_ten_million_bytes_is_payload_too_large(a_seller, path, declared):
    seller = await a_seller()

    async def chunks():
        for _ in range(11):
            yield b" " * 1_000_000

    body = b" " * 10_000_001 if declared else chunks()
    answer = await seller.post(
        f"/api/v1/{path}", content=body, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")
    assert set(answer.json()) == {"error", "code"}


async def test_a_body_of_exactly_ten_million_bytes_is_read(a_seller):
    seller = await a_seller()
    body = b'{"version": "1"}'.ljust(10_000_000)
    answer = await seller.post(
        "/api/v1/heartbeat", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200


async def test_a_refusal_is_json_also_for_a_browser(a_seller):
    seller = await a_seller()
    answer = await seller.get("/api/v1/uploads/1", headers={"Accept": CHROME})
    assert answer.headers["Content-Type"] == "application/json"
    assert set(answer.json()) == {"error", "code"}


SECRET = "SELECT password FROM /etc/shadow"


@get("/crash")
async def crash() -> None:
    raise RuntimeError(SECRET)


@pytest.fixture(scope="module")
async def crashing(settings):
    """An application with a route of the test's own that fails unforeseen."""
    app = create_app(settings)
    app.register(crash)
    async with a_client(app) as http:
        yield http


@pytest.mark.night
@pytest.mark.parametrize("accept", ["application/json", CHROME])
async def test_an_unforeseen_failure_tells_nothing_but_the_request_id(crashing, accept):
    answer = await crashing.get("/crash", headers={"Accept": accept})
    assert answer.status_code == 500
    assert answer.headers["X-Request-Id"] in answer.text
    for leak in (SECRET, "RuntimeError", "Traceback", ".py", "cardsync/"):
        assert leak not in answer.text


async def test_an_unforeseen_failure_in_json_is_an_internal_error(crashing):
    body = (await crashing.get("/crash")).json()
    assert set(body) == {"error", "code", "status", "request_id"}
    assert (body["code"], body["status"]) == ("internal_server_error", 500)


async def test_a_failing_statement_tells_nothing_of_the_database(a_seller, service, owner_url):
    seller = await a_seller()
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute("ALTER TABLE agent_seen RENAME TO agent_seen_away")
        try:
            answer = await seller.get("/api/v1/status")
        finally:
            owner.execute("ALTER TABLE agent_seen_away RENAME TO agent_seen")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_server_error")
    assert not re.search(
        "agent_seen|SELECT|psycopg|sqlalchemy|relation", answer.text, re.IGNORECASE
    )
    assert (await seller.get("/api/v1/status")).status_code == 200


async def test_connections_that_ended_in_their_pools_are_noticed_before_they_are_used(
    a_seller, owner_url
):
    seller = await a_seller()
    paths = ("/api/v1/sync/pending", "/api/orders", "/api/v1/status")
    for path in paths:
        assert (await seller.get(path)).status_code == 200
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        ours = "datname = current_database() AND pid <> pg_backend_pid()"
        ended = owner.execute(
            f"SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}"
        ).fetchall()
        # They say so before they go.
        pids = [pid for pid, _ in ended]
        while owner.execute(
            "SELECT 1 FROM pg_stat_activity WHERE pid = ANY (%s)", [pids]
        ).fetchone():
            await asyncio.sleep(0.01)
    assert [(await seller.get(path)).status_code for path in paths * 2] == [200] * 6


@pytest.mark.night
async def test_without_a_database_a_route_is_unavailable_and_says_when_to_come_back(settings):
    away = settings.model_copy(
        update={
            "database_url": "postgresql://nobody@/nowhere?host=/nonexistent",
            "pooler_database_url": None,
        }
    )
    app = create_app(away)
    async with (
        app.lifespan(),
        a_client(app) as http,
    ):
        answer = await http.get(
            "/api/v1/status", headers={"Authorization": f"Bearer {keys.new_key()}"}
        )
        ready = await http.get("/readyz")
        alive = await http.get("/healthz")
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (
        503,
        "service_unavailable",
        "5",
    )
    assert set(answer.json()) == {"error", "code"}
    assert (ready.status_code, ready.json()["checks"]["database"]) == (503, "unavailable")
    assert ready.json()["checks"]["object_store"] == "ok"
    assert alive.status_code == 200


async def test_requests_at_the_same_time_keep_their_ids_apart(service):
    ids = [f"request-{n:04}" for n in range(30)]
    answers = await asyncio.gather(
        *(unknown(service, None, **{"X-Request-Id": name}) for name in ids)
    )
    assert [answer.json()["request_id"] for answer in answers] == ids


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/api/quick_add/products", "q: the query parameter is missing"),
        ("/api/quick_add/products?game=magic", "q: the query parameter is missing"),
        (f"/api/quick_add/products?q={'x' * 5000}", "q: must be a text of at most 200 characters"),
        ("/api/pricing/receipts/1", "at: the query parameter is missing"),
        ("/api/sales/summary?from=soon", "from: must be a day like 2026-11-21"),
        ("/api/sales/cards?to=soon", "to: must be a day like 2026-11-21"),
    ],
)
async def test_a_query_that_cannot_be_read_is_refused_by_the_name_that_the_client_sent(
    a_seller, path, named
):
    seller = await a_seller()
    answer = await seller.get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert answer.json()["error"].startswith(named)


async def test_every_parameter_that_a_route_needs_is_named_when_it_is_missing(a_seller):
    seller = await a_seller()
    for path, methods in DOCUMENT["paths"].items():
        for method, told in methods.items():
            needed = [
                parameter["name"]
                for parameter in told.get("parameters", ())
                if parameter["in"] in ("query", "header") and parameter.get("required")
            ]
            if not needed or path.startswith("/objects"):
                continue
            answer = await seller.http.request(method.upper(), re.sub(r"\{\w+\}", "1", path))
            assert answer.status_code in (400, 422), (method, path, answer.text)
            assert needed[0] in answer.json()["error"], (method, path, answer.text)


@pytest.mark.parametrize(
    ("method", "path", "body", "named"),
    [
        ("POST", "/api/lists", {"name": "a\0b"}, "name"),
        ("POST", "/api/pricing/rules", {"name": "a\0b"}, "name"),
        ("POST", "/api/pricing/sales", {"name": "a\0b", "adjust_bp": -100}, "name"),
        ("POST", "/api/saved_searches", {"name": "a", "query": "\0"}, "query"),
        ("POST", "/api/discovery/basket", {"cards": [{"name": "a"}, {"name": "\0"}]}, "cards[1].name"),
        ("POST", "/api/v1/sync/log", {"status": "failed", "steps": [{"name": "\0"}]}, "steps[0].name"),
        ("POST", "/api/v1/heartbeat", {"a\0b": 1}, "body"),
        ("POST", "/api/v1/heartbeat", "\0", "body"),
    ],
)  # fmt: skip
async def test_a_text_with_a_nul_is_refused_and_not_changed(a_seller, method, path, body, named):
    seller = await a_seller()
    answer = await seller.http.request(method, path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), answer.text
    assert answer.json()["error"].startswith(f"{named}: ")
    assert "NUL" in answer.json()["error"]
    assert (await seller.get("/api/lists")).json()["lists"] == []


@pytest.mark.night
async def test_a_nul_in_an_address_breaks_no_route(a_seller):
    seller = await a_seller()
    found = {}
    for path, methods in DOCUMENT["paths"].items():
        parameters = methods.get("get", {}).get("parameters", ())
        asked = [parameter for parameter in parameters if parameter["in"] == "query"]
        needed = {parameter["name"]: "a" for parameter in asked if parameter.get("required")}
        for name in (parameter["name"] for parameter in asked):
            query = needed | {name: "ab\0c"}
            answer = await seller.http.get(re.sub(r"\{\w+\}", "1", path), params=query)
            found[path, name] = answer.status_code
    assert {asked for asked, status in found.items() if status >= 500} == set()
    assert 200 in found.values()


async def test_a_backslash_before_u0000_is_a_text_like_any_other(a_seller):
    seller = await a_seller()
    made = await seller.post("/api/lists", json={"name": "\\u0000"})
    assert (made.status_code, made.json()["name"]) == (201, "\\u0000")


async def test_a_member_and_a_store_have_no_name_with_a_nul(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    named = await owner.send("PATCH", "/api/account", json={"store_name": "a\0b"})
    _, token = await invited(seller, "bea-nul@example.invalid")
    joining, _ = await accept(seller.service, token, name="a\0b", password=A_PASSWORD)
    for answer, field in ((named, "store_name"), (joining, "name")):
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"] == f"{field}: contains a NUL character"


async def test_a_request_that_the_framework_refuses_is_told_in_our_words(a_seller):
    seller = await a_seller()
    headers = {"Content-Type": "application/json", "Content-Length": "abc"}
    answer = await seller.post("/api/lists", content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "the request could not be read", "code": "bad_request"},
    )
