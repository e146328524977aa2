"""Moves answers that several routes in openapi.json share into its components."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

from cardsync.platform.value_types import JsonObject

T = TypeVar("T")


def share_answers(schema: JsonObject) -> None:
    """Move the answers and parameters that several operations share into the components.

    The most frequent answer with a status is named by that status; the others also get a number.
    About two thousand places use these names, so longer names would make the file larger by a
    thirtieth.
    """
    components = schema["components"]
    operations = [one for methods in schema["paths"].values() for one in methods.values()]
    given: dict[tuple[str, str], list[JsonObject]] = {}
    asked: dict[tuple[str, str], list[tuple[list[Any], int]]] = {}
    for operation in operations:
        for status, answer in operation["responses"].items():
            if "$ref" not in answer:
                key = status, _key(answer)
                given.setdefault(key, []).append(operation["responses"])
        for place, parameter in enumerate(operation.get("parameters", [])):
            key = re.sub(r"\W", "", parameter["name"]), _key(parameter)
            asked.setdefault(key, []).append((operation["parameters"], place))
    for name, form, answers in _named(given):
        answer = components["responses"][name] = json.loads(form)
        for responses in answers:
            status = next(status for status, one in responses.items() if one == answer)
            responses[status] = {"$ref": f"#/components/responses/{name}"}
    components["parameters"] = {}
    for name, form, places in _named(asked):
        components["parameters"][name] = json.loads(form)
        for parameters, place in places:
            parameters[place] = {"$ref": f"#/components/parameters/{name}"}


def _key(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _named(found: dict[tuple[str, str], list[T]]) -> Iterator[tuple[str, str, list[T]]]:
    """Yield each form that occurs several times, with its name and the places where it occurs."""
    counts: Counter[str] = Counter()
    by_number = sorted(found.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1]))
    for (name, form), places in by_number:
        if len(places) > 1:
            counts[name] += 1
            yield f"{name}_{counts[name]}" if counts[name] > 1 else name, form, places
