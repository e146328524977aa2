"""The pages of pricing runs with their results, and of the review of a run that the breaker
stopped.
"""

from __future__ import annotations

from typing import Final

from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.shell import PageRequest, back_to
from cardsync.imports import reviews
from cardsync.imports.reviews import Word
from cardsync.platform import errors
from cardsync.prices.models import RunTrigger
from cardsync.prices.plans.writer import Writer
from cardsync.prices.runs import run_reads
from cardsync.prices.runs.run_reads import newest_runs
from cardsync.prices.runs.schemas import run_body
from cardsync.web.forms import Form
from cardsync.web.request import reading

WORDS: Final[dict[str, Word]] = {"confirm": "confirmed", "discard": "discarded"}
# Each cause of a run, in words.
CAUSES: Final[dict[RunTrigger, str]] = {
    "sync": "sync",
    "manual": "request",
    "settings": "settings changed",
    "sale_started": "promotion started",
    "sale_ended": "promotion ended",
    "recommendation": "approved suggestion",
    "review": "approved price",
}


@get("/pricing/runs")
async def runs_page(request: PageRequest, caller: Caller) -> Template:
    async with reading(request) as reads:
        runs = [run_body(run) for run in await newest_runs(reads, caller)]
    return show_part(request, caller, "pricing_runs.html", runs=runs, causes=CAUSES)


@get("/pricing/runs/{run_id:int}")
async def run_page(request: PageRequest, caller: Caller, run_id: int) -> Template:
    async with reading(request) as reads:
        run = run_body(await run_reads.run_of(reads, caller, run_id))
    return show_part(request, caller, "pricing_run.html", run=run, causes=CAUSES)


@post_form("/pricing/runs/{run_id:int}/{what:str}")
async def settle_run(form: Form, writer: Writer, run_id: int, what: str) -> Response[str]:
    """Confirm or discard the prices of a run that needs review."""
    if what not in WORDS:
        raise errors.NotFound("this page does not exist")
    await reviews.settle_run(writer, run_id, WORDS[what])
    return back_to(form["back"] or f"/pricing/runs/{run_id}", message(f"run_{what}"))


ROUTES = [runs_page, run_page, settle_run]
