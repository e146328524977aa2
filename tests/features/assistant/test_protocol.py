"""The protocol at /mcp as clients see it: the official one in both versions, and raw messages for
what no good client sends.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from mcp.shared.exceptions import MCPError

from assistants import NEW, VERSIONS, data, message, official, refused, sent, told
from browsers import signed_in
from builders import a_csv, a_row
from cardsync.asgi import create_app
from cardsync.assistant import refusals, tool_answers
from cardsync.assistant.served import Served
from sent_statements import counting

METADATA = 'resource_metadata="http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp"'


@pytest.mark.parametrize("mode", ["auto", "legacy", NEW])
async def test_the_official_client_puts_cards_on_a_list(a_seller, mode):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="Bolt"), a_row(2, name="Counterspell")))
    async with official(seller.http, seller.service.app, mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"lists_add_cards", "http_get", "run"} <= set(names)
        made = await client.call_tool("lists_create", {"name": "Binder"})
        assert not made.is_error
        list_id = json.loads(made.content[1].text)["id"]
        found = json.loads(
            (await client.call_tool("inventory_list_cards", {"per_page": 2})).content[1].text
        )
        payload = {"card_ids": [card["id"] for card in found["cards"]]}
        added = await client.call_tool("lists_add_cards", {"id": list_id, "payload": payload})
        assert json.loads(added.content[1].text)["added"] == 2
        twice = await client.call_tool("lists_create", {"name": "binder"})
        assert twice.is_error
        assert twice.content[0].text.startswith("Refused: name_taken: ")
        assert "Next: " in twice.content[0].text
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert prompts == {"underpriced", "today", "put_on_list", "raise_set"}
        asked = await client.get_prompt("raise_set", {"search": "set:base", "percent": "3"})
        assert "by 3%" in asked.messages[0].content.text
        with pytest.raises(MCPError, match="percent: is missing"):
            await client.get_prompt("raise_set", {"search": "set:base"})
        with pytest.raises(MCPError):
            await client.call_tool("lists_burn", {})
    feed = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    assert {row["actor"].split()[0] for row in feed if row["action"].startswith("list")} == {"key"}


async def test_what_we_answer_ourselves_is_what_the_library_answers(a_seller, monkeypatch):
    seller = await a_seller()
    ours = [(await sent(seller.http, "lists_list", version)).json() for version in VERSIONS]

    async def never(*_):
        return False

    monkeypatch.setattr(Served, "answer_call", never)
    theirs = [(await sent(seller.http, "lists_list", version)).json() for version in VERSIONS]
    assert ours == theirs


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_is_no_caller_is_told_where_to_become_one(a_seller, service, version):
    seller = await a_seller()
    options = message("tools/list", {}, version)
    nobody = await service.client().post("/mcp", **options)
    assert nobody.status_code == 401
    assert nobody.headers["WWW-Authenticate"] == f'Bearer realm="cardsync", {METADATA}'
    wrong = await service.client(Authorization="Bearer csk_nonsense").post("/mcp", **options)
    assert wrong.status_code == 401
    challenge = f'Bearer realm="cardsync", error="invalid_token", {METADATA}'
    assert wrong.headers["WWW-Authenticate"] == challenge
    member = await signed_in(seller)
    by_cookie = await member.post("/mcp", **options)
    assert by_cookie.status_code == 401
    await seller.set(suspended=True)
    assert (await seller.post("/mcp", **options)).json()["code"] == "account_suspended"


async def test_other_names_other_sites_and_other_methods_are_refused_first(a_seller):
    seller = await a_seller()
    options = message("tools/list")
    for headers, status in (
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8000"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "[::1"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:8000"}, 200),
        ({"Origin": "http://127.0.0.1:8000"}, 200),
    ):
        answer = await seller.post(
            "/mcp", json=options["json"], headers=options["headers"] | headers
        )
        assert answer.status_code == status, (headers, answer.text)
    for method in ("GET", "DELETE", "PUT"):
        answer = await seller.http.request(method, "/mcp", headers=options["headers"])
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert (await seller.post("/mcp/other", **options)).status_code == 404
    large = await seller.post("/mcp", content=b"x" * 2_100_000, headers=options["headers"])
    assert (large.status_code, large.json()["code"]) == (413, "payload_too_large")


async def test_messages_that_are_none_are_answered_as_the_protocol_says(a_seller):
    seller = await a_seller()
    headers = message("x")["headers"] | {"Content-Type": "application/json"}
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 5_000
    for body in (b"{", b"[]", b"7", b'{"jsonrpc":"2.0"}', b"[" * 100_000, deep):
        answer = await seller.post("/mcp", content=body, headers=headers)
        assert answer.status_code in (202, 400), body
    batch = [message("tools/call", {"name": "lists_create", "arguments": {"name": "x"}})["json"]]
    assert (await seller.post("/mcp", json=batch, headers=headers)).status_code == 400
    unknown = await seller.post("/mcp", **message("tools/list", {}, "1999-01-01"))
    assert unknown.status_code == 400
    mixed = message("tools/call", {"name": "lists_list", "arguments": {}}, NEW)
    mixed["headers"]["Mcp-Name"] = "lists_delete"
    assert (await seller.post("/mcp", **mixed)).status_code == 400
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await seller.post("/mcp", json=note, headers=headers)).status_code == 202


async def test_a_write_of_a_session_that_reads_costs_the_callers_read_alone(a_seller):
    seller = await a_seller()
    token = await seller.token("mcp:read")
    await told(token, "lists_list")
    await refused(seller.http, "lists_create", name=5)
    async with counting(seller.service.database) as counted:
        answer = await sent(token, "lists_create", name=5)
    assert answer.status_code == 403
    challenge = (
        f'Bearer realm="cardsync", error="insufficient_scope", scope="mcp:write", {METADATA}'
    )
    assert answer.headers["WWW-Authenticate"] == challenge
    assert len([text for text in counted.sent if "Execute" in text or "Query" in text]) <= 1


async def test_arguments_are_read_with_care(a_seller):
    seller = await a_seller()
    for arguments, code in (
        ({"name": 5}, "invalid_name"),
        ({"name": None}, "invalid_payload"),
        ({}, "invalid_payload"),
        ({"name": "x", "also": 1}, "invalid_payload"),
        ({"name": ["x"]}, "invalid_name"),
    ):
        assert f"Refused: {code}: " in await refused(seller.http, "lists_create", **arguments)
    assert "what: must be one of" in await refused(seller.http, "orders_read", what="lists.list")
    assert "detail" in await refused(seller.http, "inventory_list_cards", detail="all")
    assert "not_found" in await refused(seller.http, "lists_delete", id=999)
    assert "invalid_payload" in await refused(seller.http, "lists_delete", id="1/cards")
    assert "key_required" in await refused(seller.http, "http_get", path="/api/v1/sync/pending")
    assert "session_required" in await refused(seller.http, "http_get", path="/api/shelves")


async def test_little_is_answered_unless_all_is_asked_for_and_never_too_much(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="Bolt"), a_row(2, name="Counterspell")))
    few = (await data(seller.http, "inventory_list_cards"))["cards"][0]
    all_of_it = (await data(seller.http, "inventory_list_cards", detail="full"))["cards"][0]
    assert set(few) < set(all_of_it)
    assert {"id", "marketplace_id", "product_name"} <= set(few)
    rows = [{"n": number, "text": "x" * 900} for number in range(300)]
    body = json.dumps({"rows": rows, "total": 300}).encode()
    answer = tool_answers.Answer(200, {"content-type": "application/json"}, body)
    _, text = tool_answers.texts("http.get", answer, "concise")
    assert len(text.encode()) <= tool_answers.LARGEST
    shown = json.loads(text)
    assert shown["cut"] == [f"rows: {len(shown['rows'])} of 300", "ask for fewer rows"]
    one = tool_answers.Answer(
        200, {"content-type": "application/json"}, json.dumps("é" * 90_000).encode()
    )
    assert "[cut: " in tool_answers.texts("http.get", one, "full")[1]


async def test_a_call_counts_as_one_request_and_in_its_narrower_group(a_seller, alive):
    seller = await a_seller()
    limits = {"rate_limit_general": "1/min:20", "rate_limit_writes": "1/min:3"}
    app = create_app(seller.service.settings.model_copy(update=limits))
    async with alive(app):
        service = replace(seller.service, app=app)
        http = service.client(Authorization=f"Bearer {seller.api_key}")
        assert await written(http, 5) == [True, True, True, False, False]
        assert "wait " in await refused(http, "lists_create", name="x")
        # Six of twenty are gone, for both doors.
        last = await sent(http, "lists_list")
        assert ";r=13;" in last.headers["RateLimit"]
        # Each call of a program counts as one that comes alone.
        program = "for n in range(30):\n    lists_list()"
        assert "rate_limited" in await refused(http, "run", program=program)
        assert (await sent(http, "lists_list")).status_code == 429


async def written(http, times):
    return [
        not (await told(http, "lists_create", name=f"List {number}"))[0] for number in range(times)
    ]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_told_as_a_page_and_not_as_an_empty_answer(status):
    answer = tool_answers.Answer(status, {"location": "/lists/1/add"}, b"")
    assert answer.is_refusal
    told = refusals.of_answer(answer)
    assert told.code == "session_required"
    assert "moved to a page: /lists/1/add" in str(told)
    assert "give the seller its page" in str(told)


async def test_a_program_hears_that_an_address_is_none_of_its_own(a_seller):
    seller = await a_seller()
    made = await data(seller.http, "run", program="lists_create('Binder')['id']")
    is_error, texts = await told(
        seller.http, "run", program=f"http_get('/api/lists/{made['result']}/cards')"
    )
    assert is_error
    assert "method_not_allowed" in texts[-1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", -32700), ("{", -32700), ("[1]", -32602), ('"x"', -32602), ("{}", -32602),
        ('{"jsonrpc":"2.0","id":1,"method":5}', -32602),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":5}', -32602),
    ],
)  # fmt: skip
async def test_a_body_that_is_no_message_is_refused_in_our_words(a_seller, version, body, code):
    seller = await a_seller()
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
    }
    answer = await seller.post("/mcp", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.headers["content-length"] == str(len(answer.content))
    error = answer.json()["error"]
    assert not re.search(r"line \d|pydantic|\[type=|JSONRPC[A-Z]", error["message"]), error
    if version != NEW:
        assert error["code"] == code
