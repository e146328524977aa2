"""Clients that go away, send what is no HTTP, or send as slowly as they can: no crash of ours."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
from tests.system.processes import Seller, Server, a_folder, until

pytestmark = pytest.mark.day

SLOW_SECONDS = 2


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with (
        a_folder() as folder,
        Server(
            folder, LOG_LEVEL="debug", BODY_SLOW_SECONDS=str(SLOW_SECONDS), BODY_SECONDS="6"
        ) as started,
    ):
        yield started


@pytest.fixture(scope="module")
def seller(server: Server) -> Seller:
    return server.seller()


def head(seller: Seller, path: str, kind: str, length: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {seller.api_key}"]
    return "\r\n".join([*lines, f"Content-Type: {kind}", length, "", ""]).encode()


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def answered(connection: socket.socket) -> bytes:
    """All that comes until the other side is done."""
    parts = []
    with suppress(OSError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def requests(text: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "request"]


def assert_one_quiet_line(server: Server, since: int, path: str) -> None:
    [line] = until(lambda: requests(server.said()[since:]), "the request's line", 20)
    assert (line["route"], line["status"], line["level"]) == (path, 400, "debug")
    time.sleep(0.2)
    said = server.said()[since:]
    assert len(requests(said)) == 1
    assert "Traceback" not in said
    assert "crashed" not in said


PATHS = [
    ("/api/v1/sync", "text/csv"),
    ("/api/v1/heartbeat", "application/json"),
    ("/api/v1/orders", "application/json"),
    ("/api/v1/order_feedbacks", "application/json"),
]
LENGTH, CHUNKED = "Content-Length: 1000", "Transfer-Encoding: chunked"


@pytest.mark.first(1)
@pytest.mark.parametrize(("path", "kind"), PATHS, ids=lambda one: one.rpartition("/")[2])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize(
    ("length", "body"),
    [
        (LENGTH, b"hello"),
        (CHUNKED, b"5\r\nhel"),
        pytest.param(CHUNKED, b"", marks=pytest.mark.night),
    ],
    ids=["length", "chunk", "nothing"],
)
def test_a_body_that_is_broken_off_is_one_debug_line(
    server: Server, seller: Seller, path: str, kind: str, reset: bool, length: str, body: bytes
) -> None:
    since = len(server.said())
    with connected(server) as connection:
        connection.sendall(head(seller, path, kind, length) + body)
        time.sleep(0.1)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert_one_quiet_line(server, since, path)


@pytest.mark.parametrize(("path", "kind"), PATHS, ids=lambda one: one.rpartition("/")[2])
@pytest.mark.parametrize("chunk", [b"zz\r\nhello\r\n", b"-5\r\nhello\r\n", b"5\r\nhello world\r\n"])
def test_malformed_chunks_are_a_bad_request(
    server: Server, seller: Seller, path: str, kind: str, chunk: bytes
) -> None:
    since = len(server.said())
    with connected(server) as connection:
        connection.sendall(head(seller, path, kind, CHUNKED) + b"5\r\nhello\r\n" + chunk)
        answer = answered(connection)
    assert answer == b"" or (answer.startswith(b"HTTP/1.1 400") and b'"bad_request"' in answer)
    assert_one_quiet_line(server, since, path)


def test_a_client_that_does_not_wait_for_its_answer_is_no_crash(
    server: Server, seller: Seller
) -> None:
    since = len(server.said())
    for _ in range(20):
        with connected(server) as connection:
            connection.sendall(
                head(seller, "/api/v1/sync/request", "application/json", "Content-Length: 0")
            )
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(1)
    assert "Traceback" not in server.said()[since:]
    assert "crashed" not in server.said()[since:]


def test_nothing_of_a_broken_off_upload_stays(server: Server) -> None:
    until(
        lambda: not list((server.data_dir / "objects" / "incoming").iterdir()),
        "the spooled bodies to go",
        20,
    )


def test_a_slow_body_is_answered_and_its_connection_ended(server: Server, seller: Seller) -> None:
    began = time.monotonic()
    with connected(server) as connection:
        connection.sendall(head(seller, "/api/v1/sync", "text/csv", LENGTH) + b"hello")
        answer = answered(connection)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b'"bad_request"' in answer
    assert SLOW_SECONDS - 0.1 < time.monotonic() - began < SLOW_SECONDS + 5
    assert httpx.get(f"{server.url}/healthz").status_code == 200


@pytest.mark.night
def test_a_body_that_drips_is_ended_while_it_drips(server: Server, seller: Seller) -> None:
    began = time.monotonic()
    with connected(server) as connection, suppress(OSError):
        connection.sendall(head(seller, "/api/v1/sync", "text/csv", LENGTH))
        while time.monotonic() < began + 30:
            connection.sendall(b"x")
            time.sleep(0.1)
    assert time.monotonic() - began < SLOW_SECONDS + 8
