"""`cardsync serve` with a receiver of OTLP: each of its processes sends, the last spans too."""

from __future__ import annotations

import secrets

import httpx
import pytest
from tests.system.inventories import inventory
from tests.system.processes import Server, a_folder, free_port, until

from otlp_receiver import receiving


@pytest.mark.day
def test_one_trace_joins_the_processes_and_their_ends_lose_nothing() -> None:
    """It alone finds processes that send nothing: exporters have threads, and web processes fork."""
    trace_id = secrets.token_hex(16)
    with receiving() as received:
        with a_folder() as folder, Server(folder, OTLP_URL=received.url) as server:
            seller = server.seller()
            with seller.http() as http:
                http.headers["traceparent"] = f"00-{trace_id}-{secrets.token_hex(8)}-01"
                answer = http.post(
                    "/api/v1/sync", content=inventory(30), headers={"Content-Type": "text/csv"}
                )
                assert answer.status_code == 202, answer.text
            seller.finished(answer.json()["upload_id"])
            alone = f"127.0.0.1:{free_port()}"
            worker = server.launch("worker", env=server.env | {"CARDSYNC_METRICS_BIND": alone})
            until(lambda: "cardsync_work_" in shown(f"http://{alone}/metrics"), "its metrics", 60)
            worker.kill()
            assert server.stop() == 0
        found = received.of_trace(trace_id)
        names = {span.name for span in found}
        assert {"POST /api/v1/sync", "work inventory", "slab"} <= names
        assert received.metrics["cardsync_requests_total"].sum.is_monotonic
        assert "cardsync_database_up" in received.metrics
        lines = {one["event"] for one in received.logs if one.get("trace_id") == trace_id}
        assert {"request", "upload_imported"} <= lines


def shown(url: str) -> str:
    try:
        return httpx.get(url).text
    except httpx.TransportError:
        return ""
