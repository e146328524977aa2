"""Makes the `Writer` of a form, confirmed if the form was sent again after the page showed the
figures of a large change (`shell.refused` shows them).
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.access.caller import Caller
from cardsync.dashboard.shell import CONFIRM, field
from cardsync.plans.writer import Writer
from cardsync.settings import Settings


def writer_of(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    form: Mapping[str, list[str]],
) -> Writer:
    return Writer(session, caller, settings, clock.now(), field(form, CONFIRM) == "true")
