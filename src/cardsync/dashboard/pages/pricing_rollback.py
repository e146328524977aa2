"""The pages of rollbacks. A member first sees which prices a rollback would restore, then requests
the rollback, watches it, or cancels it before the agent has it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.formats import Reader, zone_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.pages.pricing_sales import moment_of
from cardsync.dashboard.shell import PageRequest, reader_of, see
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.session import Database
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.platform.settings import Settings
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_rollback import ask_for
from cardsync.prices.rollback import rollbacks
from cardsync.prices.rollback.schemas import diff_body, rollback_body
from cardsync.prices.rules import rule_sets
from cardsync.prices.runs.run_reads import newest_runs
from cardsync.prices.runs.schemas import PriceRunShown, run_body
from cardsync.stock.lists import seller_lists
from cardsync.web.forms import Form, sentence
from cardsync.web.request import reading

SCOPES: Final = ("run_id", "rule_id", "list", "since")


class Choices(NamedTuple):
    """The options of the form's picker, each as (value, words)."""

    runs: list[tuple[str, str]]
    rules: list[tuple[str, str]]
    lists: list[tuple[str, str]]


def scope_of(caller: Caller, scope: str, value: str) -> dict[str, object]:
    """Return the body of a rollback for the scope and value in a form. Raises InvalidPayload,
    InvalidRule.
    """
    if scope not in SCOPES or not value:
        raise errors.InvalidPayload("scope: choose a run, a rule, a list or a time")
    number = read_id(value)
    if scope == "since":
        zone = zone_of(caller.account.time_zone)
        return {"since": clock.rfc3339(moment_of(value, "since", zone))}
    if scope == "list":
        return {"list": value if number is None else number}
    if number is None:
        raise errors.InvalidPayload(f"{scope}: must be a whole number")
    return {scope: number}


@get("/pricing/rollback")
async def rollback_page(
    request: PageRequest,
    caller: Caller,
    database: Database,
    settings: Settings,
) -> Template:
    """Show which prices the address's rollback would restore, and the earlier rollbacks.

    The address has a scope and its value, or both together as in the picker's options: `run_id:12`.
    """
    what = str(request.query_params.get("what", "")).partition(":")
    scope = what[0] or str(request.query_params.get("scope", ""))
    value = what[2] or str(request.query_params.get("value", "")).strip()
    now = clock.now()
    async with reading(request) as reads:
        earlier, runs, rules, lists = await at_once(
            rollbacks.newest(reads, caller),
            newest_runs(reads, caller),
            rule_sets.names_of_rules(reads, caller),
            seller_lists.names_of_lists(reads, caller),
        )
    asked, problem, status = None, "", 200
    if value:
        try:
            body = scope_of(caller, scope, value)
            asked = await ask_for(database, caller, settings, body, now, dry_run=True)
        except (errors.InvalidPayload, errors.InvalidRule, errors.NotFound) as e:
            problem, status = sentence(e), e.status
    return show_part(
        request,
        caller,
        "pricing_rollback.html",
        status,
        scope=scope,
        value=value,
        choices=Choices(
            runs=[
                _run(run, reader_of(request, caller)) for run in map(run_body, runs) if run.changed
            ],
            rules=[(f"rule_id:{rule_id}", name) for rule_id, name in rules],
            lists=[(f"list:{list_id}", name) for list_id, name in lists],
        ),
        asked=asked,
        diff=diff_body(asked.diff) if asked else [],
        rollbacks=[rollback_body(rollback, [], now) for rollback in earlier],
        problem=problem,
    )


def _run(run: PriceRunShown, reader: Reader) -> tuple[str, str]:
    """Return a pricing run as an option: `Run 12, November 24, 2026, 4:05 PM EST, 96
    prices`. Pure.
    """
    words = f"Run {run.id}, {reader.exact(run.started_at)}, {reader.count(run.changed, 'prices')}"
    return f"run_id:{run.id}", words


@post_form("/pricing/rollback")
async def ask_rollback(
    caller: Caller, form: Form, database: Database, settings: Settings
) -> Response[str]:
    """Request the rollback whose prices were shown."""
    caller.must_be_owner()
    body = scope_of(caller, form["scope"], form["value"])
    asked = await ask_for(
        database,
        caller,
        settings,
        body,
        clock.now(),
        dry_run=False,
    )
    assert asked.rollback is not None
    return see(f"/pricing/rollback/{asked.rollback.id}", done=message("rollback_asked"))


@get("/pricing/rollback/{rollback_id:int}")
async def one_rollback(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    rollback_id: int,
) -> Template:
    rollback = await rollbacks.read(session, caller, rollback_id)
    diff = await rollbacks.diff_shown(session, rollback)
    shown = rollback_body(rollback, diff, clock.now())
    return show_part(request, caller, "pricing_rolled_back.html", rollback=shown, diff=shown.diff)


@post_form("/pricing/rollback/{rollback_id:int}/cancel")
async def cancel_rollback(caller: Caller, session: AsyncSession, rollback_id: int) -> Response[str]:
    await writes.cancel_rollback(session, caller, rollback_id, clock.now())
    return see(f"/pricing/rollback/{rollback_id}", done=message("rollback_cancelled"))


ROUTES = [rollback_page, ask_rollback, one_rollback, cancel_rollback]
