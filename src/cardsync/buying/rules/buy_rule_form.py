"""Converts a buy rule to the fields of a form, and the fields back to the body of a rule. Pure.

A part with several entries is a small table in the form. For example, the fields `bands.from`,
`bands.cash` and `bands.credit`, each repeated per row, are the cells of the bands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from cardsync.buying.engine.buy_rules import GRADES, Band, Budget, BulkPrice, Step
from cardsync.platform import errors
from cardsync.platform.declared_fields import Declared, declared
from cardsync.platform.kit.typed_numbers import whole
from cardsync.platform.money import percent, read_percent
from cardsync.platform.table_text import typed_number
from cardsync.platform.value_types import JsonMapping, JsonObject

BUDGET: Final = tuple(one.name for one in declared(Budget))
TEXTS: Final = (
    "name",
    "query",
    "base",
    "state",
    "priority",
    "enabled",
    "bulk_below",
    "most_copies",
    *BUDGET,
    *(f"grade_{grade}" for grade in GRADES),
)
PARTS: Final = {"bands": Band, "bulk": BulkPrice, "stock_steps": Step, "days_steps": Step}


def _cell_name(one: Declared) -> str:
    return one.json_name.removesuffix("_bp")


# The columns of each table. A row is ignored if its first `_TYPED` cells are all empty.
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    **{table: tuple(map(_cell_name, declared(part))) for table, part in PARTS.items()},
    "lists": ("change", "way", "list"),
}
_TYPED: Final[Mapping[str, int]] = {"bands": 3, "bulk": 3, "lists": 1} | dict.fromkeys(
    ("stock_steps", "days_steps"), 2
)
# The names of fields and of tables' rows on pages.
NAMES: Final = {
    "bands": "Tier",
    "bulk": "Bulk price",
    "lists": "List",
    "stock_steps": "Copies in stock",
    "days_steps": "Days to sell",
    "name": "Name",
    "priority": "Priority",
    "most_copies": "Max copies",
    "bulk_below": "Bulk below",
    "conditions": "Condition",
    "budget": "Budget",
}
# The largest percentage.
_MOST_BP: Final = 1_000_000

Row = dict[str, str]


class RuleForm(NamedTuple):
    """The texts of a form: its fields, and the rows of its tables."""

    texts: dict[str, str]
    rows: dict[str, list[Row]]


def read_form(one: Callable[[str], str], every: Callable[[str], Sequence[str]]) -> RuleForm:
    """Return the form as a member sent it. `one` returns a field's text, `every` the texts of a
    field that is repeated.
    """
    rows = {}
    for table, cells in TABLES.items():
        columns = [[text.strip() for text in every(f"{table}.{cell}")] for cell in cells]
        length = max(map(len, columns))
        padded = [column + [""] * (length - len(column)) for column in columns]
        rows[table] = [dict(zip(cells, row, strict=True)) for row in zip(*padded, strict=True)]
    return RuleForm({name: one(name) for name in TEXTS}, rows)


def form_of(rule: JsonMapping) -> RuleForm:
    """Return the form of a rule, whose fields are as in the API."""
    shares = {f"grade_{grade}": _share(rule["conditions"].get(grade)) for grade in GRADES}
    budget = {name: rule["budget"][name] or "" for name in BUDGET}
    texts = {name: rule[name] for name in ("name", "query", "base", "state")} | {
        "priority": str(rule["priority"]),
        "enabled": "yes" if rule["enabled"] else "no",
        "bulk_below": rule["bulk_below"] or "",
        "most_copies": "" if rule["most_copies"] is None else str(rule["most_copies"]),
    }
    rows = {table: [_cells(one) for one in rule[table]] for table in PARTS}
    rows["lists"] = [
        {
            "change": percent(abs(one["change_bp"])),
            "way": "less" if one["change_bp"] < 0 else "more",
            "list": one["name"],
        }
        for one in rule["lists"]
    ]
    return RuleForm(texts | budget | shares, rows)


def _cells(entry: JsonMapping) -> Row:
    return {
        name.removesuffix("_bp"): percent(value) if name.endswith("_bp") else str(value)
        for name, value in entry.items()
    }


def _share(bp: int | None) -> str:
    return "" if bp is None else percent(bp)


def named(problem: str) -> str:
    """Return an error message with the page's name of the field."""
    field, colon, rest = problem.partition(":")
    name = NAMES.get(field.partition(".")[0])
    return f"{name}{colon}{rest}" if name else problem


def said(table: str, row: Row) -> bool:
    """Return whether a row of a table is filled in. Each table ends with a blank row."""
    return any(row[cell] for cell in TABLES[table][: _TYPED[table]])


def body_of(form: RuleForm, lists: Mapping[str, int]) -> dict[str, object]:
    """Return the body of the rule in the form. `lists` has the IDs of the shop's lists by name.
    Raises InvalidRule.
    """
    texts = form.texts
    most, priority = _whole(texts, "most_copies"), _whole(texts, "priority")
    # If these fields are missing, a new rule is last and enabled, and an existing rule keeps its
    # priority and state.
    place = {} if priority is None else {"priority": priority}
    used = {"enabled": texts["enabled"] == "yes"} if texts["enabled"] else {}
    return {
        **place,
        **used,
        **{name: texts[name] for name in ("name", "query", "base", "state")},
        "bulk_below": _amount(texts["bulk_below"]) or None,
        "most_copies": most,
        **{table: _rows(form, table, partial(_entry, part)) for table, part in PARTS.items()},
        "lists": _rows(form, "lists", lambda row: _listed(row, lists)),
        "budget": {name: _amount(texts[name]) or None for name in BUDGET},
        "conditions": {
            grade: _bp(grade, texts[f"grade_{grade}"])
            for grade in GRADES
            if texts[f"grade_{grade}"]
        },
    }


def _whole(texts: Row, field: str) -> int | None:
    number = whole(texts[field])
    if texts[field] and number is None:
        raise errors.InvalidRule(f"{NAMES[field]}: enter a whole number, like 12")
    return number


def _rows(form: RuleForm, table: str, read: Callable[[Row], dict[str, object]]) -> list[JsonObject]:
    """Parse the rows of a table that are filled in. Raises InvalidRule, which names the row."""
    entries = []
    for place, row in enumerate(form.rows[table], start=1):
        if not said(table, row):
            continue
        try:
            entries.append(read(row))
        except ValueError as e:
            raise errors.InvalidRule(f"{NAMES[table]} {place}: {e}") from e
    return entries


def _amount(text: str) -> str:
    return typed_number(text) if text else ""


def _bp(what: str, text: str) -> int:
    try:
        bp = read_percent(text)
    except ValueError:
        bp = _MOST_BP + 1
    if abs(bp) > _MOST_BP:
        raise errors.InvalidRule(f"{what}: {text[:40]!r} is not a percentage like 50 or 12.5")
    return bp


def _percent(what: str, text: str) -> int:
    """Parse a percentage. Raises ValueError."""
    try:
        return _bp(what, text)
    except errors.InvalidRule as e:
        raise ValueError(str(e)) from e


def _entry(part: type, row: Row) -> JsonObject:
    return {one.json_name: _cell(one, row[_cell_name(one)]) for one in declared(part)}


def _cell(one: Declared, text: str) -> str | int:
    if one.field.money:
        return _amount(text) or "0"
    if one.is_percent:
        return _percent(_cell_name(one), text or "0")
    if one.type is not int:
        return text
    if (number := whole(text)) is None:
        raise ValueError("enter a whole number, like 4")
    return number


def _listed(row: Row, lists: Mapping[str, int]) -> JsonObject:
    if row["list"] not in lists:
        raise ValueError(f"there is no list {row['list'][:60]!r}")
    bp = _percent("change", row["change"])
    change = -bp if row["way"] == "less" else bp
    return {"list_id": lists[row["list"]], "change_bp": change, "name": row["list"]}
