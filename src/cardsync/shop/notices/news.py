"""Compares the present conditions of a shop with the reported ones: each condition is reported once
while it lasts, once more when it becomes worse, and again only after it has ended. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.shop.notices.notice_kinds import LEFT_OUT
from cardsync.shop.today.shop_facts import Condition, Severity

_RANK: Final[dict[str, int]] = {"info": 0, "warn": 1, "bad": 2}


@dataclass(frozen=True, slots=True)
class NewsItem:
    """A condition or an event to report. At most one condition of a key lasts at a time; no two
    events share a key.
    """

    kind: str
    key: str
    severity: Severity
    sentence: str
    label: str
    path: str
    since: datetime | None = None
    money: Decimal | None = None
    deadline: datetime | None = None
    count: int = 1
    subject: int | None = None
    owner_only: bool = True
    is_event: bool = False


class Reported(NamedTuple):
    """A condition that was reported and lasts, with the severity that was reported."""

    id: int
    key: str
    severity: str


class News(NamedTuple):
    """`begun` is to be reported; the reports with the ids `ended` last no longer."""

    begun: list[NewsItem]
    ended: list[int]


def of_conditions(conditions: Iterable[Condition]) -> list[NewsItem]:
    """Return the items to report of Today's conditions. New orders are events: orders wait in
    most shops at all times, and their condition begins only when a deadline is near.
    """
    return [
        NewsItem(
            one.kind,
            f"{one.kind}:{_which(one)}",
            one.severity,
            one.sentence,
            one.label,
            one.path,
            one.since,
            one.money,
            one.deadline,
            one.count,
            one.subject,
            one.owner_only,
        )
        for one in conditions
        if one.kind not in LEFT_OUT
        and not (one.kind in ("orders_to_pull", "orders_to_ship") and one.severity == "info")
    ]


def _which(one: Condition) -> str:
    """Return the part of the key that separates conditions of a kind, such as the upload or run."""
    if one.kind in ("upload_in_review", "run_in_review"):
        return str(one.subject)
    return one.variant


def news(reported: Iterable[Reported], lasting: Iterable[NewsItem]) -> News:
    """Return the conditions that have begun or become worse, and those that are over."""
    before = {one.key: one for one in reported}
    present = {one.key: one for one in lasting}
    worse = {
        key
        for key, one in present.items()
        if key in before and _RANK[one.severity] > _RANK[before[key].severity]
    }
    begun = [one for key, one in present.items() if key not in before or key in worse]
    ended = [one.id for key, one in before.items() if key not in present or key in worse]
    return News(begun, ended)
