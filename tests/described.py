"""Checks every answer that a test gets against openapi.json: its status is declared, and its body
fits the schema and has nothing besides it.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs

from cardsync.web.openapi import opened

FILE = Path(__file__).parents[1] / "openapi.json"


@cache
def document() -> dict[str, Any]:
    return opened(json.loads(FILE.read_text()))


def closed(schema: Any, part_of_all: bool = False) -> Any:
    """Return a schema that allows no property besides those it names."""
    match schema:
        case {"$ref": str(name)}:
            return {"$ref": name.replace("#/components/schemas/", "#/$defs/")}
        case dict():
            made = {
                key: {name: closed(one) for name, one in value.items()}
                if key == "properties"
                else closed(value, key == "allOf")
                for key, value in schema.items()
                if key not in ("title", "description", "examples", "default")
            }
            if "properties" in schema and not part_of_all:
                made.setdefault("additionalProperties", False)
            return made
        case list():
            return [closed(one, part_of_all) for one in schema]
    return schema


@cache
def _components() -> dict[str, Any]:
    return {name: closed(one) for name, one in document()["components"]["schemas"].items()}


@cache
def _operations() -> list[tuple[re.Pattern[str], str]]:
    """The document's paths, those without parameters first."""
    return [
        (re.compile(_pattern(path)), path)
        for path in sorted(document()["paths"], key=lambda path: (path.count("{"), path))
    ]


def _pattern(path: str) -> str:
    """What the path's parameters may hold."""
    [operation, *_] = document()["paths"][path].values()
    schemas = {one["name"]: one["schema"] for one in operation.get("parameters", [])}
    parts = re.split(r"\{(\w+)\}", path)
    for place, name in enumerate(parts[1::2]):
        whole = "-?[0-9]+" if schemas[name]["type"] == "integer" else "[^/]+"
        parts[2 * place + 1] = schemas[name].get("pattern", whole)
    return "".join(part if place % 2 else re.escape(part) for place, part in enumerate(parts))


@cache
def _path(address: str) -> str | None:
    return next((path for known, path in _operations() if known.fullmatch(address)), None)


@cache
def _answer(path: str, method: str, status: str) -> dict[str, Any] | None:
    operations = document()["paths"][path]
    # A HEAD is answered as the GET is, without its body.
    operation = operations.get(method) or (method == "head" and operations.get("get"))
    if not operation:
        return {}
    answer: dict[str, Any] | None = operation["responses"].get(status)
    return answer


@cache
def _validator(path: str, method: str, status: str) -> jsonschema_rs.Validator:
    answer = _answer(path, method, status)
    assert answer is not None
    schema = closed(answer["content"]["application/json"]["schema"])
    return jsonschema_rs.Draft202012Validator(
        {**schema, "$defs": _components()}, validate_formats=True
    )


async def as_described(response: httpx.Response) -> None:
    """Refuse an answer that openapi.json does not describe. What is raw is left to the test."""
    path = _path(response.request.url.path)
    if path is None or response.request.extensions.get("raw"):
        return
    method, status = response.request.method.lower(), str(response.status_code)
    name = f"{method.upper()} {path} answers {status}"
    answer = _answer(path, method, status)
    assert answer is not None, f"openapi.json does not say that {name}"
    if not answer:
        return
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    content = answer.get("content", {})
    if (
        method == "head"
        or not kind
        or (not content and response.headers.get("Content-Length") == "0")
    ):
        return
    assert kind in content, f"openapi.json does not say that {name} as {kind}: {sorted(content)}"
    if kind == "application/json":
        await response.aread()
        for wrong in _validator(path, method, status).iter_errors(json.loads(response.content)):
            raise AssertionError(f"{name} otherwise than openapi.json says: {wrong}")
