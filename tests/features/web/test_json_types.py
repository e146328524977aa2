"""JSON's types are what a body's schema says: `true` is not `1`, and `1` is not `"1"`, in any field of
any operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from browsers import operates, signed_in
from builders import a_row, a_shop
from callers import CALLERS
from dashboard_builder import filled_shop
from requests_of_routes import BODIES, DOCUMENT, address_of

WRONG: dict[str, list[Any]] = {
    "string": [1, True, ["a"], {"a": 1}],
    "integer": ["1", True, 1.5, [1]],
    "number": ["1", True, [1]],
    "boolean": [1, 0, "true", [True]],
    "array": ["a", 1, {"a": 1}],
    "object": ["a", 1, [1]],
}
# decisions.md, "Bad optional values": these leave out and report what they cannot read.
REPORTED = {"orders", "order_refunds", "order_items", "orders/shipping", "order_feedbacks"}
# Amounts are texts, and numbers too.
AMOUNTS = {"amount", "cash_each", "cash_part", "cost", "credit_each", "price"}
# "A missing, unknown or non-string kind is full", and what a month's report has is read as above.
# A malformed part of `selected_ids` matches nothing.
TAKEN = re.compile(r"POST /api/v1/(sync/request kind|sales_report report\..*)|.*selected_ids\[0\]")
FITTING = BODIES | {
    "POST /api/v1/sales_report": {
        "date_from": "2026-10-01", "date_to": "2026-10-31", "report": {},
    },
}  # fmt: skip


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def forms(schema: dict[str, Any]) -> list[dict[str, Any]]:
    schema = resolved(schema)
    several = schema.get("oneOf") or schema.get("anyOf")
    return [form for one in several for form in forms(one)] if several else [schema]


def types_of(schema: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for form in forms(schema):
        kind = form.get("type")
        found |= {kind} if isinstance(kind, str) else set(kind or ())
    return found


def wrong_values(schema: dict[str, Any], name: str = "") -> list[Any]:
    """Values of JSON types that the schema does not have; none where it has no type."""
    kinds = types_of(schema) - {"null"} | ({"number"} if name in AMOUNTS else set())
    fitting = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
               "array": list, "object": dict}  # fmt: skip
    return [
        value
        for kind in sorted(kinds)
        for value in WRONG[kind]
        if not any(
            isinstance(value, fitting[one]) and not (one != "boolean" and isinstance(value, bool))
            for one in kinds
        )
    ]


def example(schema: dict[str, Any]) -> Any:
    """A value of the schema's form."""
    form = next(one for one in forms(schema) if one.get("type") != "null")
    if "const" in form:
        return form["const"]
    if "enum" in form:
        return form["enum"][0]
    kind = form.get("type", "string")
    kind = next(one for one in kind if one != "null") if isinstance(kind, list) else kind
    if kind == "object":
        fields = form.get("properties", {})
        return {name: example(fields[name]) for name in form.get("required", ())}
    if kind == "array":
        return [example(form["items"])] if form.get("minItems") else []
    text = {"date-time": "2026-11-21T08:00:00Z", "date": "2026-11-21", "decimal": "1.00"}
    return {
        "string": "1.00" if "pattern" in form else text.get(form.get("format", ""), "a"),
        "integer": int(form.get("minimum", 1)),
        "number": 1,
        "boolean": True,
    }[kind]


def broken(schema: dict[str, Any], fitting: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """For each field of a body its place, and a body in which it has a wrong type."""
    for form in forms(schema):
        if "properties" in form:
            fits = isinstance(fitting, dict) and fitting.keys() <= form["properties"].keys()
            start = fitting if fits else example(form)
            for name, inner in form["properties"].items():
                place = f"{at}.{name}" if at else name
                for value in wrong_values(inner, name):
                    yield place, {**start, name: value}
                for where, value in broken(inner, start.get(name), place):
                    yield where, {**start, name: value}
        elif form.get("type") == "array":
            for value in wrong_values(form["items"]):
                yield f"{at}[0]", [value]
            for where, value in broken(form["items"], (fitting or [None])[0], f"{at}[0]"):
                yield where, [value]


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content and path.removeprefix("/api/v1/") not in REPORTED:
                yield f"{method.upper()} {path}", content["application/json"]["schema"]


@pytest.mark.day
async def test_no_field_of_any_body_takes_another_type(a_seller):
    """Nothing else sends each operation each wrong type of each field."""
    seller, ids = await filled_shop(a_seller)
    await operates(seller)
    browser = await signed_in(seller)
    taken, asked = [], 0
    for route, schema in operations():
        for place, body in broken(schema, FITTING.get(route)):
            if TAKEN.fullmatch(f"{route} {place}"):
                continue
            method, path = address_of(route, ids)
            send = seller.http.request if CALLERS[route][0] == "agent" else browser.send
            answer = await send(method, path, json=body)
            asked += 1
            said = answer.json().get("error", "") if answer.status_code == 422 else ""
            last = re.split(r"[.\[]", re.sub(r"(\[\d+\])+$", "", place))[-1]
            if last not in said:
                taken.append((route, place, body, answer.status_code, answer.text[:150]))
    assert not taken, "\n".join(sorted({f"{one[0]} {one[1]}: {one[3]}" for one in taken}))
    assert asked > 500


async def test_what_no_address_could_say_otherwise_is_refused_in_a_body(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    for send, path, body, field in (
        (seller.post, "/api/v1/sync/request", {"full_history": 1}, "full_history"),
        (browser.post, "/api/shelves/put", {"card_id": 1, "box": 1, "slot": "1", "quantity": 1},
         "slot"),
        (seller.post, "/api/v1/sync/log", {"status": "success", "duration_ms": "5"}, "duration_ms"),
    ):  # fmt: skip
        answer = await send(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
        assert answer.json()["error"].startswith(f"{field}: must be ")
    # An address has texts alone.
    assert (await seller.get("/api/v1/agent/activity?page=1")).status_code == 200


LONG = b"13.040000000000001"


@pytest.mark.parametrize("sent", [LONG, b'"' + LONG + b'"'], ids=["number", "text"])
async def test_an_amount_of_more_than_four_decimals_is_rounded(a_seller, sent):
    seller = await a_shop(a_seller, a_row(1))
    browser = await signed_in(seller)

    async def said(send, method, path, body):
        kind = {"Content-Type": "application/json"}
        answer = await send(method, path, content=body % sent, headers=kind)
        assert answer.status_code in (200, 201, 202), (path, answer.text)
        return answer.json()

    await said(seller.http.request, "POST", "/api/v1/orders",
               b'[{"order_number": "A-1", "total_amt": %s}]')  # fmt: skip
    await seller.service.run_jobs()
    [order] = (await seller.get("/api/orders")).json()["orders"]
    report = b'{"date_from": "2026-10-01", "date_to": "2026-10-31", "report": {"net_sales": %s}}'
    await said(seller.http.request, "POST", "/api/v1/sales_report", report)
    [month] = (await seller.get("/api/v1/sales_report")).json()["reports"]
    rule = await said(browser.send, "POST", "/api/pricing/rules", b'{"name": "A", "floor": %s}')
    pin = await said(browser.send, "PUT", "/api/pricing/pins/1", b'{"price": %s}')
    [lot] = (await said(browser.send, "POST", "/api/buying/lots",
             b'{"lots": [{"marketplace_id": 1, "quantity": 1, "cost": %s}]}'))["ids"]  # fmt: skip
    lots = (await browser.get("/api/buying/lots")).json()["lots"]
    own = await said(browser.send, "POST", "/api/contributions",
                     b'{"name": "Mew", "game": "pokemon", "set": "Own", "condition": "NM",'
                     b' "quantity": 1, "price": %s}')  # fmt: skip
    customer = await said(
        browser.send, "POST", "/api/buying/customers", b'{"name": "Mia"}' + b"%.0s"
    )
    credit = await said(browser.send, "POST", f"/api/buying/customers/{customer['id']}/credit",
                        b'{"amount": %s, "key": "k", "reason": "gift"}')  # fmt: skip
    told = {
        "order": order["total_amt"], "month": month["report"]["net_sales"],
        "rule": rule["floor"], "pin": pin["price"], "credit": credit["amount"],
        "lot": next(one["cost"] for one in lots if one["id"] == lot), "own": own["price"],
    }  # fmt: skip
    assert {name: Decimal(amount) for name, amount in told.items()} == dict.fromkeys(
        told, Decimal("13.04")
    )
