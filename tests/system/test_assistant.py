"""Assistants against real processes: the official client by HTTP and by `cardsync-agent mcp`, and
the protocol's conformance suite.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.system.inventories import inventory
from tests.system.node_packages import NODE, with_packages
from tests.system.processes import Seller, Server, free_port

ROOT = Path(__file__).parents[2]
# The other scenarios want a server that has the suite's own tools, resources and prompts.
SCENARIOS = ("server-initialize", "ping", "tools-list", "prompts-list", "dns-rebinding-protection")
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


def agent(server_url: str, key: str) -> StdioServerParameters:
    env = {**os.environ, "CARDSYNC_AGENT_KEY": key}
    arguments = ["-m", "cardsync_agent", "mcp", "--server", server_url]
    return StdioServerParameters(command=sys.executable, args=arguments, env=env)


async def a_story(client: Client, name: str) -> None:
    """Two processes serve it, and no call knows of the one before."""
    made = await client.call_tool("lists_create", {"name": name})
    list_id = json.loads(made.content[1].text)["id"]
    payload = {"search": "quantity>0"}
    added = await client.call_tool("lists_add_cards", {"id": list_id, "payload": payload})
    assert json.loads(added.content[1].text)["added"] > 0
    for _ in range(4):
        found = await client.call_tool("lists_list", {})
        assert name in found.content[1].text
    program = f"lists_rename({list_id}, '{name} 2')\n[one['name'] for one in lists_list()['lists']]"
    ran = await client.call_tool("run", {"program": program})
    assert f"{name} 2" in json.loads(ran.content[1].text)["result"]
    again = await client.call_tool("lists_create", {"name": f"{name} 2"})
    assert again.is_error
    assert "name_taken" in again.content[0].text


@pytest.fixture(scope="module")
def seller(server: Server) -> Seller:
    made = server.seller()
    made.finished(made.upload(inventory(20)))
    return made


@pytest.mark.first(1)
@pytest.mark.parametrize("mode", VERSIONS)
async def test_the_official_client_uses_a_shop_of_two_processes(
    server: Server, seller: Seller, mode: str
) -> None:
    """Only real processes show that neither remembers anything of a client."""
    headers = {"Authorization": f"Bearer {seller.api_key}"}
    async with (
        httpx2.AsyncClient(headers=headers) as inner,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=inner), mode=mode) as client,
    ):
        assert client.session.protocol_version == VERSIONS[mode]
        await a_story(client, f"Binder {mode}")


@pytest.mark.first(1)
@pytest.mark.parametrize("mode", VERSIONS)
async def test_the_official_client_uses_it_through_the_agent(
    server: Server, seller: Seller, mode: str
) -> None:
    """Only the program itself shows that standard output holds messages alone."""
    async with Client(stdio_client(agent(server.url, seller.api_key)), mode=mode) as client:
        assert client.session.protocol_version == VERSIONS[mode]
        await a_story(client, f"Folder {mode}")


def through(server_url: str, key: str, *lines: str) -> tuple[int, list[dict], str]:
    """The program's exit code, answers and complaints."""
    given = agent(server_url, key)
    ran = subprocess.run(
        [given.command, *given.args], input="\n".join(lines), env=given.env, text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    return ran.returncode, [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr


@pytest.mark.night
def test_the_agent_says_in_a_sentence_what_goes_wrong(server: Server, seller: Seller) -> None:
    listing = '{"jsonrpc":"2.0","id":7,"method":"tools/list"}'
    note = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    code, [wrong], told = through(server.url, "csk_nonsense", listing)
    assert (code, wrong["id"]) == (0, 7)
    assert wrong["error"]["message"] == "the server does not accept the API key"
    assert told == "cardsync-agent: the server does not accept the API key\n"
    code, [away], told = through(f"http://127.0.0.1:{free_port()}", seller.api_key, note, listing)
    assert (code, away["id"]) == (0, 7)
    assert told.count("the server cannot be reached") == 2
    code, answers, told = through(server.url, seller.api_key, "{", "", "[1]", note, listing)
    assert code == 0
    assert [one["error"]["code"] for one in answers if "error" in one] == [-32700, -32700]
    [found] = [one for one in answers if "result" in one]
    assert found["id"] == 7
    code, answers, told = through("shop.example", seller.api_key)
    assert (code, answers) == (2, [])
    assert "--server must be an address" in told


@contextmanager
def with_key(server: Server, key: str) -> Iterator[str]:
    """The address of a program that adds the key to each request, and passes all else on as it
    came: the suite sends no credential.
    """

    class Passing(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                ours = f"127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
                connection.putheader(name, value.replace(ours, f"127.0.0.1:{server.port}"))
            connection.putheader("Authorization", f"Bearer {key}")
            connection.endheaders(body)
            answer = connection.getresponse()
            told = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_DELETE = _pass_on

        def log_message(self, *_: object) -> None:
            pass

    passing = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=passing.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{passing.server_port}/mcp"
    finally:
        passing.shutdown()
        thread.join()
        passing.server_close()


@pytest.fixture(scope="module")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a newer node than most machines have, and the packages of the suite."""
    folder = tmp_path_factory.mktemp("conformance")
    with_packages(ROOT / "frontend" / "conformance", folder)
    return folder


@pytest.mark.night
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_suite_finds_nothing(
    server: Server, seller: Seller, node_folder: Path, scenario: str, tmp_path: Path
) -> None:
    """Of the authors of the protocol, so it finds what we and our library misread alike."""
    program = str(node_folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js")
    with with_key(server, seller.api_key) as url:
        ran = subprocess.run(
            [str(node_folder / NODE), program, "server", "--url", url, "--scenario", scenario, "-o", str(tmp_path)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
