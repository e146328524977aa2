"""Shows one rule as a sentence, as text and as the fields of a form, and reads the text and the
fields back. Pure.

A form has no fields for the market gate: it leaves that as it is, and the text sets it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from cardsync.platform import errors, money
from cardsync.platform.kit.typed_numbers import whole
from cardsync.platform.money import percent

RuleJson = Mapping[str, Any]
SOURCES: Final = {
    "market": "the market price",
    "low": "the lowest listing",
    "low_with_shipping": "the lowest price with shipping",
    "direct_low": "the lowest Direct price",
    "sales_anchor": "recent sales",
    "current": "your price",
}
ROUNDINGS: Final = {
    "cent": "to the cent",
    "x9": "to end in 9",
    "x99": "to end in .99",
    "x49_x99": "to end in .49 or .99",
}
PERIODS: Final = {"sync": "sync", "day": "day", "week": "week"}
SIDES: Final = {"under": "below", "above": "above"}
MODES: Final = {"clamp": "stops at the limit", "hold": "keeps the old price"}
# The names of a cap by its period.
CAPS: Final = {"sync": "cap per sync", "day": "daily cap", "week": "weekly cap"}
_FLAGS: Final = ("never_lower", "velocity_boost_enabled", "fee_gap_adjustment")
_AMOUNTS: Final = ("floor", "ceiling")
_STALE: Final = ("after_days", "step_bp", "every_days", "limit_bp")
# Neither the form nor the text sets these fields: they have buttons of their own.
_APART: Final = frozenset({"id", "priority", "enabled", "state"})


class Changed(NamedTuple):
    """The sentences of a rule that a change takes away, and those that it adds."""

    gone: list[str]
    new: list[str]


def sentence_of(rule: RuleJson) -> str:
    """Return the rule's effect in one or a few sentences."""
    return " ".join(_sentences(rule))


def changed_sentences(before: RuleJson, after: RuleJson) -> Changed:
    """Return in which sentences two versions of a rule differ."""
    old, new = _sentences(before), _sentences(after)
    return Changed([one for one in old if one not in new], [one for one in new if one not in old])


def _sentences(rule: RuleJson) -> list[str]:
    query = rule.get("query")
    which = f"Cards that match {query}" if query else "All cards"
    if rule.get("guard"):
        return [f"{which}, whichever rule prices them:", *_bounds(rule), *_capped(rule)]
    return [f"{which}: {_asked(rule)}.", *_bounds(rule), *_limits(rule)]


def _asked(rule: RuleJson) -> str:
    bp = int(rule.get("adjust_bp") or 0)
    amount = str(rule.get("adjust_amount") or "0")
    source = SOURCES[rule["price_source"]]
    text = source if bp == 0 else f"{percent(abs(bp))} {'above' if bp > 0 else 'below'} {source}"
    if Decimal(amount):
        more = not amount.startswith("-")
        text += f", {'plus' if more else 'minus'} ${amount.lstrip('-')}"
    others = [SOURCES[name] for name in rule["fallback_sources"] if name != rule["price_source"]]
    return f"{text} (if unavailable, {', then '.join(others)})" if others else text


def _bounds(rule: RuleJson) -> list[str]:
    sentences = []
    if rule.get("floor") is not None:
        sentences.append(f"Never below ${rule['floor']}.")
    if (bp := rule.get("floor_cost_bp")) is not None:
        side = "plus" if bp >= 0 else "minus"
        sentences.append(
            f"Never below cost {side} {percent(abs(bp))}." if bp else "Never below cost."
        )
    if rule.get("ceiling") is not None:
        sentences.append(f"Never above ${rule['ceiling']}.")
    if rule.get("never_lower"):
        sentences.append("Prices are never lowered.")
    if (stale := rule.get("stale")) is not None:
        sentences.append(
            f"After {stale['after_days']} days without a sale, prices drop"
            f" {percent(stale['step_bp'])} every {stale['every_days']} days,"
            f" at most {percent(stale['limit_bp'])}."
        )
    return sentences


def _capped(rule: RuleJson) -> list[str]:
    sentences = []
    if (cap := rule.get("cap")) is not None:
        if ways := _ways(cap):
            more = (
                "bigger changes keep the old price"
                if cap["mode"] == "hold"
                else "bigger changes stop at the limit"
            )
            sentences.append(f"Prices move at most {ways} per {PERIODS[cap['period']]}; {more}.")
        if (small := cap.get("small")) is not None:
            sentences.append(
                f"Cards below ${small['below']} move at most {_ways(small)} per"
                f" {PERIODS[cap['period']]}."
            )
    return sentences


def _limits(rule: RuleJson) -> list[str]:
    sentences = _capped(rule)
    if rule.get("velocity_boost_enabled"):
        sentences.append("Cards that sell fast are priced higher.")
    if (up := rule.get("undercut_up_bp")) is not None:
        under = f"{percent(up)} below it" if up else "its price"
        sentences.append(f"If the lowest listing is higher, prices go up to {under}.")
    if rule.get("market_gate") is not None:
        sentences.append("The lowest listing is undercut only if enough copies sell.")
    if rule.get("fee_gap_adjustment"):
        sentences.append("Prices skip amounts where a higher fee would pay you less.")
    if (review := rule.get("review")) is not None:
        sentences.append(_reviewed(review))
    if (held := rule.get("holdout_bp")) is not None:
        sentences.append(
            f"{percent(held)} of cards, picked every 30 days, keep their old price as a control"
            " group."
        )
    if rule["rounding"] != "cent":
        sentences.append(f"Prices are rounded {ROUNDINGS[rule['rounding']]}.")
    return sentences


def _ways(limits: RuleJson) -> str:
    """Return how far a price may move: `15% up and 10% down`; empty without a limit."""
    return " and ".join(
        f"{percent(limits[name])} {word}"
        for name, word in (("up_bp", "up"), ("down_bp", "down"))
        if limits[name] is not None
    )


def cap_in_words(rule: RuleJson) -> str:
    """Return the rule's cap: `the daily cap of 20% (15% below $5.00)`; empty without one."""
    cap = rule.get("cap")
    if cap is None:
        return ""
    of, small = _limit(cap), cap.get("small")
    apart = f" ({_limit(small)} below ${small['below']})" if small and _limit(small) != of else ""
    return f"the {CAPS[cap['period']]}{f' of {of}' if of else ''}{apart}"


def _limit(limits: RuleJson) -> str:
    up, down = limits["up_bp"], limits["down_bp"]
    return percent(up) if up is not None and up == down else _ways(limits)


def _reviewed(review: RuleJson) -> str:
    ways = [
        f"{word} over {percent(review[name])}"
        for name, word in (("up_bp", "increases"), ("down_bp", "drops"))
        if review[name] is not None
    ]
    ways += ["first prices"] if review["first_price"] else []
    if not ways:
        return "No price needs your approval."
    said = " and ".join(ways)
    return f"{said[0].upper()}{said[1:]} need your approval."


def percent_field(bp: int) -> str:
    """Return basis points as a field of a form has them, without the sign of percent."""
    return percent(bp).removesuffix("%")


def own_fields(rule: RuleJson) -> dict[str, Any]:
    """Return the fields that the form and the text set."""
    return {name: value for name, value in rule.items() if name not in _APART}


def text_of(rule: RuleJson) -> str:
    return json.dumps(own_fields(rule), indent=2, ensure_ascii=False)


def read_text(text: str) -> dict[str, Any]:
    """Read the text face. Amounts never become floats. Raises InvalidRule."""
    try:
        body = json.loads(text, parse_float=str)
    except (json.JSONDecodeError, RecursionError, ValueError) as e:
        why = (
            f"line {e.lineno}: {e.msg}"
            if isinstance(e, json.JSONDecodeError)
            else "it is too large"
        )
        raise errors.InvalidRule(f"text: this is not valid JSON: {why}") from e
    if not isinstance(body, dict):
        raise errors.InvalidRule("text: must be an object in braces")
    for name in body:
        if name in _APART:
            raise errors.InvalidRule(f"{name}: is set by the buttons next to the rule")
    return body


def form_of(rule: RuleJson) -> dict[str, str]:
    """Return the texts of the form's fields."""
    cap: RuleJson = rule.get("cap") or {}
    small: RuleJson = cap.get("small") or {}
    stale: RuleJson = rule.get("stale") or {}
    review: RuleJson = rule.get("review") or {}
    texts = {name: str(rule.get(name) or "") for name in ("name", "query", *_AMOUNTS)}
    texts |= {name: "true" if rule.get(name) else "" for name in _FLAGS}
    texts |= {
        "price_source": rule["price_source"],
        "rounding": rule["rounding"],
        "fallback_sources": ", ".join(rule["fallback_sources"]),
        "percent": percent_field(abs(rule["adjust_bp"])),
        "side": "under" if rule["adjust_bp"] < 0 else "above",
        "undercut_up": _percent_or_none(rule.get("undercut_up_bp")),
        "floor_cost": _percent_or_none(rule.get("floor_cost_bp")),
        "holdout": _percent_or_none(rule.get("holdout_bp")),
        "review_up": _percent_or_none(review.get("up_bp")),
        "review_down": _percent_or_none(review.get("down_bp")),
        "review_first": "true" if review.get("first_price") else "",
        "review_own": "true" if rule.get("review") is not None else "",
        "adjust_amount": rule["adjust_amount"] if Decimal(rule["adjust_amount"]) else "",
        "cap_up": _percent_or_none(cap.get("up_bp")),
        "cap_down": _percent_or_none(cap.get("down_bp")),
        "cap_period": cap.get("period", "day"),
        "cap_mode": cap.get("mode", "clamp"),
        "small_below": small.get("below", ""),
        "small_up": _percent_or_none(small.get("up_bp")),
        "small_down": _percent_or_none(small.get("down_bp")),
    }
    for name in _STALE:
        value = stale.get(name)
        key = f"stale_{name.removesuffix('_bp')}"
        texts[key] = _percent_or_none(value) if name.endswith("_bp") else _text(value)
    return texts


def read_form(texts: Mapping[str, str], was: RuleJson) -> dict[str, Any]:
    """Read a form's texts into the body of a rule; `was` is the rule that the form was made from.

    Raises InvalidRule, naming the field.
    """
    body: dict[str, Any] = {name: texts.get(name, "") for name in ("name", "query")}
    body |= {name: texts.get(name, "") == "true" for name in _FLAGS}
    body |= {name: texts.get(name) or None for name in _AMOUNTS}
    if was.get("guard"):
        return {
            "guard": True,
            **{name: body[name] for name in ("name", "query", "never_lower", *_AMOUNTS)},
            "floor_cost_bp": _percent(texts, "floor_cost"),
            "cap": _cap({name: texts.get(name, "") for name in ("cap_up", "cap_down")}, None),
        }
    listed = texts.get("fallback_sources", "").replace(",", " ").split()
    return body | {
        "price_source": texts.get("price_source", ""),
        "rounding": texts.get("rounding", ""),
        "fallback_sources": listed,
        "adjust_bp": _adjusted(texts),
        "adjust_amount": texts.get("adjust_amount") or "0",
        "undercut_up_bp": _percent(texts, "undercut_up"),
        "floor_cost_bp": _percent(texts, "floor_cost"),
        "review": _review(texts),
        "holdout_bp": _percent(texts, "holdout"),
        "cap": _cap(texts, was.get("cap")),
        "stale": _stale(texts),
    }


def _adjusted(texts: Mapping[str, str]) -> int:
    """Return the basis points; a number without a side, or with a sign, determines the side."""
    points = read_percent(texts.get("percent") or "0", "percent")
    return -points if texts.get("side") == "under" and points > 0 else points


def _review(texts: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the rule's own review limits, None if the seller-wide ones are in force."""
    if texts.get("review_own") != "true":
        return None
    up, down = _percent(texts, "review_up"), _percent(texts, "review_down")
    return {"up_bp": up, "down_bp": down, "first_price": texts.get("review_first") == "true"}


def _cap(texts: Mapping[str, str], was: RuleJson | None) -> dict[str, Any] | None:
    up, down = _percent(texts, "cap_up"), _percent(texts, "cap_down")
    small = _small(texts) if "small_below" in texts else was.get("small") if was else None
    if up is None and down is None and small is None:
        return None
    return {
        "up_bp": up,
        "down_bp": down,
        "period": texts.get("cap_period", "day"),
        "mode": texts.get("cap_mode", "clamp"),
        "small": small,
    }


def _small(texts: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the limits of cheap cards, None if they have none of their own."""
    up, down = _percent(texts, "small_up"), _percent(texts, "small_down")
    if not texts["small_below"]:
        if up is None and down is None:
            return None
        raise errors.InvalidRule("small_below: is required when cheap cards have their own limits")
    return {"below": texts["small_below"], "up_bp": up, "down_bp": down}


def _stale(texts: Mapping[str, str]) -> dict[str, Any] | None:
    keys = {name: f"stale_{name.removesuffix('_bp')}" for name in _STALE}
    if not any(texts.get(key) for key in keys.values()):
        return None
    for key in keys.values():
        if not texts.get(key):
            raise errors.InvalidRule(
                f"{key}: is required when the other price drop fields are filled in"
            )
    return {
        name: read_percent(texts[key], key) if name.endswith("_bp") else _whole(texts[key], key)
        for name, key in keys.items()
    }


def _percent(texts: Mapping[str, str], field: str) -> int | None:
    return read_percent(texts[field], field) if texts.get(field) else None


def read_percent(text: str, field: str) -> int:
    """Return basis points. Raises InvalidRule."""
    try:
        return money.read_percent(text)
    except ValueError as e:
        raise errors.InvalidRule(f"{field}: {e}") from e


def _whole(text: str, field: str) -> int:
    number = whole(text)
    if number is None:
        raise errors.InvalidRule(f"{field}: must be a whole number")
    return number


def _percent_or_none(bp: int | None) -> str:
    return "" if bp is None else percent_field(bp)


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
