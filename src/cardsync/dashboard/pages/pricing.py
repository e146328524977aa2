"""The page of rules in their order, each with its sentence, state and count of cards; the forms
that move, publish, switch and delete rules; and the presets with their effect on the shop's own
cards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, see, show
from cardsync.platform import clock, errors
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.kit.typed_numbers import wholes
from cardsync.platform.limits import RULE_NAME_CHARACTERS
from cardsync.prices.engine.preset_rules import PRESETS
from cardsync.prices.engine.rules import Rule
from cardsync.prices.inputs.rule_findings import Finding
from cardsync.prices.inputs.rule_json import to_json
from cardsync.prices.inputs.rule_rows import rule_of
from cardsync.prices.plans import writes
from cardsync.prices.plans.writer import Writer
from cardsync.prices.preview import rule_analysis
from cardsync.prices.preview.asked import compared_presets, sampled_presets
from cardsync.prices.preview.presets import Compared
from cardsync.prices.rules import rule_sets
from cardsync.prices.rules.rule_forms import cap_in_words, own_fields, sentence_of
from cardsync.prices.rules.rule_warnings import warnings_of
from cardsync.prices.rules.schemas import PricingRuleShown, rule_bodies
from cardsync.web.abandoned import while_there
from cardsync.web.forms import Form, read_form, sentence
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import provide_caller

# The groups of tabs on the pages of pricing. A tab has an address, a name, and whether only owners
# see it.
TABS: Final = (
    (("/pricing/sales", "Promotions", False),),
    (
        ("/pricing/runs", "Runs", False),
        ("/pricing/rollback", "Rollback", True),
        ("/pricing/backtest", "Backtest", True),
    ),
    (
        ("/pricing", "Rules", True),
        ("/pricing/tests", "Rule tests", True),
        ("/pricing/pins", "Pins", False),
        ("/pricing/presets", "Presets", True),
        ("/pricing/settings", "Limits and fees", True),
    ),
)
MEANT: Final = {
    "premium": "5% above market, and never lowered: for rare cards and patient sellers.",
    "competitive": "1% below market, and never lowered: the usual choice.",
    "move": (
        "At the lowest listing, and lower the longer a card doesn't sell: for stock you want to"
        " move."
    ),
    "buy-box": "2% below the lowest price with shipping: to be the cheapest listing.",
}
# The cap of each preset, in words.
CAPS: Final = {preset: cap_in_words(to_json(rule)) for preset, rule in PRESETS.items()}
CHANGES: Final[dict[str, dict[str, Any]]] = {
    "publish": {"state": "published"},
    "draft": {"state": "draft"},
    "enable": {"enabled": True},
    "disable": {"enabled": False},
}


class Row(NamedTuple):
    """A rule as the page shows it. `earlier` and `later` are the orders of all rules after the rule
    is moved up or down; empty if it cannot be.
    """

    rule: PricingRuleShown
    sentence: str
    finding: Finding | None
    earlier: str
    later: str


def show_part(
    request: PageRequest,
    caller: Caller,
    template: str,
    status: int = 200,
    /,
    **values: Any,
) -> Template:
    """Show a page of pricing with the tabs that the caller may open."""
    tabs = tabs_of(request.url.path, owner=caller.role == "owner")
    return show(request, caller, template, status, pricing_tabs=tabs, **values)


def tabs_of(path: str, *, owner: bool) -> list[tuple[str, str]]:
    """Return the tabs of a page; none if the page would be the only tab. Pure."""
    beside = next(
        group
        for group in TABS
        if any(f"{path}/".startswith(f"{address}/") for address, _, _ in group)
    )
    tabs = [(address, name) for address, name, owners in beside if owner or not owners]
    return tabs if len(tabs) > 1 else []


def rows_of(
    rules: Sequence[PricingRuleShown],
    findings: Mapping[int, Finding],
) -> list[Row]:
    """Return the page's rows for these rules. Pure."""
    ids = [rule.id for rule in rules]
    return [
        Row(
            rule,
            sentence_of(msgspec.to_builtins(rule)),
            findings.get(rule.id),
            moved(ids, place, place - 1) if place else "",
            moved(ids, place, place + 1) if place < len(ids) - 1 else "",
        )
        for place, rule in enumerate(rules)
    ]


def moved(ids: Sequence[int], place: int, to: int) -> str:
    """Return the ids of the rules after the rule at `place` was moved to `to`. Pure."""
    order = list(ids)
    order.insert(to, order.pop(place))
    return ",".join(map(str, order))


@get("/pricing")
async def pricing_page(
    request: PageRequest,
    caller: Caller,
    bounded_snapshot: AsyncSession,
) -> Template | Response[str]:
    """Show the rules; with `counts`, also the number of cards that each selects and prices. Staff
    are sent to the page of pins.
    """
    if caller.role != "owner":
        return see("/pricing/pins")
    now = clock.now()
    counted = bool(request.query_params.get("counts"))
    stored = await rule_sets.read_all(bounded_snapshot, caller)
    rules = rule_bodies(stored, await warnings_of(bounded_snapshot, stored))
    found = await rule_analysis.analyse(bounded_snapshot, caller, now) if counted else None
    findings = {finding.id: finding for finding in found.rules} if found else {}
    return show_part(
        request,
        caller,
        "pricing.html",
        rows=rows_of([rule for rule in rules if not rule.guard], findings),
        guards=rows_of([rule for rule in rules if rule.guard], findings),
        names={rule.id: rule.name for rule in rules},
        order=",".join(str(rule.id) for rule in rules if not rule.guard),
        counted=counted,
        unmatched=found.unmatched if found else None,
    )


def blocked(request: PageRequest, problem: errors.RuleTestsFailed) -> Template:
    """Show which rule tests block a change, and the same form again with a field for a reason."""
    return show_part(
        request,
        provide_caller(request),
        "pricing_blocked.html",
        problem.status,
        why=sentence(problem),
        fields=read_form(request).again(without="override_reason"),
        address=request.url.path,
    )


# The `exception_handlers` of a form that changes rules.
TESTED: Final = {errors.RuleTestsFailed: blocked}


def reason_of(form: Form) -> str | None:
    return next(reversed(form.all("override_reason")), None)


@post_form("/pricing/order", exception_handlers=TESTED)
async def move_rule(form: Form, writer: Writer) -> Response[str]:
    shown, ids = read_ids(form["shown"]), read_ids(form["ids"])
    await writes.reorder_rules(writer, ids, reason_of(form), shown)
    return see("/pricing", done=message("rules_moved"))


def read_ids(text: str) -> list[int]:
    """Read ids that are separated by commas. Pure. Raises InvalidRule."""
    ids = wholes(text.split(","))
    if text and not ids:
        raise errors.InvalidRule("ids: must list every rule once")
    return ids


@post_form("/pricing/rules/{rule_id:int}/{what:str}", exception_handlers=TESTED)
async def switch_rule(form: Form, writer: Writer, rule_id: int, what: str) -> Response[str]:
    """Publish a rule, make it a draft, switch it on or off, copy it as a draft, or delete it."""
    if what == "delete":
        await writes.remove_rule(writer, rule_id, reason_of(form))
        return see("/pricing", done=message("rule_deleted"))
    if what == "copy":
        row = await rule_sets.read_one(writer.session, writer.caller, rule_id)
        copied = await writes.create_rule(writer, copy_of(rule_of(row)))
        return see(f"/pricing/rules/{copied.row.id}", done=message("rule_copied"))
    if what not in CHANGES:
        raise errors.NotFound("this page does not exist")
    await writes.change_rule(writer, rule_id, CHANGES[what], reason_of(form))
    return see("/pricing", done=message(f"rule_{what}"))


def copy_of(rule: Rule) -> dict[str, object]:
    """Return the body of a rule's copy, which is a draft. Pure."""
    body = own_fields(to_json(rule))
    return body | {"name": f"Copy of {rule.name}"[:RULE_NAME_CHARACTERS], "state": "draft"}


async def compared(request: PageRequest, caller: Caller, heavy: HeavyWork) -> Compared:
    """Compare the presets: on all cards if the address requests exact figures, else on a sample if
    the shop has many cards. The work stops if the caller leaves.
    """
    work, kind = (
        (compared_presets, Work.PRICES_ALL)
        if "exact" in request.query_params
        else (sampled_presets, Work.LONG)
    )
    return await while_there(request.receive, heavy.read(work, caller, kind, clock.now()))


@get("/pricing/presets")
async def presets_page(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
) -> Template:
    found = await compared(request, caller, heavy)
    return show_part(
        request, caller, "pricing_presets.html", **found._asdict(), meant=MEANT, caps=CAPS
    )


@post_form("/pricing/presets", exception_handlers=TESTED)
async def choose_preset(form: Form, writer: Writer) -> Response[str]:
    await writes.apply_preset(writer, form["preset"], reason_of(form))
    return see("/pricing", done=message("preset_chosen"))


@post_form("/pricing/reprice")
async def reprice_now(writer: Writer) -> Response[str]:
    run_id = await writes.reprice(writer)
    return see(f"/pricing/runs/{run_id}", done=message("repricing"))


ROUTES = [pricing_page, move_rule, switch_rule, presets_page, choose_preset, reprice_now]
