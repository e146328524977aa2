"""The templates from which a promotion may begin, and their times. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, time, timedelta
from typing import Final, NamedTuple

FRIDAY: Final = 4


class Start(NamedTuple):
    """A template. `times` returns the promotion's start and end for the current time in the shop's
    zone.
    """

    label: str
    fields: Mapping[str, str]
    times: Callable[[datetime], tuple[datetime | None, datetime]]


def weekend(here: datetime) -> tuple[datetime | None, datetime]:
    """Return the start and end of the next weekend, Friday to Sunday. On a Friday or Saturday the
    start is None, which means now. Pure.
    """
    on = here.weekday() in (FRIDAY, FRIDAY + 1)
    friday = here.date() + timedelta(days=(FRIDAY - here.weekday()) % 7)
    sunday = here.date() + timedelta(days=(FRIDAY + 2 - here.weekday()) % 7 if on else 0)
    sunday = sunday if on else friday + timedelta(days=2)
    ends = datetime.combine(sunday, time(23, 59), here.tzinfo)
    return None if on else datetime.combine(friday, time(), here.tzinfo), ends


def evening(here: datetime) -> tuple[datetime | None, datetime]:
    """Return 5 PM and 10 PM of today; if 5 PM is past, of tomorrow. Pure."""
    day = here.date() + timedelta(days=1 if here.hour >= 17 else 0)
    return (
        datetime.combine(day, time(17), here.tzinfo),
        datetime.combine(day, time(22), here.tzinfo),
    )


def two_weeks(here: datetime) -> tuple[datetime | None, datetime]:
    day = here.date() + timedelta(days=14)
    return None, datetime.combine(day, time(23, 59), here.tzinfo)


TEMPLATES: Final = {
    "weekend": Start("Weekend, Fri–Sun", {"name": "Weekend", "percent": "15"}, weekend),
    "evening": Start("Event evening", {"name": "Event evening", "percent": "10"}, evening),
    "clear": Start("Clearance", {"name": "Clearance", "percent": "25"}, two_weeks),
}
