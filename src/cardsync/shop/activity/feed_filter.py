"""Parses the query of the activity feed into a filter. Pure.

A page number or page size out of range becomes the nearest allowed number. Other wrong values are
refused with 422, and the message names the parameter.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from cardsync.access.activity import OUTCOMES, RISKS
from cardsync.platform import errors
from cardsync.platform.clock import read_moment
from cardsync.platform.kit.row_pages import Paging, read_paging
from cardsync.shop.limits import ACTIVITY_PER_PAGE, ACTIVITY_PER_PAGE_MOST

_NAME_CHARACTERS: Final = 100


@dataclass(frozen=True)
class FeedFilter(Paging):
    """A filter of the feed. `actor` and `action` are a complete value (`token 7`, `list.renamed`),
    or only a kind (`token`, `list`).
    """

    page: int = 1
    per_page: int = ACTIVITY_PER_PAGE
    actor: str | None = None
    action: str | None = None
    outcome: str | None = None
    risk: str | None = None
    since: datetime | None = None


def read_wanted(
    page: str | None,
    per_page: str | None,
    actor: str | None,
    action: str | None,
    outcome: str | None,
    risk: str | None,
    since: str | None,
) -> FeedFilter:
    """Return the filter that the query parameters describe. Raises InvalidPayload."""
    return FeedFilter(
        **asdict(read_paging(page, per_page, ACTIVITY_PER_PAGE, ACTIVITY_PER_PAGE_MOST)),
        actor=_name(actor),
        action=_name(action),
        outcome=_one_of("outcome", outcome, OUTCOMES),
        risk=_one_of("risk", risk, RISKS),
        since=_moment("since", since),
    )


def _name(given: str | None) -> str | None:
    text = (given or "").strip().replace("\0", "\ufffd")
    return text[:_NAME_CHARACTERS] or None


def _one_of(name: str, given: str | None, known: tuple[str, ...]) -> str | None:
    text = (given or "").strip()
    if text and text not in known:
        raise errors.InvalidPayload(f"{name}: {text[:60]!r} is not one of {', '.join(known)}")
    return text or None


def _moment(name: str, given: str | None) -> datetime | None:
    text = (given or "").strip()
    if not text:
        return None
    moment = read_moment(text)
    if moment is None:
        raise errors.InvalidPayload(
            f"{name}: {text[:60]!r} is not a time like 2026-11-21T08:00:00Z"
        )
    return moment
