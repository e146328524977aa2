"""Prints an explanation, the answer of `GET /api/v1/pricing/explain/{marketplace_id}`, as lines for
a terminal. Pure.

Every step is a row with the price before it, the price after it and its sentence, wrapped to the
width.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

from cardsync.platform.value_types import JsonMapping

NARROWEST: Final = 72
_NAME: Final = 15


def lines(explanation: JsonMapping, width: int) -> Iterator[str]:
    width = max(NARROWEST, width)
    yield from _wrapped(_heading(explanation), width)
    yield from _wrapped(_outcome(explanation), width)
    if (
        explanation["steps"]
        and not explanation["blockers"]
        and explanation["steps"][-1]["output"] != explanation["target_price"]
    ):
        price_now = explanation["steps"][-1]["output"]
        yield from _wrapped(
            f"The target is from an earlier run. Priced now, the card would be {price_now}.",
            width,
        )
    yield ""
    if explanation["steps"]:
        yield from _table(explanation["steps"], width)
    else:
        yield "The price is pinned: no steps run."
    for blocker in explanation["blockers"]:
        yield from _wrapped(f"blocked: {blocker['code']} — {blocker['message']}", width)
    lost = [rule for rule in explanation["matching_rules"] if rule["outcome"] == "lost"]
    if lost:
        yield ""
        yield "It is also matched by"
        for rule in lost:
            kind = "sale" if rule["kind"] == "sale" else "rule"
            yield from _wrapped(
                f"{kind} “{rule['name']}” (priority {rule['priority']}): {rule['reason']}",
                width,
                "  ",
            )
    yield from _receipt(
        explanation["historical_breakdown"],
        explanation.get("historical_breakdown_absent"),
        width,
    )


def _heading(explanation: JsonMapping) -> str:
    card = explanation["card"]
    number = f" {card['number']}" if card["number"] else ""
    kind = " ".join(part for part in (card["condition"], card["printing"]) if part)
    name = f"{_clean(card['product_name'])} · {_clean(card['set_name'])}"
    return f"{explanation['marketplace_id']}: {name}{number} · {kind}"


def _outcome(explanation: Mapping[str, object]) -> str:
    current = explanation["current_price"] or "none"
    target = explanation["target_price"]
    asks = f"target {target}" if target is not None else "no target: the price stays the same"
    return f"price {current}, {asks} (as of {explanation['computed_at']})"


def _table(steps: list[JsonMapping], width: int) -> Iterator[str]:
    prices = [
        price for step in steps for price in (step["input"], step["output"]) if price is not None
    ]
    column = max(map(len, ("before", *prices))) + 2
    indent = " " * (4 + _NAME + 2 * column + 2)
    yield f"{'#':>2}  {'step':<{_NAME}}{'before':>{column}}{'after':>{column}}  what it did"
    for number, step in enumerate(steps, start=1):
        before = step["input"] or "-"
        after = step["output"] or "-"
        head = f"{number:>2}  {step['name']:<{_NAME}}{before:>{column}}{after:>{column}}  "
        first, *more = _wrapped(step["summary"], width - len(indent)) or [""]
        yield head + first
        yield from (indent + line for line in more)


def _receipt(
    kept: Mapping[str, object] | None,
    absent: Mapping[str, object] | None,
    width: int,
) -> Iterator[str]:
    if kept is None and absent is None:
        return
    yield ""
    if kept is None:
        yield from _wrapped(f"No receipt: {absent['message']}" if absent else "", width)
        return
    asked = f"set {kept['final_price']}" if kept["final_price"] is not None else "set no price"
    still = (
        "which is still the target"
        if kept["reflects_current_price"]
        else "which is no longer the target"
    )
    yield from _wrapped(
        f"Receipt for pricing run {kept['run_id']} ({kept['computed_at']}): it {asked}, {still}.",
        width,
    )


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(_clean(text), width, initial_indent=indent, subsequent_indent=indent)


def _clean(text: str) -> str:
    """Remove control characters: a card's text comes from a file and must not control the
    terminal.
    """
    return "".join(
        " " if unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") else letter
        for letter in text
    )
