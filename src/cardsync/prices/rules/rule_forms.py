"""Shows one rule as a sentence, as text and as the fields of a form, and reads the text and the
fields back. Pure.

The form has no fields for the market gate and keeps the gate of the rule; only the text changes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.platform import errors, money
from cardsync.platform.declared_fields import VALUE, Declared, declared, filled, is_part, of_section
from cardsync.platform.kit.typed_numbers import whole
from cardsync.platform.money import percent
from cardsync.platform.value_types import Json, JsonMapping, JsonObject
from cardsync.prices.engine.rules import Cap, ReviewLimits, Rule, SmallCap, Stale

RuleJson = JsonMapping
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
# The sentences of these fields follow the sentence of the cap, in this order.
_LATER: Final = (
    "velocity_boost_enabled",
    "undercut_up_bp",
    "market_gate",
    "fee_gap_adjustment",
    "review",
    "holdout_bp",
    "rounding",
)
# Neither the form nor the text sets these fields: they have buttons of their own.
_APART: Final = frozenset({"id", "priority", "enabled", "state"})


class Changed(NamedTuple):
    """The sentences of a rule that a change removes, and the sentences that it adds."""

    gone: list[str]
    new: list[str]


def sentence_of(rule: RuleJson) -> str:
    """Return the rule's effect in one or a few sentences."""
    return " ".join(_sentences(rule))


def changed_sentences(before: RuleJson, after: RuleJson) -> Changed:
    """Return the sentences in which two versions of a rule differ."""
    old, new = _sentences(before), _sentences(after)
    return Changed([one for one in old if one not in new], [one for one in new if one not in old])


def _sentences(rule: RuleJson) -> list[str]:
    query = rule.get("query")
    which = f"Cards that match {query}" if query else "All cards"
    fields = sorted(declared(Rule), key=lambda one: ("", *_LATER).index(_later(one.name)))
    limits = [text for one in fields for text in _said(one, rule.get(one.name))]
    if rule.get("guard"):
        return [f"{which}, whichever rule prices them:", *limits]
    return [f"{which}: {_asked(rule)}.", *limits]


def _later(name: str) -> str:
    return name if name in _LATER else ""


def _said(each: Declared, value: Json) -> list[str]:
    """Return the sentences of a field's value."""
    if value is None or value is False:
        return []
    if own := _OWN_SENTENCES.get(each.name):
        return own(value)
    count = each.field.says.count(VALUE)
    values = [(one, value[one.name]) for one in declared(each.type)] if is_part(each.type) else []
    shown = [_in_words(*one) for one in (values or [(each, value)])[:count]]
    return [filled(each.field.says, shown)] if each.field.says else []


def _in_words(each: Declared, value: Json) -> str:
    return percent(value) if each.is_percent else str(value)


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


def _above_cost(bp: int) -> list[str]:
    side = "plus" if bp >= 0 else "minus"
    return [f"Never below cost {side} {percent(abs(bp))}." if bp else "Never below cost."]


def _capped(cap: RuleJson) -> list[str]:
    sentences = []
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


def _undercut(bp: int) -> list[str]:
    under = f"{percent(bp)} below it" if bp else "its price"
    return [f"If the lowest listing is higher, prices go up to {under}."]


def _rounded(rounding: str) -> list[str]:
    return [] if rounding == "cent" else [f"Prices are rounded {ROUNDINGS[rounding]}."]


def _ways(limits: RuleJson) -> str:
    """Return how far a price may move: `15% up and 10% down`; empty without a limit."""
    return " and ".join(
        f"{percent(limits[name])} {word}"
        for name, word in (("up_bp", "up"), ("down_bp", "down"))
        if limits[name] is not None
    )


def cap_in_words(rule: RuleJson) -> str:
    """Return the rule's cap: `the daily cap of 20% (15% below $5.00)`; empty without a cap."""
    cap = rule.get("cap")
    if cap is None:
        return ""
    of, small = _limit(cap), cap.get("small")
    apart = f" ({_limit(small)} below ${small['below']})" if small and _limit(small) != of else ""
    return f"the {CAPS[cap['period']]}{f' of {of}' if of else ''}{apart}"


def _limit(limits: RuleJson) -> str:
    up, down = limits["up_bp"], limits["down_bp"]
    return percent(up) if up is not None and up == down else _ways(limits)


def _reviewed(review: RuleJson) -> list[str]:
    ways = [
        f"{word} over {percent(review[name])}"
        for name, word in (("up_bp", "increases"), ("down_bp", "drops"))
        if review[name] is not None
    ]
    ways += ["first prices"] if review["first_price"] else []
    if not ways:
        return ["No price needs your approval."]
    said = " and ".join(ways)
    return [f"{said[0].upper()}{said[1:]} need your approval."]


_OWN_SENTENCES: Final[Mapping[str, Callable[[Json], list[str]]]] = {
    "floor_cost_bp": _above_cost,
    "cap": _capped,
    "undercut_up_bp": _undercut,
    "review": _reviewed,
    "rounding": _rounded,
}


def percent_field(bp: int) -> str:
    """Return basis points as the text of a form field, in percent without the percent sign."""
    return percent(bp).removesuffix("%")


def own_fields(rule: RuleJson) -> dict[str, object]:
    """Return the fields that the form and the text set."""
    return {name: value for name, value in rule.items() if name not in _APART}


def text_of(rule: RuleJson) -> str:
    return json.dumps(own_fields(rule), indent=2, ensure_ascii=False)


def read_text(text: str) -> dict[str, object]:
    """Read a rule from its text. Amounts never become floats. Raise InvalidRule."""
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


class Input(NamedTuple):
    """An input of the form."""

    name: str
    label: str
    of: Declared

    @property
    def size(self) -> int:
        return 6 if self.of.field.money else 3

    @property
    def mode(self) -> str:
        return "decimal" if self.of.field.money or self.of.is_percent else "numeric"


class Line(NamedTuple):
    """A line of the form: texts, each followed by an input except the last, and a hint
    below them.
    """

    parts: list[tuple[str, Input | None]]
    hint: str


def _inputs(each: Declared, prefix: str = "") -> list[Input]:
    """Return the form's inputs for a field of a rule. A field with an inner structure has the
    inputs of its inner fields.
    """
    if is_part(each.type):
        inner = declared(each.type)
        return [one for field in inner for one in _inputs(field, f"{each.form_name}_")]
    label = each.field.label
    return [Input(prefix + each.form_name, label, each)] if label else []


INPUTS: Final = {one.name: one for each in declared(Rule) for one in _inputs(each)}


def inputs_of(section: str) -> list[Input]:
    """Return the inputs of a section of the form."""
    return [one for each in of_section(declared(Rule), section) for one in _inputs(each)]


def lines_of(section: str, *, guard: bool) -> list[Line]:
    """Return the lines of a section of the form."""
    lines = []
    for each in declared(Rule):
        own = each.field
        if own.section == section and own.line and (own.guard or not guard):
            inputs = [*_inputs(each), *(INPUTS[name] for name in own.beside), None]
            parts = zip(own.line.split(VALUE), inputs, strict=True)
            lines.append(Line(list(parts), own.hint))
    return lines


def ticks_of(section: str, *, guard: bool) -> list[Input]:
    """Return the checkboxes of a section of the form."""
    inputs = [one for one in inputs_of(section) if one.of.type is bool]
    return [one for one in inputs if one.of.field.guard or not guard]


def form_of(rule: RuleJson) -> dict[str, str]:
    """Return the texts of the form's inputs for a rule."""
    texts = {name: str(rule.get(name) or "") for name in ("name", "query")}
    for each in declared(Rule):
        texts |= _texts(each, rule.get(each.name))
    return texts | {
        "fallback_sources": ", ".join(rule["fallback_sources"]),
        "percent": percent_field(abs(rule["adjust_bp"])),
        "side": "under" if rule["adjust_bp"] < 0 else "above",
        "review_own": "true" if rule.get("review") is not None else "",
    }


def _texts(each: Declared, value: Json, prefix: str = "") -> dict[str, str]:
    if not is_part(each.type):
        return {one.name: _text(each, value) for one in _inputs(each, prefix)}
    texts: dict[str, str] = {}
    for one in declared(each.type):
        default = None if one.default is MISSING else one.default
        texts |= _texts(one, (value or {}).get(one.name, default), f"{each.form_name}_")
    return texts


def _text(each: Declared, value: Json) -> str:
    # An amount of 0 has no effect if the field can't be null.
    if value is None or (each.field.money and not each.nullable and not Decimal(value)):
        return ""
    if each.type is bool:
        return "true" if value else ""
    return percent_field(value) if each.is_percent else str(value)


def read_form(texts: Mapping[str, str], was: RuleJson) -> JsonObject:
    """Read a form's texts into the body of a rule; `was` is the rule that the form was made from.

    Raises InvalidRule, naming the field.
    """
    guard = bool(was.get("guard"))
    body: dict[str, object] = {name: texts.get(name, "") for name in ("name", "query")}
    for each in declared(Rule):
        if each.field.guard or not guard:
            if not guard and (own := _READERS.get(each.name)):
                body[each.name] = own(texts, was.get(each.name))
            elif each.field.label:
                body[each.name] = _read(each, texts, each.form_name, "")
    if guard:
        cap = _cap({name: texts.get(name, "") for name in ("cap_up", "cap_down")}, None)
        return body | {"guard": True, "cap": cap}
    return body


def _read(each: Declared, texts: Mapping[str, str], key: str, default: object) -> Json:
    text = texts.get(key)
    if each.type is bool:
        return text == "true"
    if each.field.money:
        return text or (None if each.nullable else "0")
    if each.type is not int:
        return default if text is None else text
    if not text:
        return None
    return read_percent(text, key) if each.is_percent else _whole(text, key)


def _part(thing: object, prefix: str, texts: Mapping[str, str]) -> dict[str, object]:
    """Return the values of a structure's fields that have inputs."""
    return {
        each.name: _read(each, texts, f"{prefix}_{each.form_name}", each.default)
        for each in declared(thing)
        if each.field.label
    }


def _fallbacks(texts: Mapping[str, str], was: object) -> list[str]:
    return texts.get("fallback_sources", "").replace(",", " ").split()


def _adjusted(texts: Mapping[str, str], was: object) -> int:
    """Return the adjustment in basis points. The side "under" makes a positive number negative; a
    negative number stays negative on both sides.
    """
    points = read_percent(texts.get("percent") or "0", "percent")
    return -points if texts.get("side") == "under" and points > 0 else points


def _review(texts: Mapping[str, str], was: object) -> JsonObject | None:
    """Return the rule's own review limits, None if the seller-wide limits apply."""
    return _part(ReviewLimits, "review", texts) if texts.get("review_own") == "true" else None


def _cap(texts: Mapping[str, str], was: RuleJson | None) -> JsonObject | None:
    cap = _part(Cap, "cap", texts)
    small = _small(texts) if "small_below" in texts else was.get("small") if was else None
    if cap["up_bp"] is None and cap["down_bp"] is None and small is None:
        return None
    return cap | {"small": small}


def _small(texts: Mapping[str, str]) -> dict[str, object] | None:
    """Return the limits of cheap cards, None if the rule has no limits for cheap cards."""
    small = _part(SmallCap, "small", texts)
    if texts["small_below"]:
        return small
    if small["up_bp"] is None and small["down_bp"] is None:
        return None
    raise errors.InvalidRule("small_below: is required when cheap cards have their own limits")


def _stale(texts: Mapping[str, str], was: object) -> JsonObject | None:
    keys = [f"stale_{each.form_name}" for each in declared(Stale)]
    if not any(texts.get(key) for key in keys):
        return None
    for key in keys:
        if not texts.get(key):
            raise errors.InvalidRule(
                f"{key}: is required when the other price drop fields are filled in"
            )
    return _part(Stale, "stale", texts)


_READERS: Final[Mapping[str, Callable[[Mapping[str, str], Json], Json]]] = {
    "fallback_sources": _fallbacks,
    "adjust_bp": _adjusted,
    "stale": _stale,
    "cap": _cap,
    "review": _review,
}


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
