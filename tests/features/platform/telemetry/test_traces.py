"""Traces: an upload is one trace from the agent's request over its jobs and slabs to the price
file, log lines name their request, and nothing secret leaves the process.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager

import pytest
import structlog

import loggers
from builders import a_csv, a_row
from cardsync.platform import logs
from cardsync.platform.telemetry import spans
from cardsync.platform.telemetry.otlp import logs_exported, traces_exported
from otlp_receiver import receiving


@pytest.fixture
def _logs_are_written(monkeypatch):
    before = structlog.get_config()
    logs.setup_logging("info", "json")
    structlog.configure(cache_logger_on_first_use=False)
    loggers.renewed(monkeypatch)
    yield
    monkeypatch.undo()
    logs.setup_logging("warning", "json")
    structlog.configure(**before)


@contextmanager
def exported(url, ratio):
    with traces_exported(url, ratio, "test"), logs_exported(url, "test"):
        yield


def a_traceparent(flags="01"):
    trace_id = secrets.token_hex(16)
    return trace_id, {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-{flags}"}


def ends_of(spans_of_trace):
    """The names of a trace's spans, without those of statements."""
    return {span.name for span in spans_of_trace if "db.system.name" not in span.attributes}


def is_one_tree(found, header):
    ids = {span.span_id for span in found} | {header["traceparent"].split("-")[2]}
    return all(span.parent_id in ids for span in found)


async def a_sync(seller, header):
    """An upload of more rows than a slab has, its jobs, and the price file, as an agent does it."""
    rows = [
        a_row(n, name="Secret Lotus", set="Secret Set", price="1.00", market="77.77")
        for n in range(1, 131)
    ]
    accepted = await seller.upload(a_csv(*rows), **header)
    assert accepted.status_code == 202, accepted.text
    await seller.service.run_jobs()
    file = await seller.export(**header)
    assert file.status_code == 200
    return accepted


@pytest.mark.usefixtures("_logs_are_written")
async def test_an_upload_is_one_trace_from_the_request_to_the_price_file(a_seller, service):
    seller = await a_seller()
    trace_id, header = a_traceparent()
    with receiving() as received:
        with exported(received.url, 0.0):
            accepted = await a_sync(seller, header)
        found = received.of_trace(trace_id)
    assert {
        "POST /api/v1/sync", "work inventory", "read file", "parse", "price", "diff", "slab",
        "finish", "work stock", "GET /api/v1/export/price-updates",
    } <= ends_of(found)  # fmt: skip
    assert is_one_tree(found, header)
    slabs = [span for span in found if span.name == "slab"]
    assert sum(span.attributes["cardsync.rows"] for span in slabs) == 130
    assert len(slabs) > 2
    # Statements are parts of slabs, COPY too, and of requests.
    statements = [span for span in found if "db.system.name" in span.attributes]
    within = {span.span_id: span.name for span in found}
    assert "COPY incoming" in {
        span.name for span in statements if within.get(span.parent_id) == "slab"
    }
    assert "POST /api/v1/sync" in {within.get(span.parent_id) for span in statements}
    # Each line of the log of this work has the ids of the request, the shop and the trace.
    request_id = accepted.headers["X-Request-Id"]
    about = [one for one in received.logs if one.get("trace_id") == trace_id]
    lines = {one["event"]: one for one in about}
    assert {"request", "upload_imported"} <= lines.keys(), sorted(lines)
    for event in ("request", "upload_imported"):
        assert lines[event]["seller_id"] == seller.id
        assert lines[event]["trace"] == trace_id
    assert lines["upload_imported"]["request_id"] == request_id
    assert lines["upload_imported"]["job"] == "inventory.drain"
    assert lines["upload_imported"]["work_id"] == accepted.json()["upload_id"]


async def test_nothing_secret_is_in_what_is_sent(a_seller, service):
    seller = await a_seller()
    _, header = a_traceparent()
    with receiving() as received:
        with exported(received.url, 1.0):
            await a_sync(seller, header)
            assert (await seller.send("/orders", AN_ORDER)).status_code == 202
            await service.run_jobs()
            await seller.get("/api/cards?search=secret-search")
            with pytest.raises(Exception, match="no_such_table"):
                await service.sql(seller.id, "SELECT :given FROM no_such_table", given="secret-own")
        assert len(received.spans) > 50
        sent = b"\n".join(received.bodies).lower()
    for word in ("secret", "77.77", seller.api_key, seller.api_key[4:36], seller.email):
        assert word.lower().encode() not in sent, word


AN_ORDER = [
    {
        "order_number": "SECRET-1",
        "order_date": "7/3/26",
        "status": "Ready to Ship",
        "buyer_name": "Secret Buyer",
        "total_amt": 12.5,
    }
]


@pytest.mark.parametrize(
    ("ratio", "header", "is_wanted"),
    [
        (0.0, None, False),
        (1.0, None, True),
        (0.0, "01", True),
        (1.0, "00", False),
        (1.0, "nonsense", True),
    ],
)
async def test_a_share_is_traced_and_what_its_caller_records(a_seller, ratio, header, is_wanted):
    seller = await a_seller()
    headers = {"traceparent": "nonsense"} if header == "nonsense" else {}
    if header and not headers:
        _, headers = a_traceparent(header)
    with receiving() as received:
        with exported(received.url, ratio):
            await seller.get("/api/v1/status", headers=headers)
            await seller.post("/api/v1/heartbeat", headers=headers)
        names = {span.name for span in received.spans}
    assert ("GET /api/v1/status" in names) is is_wanted
    # Polls are many, and say little.
    assert not any("heartbeat" in name for name in names)


async def test_work_that_nobody_traced_begins_a_trace_of_its_own(a_seller):
    seller = await a_seller()
    with receiving() as received:
        with exported(received.url, 0.0):
            await seller.import_csv(a_csv(a_row()))
        [work] = [span for span in received.spans if span.name == "work inventory"]
    assert work.parent_id == ""
    assert work.attributes["cardsync.seller_id"] == seller.id


async def test_a_receiver_that_is_away_stops_nothing(a_seller):
    """It alone finds that exporters wait in their own threads, and for a few seconds at most."""
    seller = await a_seller()
    with exported("http://127.0.0.1:9", 1.0):
        assert (await seller.get("/api/v1/status")).status_code == 200
    assert spans.TRACING.tracer is None
