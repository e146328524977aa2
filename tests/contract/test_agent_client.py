"""The agent against the answers and failures that the spec names: over real HTTP, as a real
process.
"""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.contract.agent_fake_server import HEADER, KEY, FakeServer, Fault, pricing_csv
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import once, the_log

from cardsync_agent.client import Client, KeyRefused, Refused, TryAgain

# The client alone


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (500, "internal_server_error", TryAgain),
        (503, "service_unavailable", TryAgain),
        (429, "rate_limited", TryAgain),
        (0, "", TryAgain),
        (401, "unauthorized", KeyRefused),
        (403, "account_suspended", KeyRefused),
        (403, "object_store_pipeline_disabled", Refused),
        (404, "not_found", Refused),
        (422, "invalid_payload", Refused),
    ],
)
def test_an_answer_is_a_refusal_or_a_reason_to_try_again(
    server: FakeServer, status: int, code: str, kind: type[Exception]
) -> None:
    server.faults = [Fault("status", status, code=code)]
    with pytest.raises(kind) as raised:
        Client(server.url, KEY).status()
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("99999", 3600.0),
        ("9" * 400, 3600.0),
        ("soon", None),
        ("-5", None),
        ("\u00b2", None),
    ],
)
def test_retry_after_is_heard(server: FakeServer, text: str, seconds: float | None) -> None:
    server.faults = [Fault("status", 429, headers={"Retry-After": text})]
    with pytest.raises(TryAgain) as raised:
        Client(server.url, KEY).status()
    assert raised.value.retry_after == seconds


def test_the_calls_of_a_cycle_are_one_trace_and_others_are_none() -> None:
    sent: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("traceparent"))
        return httpx.Response(200, json={})

    client = Client("http://server.invalid", KEY, httpx.MockTransport(answer))
    for cycle in (None, "6f1d5a3e-0000-4000-8000-00000000abcd", "no uuid", None):
        client.trace(cycle)
        client.status()
    one = "00-6f1d5a3e00004000800000000000abcd-800000000000abcd-01"
    assert sent == [None, one, None, None]


def test_a_page_that_is_not_the_servers_is_no_answer(server: FakeServer) -> None:
    server.prices = b"<html>Welcome to the hotel's network"
    with pytest.raises(TryAgain, match="not the server's price file"):
        Client(server.url, KEY).price_updates(None)


@pytest.mark.parametrize("origin", ["", "absolute"])
def test_the_presigned_put_carries_no_key(server: FakeServer, origin: str) -> None:
    server.upload_origin = server.url if origin else ""
    client = Client(server.url, KEY)
    ticket = client.upload_request()
    client.put_object(ticket.upload_url, b"a", lambda: None)
    assert server.objects == {ticket.key: b"a"}
    assert "authorization" not in server.put_headers[0]
    with pytest.raises(Refused, match="already_used"):
        client.put_object(ticket.upload_url, b"a", lambda: None)


# One cycle


def test_a_cycle_goes_up_and_comes_down(agents: Agents, server: FakeServer, folder: Path) -> None:
    ended = once(agents, server, folder)
    assert ended.returncode == 0, ended.errors
    assert server.contents() == [pricing_csv(200)]
    assert the_log(server) == (
        "success",
        dict.fromkeys(
            [
                "export_inventory",
                "upload_inventory",
                "await_repricing",
                "download_price_updates",
                "import_prices",
            ],
            ("success", None),
        ),
    )
    [saved] = ended.named("export_saved")
    assert (Path(saved["path"]).read_bytes(), saved["rows"]) == (server.prices, 3)
    assert (folder / "outbox" / Path(saved["path"]).name).read_bytes() == server.prices
    assert ended.named("upload_done")[0]["report"]["state"] == "done"
    assert ended.named("cycle_finished")[0]["status"] == "success"
    assert "/" in server.heartbeats[0]["platform"]


def test_read_only_saves_and_does_not_place(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.sync_mode = "read_only"
    once(agents, server, folder)
    status, steps = the_log(server)
    assert (status, "import_prices" in steps) == ("success", False)
    assert len([*(folder / "exports").iterdir()]) == 1
    assert not (folder / "outbox").exists()


def test_an_unchanged_export_is_not_downloaded_again(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.sync_mode, server.etag = "read_only", 'W/"1"'
    once(agents, server, folder)
    ended = once(agents, server, folder, "--request", "pricing")
    assert ended.named("export_empty")[0]["reasons"] == ["not_modified"]
    assert len([*(folder / "exports").iterdir()]) == 1
    assert [log["status"] for log in server.cycles().values()] == ["success", "success"]


def test_an_empty_export_is_a_success_with_its_reason(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.prices, server.empty_reason = HEADER, "consent_missing,drafts_only"
    ended = once(agents, server, folder)
    assert ended.named("export_empty")[0]["reasons"] == ["consent_missing", "drafts_only"]
    status, steps = the_log(server)
    assert (status, steps["import_prices"]) == ("success", ("skipped", "nothing to import"))
    assert [*(folder / "exports").iterdir()] == []


def test_told_to_wait_it_says_why(agents: Agents, server: FakeServer, folder: Path) -> None:
    server.due = False
    ended = once(agents, server, folder)
    assert (ended.returncode, ended.named("waiting")[0]["reason"]) == (0, "no_sync_needed")
    assert server.logs == []


def test_the_same_file_again_needs_a_request(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    once(agents, server, folder)
    server.due = True
    assert once(agents, server, folder).returncode == 1
    *_, log = server.logs
    assert (log["status"], log["steps"][0]["error"]) == (
        "failed",
        "no new export in inbox (export.csv was imported before)",
    )
    assert once(agents, server, folder, "--request").returncode == 0
    assert len(server.uploads) == 2
    assert len([*(folder / "exports").iterdir()]) == 2


def test_without_an_export_the_cycle_fails_with_the_reason(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    (folder / "inbox" / "export.csv").unlink()
    assert once(agents, server, folder).returncode == 1
    status, steps = the_log(server)
    assert (status, steps["export_inventory"]) == ("failed", ("failed", "no export in inbox"))
    assert steps["import_prices"] == ("skipped", "an earlier step failed")


@pytest.mark.parametrize(
    ("state", "error", "expected", "words"),
    [
        (
            "failed",
            {"code": "invalid_csv", "message": "line 1: no header"},
            "failed",
            "invalid_csv: line 1: no header",
        ),
        ("cancelled", None, "failed", "cancelled by the seller"),
        ("awaiting_review", None, "partial", "POST /api/v1/uploads/1/confirm"),
    ],
)
def test_how_an_upload_ends_is_how_the_cycle_ends(
    agents: Agents,
    server: FakeServer,
    folder: Path,
    state: str,
    error: dict[str, str] | None,
    expected: str,
    words: str,
) -> None:
    server.upload_states, server.upload_error = ["queued", state], error
    once(agents, server, folder)
    status, steps = the_log(server)
    assert (status, steps["await_repricing"][0]) == (expected, "failed")
    assert words in (steps["await_repricing"][1] or "")
    assert [*(folder / "exports").iterdir()] == []


def test_a_failed_download_after_the_import_is_partial(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.faults = [Fault("export/price-updates", 404, code="not_found")]
    once(agents, server, folder)
    assert the_log(server)[0] == "partial"


# Failures on the way


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("status", [0, 503])
@pytest.mark.parametrize(
    "path",
    [
        *(
            "heartbeat",
            "sync/pending",
            "upload-request",
            "/objects/",
            "POST /api/v1/sync",
            "uploads/",
        ),
        *("export/price-updates", "sync/log"),
    ],
)
def test_any_call_may_fail_and_nothing_is_done_twice(
    agents: Agents, server: FakeServer, folder: Path, path: str, status: int, after: bool
) -> None:
    server.faults = [Fault(path, status, times=2, after=after, whole=path == "POST /api/v1/sync")]
    assert once(agents, server, folder).returncode == 0
    assert server.contents() == [pricing_csv(200)]
    assert the_log(server)[0] == "success"
    assert len([*(folder / "exports").iterdir()]) == 1


@pytest.mark.parametrize("after", [False, True])
def test_the_raw_form_is_the_fallback_and_sent_once(
    agents: Agents, server: FakeServer, folder: Path, after: bool
) -> None:
    server.key_flow = False
    server.faults = [Fault("POST /api/v1/sync", 0, after=after, whole=True)]
    assert once(agents, server, folder).returncode == 0
    [upload] = server.uploads.values()
    assert upload["exported_at"] == "2023-11-14T22:13:20Z"
    assert the_log(server)[0] == "success"


def lose_a_raw_file(agents: Agents, server: FakeServer, folder: Path) -> None:
    """An outage longer than the lock's life."""
    server.key_flow = False
    server.faults = [Fault("POST /api/v1/sync", 0, times=9999, whole=True)]
    assert once(agents, server, folder).returncode == 1
    server.faults, server.holder = [], None


@pytest.mark.day
def test_a_raw_file_lost_with_the_lock_is_sent_again_if_still_wanted(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    lose_a_raw_file(agents, server, folder)
    server.requested = True  # the server offers a request that went stale again
    assert once(agents, server, folder).returncode == 0
    assert (server.contents(), the_log(server)[0]) == ([pricing_csv(200)], "success")


@pytest.mark.night
@pytest.mark.day
def test_a_raw_file_lost_with_the_lock_may_have_been_cancelled(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    lose_a_raw_file(agents, server, folder)
    assert once(agents, server, folder).returncode == 1
    assert (server.uploads, the_log(server)[0]) == ({}, "failed")
    server.due = True
    assert once(agents, server, folder).returncode == 0
    assert server.contents() == [pricing_csv(200)]


def test_an_expired_address_is_replaced(agents: Agents, server: FakeServer, folder: Path) -> None:
    server.faults = [Fault("/objects/", 403, code="url_expired")]
    assert once(agents, server, folder).returncode == 0
    assert len(server.objects) == len(server.uploads) == 1


def test_an_address_that_never_works_ends_the_cycle_with_its_refusal(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.faults = [Fault("/objects/", 403, times=99, code="invalid_signature")]
    once(agents, server, folder)
    status, steps = the_log(server)
    assert (status, steps["upload_inventory"]) == (
        "failed",
        ("failed", "invalid_signature: told to fail"),
    )


def test_a_file_too_large_ends_the_cycle(agents: Agents, server: FakeServer, folder: Path) -> None:
    server.faults = [Fault("/objects/", 413, code="payload_too_large")]
    once(agents, server, folder)
    assert the_log(server)[1]["upload_inventory"] == ("failed", "payload_too_large: told to fail")


def test_an_object_store_out_of_reach_leaves_the_raw_form(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.upload_origin = "http://127.0.0.1:9"
    assert once(agents, server, folder).returncode == 0
    [upload] = server.uploads.values()
    assert upload["key"] is None


@pytest.mark.parametrize(("status", "code"), [(401, "unauthorized"), (403, "account_suspended")])
def test_a_refused_key_is_one_sentence(
    agents: Agents, server: FakeServer, folder: Path, status: int, code: str
) -> None:
    server.faults = [Fault("heartbeat", status, code=code)]
    ended = once(agents, server, folder)
    assert ended.returncode == 1
    assert [(e["status"], e["code"]) for e in ended.named("refused")] == [(status, code)]


def test_a_key_refused_within_the_cycle_keeps_the_cycle(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.faults = [Fault("uploads/", 403, code="account_suspended")]
    assert once(agents, server, folder).returncode == 1
    assert server.logs == []
    assert once(agents, server, folder).named("cycle_started")[0]["resumed"] is True
    assert the_log(server)[0] == "success"
    assert len(server.uploads) == 1


def test_an_upload_that_the_server_forgot_ends_the_cycle(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.faults = [Fault("uploads/", 404, code="not_found")]
    once(agents, server, folder)
    assert the_log(server)[0] == "failed"


def test_a_forced_update_stops_syncing(agents: Agents, server: FakeServer, folder: Path) -> None:
    server.force_update = True
    ended = once(agents, server, folder)
    assert (ended.returncode, len(ended.named("update_required"))) == (1, 1)
    assert not any("sync" in call for call in server.calls)


@pytest.mark.night
@pytest.mark.day
def test_a_server_away_is_given_up_on_and_the_cycle_kept(
    agents: Agents, server: FakeServer, folder: Path
) -> None:
    server.faults = [Fault("export/price-updates", 0, times=9999)]
    ended = once(agents, server, folder)
    assert ended.returncode == 1
    assert "goes on where this one stopped" in ended.named("problem")[0]["text"]
    server.faults = []
    assert once(agents, server, folder).returncode == 0
    assert (len(server.uploads), the_log(server)[0]) == (1, "success")
