"""Defines the seller's own names that a search may use, and the form in which names are compared.
Pure.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from cardsync.catalog.product_lines import NAMES
from cardsync.platform import errors
from cardsync.stock.limits import LIST_NAME_CHARACTERS
from cardsync.stock.search.tree import Tree


class GoverningRule(NamedTuple):
    """An enabled base rule or guard. `tree` is None if the rule's query can't be parsed any
    more.
    """

    id: int
    name: str
    tree: Tree | None


@dataclass(frozen=True)
class KnownNames:
    """The seller's own names that a search may use, and the time of the last whole upload of each
    product line.
    """

    lists: Mapping[str, int] = field(default_factory=dict)
    list_names: Mapping[str, int] = field(default_factory=dict)
    rules: tuple[GoverningRule, ...] = ()
    # Each guard limits all cards that it selects, so their order does not matter.
    guards: tuple[GoverningRule, ...] = ()
    # The names of rules that price no cards, because they are drafts or switched off.
    idle_rules: Mapping[int, str] = field(default_factory=dict)
    lines: tuple[str, ...] = NAMES
    seen: Mapping[str, datetime] = field(default_factory=dict)


def seen_name(name: str) -> str:
    """Return the name without invisible format characters and outer spaces."""
    seen = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", seen).strip()


def given_name(name: object, of: str) -> str:
    """Return the stored form of a name. Raises InvalidName; its message contains `of`, the kind of
    thing that has the name, such as "a list".
    """
    kept = seen_name(name) if isinstance(name, str) else ""
    if not 1 <= len(kept) <= LIST_NAME_CHARACTERS:
        raise errors.InvalidName(
            f"name: {of}'s name must have 1 to {LIST_NAME_CHARACTERS} characters"
        )
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in kept):
        raise errors.InvalidName(f"name: {of}'s name must be one line without control characters")
    return kept


def name_key(name: str) -> str:
    """Return the form of a name that is compared with other names, without upper case."""
    return unicodedata.normalize("NFC", seen_name(name).casefold())
