"""The workshop of one rule. An owner edits the rule as a sentence with sections, or as a text.
While the owner types, the page shows the effect of the draft compared with the live rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.dashboard.bars import histogram
from cardsync.dashboard.form_handlers import post_form, writer_of
from cardsync.dashboard.messages import message, together
from cardsync.dashboard.pages.pricing import TESTED, reason_of, show_part
from cardsync.dashboard.shell import PageRequest, TemplateValues, see, show
from cardsync.platform import clock, errors
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.platform.money import percent
from cardsync.platform.value_types import JsonMapping
from cardsync.prices.engine.rules import Rule
from cardsync.prices.inputs import rule_json as wire
from cardsync.prices.plans import writes
from cardsync.prices.preview.asked import drafted_rule
from cardsync.prices.preview.draft import Draft, DraftAsked
from cardsync.prices.rules import rule_forms, rule_sets
from cardsync.prices.rules.schemas import rule_bodies
from cardsync.prices.rules.shown_changes import ChangedMeanwhile
from cardsync.stock.search.meant_flags import meant
from cardsync.web.abandoned import while_there
from cardsync.web.forms import Form, sentence
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import opened, reading

# The fields of each section that is folded while none of these fields is set.
FOLDED: Final = {
    "review": ("review_own",),
    "advanced": tuple(one.name for one in rule_forms.inputs_of("advanced")),
}
SECTIONS: Final = ("price", "limits", "advanced")
NEW: Final = wire.to_json(Rule(id=0, name="", priority=DEFAULT_PRIORITY - 1))
# The fields of a new rule that lowers unsold cards step by step, but not below their cost.
MARKDOWN: Final[dict[str, object]] = {
    "name": "Markdown",
    "floor_cost_bp": 0,
    "stale": {"after_days": 90, "step_bp": 500, "every_days": 14, "limit_bp": 4_000},
}
NEW_GUARD: Final = wire.to_json(Rule(id=0, name="", priority=DEFAULT_PRIORITY - 1, guard=True))
# The options of each field that the sentence shows as a choice.
CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "price_source": rule_forms.SOURCES,
    "rounding": rule_forms.ROUNDINGS,
    "side": rule_forms.SIDES,
    "cap_period": rule_forms.PERIODS,
    "cap_mode": rule_forms.MODES,
}
BAD: Final = (errors.InvalidRule, errors.InvalidQuery, errors.InvalidPayload)


class Difference(NamedTuple):
    """A field with two different values: the stored one and the submitted one."""

    name: str
    current: str
    wanted: str


class ShownRule(NamedTuple):
    """A rule as the workshop shows it: the stored rule, and the form's values."""

    rule_id: int | None
    stored: JsonMapping
    texts: Mapping[str, str]
    text: str
    wanted: JsonMapping


def stored_of(rule_id: int | None, stored: Mapping[str, object]) -> ShownRule:
    """Return a stored rule as the workshop shows it. Pure."""
    return ShownRule(
        rule_id, stored, rule_forms.form_of(stored), rule_forms.text_of(stored), stored
    )


def begun_with(asked: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a new rule that the address names: its search, and those of a markdown.
    Pure.
    """
    begun: dict[str, object] = {"query": str(asked["query"])} if asked.get("query") else {}
    return begun | MARKDOWN if asked.get("markdown") else begun


async def _stored(
    request: PageRequest,
    caller: Caller,
    rule_id: int | None,
    *,
    guard: bool,
) -> dict[str, object]:
    if rule_id is None:
        caller.must_be_owner()
        return dict(NEW_GUARD if guard else NEW)
    async with reading(request) as reads:
        row = await rule_sets.read_one(reads, caller, rule_id)
    # The page shows the warnings of the draft instead.
    [shown] = rule_bodies([row], [[]])
    notice: dict[str, object] = msgspec.to_builtins(shown)
    for name in ("created_at", "updated_at", "warnings"):
        notice.pop(name)
    return notice


def body_of(form: Form, was: Mapping[str, object]) -> dict[str, object]:
    """Read the submitted form of the rule: the sentence or the text. Pure. Raises InvalidRule."""
    if form["face"] == "text":
        return rule_forms.read_text(form["text"])
    return rule_forms.read_form(_texts(form, form), was)


def _texts(form: Form, names: Iterable[str]) -> dict[str, str]:
    """Return the named fields of the form. The fallback sources are several fields, joined in their
    order. Pure.
    """
    fallbacks = ", ".join(filter(None, form.all("fallback_sources")))
    return form.some(*names) | {"fallback_sources": fallbacks}


def was_of(form: Form) -> dict[str, object]:
    """Return the stored rule from which the page made the form. Pure. Raises InvalidRule."""
    return rule_forms.own_fields(changed_rule(rule_forms.read_text(form["was"] or "{}"), {}))


def changed_rule(was: Mapping[str, object], body: Mapping[str, object]) -> dict[str, object]:
    """Return a rule with changed fields, as JSON. Its name may still be empty. Pure. Raises
    InvalidRule.
    """
    fields = {**was, **body}
    name = fields.pop("name", "")
    rule = wire.rule_from(wire.read_body(fields, wire.RuleFields), Rule(0, "New rule", 1))
    return wire.to_json(rule) | {"name": name}


def differences(
    current: Mapping[str, object],
    wanted: Mapping[str, object],
) -> list[Difference]:
    """Return the fields in which the stored and the submitted rule differ. Pure."""
    return [
        Difference(name, _plain(current.get(name)), _plain(value))
        for name, value in wanted.items()
        if current.get(name) != value
    ]


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown(
    request: PageRequest,
    caller: Caller,
    shown: ShownRule,
    status: int = 200,
    /,
    **values: Any,
) -> Template:
    guard = bool(shown.stored.get("guard"))
    given = {"draft": None, "is_later": False, "unread": "", "conflicts": []} | values
    texts = shown.texts
    return show_part(
        request,
        caller,
        "pricing_rule.html",
        status,
        rule_id=shown.rule_id,
        rule=shown.stored,
        guard=guard,
        texts=texts,
        labels={name: one.label for name, one in rule_forms.INPUTS.items()},
        lines={name: rule_forms.lines_of(name, guard=guard) for name in SECTIONS},
        ticks={name: rule_forms.ticks_of(name, guard=guard) for name in SECTIONS},
        stored_texts=rule_forms.form_of(shown.stored),
        fallbacks=_fallbacks(texts),
        stored_fallbacks=_fallbacks(rule_forms.form_of(shown.stored)),
        unfolded=[name for name, fields in FOLDED.items() if any(texts[f] for f in fields)],
        text=shown.text,
        was=rule_forms.text_of(shown.stored),
        face="text" if request.query_params.get("face") == "text" else "form",
        choices={name: list(words.items()) for name, words in CHOICES.items()},
        **effect_of(given["draft"], shown.stored if shown.rule_id else None, shown.wanted),
        **given,
    )


def _fallbacks(texts: Mapping[str, str]) -> list[str]:
    """Return the chosen fallback sources in their order, filled up with empty ones to the number of
    price sources.
    """
    chosen = texts["fallback_sources"].replace(",", " ").split()
    return chosen + [""] * (len(rule_forms.SOURCES) - len(chosen))


def effect_of(
    draft: Draft | None,
    stored: JsonMapping | None,
    wanted: JsonMapping,
) -> TemplateValues:
    """Return the values for the part of the page that shows the effect, except the draft itself. A
    new rule has no stored version. Pure.
    """
    return {
        "meant": meant(str(wanted.get("query") or "")),
        "sentence": rule_forms.sentence_of(wanted),
        "caps": rule_forms.cap_in_words(wanted),
        "changed": rule_forms.changed_sentences(stored or wanted, wanted),
        "columns": histogram(draft.figures.histogram, draft.figures.unchanged) if draft else [],
        "percent": percent,
    }


def _typed(form: Form, rule_id: int | None, stored: Mapping[str, object]) -> ShownRule:
    """Return the rule with the typed values, or the stored rule with the typed texts if these
    cannot be read. Pure.
    """
    try:
        wanted = changed_rule(was_of(form), body_of(form, was_of(form)))
    except errors.InvalidRule:
        texts = rule_forms.form_of(stored)
        if form["face"] != "text":
            texts = _texts(form, texts)
        return ShownRule(rule_id, stored, texts, form["text"] or rule_forms.text_of(stored), stored)
    return ShownRule(
        rule_id, stored, rule_forms.form_of(wanted), rule_forms.text_of(wanted), wanted
    )


@get(["/pricing/rules/new", "/pricing/rules/{rule_id:int}"])
async def rule_page(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
) -> Template:
    """Show the rule and its effect, also without a script. If the shop has many cards, the effect
    is that of a sample, so that the page loads fast. If no process is free, the page requests the
    effect later.
    """
    rule_id = request.path_params.get("rule_id")
    guard = "guard" in request.query_params
    stored = await _stored(request, caller, rule_id, guard=guard)
    begun = {} if rule_id else begun_with(request.query_params)
    stored |= begun
    effect: dict[str, object] = {"exactly": f"/pricing/draft{f'/{rule_id}' if rule_id else ''}"}
    try:
        # A new guard has no limits yet, so it has no effect.
        if rule_id is not None or not guard:
            asked = _draft_asked(rule_id, begun, sample=True)
            read = heavy.read_at_once(drafted_rule, caller, Work.LONG, clock.now(), asked)
            effect["draft"] = await while_there(request.receive, read)
            effect["is_later"] = effect["draft"] is None
    except errors.Problem as e:
        # An owner can correct the rule here even if its effect cannot be computed.
        effect["unread"] = sentence(e)
    return _shown(request, caller, stored_of(rule_id, stored), **effect)


@post_form(["/pricing/rules/new", "/pricing/rules/{rule_id:int}"], exception_handlers=TESTED)
async def save_rule(
    request: PageRequest,
    caller: Caller,
    form: Form,
    heavy: HeavyWork,
) -> Template | Response[str]:
    """Save the rule, publish it, or show its effect without saving."""
    rule_id = request.path_params.get("rule_id")
    guard = bool(was_of(form).get("guard"))
    stored = await _stored(request, caller, rule_id, guard=guard)
    try:
        body = body_of(form, was_of(form))
        if form["action"] == "preview":
            draft = await _previewed(request, caller, heavy, rule_id, body)
            return _shown(request, caller, _typed(form, rule_id, stored), draft=draft)
        if form["action"] == "publish":
            body |= {"state": "published"}
        saved = await _saved(request, rule_id, form, body)
    except ChangedMeanwhile as e:
        wanted = changed_rule(was_of(form), body_of(form, was_of(form)))
        mine = ShownRule(
            rule_id, e.current, rule_forms.form_of(wanted), rule_forms.text_of(wanted), wanted
        )
        return _shown(
            request,
            caller,
            mine,
            409,
            conflicts=differences(rule_forms.own_fields(e.current), rule_forms.own_fields(wanted)),
            problem="Someone else changed this rule in the meantime. Nothing was saved.",
        )
    except BAD as e:
        # The page shows the error and all typed values.
        typed = _typed(form, rule_id, stored)
        return _shown(request, caller, typed, e.status, problem=sentence(e))
    live = saved.row.state == "published" and saved.row.enabled
    red = sum(verdict.red for verdict in saved.verdicts)
    notice = message("rule_saved" if live else "draft_saved")
    if red:
        notice = together(notice, message("tests_red", red))
    return see(f"/pricing/rules/{saved.row.id}", done=notice)


async def _saved(
    request: PageRequest,
    rule_id: int | None,
    form: Form,
    body: Mapping[str, object],
) -> rule_sets.Saved:
    reason = reason_of(form)
    async with opened(request, long=True) as session:
        writer = writer_of(request, session)
        if rule_id is None:
            return await writes.create_rule(writer, body, reason)
        return await writes.change_rule(writer, rule_id, body, reason, was_of(form))


async def _previewed(
    request: PageRequest,
    caller: Caller,
    heavy: HeavyWork,
    rule_id: int | None,
    body: Mapping[str, object],
    *,
    sample: bool = False,
) -> Draft:
    """Return the rule's effect. The work stops if the caller leaves, because each typed character
    causes a new request.
    """
    asked = _draft_asked(rule_id, body, sample=sample)
    work = heavy.read(drafted_rule, caller, Work.LONG, clock.now(), asked)
    return await while_there(request.receive, work)


def _draft_asked(rule_id: int | None, body: Mapping[str, object], *, sample: bool) -> DraftAsked:
    rule = {name: value for name, value in body.items() if name != "name" or value}
    return DraftAsked(rule, rule_id, sample)


@post_form(["/pricing/draft", "/pricing/draft/{rule_id:int}"])
async def draft_part(
    request: PageRequest,
    caller: Caller,
    form: Form,
    heavy: HeavyWork,
    rule_id: int | None = None,
) -> Template:
    """Show the rule's effect as a part of the page: of a sample if the address requests one and the
    shop has many cards, else of all cards.
    """
    caller.must_be_owner()
    template = "pricing_draft.html"
    values: TemplateValues = {"draft": None, "is_part": True, **effect_of(None, NEW, NEW)}
    try:
        body = body_of(form, was_of(form))
        draft = await _previewed(
            request,
            caller,
            heavy,
            rule_id,
            body,
            sample="sample" in request.query_params,
        )
        was = was_of(form)
        values |= {
            "draft": draft,
            "exactly": request.url.path,
            **effect_of(draft, was if rule_id else None, _typed(form, rule_id, was).wanted),
        }
    except BAD as e:
        return show(request, caller, template, e.status, **values | {"problem": sentence(e)})
    return show(request, caller, template, **values)


ROUTES = [rule_page, save_rule, draft_part]
