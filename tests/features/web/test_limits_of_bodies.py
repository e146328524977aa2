"""Every text and every list that a JSON body of openapi.json may have is bounded: one that is far too
long is refused, and nothing breaks by it. The cases follow from the document, so a new field has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.agents.limits import AGENT_CHARACTERS
from cardsync.platform import limits
from cardsync.stock.limits import SELECTED_CHARACTERS
from requests_of_routes import BODIES, DOCUMENT

LONG = "x" * 100_000
MANY = 120_000
JSON = "application/json"


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The shapes that a value may have, without null."""
    schema = resolved(schema)
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return [one for each in schema[several] for one in choices(each)]
    return [] if schema.get("type") == "null" else [schema]


def sample(schema: dict[str, Any]) -> Any:
    """A small value of a shape."""
    [schema, *_] = choices(schema) or [{}]
    if "enum" in schema or "const" in schema:
        return schema.get("const") or schema["enum"][0]
    match schema.get("type"):
        case "string":
            return (
                "2026-11-21T08:00:00Z" if "format" in schema else "x" * schema.get("minLength", 1)
            )
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [sample(schema["items"])] if schema.get("minItems") else []
    fields = schema.get("properties", {})
    return {name: sample(fields[name]) for name in schema.get("required", []) if name in fields}


def too_much(schema: dict[str, Any], seen: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Values of a shape with one text or list that is too long, each by its place."""
    for one in choices(schema):
        if id(one) in seen or "enum" in one or "const" in one:
            continue
        deeper = (*seen, id(one))
        match one.get("type"):
            case "string":
                yield "", "x" * max(len(LONG), one.get("maxLength", 0) + 1)
            case "array":
                yield "[]", [sample(one["items"])] * MANY
                yield from ((f"[0]{at}", [value]) for at, value in too_much(one["items"], deeper))
            case "object":
                for name, field in one.get("properties", {}).items():
                    for at, value in too_much(field, deeper):
                        yield f".{name}{at}", {**sample(one), name: value}


def bodies() -> Iterator[tuple[str, str, Any]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            if JSON in content:
                route = f"{method.upper()} {path}"
                for at, body in too_much(content[JSON]["schema"]):
                    if at == ".selected_ids":
                        body["selected_ids"] = "1," * SELECTED_CHARACTERS
                    known = BODIES.get(route, {}) if isinstance(body, dict) else {}
                    yield route, at, {**known, **body} if known else body


CASES = list(bodies())
# An agent must not fail at the end of its cycle for what it says of it.
CUT = {
    "POST /api/v1/sync/log.agent_version",
    "POST /api/v1/sync/log.platform",
    "POST /api/v1/sync/log.steps[0].error",
}
# They are compared with what is there, and else forgotten.
NOT_KEPT = {
    "POST /api/v1/sync/log.started_at",
    "POST /api/v1/tasks/claim.capabilities",
    "POST /api/v1/tasks/claim.capabilities[]",
    "POST /api/v1/order_feedbacks[]",
    "POST /api/v1/order_feedbacks[0].order_number",
}
# Lists that only the size of a body bounds: an agent's report of every price, and words of which
# a trial counts each once.
BY_SIZE = {
    "POST /api/v1/repricing_events.rows[]",
    "POST /api/pricing/preview.rules[0].fallback_sources[]",
    "POST /api/pricing/preview/draft.rule.fallback_sources[]",
    "POST /api/v1/pricing/explain/{marketplace_id}/changed.fallback_sources[]",
}


async def test_texts_and_lists_that_are_too_long_are_refused(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00")))
    owner = await signed_in(seller)
    taken, broken = {}, {}
    for route, at, body in CASES:
        method, path = route.split(" ")
        security = DOCUMENT["paths"][path][method.lower()].get("security", [])
        by_session = not security or any("session" in one for one in security)
        send = owner.send if by_session else seller.http.request
        path = path.replace("{preset}", "premium").replace("{token}", "nobody")
        while "{" in path:
            path = path[: path.index("{")] + "1" + path[path.index("}") + 1 :]
        answer = await send(method, path, json=body)
        if answer.status_code >= 500:
            broken[route + at] = answer.status_code
        elif answer.status_code < 400:
            taken[route + at] = (answer.status_code, answer.text[:60])
    assert broken == {}
    assert taken.keys() == CUT | NOT_KEPT | BY_SIZE, taken


async def test_what_is_cut_of_a_cycles_log_is_bounded(a_seller):
    seller = await a_seller()
    step = {"name": "fetch_orders", "status": "failed", "error": LONG}
    log = {"status": "failed", "agent_version": LONG, "platform": LONG, "steps": [step]}
    assert (await seller.post("/api/v1/sync/log", json=log)).status_code == 201
    kept = "SELECT agent_version, platform, steps FROM sync_cycle WHERE seller_id = :id"
    [row] = await seller.service.sql(seller.id, kept, id=seller.id)
    assert len(row["agent_version"]) == len(row["platform"]) == AGENT_CHARACTERS
    assert len(row["steps"][0]["error"]) == limits.STEP_ERROR_CHARACTERS


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/webhooks", {"url": "https://a.example/hook", "kind": ["sync_done"]}),
        ("PATCH", "/api/webhooks/1", {"urls": "https://a.example/hook"}),
        ("PATCH", "/api/notices/choices", {"way": {}}),
        ("POST", "/api/pricing/reviews/accept", {"reviews": [], "all": True}),
        (
            "POST",
            "/api/pricing/reviews/dismiss",
            {"reviews": [{"marketplace_id": 1, "revision": "2026-11-21T08:00:00Z", "price": "1"}]},
        ),
    ],
)
async def test_a_field_that_a_webhook_or_a_review_does_not_have_is_refused(
    a_seller, method, path, body
):
    owner = await signed_in(await a_seller())
    answer = await owner.send(method, path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert "is not a field" in answer.json()["error"]
