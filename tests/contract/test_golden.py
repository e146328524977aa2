"""Every exchange of the agent surface is what `golden/NAME.json` says, to the letter.

CARDSYNC_WRITE_GOLDEN=1 writes them anew.
"""

import json
import os
import re
from pathlib import Path

import httpx
import pytest
from tests.contract.golden_exchanges import Book, whole_surface

from builders import SellerBuilder
from cardsync.web.openapi import opened
from cardsync_agent.client import Client, PersonsTurn

FOLDER = Path(__file__).with_name("golden")
OPENAPI = opened(json.loads((Path(__file__).parents[2] / "openapi.json").read_text()))
# Answers that the specification shapes by hand.
ERRORS = {400, 401, 402, 403, 404, 405, 409, 413, 415, 422, 429}


def file_of(name: str) -> Path:
    return FOLDER / (re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".json")


@pytest.fixture(scope="module")
async def book(service) -> Book:
    made = await whole_surface(service, SellerBuilder(service))
    if os.environ.get("CARDSYNC_WRITE_GOLDEN"):
        for old in FOLDER.glob("*.json"):
            old.unlink()
        for name, exchange in made.exchanges.items():
            file_of(name).write_text(json.dumps(exchange, indent=1, ensure_ascii=False) + "\n")
    return made


NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.day
def test_there_is_a_file_for_each_exchange_and_none_besides(book):
    assert {file_of(name).stem for name in book.exchanges} == {
        path.stem for path in FOLDER.glob("*.json")
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_the_golden_one(book, name):
    played = {file_of(told).stem: exchange for told, exchange in book.exchanges.items()}
    assert played[name] == json.loads((FOLDER / f"{name}.json").read_text())


def golden() -> list[dict]:
    return [json.loads(path.read_text()) for path in FOLDER.glob("*.json")]


def route_of(exchange: dict) -> tuple[str, str] | None:
    path, method = (
        exchange["request"]["path"].partition("?")[0],
        exchange["request"]["method"].lower(),
    )
    for template, methods in OPENAPI["paths"].items():
        if method in methods and re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), path):
            return method, template
    return None


def test_every_route_of_the_agent_surface_has_a_golden_success():
    surface = {
        (method, path)
        for path, methods in OPENAPI["paths"].items()
        for method, operation in methods.items()
        # Agents come with a key; some addresses beside theirs are for people and assistants alone.
        if path.startswith("/api/v1/")
        and not path.startswith("/api/v1/agent/")
        and any("api_key" in one for one in operation["security"])
    }
    shown = {route_of(exchange) for exchange in golden() if exchange["response"]["status"] < 300}
    assert surface - shown == set()


def test_every_kind_of_refusal_has_a_golden_answer():
    assert {exchange["response"]["status"] for exchange in golden()} >= ERRORS


class Recorder(httpx.BaseTransport):
    """Plays the golden answers to whoever asks, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        for exchange in golden():
            same = (request.method.lower(), request.url.path) == (
                exchange["request"]["method"].lower(),
                exchange["request"]["path"].partition("?")[0],
            )
            if same and exchange["response"]["status"] < 300:
                body, status = exchange["response"]["body"], exchange["response"]["status"]
                if isinstance(body, list):
                    return httpx.Response(status, text="\r\n".join(body))
                return (
                    httpx.Response(status, json=body)
                    if body is not None
                    else httpx.Response(status)
                )
        return httpx.Response(404, json={"error": "no such route", "code": "not_found"})


@pytest.mark.parametrize(
    ("golden_name", "call"),
    [
        ("heartbeat", lambda client: client.heartbeat("0.1.0", "linux/amd64")),
        ("pending-sync", lambda client: client.pending("agent-1", "export_inventory@1")),
        ("request", lambda client: client.request_sync("pricing")),
        ("status-before", lambda client: client.status()),
        ("upload-request", lambda client: client.upload_request()),
        ("approve-upload", lambda client: client.clear_approval()),
        ("export", lambda client: client.price_updates(None)),
        ("workflow-pack", lambda client: client.workflow_pack("test_market", "en", 1)),
        (
            "heartbeat-your-turn",
            lambda client: client.heartbeat(
                "0.1.0", "linux/amd64", PersonsTurn("captcha", "market.example")
            ),
        ),
    ],
)
def test_the_agent_asks_as_the_golden_request_does_and_understands_the_answer(golden_name, call):
    """Same method and path, and no body field or query parameter that the golden request lacks
    save additive ones.
    """
    recorder = Recorder()
    client = Client("http://golden.invalid", "csk_test", recorder)
    call(client)
    asked, wanted = (
        recorder.asked[0],
        json.loads((FOLDER / f"{golden_name}.json").read_text())["request"],
    )
    assert (asked.method, asked.url.path) == (wanted["method"], wanted["path"].partition("?")[0])
    if asked.content:
        assert set(json.loads(asked.content)) <= set(wanted["body"] or {})
