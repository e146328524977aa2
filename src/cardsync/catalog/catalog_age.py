"""Decides when an installed catalog is old, and finds the reason. `cardsync doctor`, the page of
catalogs and the operator's notice use this rule. Pure.
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
# The age at which pages show that a catalog without automatic renewal is old; no notice is sent.
_UNRENEWED: Final = timedelta(days=30)


class Dated(NamedTuple):
    """A catalog. `checked_at` is when the installed version was last the source's newest;
    `left_at` is when a person went back from a version; `nightly` is whether it is renewed every
    night.
    """

    game: str
    source: str
    checked_at: datetime | None
    failed_at: datetime | None
    failure: str | None
    left_at: datetime | None = None
    nightly: bool = False


class Trouble(NamedTuple):
    """The old catalogs of one source, the time at which the first became old, and the reason."""

    source: str
    games: tuple[str, ...]
    since: datetime
    reason: str


def old_after(renewal_days: int) -> timedelta:
    """Return the age at which a catalog is old; `renewal_days` is the time between its renewals."""
    if not renewal_days:
        return _UNRENEWED
    return max(timedelta(days=_RENEWALS_MISSED * renewal_days), _LEAST)


def old_at(checked_at: datetime, renewal_days: int) -> datetime:
    """Return the time at which a catalog becomes old."""
    return checked_at + old_after(renewal_days)


def is_old(checked_at: datetime, now: datetime, renewal_days: int) -> bool:
    return old_at(checked_at, renewal_days) < now


def is_late(one: Dated, now: datetime, renewal_days: int) -> bool:
    """Return whether an installed catalog is old although it is renewed automatically, so that a
    person must check its source.
    """
    days = _days(one, renewal_days)
    return days > 0 and one.checked_at is not None and is_old(one.checked_at, now, days)


def _days(one: Dated, renewal_days: int) -> int:
    return 1 if one.nightly else renewal_days


def troubles(found: Sequence[Dated], now: datetime, renewal_days: int) -> list[Trouble]:
    """Return one trouble for each source with old catalogs."""
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
