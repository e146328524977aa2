"""Derives the arguments and the answer of each binding from the API's own description, and writes
them to `shapes.json`.

`OPEN_BODIES` describes the bodies that routes parse by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from cardsync.agents.seller_state.sync_kinds import KINDS
from cardsync.assistant.bindings import FALLBACK, TABLE, Argument, Binding, Shapes
from cardsync.platform.value_types import JsonMapping, JsonObject
from cardsync.web.openapi import opened

_TEXT: Final = {"type": "string"}
_ID: Final = {"type": "integer"}
_OBJECTS: Final = {"type": "array", "items": {"type": "object"}}


def _told(schema: Mapping[str, object], text: str) -> dict[str, object]:
    return {**schema, "description": text}


_REFERENCE: Final = {
    "name": _told(_TEXT, "At least 2 characters"),
    "set": _told(_TEXT, "Part of its name"),
    "number": _told(_TEXT, "As 006/165 or 6"),
    "finish": _TEXT,
}
_REVIEWS: Final = _told(
    {
        "type": "array",
        "items": {"type": "object", "properties": {"marketplace_id": _ID, "revision": _TEXT}},
    },
    "As they were read",
)
OPEN_BODIES: Final[Mapping[str, Mapping[str, object]]] = {
    "lists.create": {"name": _told(_TEXT, "1 to 100 characters")},
    "lists.rename": {"name": _told(_TEXT, "1 to 100 characters")},
    "discovery.findAvailability": {
        **_REFERENCE,
        "cards": _told(
            {
                "type": "array",
                "maxItems": 25,
                "items": {"type": "object", "properties": _REFERENCE},
            },
            "Several references, in place of one",
        ),
        "game": _told(_TEXT, "pokemon by default"),
    },
    "pricing.preview": {
        "search": _told(_TEXT, "Of these cards; all by default"),
        "rules": _told(_OBJECTS, "In place of the live rules, as rules_read shows them"),
        "sales": _told(_OBJECTS, "In place of the live sales"),
    },
    "pricing.previewDraft": {
        "rule": _told({"type": "object"}, "As {name, query, adjust_bp, floor, …}"),
        "rule_id": _told(_ID, "The rule that it would change"),
    },
    "plans.propose": {
        "plan_key": _told(_TEXT, "Makes a repetition harmless; another for each new plan"),
        "dry_run": _told({"type": "boolean"}, "Show what would happen, change nothing"),
        "actions": _told(
            _OBJECTS,
            '[{"type":"pricing.change_set","changes":[{"op":"create","set":{"name","query","adjust_bp",'
            '"floor","state":"published"}},{"op":"update","rule_id","set"},{"op":"enable|disable|delete",'
            '"rule_id"},{"op":"reorder","set":{"ids"}}]},{"type":"pricing.pins","set":[{"marketplace_id",'
            '"price":"4.50"}],"remove":[…]},{"type":"lists.change_set","create":[name],"rename":[{"id","name"}],'
            '"add":[{"list" or "id","search" or "card_ids"}],"remove":[…],"delete":[id]}]. adjust_bp: 300 is +3%',
        ),
    },
    "recommendations.accept": {"revision": _told(_TEXT, "As it was read")},
    "recommendations.dismiss": {"revision": _told(_TEXT, "As it was read")},
    "recommendations.snooze": {"revision": _told(_TEXT, "As it was read")},
    "reviews.accept": {"reviews": _REVIEWS},
    "reviews.dismiss": {"reviews": _REVIEWS},
    "reviews.snooze": {"reviews": _REVIEWS},
    "waiting.decide": {
        "answer": _told(
            {"type": "string", "enum": ["approve", "decline", "snooze"]}, "One it takes"
        ),
        "revision": _told(_TEXT, "As it was read"),
    },
    "sync.request": {
        "kind": _told({"type": "string", "enum": list(KINDS)}, "full by default"),
        "full_history": _told({"type": "boolean"}, "Fetch all orders anew"),
    },
}
_REQUIRED: Final = {"name", "actions", "revision", "reviews", "rule"}
# A tool does not get these arguments: a member's confirmation, a second form of another argument,
# or a format for people.
_LEFT_OUT: Final = {"confirm", "override_reason", "format", "product_line"}
# The API's description has these parameters as texts, because their routes parse them by hand.
_NUMBERS: Final = {"page", "per_page"}
_PAYLOAD: Final = {"lists.addCards", "lists.removeCards"}
_PAYLOAD_TOLD: Final = "The selection: marketplace_ids, else card_ids, else search with filters"
_ABOUT: Final = 200


def derived(document: Mapping[str, object]) -> dict[str, Shapes]:
    """Return the shapes of every binding in the table, from openapi.json."""
    whole = opened(document)
    return {
        binding.name: _fallback() if binding is FALLBACK else _shapes(whole, binding)
        for binding in TABLE
    }


def as_json(shapes: Mapping[str, Shapes]) -> str:
    return json.dumps(shapes, indent=1, ensure_ascii=False) + "\n"


def _fallback() -> Shapes:
    path = _told(_TEXT, "A path under /api/ with its query, as /api/cards?search=price>5")
    return Shapes((Argument("path", "path", "path", True, path),), "", "")


def _shapes(document: JsonMapping, binding: Binding) -> Shapes:
    operation = document["paths"][binding.path][binding.method.lower()]
    schemas = document["components"]["schemas"]
    about = " ".join(operation.get("description", "").split("\n\n")[0].split())
    return Shapes(
        tuple(_arguments(schemas, binding, operation)),
        _answer(operation),
        about if len(about) <= _ABOUT else f"{about[:_ABOUT].rsplit('. ', 1)[0].rstrip('.')}.",
    )


def _arguments(
    schemas: Mapping[str, object], binding: Binding, operation: JsonMapping
) -> Iterator[Argument]:
    given = {one["name"]: one for one in operation.get("parameters", ())}
    for wire in re.findall(r"\{(\w+)\}", binding.path):
        name = "id" if wire.endswith("_id") and wire != "marketplace_id" else wire
        yield Argument(name, "path", wire, True, _plain(schemas, given[wire]["schema"]))
    body = {} if "requestBody" not in operation else _body(schemas, binding, operation)
    if binding.name in _PAYLOAD:
        shape = {"type": "object", "properties": body}
        yield Argument("payload", "payload", "", True, _told(shape, _PAYLOAD_TOLD))
    else:
        for name, schema in body.items():
            needed = name in _REQUIRED and binding.name != "discovery.findAvailability"
            yield Argument(name, "body", name, needed, schema)
    for name, one in given.items():
        if one["in"] == "query" and name not in _LEFT_OUT and name not in body:
            schema = _ID if name in _NUMBERS else _plain(schemas, one["schema"])
            if told := one.get("description"):
                schema = _told(schema, told)
            yield Argument(name, "query", name, bool(one.get("required")), schema)


def _body(schemas: JsonMapping, binding: Binding, operation: JsonMapping) -> JsonObject:
    if binding.name in OPEN_BODIES:
        return dict(OPEN_BODIES[binding.name])
    shape = _plain(schemas, operation["requestBody"]["content"]["application/json"]["schema"])
    told: JsonObject = shape["properties"]
    return {name: schema for name, schema in told.items() if name not in _LEFT_OUT}


def _plain(schemas: JsonMapping, schema: JsonMapping) -> JsonObject:
    """Return the schema with resolved references, and without details that an assistant does not
    need. An argument that may be null may also be omitted, so null is left out.
    """
    if "$ref" in schema:
        return _plain(schemas, schemas[schema["$ref"].rsplit("/", 1)[1]])
    if "oneOf" in schema:
        [*forms] = [form for form in schema["oneOf"] if form != {"type": "null"}]
        if len(forms) == 1:
            return _plain(schemas, forms[0])
    kept = {
        name: value
        for name, value in schema.items()
        if name in ("type", "enum", "items", "maxItems", "format")
    }
    if isinstance(kept.get("type"), list):
        [kept["type"]] = [one for one in kept["type"] if one != "null"]
    if "enum" in kept:
        kept["enum"] = [one for one in kept["enum"] if one is not None]
    if "properties" in schema:
        kept["properties"] = {
            name: _plain(schemas, one) for name, one in schema["properties"].items()
        }
    return kept


def _answer(operation: JsonMapping) -> str:
    for status, answer in sorted(operation["responses"].items()):
        if status.startswith("2"):
            schema = answer["content"]["application/json"]["schema"]
            named = schema if "$ref" in schema else schema.get("oneOf", [schema])[0]
            return str(named.get("$ref", "")).rsplit("/", 1)[-1]
    raise ValueError(f"{operation['operationId']} has no answer")
