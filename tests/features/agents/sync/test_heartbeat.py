"""The heartbeat: what it answers, what it accepts, and that it notes the agent as seen."""

import asyncio
import gzip
import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from cardsync.asgi import create_app
from cardsync.platform import clock


async def test_the_heartbeat_of_a_new_account(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    answer = await seller.post(
        "/api/v1/heartbeat", json={"version": "1.2.3", "platform": "linux/amd64"}
    )
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {
        "update_available": False,
        "force_update": False,
        "product_lines": [
            {"name": "magic", "category_id": 1},
            {"name": "pokemon", "category_id": 3},
        ],
        "has_pending_tasks": False,
        "sync_mode": "full",
        "upload_approved": False,
    }


@pytest.mark.parametrize("sync_mode", ["full", "read_only"])
async def test_sync_mode_is_the_stored_one_while_the_plan_is_paid(a_seller, sync_mode):
    seller = await a_seller(sync_mode=sync_mode)
    assert (await seller.post("/api/v1/heartbeat")).json()["sync_mode"] == sync_mode


@pytest.mark.parametrize(
    ("plan", "mode", "approved"), [("founder", "full", True), ("free", "read_only", False)]
)
async def test_an_unpaid_account_is_held_read_only_and_its_approval_is_not_passed_on(
    a_seller, plan, mode, approved
):
    seller = await a_seller(plan=plan, upload_approved=True)
    answer = (await seller.post("/api/v1/heartbeat")).json()
    assert (answer["sync_mode"], answer["upload_approved"]) == (mode, approved)


async def test_an_ended_trial_is_held_read_only(a_seller):
    seller = await a_seller(plan="trial", trial_ends_at="2020-01-01T00:00:00+00:00")
    assert (await seller.post("/api/v1/heartbeat")).json()["sync_mode"] == "read_only"


@pytest.mark.parametrize(
    "sent", [{}, {"content": b""}, {"json": {}}, {"json": None}, {"content": b"null"}]
)
async def test_the_body_is_optional(a_seller, sent):
    seller = await a_seller()
    assert (await seller.post("/api/v1/heartbeat", **sent)).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"your_turn": None},
        {"your_turn": "paused", "your_turn_host": None},
        {"your_turn": "captcha", "your_turn_host": "[::1]:8080"},
        {"your_turn_host": "market.example"},
    ],
    ids=json.dumps,
)
async def test_an_agent_may_say_what_it_waits_for(a_seller, body):
    seller = await a_seller()
    assert (await seller.post("/api/v1/heartbeat", json=body)).status_code == 200


async def test_unknown_fields_and_parameters_are_ignored(a_seller):
    seller = await a_seller()
    answer = await seller.post(
        "/api/v1/heartbeat?shoe=42", json={"version": "1", "moon": {"phase": ["full"]}}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        7,
        True,
        {"version": 7},
        {"platform": ["linux"]},
        {"version": {"major": 1}},
        {"your_turn": "dance"},
        {"your_turn": ["sign_in"]},
        {"your_turn": ""},
        {"your_turn": "sign_in", "your_turn_host": "https://market.example/login?token=1"},
        {"your_turn": "sign_in", "your_turn_host": "a" * 254},
    ],
    ids=json.dumps,
)
async def test_the_wrong_shape_is_invalid_payload(a_seller, body):
    seller = await a_seller()
    answer = await seller.post("/api/v1/heartbeat", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


async def test_the_refusal_of_a_wrong_shape_names_the_field(a_seller):
    seller = await a_seller()
    answer = await seller.post("/api/v1/heartbeat", json={"version": 7})
    assert "version" in answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"{'version': 1}",
        b'{"version": "1"} x',
        b"\xff\xfe",
        b'{"version": "\xe9"}',
        b'{"v": "\x00"}',
        b"NaN",
    ],
)
async def test_what_is_not_json_is_bad_request(a_seller, body):
    seller = await a_seller()
    answer = await seller.post(
        "/api/v1/heartbeat", content=body, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert set(answer.json()) == {"error", "code"}


async def test_deep_nesting_is_bad_request(a_seller):
    seller = await a_seller()
    body = b"[" * 200_000 + b"]" * 200_000
    answer = await seller.post(
        "/api/v1/heartbeat", content=body, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


JSON_TYPES = [
    "application/json",
    "application/json; charset=utf-8",
    "application/gzip",
    "application/octet-stream",
    None,
]


@pytest.mark.parametrize("content_type", JSON_TYPES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
async def test_a_body_may_be_gzipped_under_any_of_the_types(a_seller, service, content_type, pack):
    seller = await a_seller()
    body = pack(json.dumps({"version": "7.7.7"}).encode())
    headers = {"Content-Type": content_type} if content_type else {}
    assert (
        await seller.post("/api/v1/heartbeat", content=body, headers=headers)
    ).status_code == 200
    assert (await seen(service, seller))["version"] == "7.7.7"


async def test_damaged_gzip_is_bad_request(a_seller):
    seller = await a_seller()
    body = gzip.compress(b'{"version": "1"}')[:-4]
    answer = await seller.post(
        "/api/v1/heartbeat", content=body, headers={"Content-Type": "application/gzip"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_a_bomb_is_refused_as_too_large_once_decompressed(a_seller):
    seller = await a_seller()
    body = gzip.compress(b" " * 60_000_000)
    answer = await seller.post(
        "/api/v1/heartbeat", content=body, headers={"Content-Type": "application/gzip"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "decompressed_too_large")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "text/csv", "application/xml", "multipart/form-data; boundary=x"]
)
async def test_another_content_type_is_unsupported(a_seller, content_type):
    seller = await a_seller()
    answer = await seller.post(
        "/api/v1/heartbeat", content=b'{"version":"1"}', headers={"Content-Type": content_type}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


async def seen(service, seller) -> dict:
    """The agent's row once the flush of this moment is through."""
    for _ in range(3000):
        query = "SELECT version, platform FROM agent_seen WHERE seller_id = :id"
        if rows := await service.sql(seller.id, query, id=seller.id):
            return rows[0]
        await asyncio.sleep(0.02)
    raise AssertionError("the heartbeat was not written")


async def test_the_agent_is_noted_with_version_and_platform(a_seller, service):
    seller = await a_seller()
    await seller.post("/api/v1/heartbeat", json={"version": "1.4.0", "platform": "darwin/arm64"})
    assert await seen(service, seller) == {"version": "1.4.0", "platform": "darwin/arm64"}


async def test_a_heartbeat_without_a_body_keeps_the_version_known_before(a_seller, service):
    seller = await a_seller()
    await seller.post("/api/v1/heartbeat", json={"version": "1.4.0"})
    await seen(service, seller)
    first = await last_seen(seller)
    await seller.post("/api/v1/heartbeat")
    assert await last_seen(seller, after=first) > first
    assert (await seen(service, seller))["version"] == "1.4.0"


async def last_seen(seller, *, after: str | None = None) -> str:
    for _ in range(3000):
        at = (await seller.get("/api/v1/status")).json()["agent_last_seen_at"]
        if at is not None and at != after:
            return at
        await asyncio.sleep(0.02)
    raise AssertionError("agent_last_seen_at did not move")


async def test_status_shows_when_the_agent_was_last_seen(a_seller):
    seller = await a_seller()
    assert (await seller.get("/api/v1/status")).json()["agent_last_seen_at"] is None
    await seller.post("/api/v1/heartbeat")
    assert (await last_seen(seller)).endswith("Z")


async def test_status_shows_a_heartbeat_that_this_process_has_not_written_yet(
    a_seller, service, alive
):
    """Nothing waits for the flush: neither before it, nor while it runs."""
    lazy = create_app(service.settings.model_copy(update={"last_seen_flush_seconds": 3600}))
    seller = await a_seller()
    own = replace(service, app=lazy)
    async with alive(lazy), own.client(Authorization=f"Bearer {seller.api_key}") as http:
        noted = lazy.state.last_seen

        async def seen_at() -> datetime:
            return datetime.fromisoformat(
                (await http.get("/api/v1/status")).json()["agent_last_seen_at"]
            )

        for _ in range(2):
            clock.shift(timedelta(minutes=1))
            await http.post("/api/v1/heartbeat")
            assert clock.now() - await seen_at() < timedelta(seconds=30)
        flushing = asyncio.create_task(noted.flush())
        while not flushing.done():
            assert clock.now() - await seen_at() < timedelta(seconds=30)
        await flushing
        assert clock.now() - await seen_at() < timedelta(seconds=30)


async def test_heartbeats_of_many_sellers_are_written_by_one_statement(a_seller, service):
    sellers = [await a_seller() for _ in range(5)]
    transactions = "SELECT DISTINCT xmin::text FROM agent_seen WHERE seller_id = ANY(:ids)"
    ids = [seller.id for seller in sellers]
    noted = service.app.state.last_seen
    # The flush runs every 50 ms, so the heartbeats may straddle one: then they are sent again.
    for _ in range(20):
        await asyncio.gather(*(seller.post("/api/v1/heartbeat") for seller in sellers))
        await noted.flush()
        if len(await service.sql(sellers[0].id, transactions, ids=ids)) == 1:
            return
    raise AssertionError("every heartbeat was written by itself")


async def test_a_version_that_cannot_be_stored_hurts_nobody_else(a_seller, service):
    odd, other = await a_seller(), await a_seller()
    sent = await odd.post("/api/v1/heartbeat", json={"version": "1\u0000", "platform": "\u0000"})
    assert (sent.status_code, sent.json()["error"]) == (422, "version: contains a NUL character")
    await other.post("/api/v1/heartbeat", json={"version": "2.0"})
    await service.app.state.last_seen.flush()
    assert (await seen(service, other))["version"] == "2.0"
