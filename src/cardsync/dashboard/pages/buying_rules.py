"""The pages of buy rules: the list with its presets and rule tests, and the form of one rule with
the draft's effect on the newest collection.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from litestar import Response, get
from litestar.response import Template
from msgspec import to_builtins
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.collections import read_collections
from cardsync.buying.collections.draft_effect import preview_draft
from cardsync.buying.engine.buy_rules import BUY_PRESETS, GRADES, BuyRule
from cardsync.buying.rules import buy_rule_sets, buy_rule_tests
from cardsync.buying.rules.buy_rule_form import (
    TABLES,
    RuleForm,
    body_of,
    form_of,
    named,
    read_form,
    said,
)
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, games_of, see, show
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source, each_of
from cardsync.platform.database.session import SessionReading
from cardsync.platform.declared_fields import to_json
from cardsync.platform.kit.typed_numbers import read_id, whole
from cardsync.stock.lists.seller_lists import names_of_lists
from cardsync.web.forms import Form, sentence
from cardsync.web.request import opened, reading

BASE_NAMES: Final = [
    ("market", "the market price"),
    ("low", "the lowest listing"),
    ("target", "the price your rules ask"),
]


@get("/buying/rules")
async def buy_rules_page(request: PageRequest, caller: Caller) -> Template:
    # Checking the tests values thousands of cards, so it happens only on request.
    if "check" in request.query_params:
        async with opened(request) as session:
            told = await buy_rule_tests.check(session, caller, clock.now())
            return await _list(request, caller, session, told=told)
    async with reading(request) as reads:
        return await _list(request, caller, reads)


async def _list(
    request: PageRequest,
    caller: Caller,
    source: Source,
    problem: errors.Problem | None = None,
    told: buy_rule_tests.BuyRuleVerdicts | None = None,
) -> Template:
    tests, rules = await each_of(
        source, buy_rule_tests.read_all(source, caller), buy_rule_sets.read_all(source, caller)
    )
    return show(
        request,
        caller,
        "buy_rules.html",
        rules=rules,
        presets=[(name, rule.name) for name, rule in BUY_PRESETS.items()],
        tests=tests.rule_tests,
        verdicts={one.id: one for one in told.rule_tests} if told else {},
        problem=problem,
    )


@post_form("/buying/presets")
async def choose_preset(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    await buy_rule_sets.apply_preset(session, caller, form["preset"], clock.now())
    return see("/buying/rules", message("saved"))


@post_form(
    "/buying/tests",
    exception_handlers=again(_list, errors.InvalidPayload, errors.InvalidQuery),
)
async def make_buy_test(caller: Caller, form: Form, session: AsyncSession) -> Response[str]:
    body = form.some("name", "search", "expectation")
    await buy_rule_tests.create(session, caller, body, clock.now())
    return see("/buying/rules", message("test_made"))


@post_form("/buying/tests/{test_id:int}/delete")
async def delete_buy_test(caller: Caller, session: AsyncSession, test_id: int) -> Response[str]:
    await buy_rule_tests.remove(session, caller, test_id, clock.now())
    return see("/buying/rules", message("saved"))


@get("/buying/rules/new")
async def new_buy_rule_page(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
) -> Template:
    caller.must_be_owner()
    return await _rule(request, caller, session, 0, _blank())


@get("/buying/rules/{rule_id:int}")
async def buy_rule_page(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    rule_id: int,
) -> Template:
    found = await buy_rule_sets.read_one(session, caller, rule_id)
    return await _rule(request, caller, session, rule_id, form_of(to_builtins(found)))


def _blank() -> RuleForm:
    form = form_of(to_json(BuyRule(id=0, name="", priority=1)))
    return RuleForm(form.texts | {"priority": ""}, form.rows)


async def _rule(
    request: PageRequest,
    caller: Caller,
    session: AsyncSession,
    rule_id: int,
    form: RuleForm,
    problem: errors.Problem | None = None,
    on: int | None = None,
) -> Template:
    """Show a rule with the values of `form`, and its effect on the collection `on`, or on the
    newest.
    """
    effect, problem_of_effect = None, problem
    reads = SessionReading(session)
    lists, recent = await at_once(_lists(reads, caller), read_collections.recent(reads, caller))
    if problem is None:
        try:
            asked = _asked(form, lists, rule_id, on)
            effect = await preview_draft(session, caller, asked, clock.now())
        except (errors.InvalidRule, errors.InvalidQuery) as e:
            problem_of_effect = e
    return show(
        request,
        caller,
        "buy_rule.html",
        problem.status if problem else 200,
        rule_id=rule_id,
        texts=form.texts,
        tables={
            table: [*filter(partial(said, table), form.rows[table]), dict.fromkeys(cells, "")]
            for table, cells in TABLES.items()
        },
        lists=[(name, name) for name in lists],
        bases=BASE_NAMES,
        grades=GRADES,
        games=games_of(caller),
        effect=effect,
        on=on or (effect.collection_id if effect else None),
        collections=recent,
        problem=_said(problem),
        unread=_said(problem_of_effect),
    )


def _said(problem: errors.Problem | None) -> str:
    return "" if problem is None else sentence(errors.Problem(named(str(problem))))


def _asked(
    form: RuleForm, lists: Mapping[str, int], rule_id: int, on: int | None
) -> dict[str, object]:
    """Return the body of a preview: the form's rule, the id of the stored rule that it replaces,
    and the id of the collection.
    """
    texts = form.texts | {"name": form.texts["name"] or "Draft"}
    body = body_of(RuleForm(texts, form.rows), lists)
    return body | {"rule_id": rule_id or None, "collection_id": on}


async def _lists(source: Source, caller: Caller) -> dict[str, int]:
    return {name: id for id, name in await names_of_lists(source, caller)}


@post_form("/buying/rules/effect")
async def show_effect(
    request: PageRequest,
    caller: Caller,
    form: Form,
    session: AsyncSession,
) -> Template:
    """Show what the form's rule would pay for a collection, as a part of the page."""
    problem, effect = "", None
    try:
        typed = read_form(form.__getitem__, form.all)
        lists = await _lists(session, caller)
        asked = _asked(typed, lists, read_id(form["rule_id"]) or 0, read_id(form["on"]))
        effect = await preview_draft(session, caller, asked, clock.now())
    except (errors.InvalidRule, errors.InvalidQuery, errors.NotFound) as e:
        problem = _said(e)
    return show(request, caller, "buy_rule_effect.html", effect=effect, unread=problem)


@post_form("/buying/rules/{rule_id:int}")
async def save_buy_rule(
    request: PageRequest,
    caller: Caller,
    form: Form,
    session: AsyncSession,
    rule_id: int,
) -> Template | Response[str]:
    """Save the form's rule; rule 0 means a new rule. A button for the effect shows the form again
    with its effect; a button for a row shows it again without that row.
    """
    typed, action = read_form(form.__getitem__, form.all), form["action"]
    if action == "preview" or action.startswith("drop:"):
        _drop(typed, action)
        return await _rule(request, caller, session, rule_id, typed, on=read_id(form["on"]))
    if action in ("publish", "draft"):
        typed.texts["state"] = {"publish": "published", "draft": "draft"}[action]
    try:
        body = body_of(typed, await _lists(session, caller))
        if rule_id:
            await buy_rule_sets.change(session, caller, rule_id, body, clock.now())
        else:
            await buy_rule_sets.create(session, caller, body, clock.now())
    except (errors.InvalidRule, errors.InvalidQuery) as e:
        return await _rule(request, caller, session, rule_id, typed, e)
    return see("/buying/rules", message("saved"))


def _drop(form: RuleForm, action: str) -> None:
    """Remove the row that a button like `drop:bands:1` names, if the form has it."""
    _, _, row = action.partition(":")
    table, _, place = row.partition(":")
    at = whole(place, len(form.rows.get(table, [])) - 1)
    if at is not None:
        del form.rows[table][at]


@post_form("/buying/rules/{rule_id:int}/delete")
async def delete_buy_rule(caller: Caller, session: AsyncSession, rule_id: int) -> Response[str]:
    await buy_rule_sets.remove(session, caller, rule_id, clock.now())
    return see("/buying/rules", message("saved"))


ROUTES: Final = [
    buy_rules_page,
    choose_preset,
    make_buy_test,
    delete_buy_test,
    new_buy_rule_page,
    buy_rule_page,
    show_effect,
    save_buy_rule,
    delete_buy_rule,
]
