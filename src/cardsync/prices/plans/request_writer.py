"""Makes the `Writer` of a request from its caller, a bounded session and `confirm`."""

from __future__ import annotations

from typing import Final

from litestar.di import Provide
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import clock
from cardsync.platform.settings import Settings
from cardsync.prices.plans.writer import Writer
from cardsync.web.request import provide_bounded_session


async def provide_writer(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    confirm: bool = False,
) -> Writer:
    """Return the writer of a request; `confirm` is read from the query string or from the body."""
    return Writer(session, caller, settings, clock.now(), confirm)


async def provide_plain_writer(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
) -> Writer:
    """Return the writer of a request that never needs a confirmation."""
    return Writer(session, caller, settings, clock.now())


# A route that writes prices waits for other writers, and prices cards.
WRITING: Final = {
    "session": Provide(provide_bounded_session),
    "writer": Provide(provide_writer),
}
WRITING_SEEN: Final = WRITING | {"writer": Provide(provide_plain_writer)}
