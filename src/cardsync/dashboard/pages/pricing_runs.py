"""The pages of pricing runs with their results, and the review of a run that the breaker
stopped.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get, post
from litestar.response import Template

from cardsync import errors
from cardsync.access.admission import BY_FORM
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.dashboard.confirmed import writer_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.shell import PageRequest, read_form, see
from cardsync.database.session import Database
from cardsync.inventory import reviews
from cardsync.inventory.reviews import Word
from cardsync.pricing.runs import reprice
from cardsync.pricing.runs.run_reads import newest_runs
from cardsync.pricing.runs.shown import run_body
from cardsync.settings import Settings

WORDS: Final[dict[str, Word]] = {"confirm": "confirmed", "discard": "discarded"}


@get("/pricing/runs", opt=BY_FORM)
async def runs_page(request: PageRequest, caller: Caller, database: Database) -> Template:
    async with database.tenant(caller.seller_id) as session:
        runs = [run_body(run) for run in await newest_runs(session, caller)]
    return show_part(request, caller, "pricing_runs.html", runs=runs)


@get("/pricing/runs/{run_id:int}", opt=BY_FORM)
async def run_page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    run_id: int,
) -> Template:
    async with database.tenant(caller.seller_id) as session:
        run = run_body(await reprice.run_of(session, caller, run_id))
    return show_part(request, caller, "pricing_run.html", run=run)


@post("/pricing/runs/{run_id:int}/{what:str}", opt=BY_FORM | WRITES)
async def settle_run(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
    run_id: int,
    what: str,
) -> Response[str]:
    """Confirm or discard the prices of a run that stopped for a look."""
    form = await read_form(request)
    if what not in WORDS:
        raise errors.NotFound("there is no such page")
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        await reviews.settle_run(writer_of(session, caller, settings, form), run_id, WORDS[what])
    return see(f"/pricing/runs/{run_id}", done=message(f"run_{what}"))


ROUTES = [runs_page, run_page, settle_run]
