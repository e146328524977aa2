"""The one table of assistants against the interface: every binding is there and takes tokens, its
shapes are the interface's, and tools reach nothing else.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cardsync.assistant import derive, own_api, refusals, tools
from cardsync.assistant.bindings import BY_NAME, FALLBACK, READ, RISKS, TABLE, WRITE, shapes
from cardsync.assistant.page import page
from cardsync.assistant.served import listed
from cardsync.platform import errors
from requests_of_routes import DOCUMENT

ROOT = Path(__file__).parents[3]
# interface.md, "Assistant tool bindings".
OF_THE_SPECIFICATION = {
    "lists.list": [],
    "lists.create": ["name"],
    "lists.rename": ["id", "name"],
    "lists.delete": ["id"],
    "lists.addCards": ["id", "payload"],
    "lists.removeCards": ["id", "payload"],
    "discovery.findAvailability": [],
    "inventory.listCards": [],
    "pricing.explainCard": ["marketplace_id"],
    "http.get": ["path"],
}
NO_BINDING = ("shelves", "settle", "confirm", "pending", "session", "members", "keys", "shown")


def operation(binding):
    return DOCUMENT["paths"][binding.path][binding.method.lower()]


@pytest.mark.parametrize("name", OF_THE_SPECIFICATION)
def test_every_binding_of_the_specification_is_there_with_its_arguments(name):
    required = [one.name for one in shapes()[name].arguments if one.required]
    assert required == OF_THE_SPECIFICATION[name]


@pytest.mark.parametrize(
    "binding", [one for one in TABLE if one is not FALLBACK], ids=lambda one: one.name
)
def test_each_binding_is_a_route_that_takes_tokens_with_this_scope(binding):
    scopes = [scheme["token"] for scheme in operation(binding)["security"] if "token" in scheme]
    assert scopes == [[binding.scope]]
    assert binding.scope in (READ, WRITE)
    assert binding.risk in RISKS
    assert (binding.risk == "none") == (binding.scope == READ)


def test_no_binding_is_for_members_alone():
    named = [one.path for one in TABLE if any(f"/{word}" in one.path for word in NO_BINDING)]
    assert named == []


def test_the_kept_shapes_and_the_page_are_those_of_the_interface():
    kept = (ROOT / "src/cardsync/assistant/shapes.json").read_text("utf-8")
    assert kept == derive.as_json(derive.derived(DOCUMENT)), "run `make openapi`"
    assert (ROOT / "docs/assistants.md").read_text("utf-8") == page(), "run `make openapi`"


def test_a_nullable_breakdown_stays_nullable():
    answer = shapes()["pricing.explainCard"].answer
    shape = DOCUMENT["components"]["schemas"][answer]["properties"]["historical_breakdown"]
    assert {"type": "null"} in shape["oneOf"]


def test_tools_are_few_apart_and_say_all_four_hints():
    found = listed()
    assert len(found) <= tools.TOOLS_MOST
    of_tools = [binding for tool in tools.tools().values() for binding in tool.bindings]
    assert sorted(of_tools) == sorted(TABLE)
    for tool in tools.tools().values():
        assert len({binding.scope for binding in tool.bindings}) == 1
        assert tool.hints["readOnlyHint"] == (not tool.writes)
    for tool in found:
        hints = tool.annotations.model_dump(exclude={"title"})
        assert all(isinstance(value, bool) for value in hints.values()), tool.name
        assert re.fullmatch(r"[a-z_]{3,64}", tool.name)
        assert tool.title
        assert tool.input_schema["additionalProperties"] is False


def test_the_list_of_tools_is_short():
    """A token of a model is at least four bytes of such JSON, most often more."""
    told = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in listed()])
    assert len(told.encode()) / 4 < 8_000


@pytest.mark.parametrize(
    "binding", [one for one in TABLE if one is not FALLBACK], ids=lambda one: one.name
)
def test_a_call_is_a_request_of_its_route_and_of_no_other(binding):
    """Whatever text is an argument, the path is that of the table."""
    hostile = "../../keys?x=1#/%2e%2e;a"
    arguments = {one.name: hostile for one in shapes()[binding.name].arguments}
    pattern = re.sub(r"\\\{\w+\\\}", "[^/?]+", re.escape(binding.path))
    try:
        request = own_api.asked(binding, arguments)
    except errors.InvalidPayload:
        plain = dict.fromkeys(arguments, "7")
        request = own_api.asked(binding, plain)
    assert request.method == binding.method
    assert re.fullmatch(pattern, request.target.partition("?")[0])
    with pytest.raises(errors.InvalidPayload, match="is no argument of"):
        own_api.asked(binding, {"nonsense": 1})


@pytest.mark.parametrize(
    "path",
    [
        "http://evil.example/api/cards", "//evil.example/api/cards", "/api/../metrics", "/cards",
        "/api/%2e%2e/metrics", "/api//cards", "api/cards", "/api/./cards", "/api/cards#x",
        "/api/\\evil", "/api/cards\r\nX: y", "/mcp", "/api/%252e%252e/x", "", 7, None, "/api/",
        "/objects/x", "/api/cards x", "http:/api/cards",
    ],
)  # fmt: skip
def test_http_get_takes_our_own_paths_alone(path):
    with pytest.raises(errors.InvalidPayload):
        own_api.asked(FALLBACK, {"path": path})


def test_http_get_keeps_the_query():
    request = own_api.asked(FALLBACK, {"path": "/api/cards?search=price%3E5&page=2"})
    assert request == ("GET", "/api/cards?search=price%3E5&page=2", b"")


def test_each_refusal_of_a_bound_route_has_a_next_step():
    codes = set()
    for binding in TABLE:
        if binding is not FALLBACK:
            for answer in operation(binding)["responses"].values():
                codes.update(re.findall(r"`(\w+)`: ", answer.get("description", "")))
    assert codes - refusals.NEXT.keys() == set()
    known = {kind.code for kind in errors.kinds_of(errors.Problem) if hasattr(kind, "code")}
    assert (
        refusals.NEXT.keys() - known - {"internal_server_error", "unprocessable_content"} == set()
    )


def test_functions_of_the_code_mode_have_plain_names():
    names = [binding.function for binding in TABLE]
    assert len(set(names)) == len(names)
    assert BY_NAME["lists.addCards"].function == "lists_add_cards"
    assert all(name.isidentifier() for name in names)
