"""The pages of past syncs: each with its steps, durations, errors and screenshots."""

from __future__ import annotations

from typing import Final

from litestar import get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import limits
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.dashboard.pages.uploads import page_number
from cardsync.dashboard.shell import PageRequest, show
from cardsync.sync import past_cycles
from cardsync.sync.cycles_shown import cycle_body


@get("/sync/cycles", opt=BY_FORM)
async def cycles_page(request: PageRequest, caller: Caller, session: AsyncSession) -> Template:
    page = page_number(request)
    rows, total = await past_cycles.page_of_cycles(session, caller, page, limits.CYCLES_PER_PAGE)
    pictures = await past_cycles.screenshots_of(session, caller, [row.id for row in rows])
    return show(
        request,
        caller,
        "cycles.html",
        cycles=[cycle_body(row, pictures.get(row.id, [])) for row in rows],
        total=total,
        page=page,
        total_pages=-(-total // limits.CYCLES_PER_PAGE),
    )


@get("/sync/cycles/{cycle_id:int}", opt=BY_FORM)
async def cycle_page(
    request: PageRequest, caller: Caller, session: AsyncSession, cycle_id: int
) -> Template:
    row = await past_cycles.cycle(session, caller, cycle_id)
    pictures = await past_cycles.screenshots_of(session, caller, [cycle_id])
    return show(request, caller, "cycle.html", cycle=cycle_body(row, pictures.get(cycle_id, [])))


ROUTES: Final = [cycles_page, cycle_page]
