"""The service's log: every line of a request carries its id, and no line carries a key, an
address or what a seller sells.
"""

import asyncio
import base64
import io
import json

import httpx
import pytest
import structlog
from litestar import get

import loggers
from builders import a_csv, a_png, a_row
from cardsync.asgi import create_app
from cardsync.platform import concurrency, logs


@pytest.fixture
def log(monkeypatch):
    """The log of a process at its most verbose, as text."""
    written = io.StringIO()
    before = structlog.get_config()
    monkeypatch.setattr("sys.stderr", written)
    logs.setup_logging("debug", "json")
    structlog.configure(cache_logger_on_first_use=False)
    loggers.renewed(monkeypatch)
    yield written
    monkeypatch.undo()
    logs.setup_logging("warning", "json")
    # The very lists of before: loggers that were used keep them, and `capture_logs` changes them.
    structlog.configure(**before)


async def test_a_request_is_logged_with_its_id_route_and_status(a_seller, log):
    seller = await a_seller()
    answer = await seller.get("/api/v1/uploads/1?token=secret")
    [line] = [
        line for line in log.getvalue().splitlines() if answer.headers["X-Request-Id"] in line
    ]
    assert '"route": "/api/v1/uploads/{upload_id}"' in line
    assert '"status": 404' in line
    assert "secret" not in line


async def test_head_is_logged_as_head(a_seller, log):
    seller = await a_seller()
    answer = await seller.http.head("/api/cards")
    [line] = [
        line for line in log.getvalue().splitlines() if answer.headers["X-Request-Id"] in line
    ]
    assert '"method": "HEAD"' in line
    assert '"route": "/api/cards"' in line


async def test_good_polls_are_quiet_and_bad_ones_are_not(a_seller, service, log):
    seller = await a_seller()
    await seller.post("/api/v1/heartbeat")
    await seller.get("/api/v1/sync/pending")
    assert "/api/v1/heartbeat" not in log.getvalue()
    async with service.client() as http:
        await http.post("/api/v1/heartbeat")
    assert '"route": "/api/v1/heartbeat"' in log.getvalue()


@pytest.mark.day
async def test_a_crash_is_logged_with_its_trace_and_the_callers_request_id(settings, log):
    @get("/crash")
    async def crash() -> None:
        raise RuntimeError("the reason")

    app = create_app(settings)
    app.register(crash)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        answer = await http.get("/crash")
    [line] = [line for line in log.getvalue().splitlines() if "request_crashed" in line]
    assert answer.json()["request_id"] in line
    assert "the reason" in line


@pytest.mark.parametrize(
    "after",
    [
        "",
        "\n\nThe above exception was the direct cause of the following exception:\n",
        "\n[SQL: INSERT]",
    ],
)
def test_what_postgresql_quotes_of_a_row_is_cut_out_however_many_lines_it_has(after):
    said = "psycopg.errors.CheckViolation: new row violates a check"
    quoted = (
        "\nDETAIL:  Failing row contains (1, Secret Buyer\nSecret Street 5\n\nSecret Town).\n"
        "CONTEXT:  COPY, line 1: Secret"
    )
    event = logs._without_detail(None, "error", {"exception": said + quoted + after})
    assert event["exception"] == said + after


async def test_a_whole_cycle_leaves_no_key_address_or_name_in_the_log(a_seller, service, log):
    seller = await a_seller()
    await seller.post("/api/v1/heartbeat", json={"version": "1.0", "platform": "secret-platform"})
    await seller.post("/api/v1/sync/request")
    await seller.get("/api/v1/sync/pending", params={"agent_id": "secret-agent"})
    slot = (await seller.post("/api/v1/sync/upload-request")).json()
    rows = [
        a_row(n, name="Secret Lotus", set="Secret Set", price="1.00", market="77.77")
        for n in range(1, 4)
    ]
    async with service.client() as http:
        await http.put(
            slot["upload_url"], content=a_csv(*rows, a_row(4, name="Secret Lotus", price="broken"))
        )
        await http.get("/api/v1/status", headers={"Authorization": f"Bearer {seller.api_key[:-1]}"})
    await seller.post("/api/v1/sync", json={"key": slot["key"], "sync_cycle_id": "secret-cycle"})
    await service.run_jobs()
    await seller.export()
    log_body = {
        "status": "failed",
        "steps": [{"name": "secret-step", "status": "failed", "error": "secret-error"}],
    }
    await seller.post("/api/v1/sync/log", json=log_body)
    page = {
        "page_url": "https://example.invalid/?secret",
        "step_name": "secret-step",
        "sync_cycle_id": "secret-cycle",
    }
    for picture in (base64.b64encode(a_png(text=b"secret")).decode(), "c2VjcmV0secret"):
        await seller.post("/api/v1/sync/debug", json={"screenshot": picture, **page})
    text = log.getvalue()
    assert "/api/v1/sync/log" in text
    assert "/api/v1/sync/debug" in text
    signature = slot["upload_url"].rpartition("signature=")[2]
    for secret in (
        seller.api_key,
        seller.api_key[4:36],
        seller.email,
        seller.password,
        signature,
        slot["key"],
    ):
        assert secret not in text
    assert "secret" not in text.lower()
    assert "77.77" not in text


async def test_a_failing_statement_is_logged_without_its_values(a_seller, service, log):
    seller = await a_seller()
    # The application's own sessions name statements in their errors, but not what was bound to
    # them.
    with pytest.raises(Exception) as failed:
        await service.sql(
            seller.id, "SELECT CAST(:given AS text) FROM no_such_table", given="secret buyer"
        )
    assert "no_such_table" in str(failed.value)
    assert "secret buyer" not in str(failed.value)


async def test_flushes_that_fail_are_one_line_when_it_begins_and_one_when_it_ends(log):
    full = asyncio.Event()
    flushes = 0

    async def flush() -> None:
        nonlocal flushes
        flushes += 1
        if full.is_set():
            raise OSError(28, "No space left on device")

    async def after(more: int) -> None:
        seen = flushes
        while flushes < seen + more:
            await asyncio.sleep(0)

    def told() -> list[tuple[str, str, int | None]]:
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
        return [(line["event"], line["level"], line.get("failures")) for line in lines]

    failed = ("last_seen_flush_failed", "warning", None)
    async with concurrency.every(0.001, flush, "last_seen_flush_failed", last=True):
        await after(3)
        assert told() == []
        full.set()
        await after(5)
        assert told() == [failed]
        full.clear()
        await after(3)
        [_, (event, level, failures)] = told()
        assert (event, level) == ("recovered", "info")
        assert (failures or 0) >= 4
        full.set()
        await after(3)
    assert [event for event, _, _ in told()].count("last_seen_flush_failed") == 2
    assert "No space left on device" in log.getvalue()
    assert "Traceback" not in log.getvalue()
