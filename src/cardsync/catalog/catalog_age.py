"""Decides when an installed catalog is old, and why: the one rule for `cardsync doctor`, the page
of catalogs, and the notice to the operator. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

INSTALLED: Final = """
    SELECT game, source, checked_at, failed_at, failure,
           CAST(refused ->> 'since' AS timestamptz) AS left_at,
           EXISTS (SELECT FROM catalog_updates WHERE night_zone IS NOT NULL) AS nightly
      FROM catalog_install WHERE game <> ''
"""
# A source may be unavailable for some days without harm to any shop.
_RENEWALS_MISSED: Final = 2
_LEAST: Final = timedelta(days=7)
_NOBODY_LOOKED: Final = "no worker has looked for a newer one"
# Age after which a page mentions a catalog that is not renewed automatically; no notice is sent.
_UNRENEWED: Final = timedelta(days=30)


class Dated(NamedTuple):
    """A catalog with the time at which its source last had nothing newer, the newest failure, and
    the time at which a person went back from one of its versions.
    """

    game: str
    source: str
    checked_at: datetime | None
    failed_at: datetime | None
    failure: str | None
    left_at: datetime | None = None
    nightly: bool = False


class Trouble(NamedTuple):
    """The old catalogs of one source: since when the first of them is old, and the reason."""

    source: str
    games: tuple[str, ...]
    since: datetime
    reason: str


def old_after(renewal_days: int) -> timedelta:
    """Return the age at which a catalog is old."""
    if not renewal_days:
        return _UNRENEWED
    return max(timedelta(days=_RENEWALS_MISSED * renewal_days), _LEAST)


def old_at(checked_at: datetime, renewal_days: int) -> datetime:
    """Return when a catalog becomes old."""
    return checked_at + old_after(renewal_days)


def is_old(checked_at: datetime, now: datetime, renewal_days: int) -> bool:
    return old_at(checked_at, renewal_days) < now


def is_late(one: Dated, now: datetime, renewal_days: int) -> bool:
    """Return whether the renewals of an installed catalog have failed for so long that a person
    must check. Without renewals none has failed.
    """
    days = _days(one, renewal_days)
    return days > 0 and one.checked_at is not None and is_old(one.checked_at, now, days)


def _days(one: Dated, renewal_days: int) -> int:
    return 1 if one.nightly else renewal_days


def troubles(found: Sequence[Dated], now: datetime, renewal_days: int) -> list[Trouble]:
    """Return the troubles; an unavailable source is one trouble, however many games it has."""
    late: dict[str, list[Dated]] = {}
    for one in found:
        if is_late(one, now, renewal_days):
            late.setdefault(one.source, []).append(one)
    return [
        Trouble(
            source,
            tuple(one.game for one in some),
            min(old_at(one.checked_at, _days(one, renewal_days)) for one in some if one.checked_at),
            next((one.failure for one in some if one.failure), _NOBODY_LOOKED),
        )
        for source, some in sorted(late.items())
    ]
