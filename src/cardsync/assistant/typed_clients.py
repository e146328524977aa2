"""Prints a typed client of the bindings in Python or TypeScript: one file without dependencies.

Its types are those of the interface's description; a refusal raises `Refused` with status and code.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from cardsync.assistant.bindings import FALLBACK, TABLE, Argument, Binding, shapes

Schema = Mapping[str, Any]
_PREFIX: Final = "#/components/schemas/"
_PYTHON: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
}
_TYPESCRIPT: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "Record<string, unknown>",
}
_PYTHON_HEAD: Final = '''\
"""A client of a cardsync service, printed by `cardsync assistants --client python`."""

from __future__ import annotations

import builtins
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Literal, NotRequired, TypedDict


class Refused(Exception):
    """The service refused: `status` of HTTP, `code` of the interface, and the whole answer."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        super().__init__(f"{answer.get('code', status)}: {answer.get('error', '')}")
        self.status = status
        self.code = str(answer.get("code", ""))
        self.answer = answer


class Service:
    """Sends requests to `address` with `token` (an API key or a token) as the bearer."""

    def __init__(self, address: str, token: str, timeout: float = 60.0) -> None:
        self._address, self._token, self._timeout = address.rstrip("/"), token, timeout

    def call(self, method: str, path: str, query: dict[str, Any], body: Any) -> Any:
        """Return the JSON of the answer. Raises Refused."""
        pairs = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items() if value is not None
        }
        if pairs:
            path += ("&" if "?" in path else "?") + urllib.parse.urlencode(pairs, doseq=True)
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self._address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            text = refusal.read()
            try:
                told = json.loads(text)
            except ValueError:
                told = {"error": text.decode("utf-8", "replace")[:500]}
            raise Refused(refusal.code, told) from None


def _step(value: object) -> str:
    return urllib.parse.quote(str(value), safe="")


def _given(**values: Any) -> dict[str, Any]:
    return {name.rstrip("_"): value for name, value in values.items() if value is not None}
'''
_TYPESCRIPT_HEAD: Final = """\
// A client of a cardsync service, printed by `cardsync assistants --client typescript`.

/** The service refused: `status` of HTTP, `code` of the interface, and the whole answer. */
export class Refused extends Error {
  status: number;
  code: string;
  answer: Record<string, unknown>;
  constructor(status: number, answer: Record<string, unknown>) {
    super(`${answer.code ?? status}: ${answer.error ?? ""}`);
    this.status = status;
    this.code = String(answer.code ?? "");
    this.answer = answer;
  }
}
"""
_TYPESCRIPT_CLIENT: Final = """\
/** Sends requests to `address` with `token` (an API key or a token) as the bearer. */
export class Client {
  private address: string;
  private token: string;

  constructor(address: string, token: string) {
    this.address = address.replace(/\\/+$/, "");
    this.token = token;
  }

  private async call<T>(
    method: string, path: string, query: Record<string, unknown>, body?: unknown,
  ): Promise<T> {
    const pairs = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined && one !== null) pairs.append(name, String(one));
      }
    }
    const mark = path.includes("?") ? "&" : "?";
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.token}`, Accept: "application/json",
    };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const address = this.address + path + (pairs.size ? mark + pairs : "");
    const answer = await fetch(address, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (answer.ok) return JSON.parse(text) as T;
    let told: Record<string, unknown>;
    try {
      told = JSON.parse(text);
    } catch {
      told = { error: text.slice(0, 500) };
    }
    throw new Refused(answer.status, told);
  }
"""


def python(document: Schema) -> str:
    """The client in Python 3.11. `document` is openapi.json."""
    types = _Types(document, _PYTHON, _python_struct)
    groups = {
        name: [_python_method(types, binding) for binding in bindings]
        for name, bindings in _groups().items()
    }
    classes = [
        f"class {_title(name)}Calls:\n    def __init__(self, service: Service) -> None:\n"
        f"        self._service = service\n\n{chr(10).join(methods)}"
        for name, methods in groups.items()
    ]
    members = "\n".join(f"        self.{name} = {_title(name)}Calls(service)" for name in groups)
    client = (
        "class Client:\n"
        '    """The bindings in their groups: `Client(address, token).lists.list()`."""\n\n'
        "    def __init__(self, address: str, token: str) -> None:\n"
        f"        service = Service(address, token)\n{members}\n"
    )
    return "\n\n".join([_PYTHON_HEAD, *types.structs.values(), *classes, client])


def typescript(document: Schema) -> str:
    """The client in TypeScript for what has `fetch`. `document` is openapi.json."""
    types = _Types(document, _TYPESCRIPT, _typescript_struct)
    groups = [
        f"  {name} = {{\n"
        + "\n".join(_typescript_method(types, binding) for binding in bindings)
        + "\n  };\n"
        for name, bindings in _groups().items()
    ]
    client = "\n".join([_TYPESCRIPT_CLIENT, *groups]) + "}\n"
    return "\n".join([_TYPESCRIPT_HEAD, *types.structs.values(), client])


class _Types:
    """Writes schemas as types of a language; structs that they name are collected on the way."""

    def __init__(
        self,
        document: Schema,
        plain: Mapping[str, str],
        struct: Callable[[_Types, str, Schema], str],
    ) -> None:
        self.document = document
        self._schemas: Schema = document["components"]["schemas"]
        self._plain = plain
        self._struct = struct
        self.structs: dict[str, str] = {}

    def written(self, schema: Schema, name: str) -> str:
        """The type of a schema; `name` is that of a struct that it describes in place."""
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(_PREFIX)
            return self.struct(name, self._schemas[name])
        for forms in ("oneOf", "anyOf"):
            if forms in schema:
                return _union(self.written(one, name) for one in schema[forms])
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return _union(self._value(value) for value in values)
        kinds = schema.get("type", ())
        return _union(
            self._kind(kind, schema, name)
            for kind in ([kinds] if isinstance(kinds, str) else kinds)
        ) or ("Any" if self._plain is _PYTHON else "unknown")

    def struct(self, name: str, schema: Schema) -> str:
        if name not in self.structs:
            self.structs[name] = ""
            self.structs[name] = self._struct(self, name, schema)
        return name

    def answer(self, binding: Binding) -> str:
        """The type of a binding's answer."""
        if binding is FALLBACK:
            return self.written({}, "")
        responses = self.document["paths"][binding.path][binding.method.lower()]["responses"]
        return _union(
            self.written(one["content"]["application/json"]["schema"], "")
            for status, one in sorted(responses.items())
            if status.startswith("2")
        )

    def _value(self, value: Any) -> str:
        if value is None:
            return self._plain["null"]
        text = json.dumps(value)
        return f"Literal[{text}]" if self._plain is _PYTHON else text

    def _kind(self, kind: str, schema: Schema, name: str) -> str:
        if kind == "array":
            items = self.written(schema.get("items", {}), f"{name}Item")
            # A field or method may be named `list`.
            return f"builtins.list[{items}]" if self._plain is _PYTHON else f"Array<{items}>"
        if kind == "object" and "properties" in schema:
            return self.struct(name, schema)
        if kind == "object" and schema.get("additionalProperties"):
            values = self.written(schema["additionalProperties"], f"{name}Value")
            return f"dict[str, {values}]" if self._plain is _PYTHON else f"Record<string, {values}>"
        return self._plain[kind]


def _union(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types))


def _groups() -> dict[str, list[Binding]]:
    groups: dict[str, list[Binding]] = {}
    for binding in TABLE:
        groups.setdefault(binding.name.partition(".")[0], []).append(binding)
    return groups


def _title(name: str) -> str:
    return name[0].upper() + name[1:]


def _struct_name(binding: Binding, argument: Argument) -> str:
    group, _, name = binding.name.partition(".")
    return _title(group) + _title(name) + _title(argument.name)


def _python_struct(types: _Types, name: str, schema: Schema) -> str:
    required = schema.get("required", ())
    fields = {
        field: types.written(one, f"{name}{_title(field)}")
        for field, one in schema["properties"].items()
    }
    typed = {
        field: of if field in required else f"NotRequired[{of}]" for field, of in fields.items()
    }
    if all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
        lines = [f"    {field}: {of}" for field, of in typed.items()] or ["    pass"]
        return f"class {name}(TypedDict):\n" + "\n".join(lines) + "\n"
    # A key that is no name of Python takes the other form, whose types are read at once.
    lines = [f"    {json.dumps(field)}: {json.dumps(of)}," for field, of in typed.items()]
    return f"{name} = TypedDict({json.dumps(name)}, {{\n" + "\n".join(lines) + "\n})\n"


def _typescript_struct(types: _Types, name: str, schema: Schema) -> str:
    required = schema.get("required", ())
    lines = [
        f"  {json.dumps(field)}{'' if field in required else '?'}:"
        f" {types.written(one, f'{name}{_title(field)}')};"
        for field, one in schema["properties"].items()
    ]
    return f"export interface {name} {{\n" + "\n".join(lines) + "\n}\n"


def _python_method(types: _Types, binding: Binding) -> str:
    arguments = shapes()[binding.name].arguments
    typed = {one.name: types.written(one.schema, _struct_name(binding, one)) for one in arguments}
    needed = [f"{_safe(one.name)}: {typed[one.name]}" for one in arguments if one.required]
    free = [
        f"{_safe(one.name)}: {typed[one.name]} | None = None"
        for one in arguments
        if not one.required
    ]
    taken = ", ".join(["self", *needed, *(["*"] if free else []), *free])
    method = binding.function.removeprefix(f"{binding.name.partition('.')[0]}_")
    answer = types.answer(binding)
    return (
        f"    def {method}({taken}) -> {answer}:\n"
        f'        """{binding.title}. Raises Refused."""\n'
        f"        answer: {answer} = self._service.call(\n"
        f"            {_python_request(binding, arguments)}\n        )\n"
        "        return answer\n"
    )


def _python_request(binding: Binding, arguments: Iterable[Argument]) -> str:
    if binding is FALLBACK:
        return '"GET", path, {}, None'
    path = json.dumps(binding.path)
    parts: dict[str, list[Argument]] = {"query": [], "body": []}
    body = "None"
    for one in arguments:
        if one.place == "path":
            path = "f" + path.lstrip("f").replace(
                f"{{{one.wire}}}", f"{{_step({_safe(one.name)})}}"
            )
        elif one.place == "payload":
            body = _safe(one.name)
        else:
            parts[one.place].append(one)
    query, given = (
        ", ".join(f"{_safe(one.wire)}={_safe(one.name)}" for one in places)
        for places in parts.values()
    )
    if given or (body == "None" and binding.method == "POST"):
        body = f"_given({given})"
    return f'"{binding.method}", {path}, {f"_given({query})" if query else "{}"}, {body}'


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _typescript_method(types: _Types, binding: Binding) -> str:
    name = binding.name.partition(".")[2]
    arguments = shapes()[binding.name].arguments
    fields = [
        f"{one.name}{'' if one.required else '?'}:"
        f" {types.written(one.schema, _struct_name(binding, one))}"
        for one in arguments
    ]
    empty = "" if any(one.required for one in arguments) else " = {}"
    given = f"args: {{ {'; '.join(fields)} }}{empty}" if fields else ""
    answer = types.answer(binding)
    return (
        f"    /** {binding.title}. */\n"
        f"    {name}: ({given}): Promise<{answer}> =>\n"
        f"      this.call<{answer}>({_typescript_request(binding, arguments)}),"
    )


def _typescript_request(binding: Binding, arguments: Iterable[Argument]) -> str:
    if binding is FALLBACK:
        return '"GET", args.path, {}'
    path = binding.path
    parts: dict[str, list[str]] = {"query": [], "body": []}
    body = ""
    for one in arguments:
        if one.place == "path":
            path = path.replace(f"{{{one.wire}}}", f"${{encodeURIComponent(args.{one.name})}}")
        elif one.place == "payload":
            body = f", args.{one.name}"
        else:
            parts[one.place].append(f"{json.dumps(one.wire)}: args.{one.name}")
    query, given = (", ".join(places) for places in parts.values())
    if given or (not body and binding.method == "POST"):
        body = f", {{ {given} }}"
    return f'"{binding.method}", `{path}`, {{ {query} }}{body}'
