"""Makes requests that no client of ours would send: of the routes in openapi.json and of the forms
in rendered pages, with values that are odd, long, deep, or of another kind than was asked for.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from builders import NO_AMOUNTS
from requests_of_routes import BODIES, DOCUMENT

ODD_TEXTS = (
    *NO_AMOUNTS, "", " ", "\0", "\ud800", "x" * 3_000, "%", "_", "\\", "'", '"', "<b>", "２", "-1",
    "0", "1", "1.005", "-0.01", "99999999.99995", "2026-02-30", "0000-00-00", "9999-12-31",
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+23:59", "((((",
    "price>", "-", "name:/(/", "list:x", "is:priced or", "{{7*7}}", "\u202e", "🂡" * 50, "1-1-1",
    "1,2,x", str(2**31), str(2**63), str(-(2**63)), "9" * 5_000, f"000000001{'9' * 5_000}", "true", "null", "[]", "a\r\nb: c",
    "=?utf-8?q?=0AX:y?=", "../..", "%00", "1:2", "\ufeff", "NM", "Normal", "csv", "2026-07",
)  # fmt: skip


def nested(depth: int) -> Any:
    value: Any = 1
    for place in range(depth):
        value = [value] if place % 2 else {"a": value}
    return value


ODD_VALUES = (
    *ODD_TEXTS, 0, -1, 1, 7, 2**31, 2**53, 2**63, -(2**63), 2**64, 10**400, 1.5, 1e308, -0.0, 1e-300,
    13.040000000000001, True, False, None, [], {}, [[]], [None], {"": ""}, {"id": 1}, nested(90),
    nested(300), nested(900), ["x"] * 2_000, list(range(300)),
)  # fmt: skip
# What would take away the ground: the shop itself, or who asks.
LEFT_OUT = re.compile(
    r"DELETE /api/session|/api/account/deletion|/api/sessions|member_sessions"
    r"|/settings/data|/sign-out|/settings/sign-in|/settings/people|/settings/keys|/settings/assistants"
    r"|/operator|/set-up/restore"
)
NOBODY = re.compile(r"\{(member|member_session|key|passkey|assistant|seller)_id\}")


class Asked(NamedTuple):
    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]

    def __str__(self) -> str:
        return f"{self.method} {self.path[:300]} {self.headers} {(self.body or b'')[:400]!r}"


class Fuzz:
    """Draws from `seed`; `ids` are those of addresses that lead to something."""

    def __init__(self, seed: object, ids: Mapping[str, Any]) -> None:
        self.dice = random.Random(str(seed))
        self.ids = ids

    def is_so(self, chance: float) -> bool:
        return self.dice.random() < chance

    def of_routes(self) -> Asked:
        """Draw a request of a route of openapi.json."""
        while True:
            path = self.dice.choice(sorted(DOCUMENT["paths"]))
            method = self.dice.choice(sorted(DOCUMENT["paths"][path]))
            if not LEFT_OUT.search(f"{method.upper()} {path}"):
                return self._of_route(method, path)

    def _of_route(self, method: str, path: str) -> Asked:
        operation = DOCUMENT["paths"][path][method]
        given = [self._resolved(each) for each in operation.get("parameters", [])]
        query = [
            (each["name"], self.text(each.get("schema", {})))
            for each in given
            if each["in"] == "query" and self.is_so(0.4)
            for _ in range(1 if self.is_so(0.9) else 2)
        ]
        headers = {
            each["name"]: _header(self.text(each.get("schema", {})))
            for each in given
            if each["in"] == "header" and self.is_so(0.7)
        }
        address = NOBODY.sub("999999999", path)
        address = re.sub(r"\{(\w+)\}", lambda name: self._part(name[1]), address)
        if query:
            address += "?" + _encoded(query)
        if "requestBody" not in operation:
            return Asked(method.upper(), address, None, headers)
        content = operation["requestBody"]["content"]
        kind = self.dice.choice(sorted(content)) if self.is_so(0.9) else "application/json"
        if kind == "application/json" or kind.endswith("+json"):
            known = BODIES.get(f"{method.upper()} {path}")
            whole = known if known and self.is_so(0.3) else None
            body = self.json(
                whole if whole else self.value(content.get(kind, {}).get("schema", {}))
            )
        else:
            body = self.file()
        return Asked(method.upper(), address, body, headers | {"Content-Type": kind})

    def _part(self, name: str) -> str:
        known = self.ids.get(name, 1)
        odd = self.dice.choice([known, known, known, known, 0, -1, 2**63, *ODD_TEXTS])
        return quote(str(odd)[:200].replace("\ud800", "?"), safe="") or "1"

    def json(self, value: Any) -> bytes:
        body = json.dumps(value).encode()
        if self.is_so(0.03):
            body = body[: self.dice.randrange(len(body) + 1)]
        return body

    def file(self) -> bytes:
        """Draw a file: rows of known columns and odd cells, or any bytes."""
        if self.is_so(0.2):
            return self.dice.randbytes(self.dice.randrange(200))
        columns = self.dice.sample(COLUMNS, self.dice.randrange(1, 9))
        rows = [columns] + [[self._cell() for _ in columns] for _ in range(self.dice.randrange(4))]
        text = "\n".join(self.dice.choice(",;\t,,,").join(row) for row in rows)
        return text.encode("utf-8", "surrogatepass")

    def _cell(self) -> str:
        odd = self.dice.choice(ODD_TEXTS)[:500]
        return self.dice.choice([odd, odd, "1", "2.50", "Near Mint", "2026-07-01", f'"{odd}"'])

    def text(self, schema: Mapping[str, Any]) -> str:
        value = self.value(schema)
        return value if isinstance(value, str) else json.dumps(value)[:2_000]

    def value(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        if self.is_so(0.15):
            return self.dice.choice(ODD_VALUES)
        schema = self._resolved(schema)
        for several in ("oneOf", "anyOf"):
            if several in schema:
                return self.value(self.dice.choice(schema[several]), depth + 1)
        if "allOf" in schema:
            return self.value(schema["allOf"][0], depth + 1)
        if "enum" in schema:
            return self.dice.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type", "string")
        return self._of_kind(
            self.dice.choice(kind) if isinstance(kind, list) else kind, schema, depth
        )

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self.is_so(0.5)
            case "integer" | "number":
                least, most = schema.get("minimum", -3), schema.get("maximum", 2**31)
                known = list(self.ids.values())
                return self.dice.choice([least, most, 1, 2, self.dice.choice(known), least - 1])
            case "array":
                items = schema.get("items", {})
                count = 0 if depth > 6 else self.dice.randrange(4)
                return [self.value(items, depth + 1) for _ in range(count)]
            case "object":
                return self._object(schema, depth)
        return self._text(schema)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        needed = schema.get("required", ())
        fields = {
            name: self.value(field, depth + 1)
            for name, field in schema.get("properties", {}).items()
            if self.is_so(0.97 if name in needed else 0.4 if depth < 5 else 0.05)
        }
        if self.is_so(0.05):
            fields[self.dice.choice(["x", "", "id", "confirm"])] = self.dice.choice(ODD_VALUES)
        return fields

    def _text(self, schema: Mapping[str, Any]) -> str:
        if schema.get("format") == "date-time":
            return self.dice.choice(["2026-11-21T08:00:00Z", "2026-07-01T00:00:00.5+02:00"])
        usual = [
            "1.00",
            "12.50",
            "a",
            "Bolt",
            "2026-07-01",
            "NM",
            "Normal",
            "magic",
            "price>5",
            "1",
        ]
        return self.dice.choice([*usual, self.dice.choice(ODD_TEXTS)])

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            part: Any = DOCUMENT
            for name in schema["$ref"].removeprefix("#/").split("/"):
                part = part[name]
            schema = part
        return schema

    def of_form(self, form: HtmlForm) -> Asked:
        """Draw what somebody sends who changes some of the form's fields."""
        fields: list[tuple[str, str]] = []
        for name, value in form.fields:
            kept = name == "csrf_token" and self.is_so(0.98)
            if not kept and self.is_so(0.03):
                continue
            odd = self.dice.choice(ODD_TEXTS)
            fields.append((name, value if kept or self.is_so(0.6) else odd))
            if not kept and self.is_so(0.02):
                fields.append((name, odd))
        if form.buttons and self.is_so(0.9):
            fields.append(self.dice.choice(form.buttons))
        if form.method == "get":
            return Asked("GET", f"{form.action}?{_encoded(fields)}", None, {})
        if form.has_file:
            return self._multipart(form, fields)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return Asked("POST", form.action, _encoded(fields).encode(), headers)

    def _multipart(self, form: HtmlForm, fields: list[tuple[str, str]]) -> Asked:
        parts = [
            f'--b\r\nContent-Disposition: form-data; name="{quote(name)}"\r\n\r\n{value}\r\n'.encode(
                "utf-8", "surrogatepass"
            )
            for name, value in fields
        ]
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        body = b"".join(parts) + head + self.file() + b"\r\n--b--\r\n"
        return Asked("POST", form.action, body, {"Content-Type": "multipart/form-data; boundary=b"})


COLUMNS = [
    "TCGplayer Id", "Product Line", "Set Name", "Product Name", "Title", "Number", "Rarity",
    "Condition", "TCG Market Price", "TCG Direct Low", "TCG Low Price", "Total Quantity",
    "Add to Quantity", "TCG Marketplace Price", "Photo URL", "marketplace_id", "quantity", "cost",
    "bought_on", "Order Number", "Fees", "Payment Date", "Total Amount", "Name", "Count", "Edition",
    "Foil", "Language", "Collector Number", "Purchase Price", "Card", "",
]  # fmt: skip


class HtmlForm(NamedTuple):
    action: str
    method: str
    has_file: bool
    fields: list[tuple[str, str]]
    buttons: list[tuple[str, str]]


class Forms(HTMLParser):
    """The forms of a page as a browser would send them."""

    def __init__(self, page: str, address: str) -> None:
        super().__init__()
        self.found: list[HtmlForm] = []
        self._form: HtmlForm | None = None
        self._here = urlsplit(address).path
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            action = urlsplit(given.get("action") or self._here)
            has_file = "multipart" in given.get("enctype", "")
            self._form = HtmlForm(action.path, given.get("method", "get"), has_file, [], [])
            self.found.append(self._form)
        form, name = self._form, given.get("name", "")
        if form is None or not name:
            return
        if tag == "button":
            form.buttons.append((name, given.get("value", "")))
        elif tag in ("input", "select", "textarea") and given.get("type") != "file":
            form.fields.append((name, given.get("value", "on" if "checked" in given else "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None


def _encoded(fields: list[tuple[str, str]]) -> str:
    return urlencode(fields, errors="surrogatepass")


def _header(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text)[:500].strip()
