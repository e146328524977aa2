"""Quiet hours: spans of each day, in this computer's local time, in which the agent starts no
work. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

_SPAN = re.compile(r"\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*")


@dataclass(frozen=True)
class Span:
    """A daily span from `begins` to before `ends`. If `ends` is earlier than `begins`, it is on the
    next day.
    """

    begins: time
    ends: time

    def end_after(self, wall: datetime) -> datetime | None:
        """Return when the span around `wall` (local, naive) ends, or None outside it."""
        for day in (wall.date() - timedelta(days=1), wall.date()):
            begins, ends = datetime.combine(day, self.begins), datetime.combine(day, self.ends)
            if ends <= begins:
                ends += timedelta(days=1)
            if begins <= wall < ends:
                return ends
        return None

    def __str__(self) -> str:
        return f"{self.begins:%H:%M}-{self.ends:%H:%M}"


def read_span(text: str) -> Span:
    """Parse `22:00-07:00`. Raises ValueError with a sentence for people."""
    match = _SPAN.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        hours = [int(part) for part in match.groups()]
        span = Span(time(hours[0], hours[1]), time(hours[2], hours[3]))
    except ValueError:
        raise ValueError(f"quiet hours are written like 22:00-07:00, not {text!r}") from None
    if span.begins == span.ends:
        raise ValueError("quiet hours must end at another time than they begin")
    return span


def quiet_until(spans: Sequence[Span], wall: datetime) -> datetime | None:
    """Return the end of the quiet hours around `wall`; adjacent spans count as one, up to a day."""
    end: datetime | None = None
    for _ in range(len(spans)):
        later = [ends for span in spans if (ends := span.end_after(end or wall)) is not None]
        if not later or (end is not None and max(later) <= end):
            break
        end = max(later)
    return end
