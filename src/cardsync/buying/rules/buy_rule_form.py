"""Shows a buy rule as the fields of a form, and reads the fields back as the body of a rule. Pure.

Parts with several entries are lines of text, such as `5.00 50% 60%`: from a price of 5.00 on, 50 %
in cash and 60 % in credit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from cardsync import errors
from cardsync.buying.engine.buy_rules import GRADES
from cardsync.buying.rules.buy_rule_json import BuyRuleShown
from cardsync.money import percent, read_percent

TEXTS: Final = (
    "name", "query", "base", "state", "priority", "enabled", "bulk_below", "most_copies",
)  # fmt: skip
LINES: Final = ("bands", "bulk", "stock_steps", "days_steps", "lists")
BUDGET: Final = ("offer_cash", "offer_credit", "day_cash", "day_credit")
FIELDS: Final = (*TEXTS, *LINES, *BUDGET, *(f"grade_{grade}" for grade in GRADES))
# A percentage is at most so large.
_MOST_BP: Final = 1_000_000


def form_of(rule: BuyRuleShown) -> dict[str, str]:
    """Return the text of each field."""
    shares = {f"grade_{grade}": _share(rule.conditions.get(grade)) for grade in GRADES}
    budget = {name: getattr(rule.budget, name) or "" for name in BUDGET}
    return {
        "name": rule.name,
        "query": rule.query,
        "base": rule.base,
        "state": rule.state,
        "priority": str(rule.priority),
        "enabled": "yes" if rule.enabled else "no",
        "bulk_below": rule.bulk_below or "",
        "most_copies": "" if rule.most_copies is None else str(rule.most_copies),
        "bands": "\n".join(
            f"{one.start} {percent(one.cash_bp)} {percent(one.credit_bp)}" for one in rule.bands
        ),
        "bulk": "\n".join(
            f"{one.cash} {one.credit} {_named(one.rarity, one.game)}".strip() for one in rule.bulk
        ),
        "stock_steps": "\n".join(f"{one.start} {percent(one.less_bp)}" for one in rule.stock_steps),
        "days_steps": "\n".join(f"{one.start} {percent(one.less_bp)}" for one in rule.days_steps),
        "lists": "\n".join(f"{one.name} {_signed(one.change_bp)}" for one in rule.lists),
        **budget,
        **shares,
    }


def _named(rarity: str, game: str) -> str:
    """Return `Rare, magic`; a comma says that a game follows, also behind no rarity."""
    return f"{rarity}, {game}" if game or "," in rarity else rarity


def _share(bp: int | None) -> str:
    return "" if bp is None else percent(bp).removesuffix("%")


def _signed(bp: int) -> str:
    return f"{'-' if bp < 0 else '+'}{percent(abs(bp))}"


def body_of(form: Mapping[str, str], lists: Mapping[str, int]) -> dict[str, Any]:
    """Return the body of the rule that the form says; `lists` are the shop's, by name. Raises
    InvalidRule.
    """
    most, priority = _whole(form, "most_copies"), _whole(form, "priority")
    # Without them, a new rule comes last and governs; another one stays as it is.
    place = {} if priority is None else {"priority": priority}
    used = {"enabled": form["enabled"] == "yes"} if form["enabled"] else {}
    return {
        **place,
        **used,
        **{name: form[name] for name in ("name", "query", "base", "state")},
        "bulk_below": form["bulk_below"] or None,
        "most_copies": most,
        "bands": _lines(
            form,
            "bands",
            _band,
        ),
        "bulk": _lines(
            form,
            "bulk",
            _bulk,
        ),
        "stock_steps": _lines(
            form,
            "stock_steps",
            _step,
        ),
        "days_steps": _lines(
            form,
            "days_steps",
            _step,
        ),
        "lists": _lines(
            form,
            "lists",
            lambda line: _listed(line, lists),
        ),
        "budget": {name: form[name] or None for name in BUDGET},
        "conditions": {
            grade: _bp("conditions", form[f"grade_{grade}"])
            for grade in GRADES
            if form[f"grade_{grade}"]
        },
    }


def _whole(form: Mapping[str, str], field: str) -> int | None:
    digits = form[field]
    if digits and not (digits.isascii() and digits.isdecimal() and len(digits) < 8):
        raise errors.InvalidRule(f"{field}: must be a whole number")
    return int(digits) if digits else None


def _lines(
    form: Mapping[str, str],
    field: str,
    read: Callable[[str], dict[str, Any]],
) -> list[dict[str, Any]]:
    lines = [line.strip() for line in form[field].splitlines() if line.strip()]
    try:
        return [read(line) for line in lines]
    except ValueError as e:
        raise errors.InvalidRule(f"{field}: {e}") from e


def _bp(field: str, text: str) -> int:
    try:
        bp = read_percent(text)
    except ValueError:
        bp = _MOST_BP + 1
    if abs(bp) > _MOST_BP:
        raise errors.InvalidRule(f"{field}: {text[:40]!r} is not a percentage like 50 or 12.5")
    return bp


def _band(line: str) -> dict[str, Any]:
    parts = line.replace("$", "").replace(":", " ").split()
    if len(parts) != 3:
        raise ValueError("each line is a price and two percentages, like 5.00 50% 60%")
    start, cash, credit = parts
    return {"from": start, "cash_bp": _bp("bands", cash), "credit_bp": _bp("bands", credit)}


def _bulk(line: str) -> dict[str, Any]:
    parts = line.replace("$", "").split(maxsplit=2)
    if len(parts) < 2:
        raise ValueError("each line is two amounts, and a rarity and game where it is for one")
    words = parts[2] if len(parts) == 3 else ""
    rarity, _, game = words.rpartition(",") if "," in words else (words, "", "")
    named = {"rarity": rarity.strip(), "game": game.strip()}
    return {"cash": parts[0], "credit": parts[1], **named}


def _step(line: str) -> dict[str, Any]:
    found = re.fullmatch(
        r"(\d{1,7})\s*:?\s*(\d{1,3}(?:\.\d{1,2})?)\s*%?",
        line,
        re.ASCII,
    )
    if found is None:
        raise ValueError("each line is a number and a percentage, like 4 10%")
    return {"from": int(found[1]), "less_bp": _bp("steps", found[2])}


def _listed(line: str, lists: Mapping[str, int]) -> dict[str, Any]:
    name, _, change = line.rpartition(" ")
    if name.strip() not in lists:
        raise ValueError(f"there is no list {name.strip()[:60]!r}; each line is like Wanted +20%")
    named = name.strip()
    return {"list_id": lists[named], "change_bp": _bp("lists", change), "name": named}
