"""Writes one shop's table into the text of a settings file; a person's other text stays unchanged.
Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

HEAD = """\
# Settings of cardsync-agent: a table for each shop. Paths count from this file's folder.
# A change counts after the agent is started again.
"""
Value = str | float | list[str]
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def with_shop(text: str, name: str, shop: Mapping[str, Value | Mapping[str, Value]]) -> str:
    """Return the settings text with this shop's table, which replaces the shop's earlier table, or
    is appended.
    """
    # TOML has only these two line ends; `splitlines` would cut strings.
    lines = (text or HEAD).replace("\r\n", "\n").split("\n")
    begins, ends = _part_of(lines, name)
    before = _without_blank_end(lines[:begins])
    table = shop_table(name, shop).split("\n")
    after = _without_blank_end(lines[ends:])
    parts = [*before, "", *table, *(["", *after] if after else [])]
    return "\n".join(parts) + "\n"


def shop_table(name: str, shop: Mapping[str, Value | Mapping[str, Value]]) -> str:
    """Return the table as TOML; tables in it follow its values."""
    lines = [f"[shop.{_key(name)}]"]
    lines += [f"{key} = {_value(value)}" for key, value in shop.items() if _is_value(value)]
    for key, value in shop.items():
        if isinstance(value, Mapping):
            lines += ["", f"[shop.{_key(name)}.{_key(key)}]"]
            lines += [f"{inner} = {_value(given)}" for inner, given in value.items()]
    return "\n".join(lines)


def _part_of(lines: list[str], name: str) -> tuple[int, int]:
    """Return the first line of the shop's tables and the line after them."""
    ours = re.compile(rf"\s*\[shop\.({re.escape(name)}|{re.escape(_quoted(name))})[\].]")
    begins = next((n for n, line in enumerate(lines) if ours.match(line)), None)
    if begins is None:
        return len(lines), len(lines)
    ends = begins + 1
    while ends < len(lines) and not (
        lines[ends].lstrip().startswith("[") and not ours.match(lines[ends])
    ):
        ends += 1
    # The comment right above the next shop belongs to that shop.
    while ends > begins + 1 and ends < len(lines) and lines[ends - 1].startswith("#"):
        ends -= 1
    return begins, ends


def _without_blank_end(lines: list[str]) -> list[str]:
    kept = list(lines)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def _is_value(value: Value | Mapping[str, Value]) -> bool:
    return not isinstance(value, Mapping)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    # A JSON string is a TOML string, except for DEL, which JSON leaves unchanged.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(_quoted(str(item)) for item in value) + "]"
    return repr(value)
