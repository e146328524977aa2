"""Writes of prices that a page sends: one that is large is shown with its figures first, and done
when the form comes again with `confirm`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.shell import CONFIRM, field
from cardsync.plans import direct
from cardsync.settings import Settings

T = TypeVar("T")


async def write(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    form: Mapping[str, list[str]],
    action: Mapping[str, Any] | direct.Waiting,
    do: Callable[[], Awaitable[T]],
    now: datetime,
) -> T:
    """Do the write; `action` says it as an action of a plan. Raises ConfirmationNeeded, which
    `shell.refused` shows.
    """
    confirmed = field(form, CONFIRM) == "true"
    return await direct.write(session, caller, settings, action, do, now, confirmed=confirmed)
