"""Builds the API description, openapi.json, from the routes and the parts that they share.

Litestar describes parameters, bodies and the answers that a route declares. `complete` adds the
request id, the headers of errors, the codes of each status, and the 500 that any route may return.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, fields
from http import HTTPStatus

import msgspec
from litestar import Litestar
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, OpenAPI, SecurityScheme

from cardsync import __version__
from cardsync.access.audience import READ, WRITE
from cardsync.access.tokens import COOKIE
from cardsync.platform import errors
from cardsync.platform.value_types import Json, JsonObject
from cardsync.web import retired
from cardsync.web.described_fields import sentences
from cardsync.web.field_words import WORDS
from cardsync.web.openapi_texts import (
    A_TOKENS_USE,
    DESCRIPTION,
    FILES,
    HEADERS,
    LIMITS,
    REQUEST_ID,
    SESSION,
    TAGS,
    TEXT,
)
from cardsync.web.request import InternalError, problems
from cardsync.web.shared_answers import share_answers

# The header that every error with this status has, whatever the route.
OF_STATUS = {"401": "WWW-Authenticate", "405": "Allow", "429": "Retry-After", "503": "Retry-After"}
OF_CODE = {"mutex_held": "Retry-After", "insufficient_scope": "WWW-Authenticate"}
ERROR_BODY = {"$ref": "#/components/schemas/ErrorBody"}


def openapi_config() -> OpenAPIConfig:
    return _Config(
        title="cardsync",
        version=__version__,
        description=DESCRIPTION,
        tags=TAGS,
        components=Components(
            security_schemes={
                "api_key": SecurityScheme(
                    type="http",
                    scheme="bearer",
                    description="A seller API key, csk_…",
                ),
                "session": SecurityScheme(
                    type="apiKey",
                    security_scheme_in="cookie",
                    name=COOKIE,
                    description=SESSION,
                ),
                "token": SecurityScheme(type="http", scheme="bearer", description=A_TOKENS_USE),
            }
        ),
        path="/openapi",
        # Litestar's pages for the description load scripts from other hosts, so only the JSON
        # document is served.
        render_plugins=[JsonRenderPlugin()],
        use_handler_docstrings=True,
        operation_id_creator=_operation_id,
    )


def document(app: Litestar) -> str:
    """Return the text of openapi.json."""
    return _lines(app.openapi_schema.to_schema()) + "\n"


def _lines(schema: dict[str, object]) -> str:
    """Write each operation and each component on one line. So a change is a few lines of a diff,
    and the file stays small.
    """

    def text(value: object, depth: int) -> str:
        if depth == 0 or not isinstance(value, dict) or not value:
            return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        parts = (f"{json.dumps(name)}:{text(value[name], depth - 1)}" for name in sorted(value))
        return "{\n" + ",\n".join(parts) + "\n}"

    return text(schema, 3)


def _operation_id(handler: BaseRouteHandler, *_: object) -> str:
    return handler.handler_name


@dataclass
class _Document(OpenAPI):
    def to_schema(self) -> dict[str, object]:
        return complete(super().to_schema())


@dataclass
class _Config(OpenAPIConfig):
    def to_openapi_schema(self) -> OpenAPI:
        plain = super().to_openapi_schema()
        return _Document(**{field.name: getattr(plain, field.name) for field in fields(plain)})


def complete(schema: JsonObject) -> JsonObject:
    components = schema["components"]
    _, own = msgspec.json.schema_components(
        [InternalError], ref_template="#/components/schemas/{name}"
    )
    said = WORDS | sentences(InternalError)
    for name, field in own["InternalError"]["properties"].items():
        field["description"] = said[name]
    components["schemas"].update(own)
    components["headers"] = HEADERS
    components["responses"] = {
        "InternalError": _internal_error(
            "500",
            "internal_server_error",
            "An unhandled failure on our side",
        ),
        "UnknownRoute": _internal_error("404", "not_found", "There is no such address"),
        "MethodNotAllowed": _finished(
            "405", {"description": problems(errors.MethodNotAllowed)[405].description}
        ),
    }
    for operations in schema["paths"].values():
        for method, operation in operations.items():
            _describe_tokens(method, operation)
            _describe_parameters(operation)
            _describe_files(operation)
            operation["responses"] = _answers(operation["responses"])
            if operation.get("security"):
                _describe_limits(operation["responses"])
            if "requestBody" in operation:
                _describe_body(operation["requestBody"])
            for part in (operation.get("requestBody", {}), *operation["responses"].values()):
                _describe_bytes(part.get("content", {}))
    for one in retired.RETIRED:
        _describe_retired(one, schema["paths"][one.path][one.method.lower()])
    _unite(schema)
    _name_as_classes(schema)
    _leave_out_defaults(schema)
    share_answers(schema)
    return schema


def _name_as_classes(schema: JsonObject) -> None:
    """Rename structs so that generated clients get valid class names. Two structs with the same
    name are named by their modules, and a struct with the name of one of its own fields gets a
    suffix.
    """
    schemas = schema["components"]["schemas"]
    new = {name: _class_name(name) for name in schemas if "_" in name} | {
        name: next(f"{name}{end}" for end in ("Body", "Shown") if f"{name}{end}" not in schemas)
        for name, one in schemas.items()
        if re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() in one.get("properties", {})
    }
    assert len({*schemas, *new.values()}) == len(schemas) + len(new)

    def follow(part: Json) -> None:
        for one in part.values() if isinstance(part, dict) else part:
            if isinstance(one, dict | list):
                follow(one)
        if isinstance(part, dict) and isinstance(part.get("$ref"), str):
            before, _, name = part["$ref"].rpartition("/")
            part["$ref"] = f"{before}/{new.get(name, name)}"

    follow(schema)
    schema["components"]["schemas"] = {new.get(name, name): one for name, one in schemas.items()}


def _class_name(name: str) -> str:
    *modules, struct = name.split("_")
    return "".join(word.title() for word in modules) + struct


def _leave_out_defaults(schema: JsonObject) -> None:
    """Remove values that are the default, and texts that another part of the description already
    has.
    """
    for one in schema["components"]["schemas"].values():
        # If two structs share a name, the component's key contains the module; a title would hide
        # this difference.
        one.pop("title", None)
    for operations in schema["paths"].values():
        for operation in operations.values():
            _drop_false(operation, "deprecated")
            # Litestar's summary is the operation's id in capitals.
            operation.pop("summary", None)
            for answer in operation["responses"].values():
                if answer.get("description") == HTTPStatus.OK.description:
                    answer["description"] = HTTPStatus.OK.phrase
            for parameter in operation.get("parameters", []):
                _drop_false(parameter, "allowEmptyValue", "allowReserved", "deprecated", "required")
                form = parameter["schema"]
                if form.get("description") == parameter.get("description"):
                    form.pop("description", None)


def _drop_false(form: dict[str, object], *names: str) -> None:
    for name in names:
        if form.get(name) is False:
            del form[name]


def opened(document: Json) -> JsonObject:
    """Return the description with its shared answers and parameters copied into each operation."""
    whole: JsonObject = copy.deepcopy(document)
    components = whole["components"]

    def there(part: JsonObject) -> dict[str, object]:
        if "$ref" not in part:
            return part
        _, _, kind, name = part["$ref"].split("/")
        found: JsonObject = components[kind][name]
        return found

    for operations in whole["paths"].values():
        for operation in operations.values():
            answers = operation["responses"]
            operation["responses"] = {status: there(one) for status, one in answers.items()}
            if "parameters" in operation:
                operation["parameters"] = [there(one) for one in operation["parameters"]]
    return whole


def _unite(schema: Json) -> None:
    """Simplify unions in place. A union of forms that may overlap becomes anyOf."""
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            _unite(part)
    if not isinstance(schema, dict) or not isinstance(schema.get("oneOf"), list):
        return
    forms = [
        inner
        for form in schema.pop("oneOf")
        for inner in (form["oneOf"] if form.keys() == {"oneOf"} else [form])
    ]
    if {"type": "number"} in forms:
        # In JSON Schema a number may be an integer, so the union needs no integer.
        forms = [form for form in forms if form != {"type": "integer"}]
    forms = [form for place, form in enumerate(forms) if form not in forms[:place]]
    if len(forms) == 1 and not schema.keys() & forms[0].keys():
        schema |= forms[0]
    else:
        overlap = sum(form.get("type", "object") == "object" for form in forms) > 1
        schema["anyOf" if overlap else "oneOf"] = forms


def _describe_retired(one: retired.Retired, operation: JsonObject) -> None:
    if one.part is None:
        operation["deprecated"] = True
    for answer in operation["responses"].values():
        if "$ref" not in answer:
            answer["headers"] |= {
                name: {"$ref": f"#/components/headers/{name}"} for name in retired.HEADERS
            }


def _describe_tokens(method: str, operation: JsonObject) -> None:
    """Add the scope that a token needs, or the error that a token gets."""
    security = operation.get("security", [])
    schemes = {name for item in security for name in item}
    if "token" in schemes:
        named = [scopes for item in security for scopes in item.values() if scopes]
        scopes = named[0] if named else [READ if method in ("get", "head") else WRITE]
        operation["security"] = [
            *(item for item in security if "token" not in item), {"token": scopes},
        ]  # fmt: skip
        _describe_refusal(operation["responses"], errors.InsufficientScope)
        _describe_refusal(operation["responses"], errors.PaidPlanRequired)
    elif {"api_key", "session"} <= schemes:
        _describe_refusal(operation["responses"], errors.KeyRequired)


def _describe_parameters(operation: JsonObject) -> None:
    """Add the 422 to an operation with a typed parameter outside the path."""
    told = operation["responses"].get("422", {}).get("description", "")
    typed = any(
        parameter["in"] != "path" and not _is_any_text(parameter["schema"])
        for parameter in operation.get("parameters", [])
    )
    if typed and "`invalid_payload`" not in told:
        _describe_refusal(operation["responses"], errors.InvalidPayload)


def _is_any_text(schema: JsonObject) -> bool:
    forms = schema.get("oneOf", [schema])
    return all(form.keys() <= {"type", "default"} for form in forms) and {
        form.get("type") for form in forms
    } <= {"string", "null"}


def _describe_files(operation: JsonObject) -> None:
    """Add the files that the query parameter `format` can request."""
    for parameter in operation.get("parameters", []):
        if parameter["name"] == "format":
            content = operation["responses"]["200"]["content"]
            content["application/json"]["schema"]["oneOf"].remove(TEXT)
            content |= {FILES[name]: {"schema": {}} for name in parameter["schema"]["enum"] if name}


def _describe_refusal(responses: JsonObject, kind: type[errors.Problem]) -> None:
    """Add an error that many routes share to those that the route declares."""
    status = str(kind.status)
    sentence = problems(kind)[kind.status].description
    if status in responses:
        sentence = f"{responses[status]['description']}; {sentence}"
    responses[status] = {**responses.get(status, {}), "description": sentence}


def _answers(responses: JsonObject) -> dict[str, object]:
    finished = {
        status: _finished(status, answer)
        for status, answer in responses.items()
        if not _is_framework(answer)
    }
    finished["500"] = {"$ref": "#/components/responses/InternalError"}
    if "304" in finished:
        # A 304 repeats the caching headers of a 200 (RFC 9110, section 15.4.5).
        finished["304"]["headers"] |= {
            name: header
            for name, header in finished["200"]["headers"].items()
            if name in ("ETag", "Cache-Control", "Vary")
        }
    return dict(sorted(finished.items()))


def _describe_limits(answers: JsonObject) -> None:
    for answer in answers.values():
        if "$ref" not in answer:
            answer["headers"] |= LIMITS


def _is_framework(answer: JsonObject) -> bool:
    """Return whether the answer is Litestar's description of a validation failure; this API uses a
    422 instead.
    """
    schemas = [content["schema"] for content in answer.get("content", {}).values()]
    return any("status_code" in schema.get("properties", {}) for schema in schemas)


def _finished(status: str, answer: JsonObject) -> JsonObject:
    """Add the headers of an answer. For an error, restrict the schema's `code` to the codes in its
    description, which `web.request.problems` wrote.
    """
    headers = {
        name: {"schema": TEXT, **header} for name, header in answer.get("headers", {}).items()
    }
    # Matches a code alone, or a code after `status` or `with digits`. These words mark an error
    # with its own body.
    texts = re.findall(r"(?:^|; )(status |with digits )?`(\w+)`: ", answer["description"])
    codes = [code for own, code in texts if not own]
    if codes:
        schema = _with_codes(
            answer.get("content", {}).get("application/json", {}).get("schema", ERROR_BODY),
            codes,
        )
        answer = {**answer, "content": {"application/json": {"schema": schema}}}
    names = {OF_CODE.get(code, OF_STATUS.get(status)) for _, code in texts} - {None}
    headers |= {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    return {**answer, "headers": {**headers, **REQUEST_ID}}


def _with_codes(schema: JsonObject, codes: list[str]) -> JsonObject:
    if schema == ERROR_BODY:
        return {"allOf": [schema, {"properties": {"code": {"type": "string", "enum": codes}}}]}
    forms = schema.get("oneOf", [schema])
    # A route may have both a shared error and an error with its own body.
    forms = forms if ERROR_BODY in forms else [*forms, ERROR_BODY]
    return {"oneOf": [_with_codes(form, codes) if form == ERROR_BODY else form for form in forms]}


def _internal_error(status: str, code: str, description: str) -> JsonObject:
    same = {
        "properties": {
            "code": {"type": "string", "enum": [code]},
            "status": {"type": "integer", "enum": [int(status)]},
        }
    }
    body = {"schema": {"allOf": [{"$ref": "#/components/schemas/InternalError"}, same]}}
    answer = {
        "description": description,
        "content": {"application/json": body, "text/html": {"schema": TEXT}},
    }
    return {**answer, "headers": {"Vary": {"$ref": "#/components/headers/Vary"}, **REQUEST_ID}}


def _describe_bytes(content: JsonObject) -> None:
    """Describe any content except JSON and HTML as bytes, which clients handle as files."""
    for kind, one in content.items():
        if kind not in ("application/json", "text/html"):
            form = one.get("schema") or {}
            kept = {name: form[name] for name in ("deprecated", "description") if name in form}
            one["schema"] = {"type": "string", "format": "binary", **kept}


def _describe_body(body: JsonObject) -> None:
    """Mark a JSON body as optional if null is allowed. Gzip is described once for all bodies,
    because client generators would take a second content type for a second body.
    """
    form = body["content"].get("application/json")
    if form is None or len(body["content"]) > 1:
        return
    body["required"] = {"type": "null"} not in form["schema"].get("oneOf", [])
