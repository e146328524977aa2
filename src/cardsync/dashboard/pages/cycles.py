"""The pages of past syncs: their results, steps, durations, errors and screenshots."""

from __future__ import annotations

from typing import Final

from litestar import get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.agents.sync import past_cycles
from cardsync.agents.sync.cycles_schemas import cycle_body
from cardsync.dashboard.shell import PageRequest, paging_of, show
from cardsync.platform import clock, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.shop.today import sync_result
from cardsync.web.request import reading


@get("/sync/cycles")
async def cycles_page(request: PageRequest, caller: Caller) -> Template:
    paging = paging_of(request, limits.CYCLES_PER_PAGE)
    async with reading(request) as reads:
        found = await past_cycles.page_of_cycles(reads, caller, paging)
        pictures = await past_cycles.screenshots_of(reads, caller, [row.id for row in found.rows])
    return show(
        request,
        caller,
        "cycles.html",
        cycles=[cycle_body(row, pictures.get(row.id, [])) for row in found.rows],
        **found.numbers._asdict(),
    )


@get("/sync/cycles/{cycle_id:int}")
async def cycle_page(request: PageRequest, caller: Caller, cycle_id: int) -> Template:
    async with reading(request) as reads:
        row, pictures = await at_once(
            past_cycles.cycle(reads, caller, cycle_id),
            past_cycles.screenshots_of(reads, caller, [cycle_id]),
        )
    return show(request, caller, "cycle.html", cycle=cycle_body(row, pictures.get(cycle_id, [])))


@get("/sync/result")
async def result_page(request: PageRequest, caller: Caller) -> Template:
    """Show the result of a sync; of the last one if the address names none."""
    now = clock.now()
    cycle = read_id(request.query_params.get("cycle", ""))
    async with reading(request) as reads:
        found = await sync_result.sync_result(reads, caller, cycle, now)
    return show(request, caller, "sync_result.html", found=found, is_last=cycle is None)


ROUTES: Final = [cycles_page, cycle_page, result_page]
