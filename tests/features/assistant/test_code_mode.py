"""Programs of the code mode: what they can do, where they end, and what they say of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from assistants import VERSIONS, data, refused, sent, told
from builders import a_csv, a_row
from cardsync.access import keys
from cardsync.asgi import create_app
from cardsync.assistant import code_mode
from cardsync.assistant.tool_answers import LARGEST


@pytest.mark.first(1)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_program_does_many_calls_and_says_what_it_wrote(a_seller, version):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="Bolt"), a_row(2, name="Mew")))
    program = """
made = lists_create("Binder")
for card in inventory_list_cards(search="name:bolt")["cards"]:
    lists_add_cards(made["id"], {"card_ids": [card["id"]]})
print("done", made["name"])
{"cards": lists_list()["lists"][0]["card_count"], "why": "historical_breakdown" in pricing_explain_card(1)}
"""
    found = await data(seller.http, "run", version, program=program)
    assert found["result"] == {"cards": 1, "why": True}
    assert found["printed"] == "done Binder\n"
    reads = {"inventory_list_cards": 1, "lists_list": 1, "pricing_explain_card": 1}
    assert found["reads"] == reads
    assert [line.partition(" (")[0] for line in found["writes"]] == [
        "lists_create: done", "lists_add_cards: done",
    ]  # fmt: skip
    feed = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    assert {row["actor"].split()[0] for row in feed if "list" in row["action"]} == {"key"}


async def test_a_program_that_breaks_says_what_it_had_done(a_seller):
    seller = await a_seller()
    program = """
one = lists_create("One")
try:
    lists_create("one")
except RuntimeError as refusal:
    print(refusal)
lists_rename(one["id"], 5)
"""
    text = await refused(seller.http, "run", program=program)
    assert "The program broke: Traceback" in text
    assert "invalid_name" in text
    assert '"lists_create: done (id ' in text
    assert '"lists_create: refused (name_taken)"' in text
    assert '"lists_rename: refused (invalid_name)"' in text


async def test_a_revoked_key_ends_a_program_between_two_calls(a_seller, monkeypatch):
    seller = await a_seller()
    kept = code_mode.own_api.call

    async def and_then_revoked(*given):
        answer = await kept(*given)
        async with seller.service.database.shared() as session:
            [(key_id, *_)] = await keys.listed(session, seller.id)
            await keys.revoke(session, key_id)
        return answer

    monkeypatch.setattr(code_mode.own_api, "call", and_then_revoked)
    program = 'lists_create("One")\nlists_create("Two")'
    text = await refused(seller.http, "run", program=program)
    assert "unauthorized" in text
    assert "lists_create: done" in text
    assert "lists_create: refused (unauthorized)" in text


HOSTILE = {
    "an endless loop": ("while True: pass", "TimeoutError"),
    "a memory bomb": ("x = 'a' * 1000\nwhile True: x = x + x", "MemoryError"),
    "a list that holds itself many times": (
        "a = [0]\nfor i in range(40): a = [a, a]\na", "too large"
    ),
    "such a list as an argument": (
        "a = [0]\nfor i in range(40): a = [a, a]\nlists_create(a)", "too large"
    ),
    "a number without end": ("inventory_read_card(10 ** 5000)", "too large a number"),
    "one large value": ("'a' * 10**9", "MemoryError"),
    "a large power": ("10 ** 10 ** 8", "MemoryError"),
    "deep recursion": ("def f(n): return f(n + 1)\nf(0)", "RecursionError"),
    "deep brackets": ("(" * 3_000 + ")" * 3_000, "The program broke"),
    "endless output": ("while True: print('x' * 1000)", "Error"),
    "a file": ("open('/etc/passwd').read()", "PermissionError"),
    "a folder": ("import os\nos.listdir('/')", "PermissionError"),
    "the environment": ("import os\nos.environ['PATH']", "The program broke"),
    "a program": ("import subprocess", "ModuleNotFoundError"),
    "a socket": ("import socket", "ModuleNotFoundError"),
    "our own module": ("import cardsync", "ModuleNotFoundError"),
    "a sleep": ("import time\ntime.sleep(60)", "TimeoutError"),
    "classes": ("().__class__.__bases__[0].__subclasses__()", "AttributeError"),
    "globals of a function": ("lists_list.__globals__", "AttributeError"),
    "a code object": ("(lambda: 1).__code__", "AttributeError"),
    "format tricks": ("'{0.__class__.__mro__}'.format(lists_list)", "Error"),
    "getattr tricks": ("getattr(lists_list, '__' + 'self__')", "AttributeError"),
    "builtins": ("__builtins__['open']", "The program broke"),
    "a function that is none": ("database.execute('DROP TABLE card')", "NameError"),
    "an unknown function": ("keys_create('x')", "NameError"),
    "http.get elsewhere": ("http_get('http://169.254.169.254/latest')", "invalid_payload"),
    "http.get of the agent": ("http_get('/api/v1/sync/pending')", "key_required"),
    "another seller's way": ("http_get('/api/../metrics')", "invalid_payload"),
    "too many calls": (f"for n in range({code_mode.CALLS + 1}): lists_nothing()", "NameError"),
    "too many arguments": ("lists_create('a', 'b')", "invalid_payload"),
    "an argument of none": ("lists_create(title='a')", "invalid_payload"),
    "a value without JSON": ("lists_add_cards(1, {'card_ids': lists_list})", "invalid_payload"),
    "an id that is a path": ("lists_delete('1/cards')", "invalid_payload"),
    "no Python": ("def", "SyntaxError"),
    "a wait": ("await lists_list()", "The program broke"),
}  # fmt: skip


async def test_a_result_of_many_lists_is_cut_at_once(a_seller):
    seller = await a_seller()
    began = time.monotonic()
    is_error, texts = await told(seller.http, "run", program="{str(i): [i] for i in range(12000)}")
    assert not is_error
    assert len(texts[-1].encode()) <= 100_000
    assert "cut" in texts[-1]
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_program_ends_and_the_process_goes_on(a_seller, name):
    """Only a real worker shows that a limit holds."""
    program, expected = HOSTILE[name]
    seller, other = await a_seller(), await a_seller()
    running = asyncio.create_task(told(seller.http, "run", program=program))
    slowest = 0.0
    while not running.done():
        began = time.monotonic()
        await asyncio.sleep(0.05)
        slowest = max(slowest, time.monotonic() - began)
    is_error, texts = await running
    assert is_error
    assert expected in texts[-1], texts
    assert slowest < 2
    assert (await sent(other.http, "lists_list")).status_code == 200
    assert (await data(other.http, "run", program="1 + 1"))["result"] == 2


async def test_a_large_result_is_cut_and_odd_ones_are_told(a_seller):
    seller = await a_seller()
    found = await told(seller.http, "run", program="['x' * 1000] * 5000")
    assert len(found[1][1].encode()) <= LARGEST
    assert "cut" in found[1][1]
    assert (await data(seller.http, "run", program="{1: {2, 3}}"))["result"] == {"1": [2, 3]}
    is_error, texts = await told(seller.http, "run", program="lists_list")
    assert is_error or "lists_list" in texts[1]
    for program in ("", "  ", 7, "x" * (code_mode.PROGRAM_CHARACTERS + 1)):
        assert "invalid_payload" in await refused(seller.http, "run", program=program)


async def test_a_seller_runs_one_program_at_a_time(a_seller, monkeypatch):
    seller, other = await a_seller(), await a_seller()
    monkeypatch.setitem(code_mode._LIMITS, "max_feed_duration_secs", 0.5)
    endless = asyncio.create_task(told(seller.http, "run", program="while True: pass"))
    await asyncio.sleep(0.2)
    assert "service_unavailable" in await refused(seller.http, "run", program="1")
    assert (await data(other.http, "run", program="1"))["result"] == 1
    assert (await endless)[0]
    assert (await data(seller.http, "run", program="1"))["result"] == 1


async def test_too_many_calls_end_a_program_with_what_it_had_done(a_seller, monkeypatch):
    seller = await a_seller()
    monkeypatch.setattr(code_mode, "CALLS", 3)
    text = await refused(seller.http, "run", program="for n in range(9): lists_list()")
    assert "a program has at most 3 calls" in text
    assert '"lists_list":3' in text


@pytest.mark.night
@pytest.mark.parametrize(("limit", "outcome"), [("300/min:4", "8"), ("1/min:4", "rate_limited")])
async def test_a_program_keeps_to_the_pace_of_the_limits(a_seller, alive, limit, outcome):
    """A call that comes too soon waits a little, and is refused where it had to wait long."""
    seller = await a_seller()
    settings = seller.service.settings.model_copy(update={"rate_limit_general": limit})
    app = create_app(settings)
    async with alive(app):
        there = replace(seller.service, settings=settings, app=app)
        http = there.client(Authorization=f"Bearer {seller.api_key}")
        program = "calls = [lists_list() for _ in range(8)]\nlen(calls)"
        _, texts = await told(http, "run", program=program)
    assert outcome in texts[-1]
