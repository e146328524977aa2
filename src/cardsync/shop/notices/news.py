"""Compares the current conditions of a shop with the reported conditions. A condition is reported
once when it begins, and again when it becomes worse. Pure.
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
    """A condition or an event to report. At most one condition with a key lasts at a time; each
    event has a different key.
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
    """A reported condition that lasts, with the severity of the report."""

    id: int
    key: str
    severity: str


class News(NamedTuple):
    """The result of the comparison: the items to report, and the ids of the notices that have
    ended.
    """

    begun: list[NewsItem]
    ended: list[int]


def of_conditions(conditions: Iterable[Condition]) -> list[NewsItem]:
    """Return the conditions of Today as items to report. Orders without a near deadline are
    omitted, because most shops have such orders at all times; new orders are reported as events.
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
    """Return the part of the key that distinguishes conditions of the same kind, such as the id of
    the upload or run.
    """
    if one.kind in ("upload_in_review", "run_in_review"):
        return str(one.subject)
    return one.variant


def news(reported: Iterable[Reported], lasting: Iterable[NewsItem]) -> News:
    """Return the conditions that have begun or become worse, and the notices that have ended. If a
    condition has become worse, its earlier notice ends.
    """
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
