"""Rules, sales, pins and settings of pricing over HTTP.

Bodies are read field by field (`json.py`), so that an error names its field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import Router, delete, get, patch, post, put
from litestar.di import Provide
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.cards.bulk_selection import Selection
from cardsync.money import dollars
from cardsync.plans.direct import write
from cardsync.plans.direct_actions import (
    pin_remove,
    pin_set,
    pins_of,
    preset_apply,
    rule_create,
    rule_delete,
    rule_reorder,
    rule_update,
    sale_create,
    sale_delete,
    sale_update,
    settings_update,
)
from cardsync.pricing.models import PricingRule, PricingSale
from cardsync.pricing.rules import rule_sets, sale_sets
from cardsync.pricing.rules.pin_many import pin_many, unpin_many
from cardsync.pricing.rules.rule_warnings import warnings_of
from cardsync.pricing.rules.shown import (
    PinnedCard,
    PricingRuleShown,
    PricingSettings,
    RuleList,
    SaleList,
    SaleShown,
    SavedRule,
    rule_bodies,
    sale_bodies,
    saved_rule,
    settings_body,
)
from cardsync.settings import Settings
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    Deleted,
    problems,
    provide_bounded_session,
)

Body = dict[str, Any]


class RuleOrder(msgspec.Struct):
    """Every rule's id, first wins; the default rule keeps its priority."""

    ids: list[int]
    confirm: bool = False


async def _rules(session: AsyncSession, rows: Sequence[PricingRule]) -> list[PricingRuleShown]:
    return rule_bodies(rows, await warnings_of(session, rows))


async def _saved(session: AsyncSession, saved: rule_sets.Saved) -> SavedRule:
    warnings = await warnings_of(session, [saved.row])
    return saved_rule(saved.row, warnings, saved.verdicts)


async def _changed(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    rule_id: int,
    values: Body,
    reason: str | None,
    *,
    confirmed: bool,
) -> SavedRule:
    now = clock.now()
    saved = await write(
        session,
        caller,
        settings,
        rule_update(rule_id, values),
        lambda: rule_sets.change(session, caller, rule_id, values, now, reason),
        now,
        confirmed=confirmed,
    )
    return await _saved(session, saved)


def _confirmed(data: Body, confirm: bool) -> bool:
    """Return whether a member has seen the figures: a field of the body or of the address says."""
    return confirm or data.get("confirm") is True


async def _sales(session: AsyncSession, rows: Sequence[PricingSale]) -> list[SaleShown]:
    return sale_bodies(rows, await warnings_of(session, rows))


async def _sale(session: AsyncSession, row: PricingSale) -> SaleShown:
    return (await _sales(session, [row]))[0]


BOUNDED = {"session": Provide(provide_bounded_session)}
READING = problems(*BEHIND_A_KEY)
READING_ONE = problems(*BEHIND_A_KEY, errors.NotFound)
READ_BY_OWNER = problems(*READ_BY_OWNERS)
LIMITED = (errors.NeedsReview, errors.ConfirmationNeeded)
PRICING = (*FOR_OWNERS, *LIMITED)
READ_AND_TESTED = (*PRICING, *WITH_JSON_BODY, errors.InvalidRule, errors.RuleTestsFailed)
WRITING = problems(*PRICING, *WITH_JSON_BODY, errors.InvalidRule, errors.InvalidQuery)
WRITING_ONE = problems(
    *PRICING,
    *WITH_JSON_BODY,
    errors.NotFound,
    errors.InvalidRule,
    errors.InvalidQuery,
)
ON_ONE = problems(*PRICING, errors.NotFound)
WITHOUT_QUERY = problems(*PRICING, *WITH_JSON_BODY, errors.InvalidRule)
TESTED_ON_ONE = problems(
    *PRICING,
    errors.NotFound,
    errors.InvalidPayload,
    errors.RuleTestsFailed,
)


@get("/rules", responses=READ_BY_OWNER)
async def list_rules(caller: Caller, session: AsyncSession) -> RuleList:
    """The base rules, by priority; the first that is published and enabled and selects a card
    governs it.
    """
    return RuleList(await _rules(session, await rule_sets.read_all(session, caller)))


@post(
    "/rules",
    opt=WRITES,
    responses=problems(*READ_AND_TESTED, errors.InvalidQuery),
    dependencies=BOUNDED,
)
async def create_rule(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: Body,
    override_reason: str | None = None,
    confirm: bool = False,
) -> SavedRule:
    """A new rule: a draft, directly before the default rule, if the body does not say otherwise.
    Red rule tests refuse one that is published, unless the owner overrides them with a reason.
    """
    now = clock.now()
    saved = await write(
        session,
        caller,
        settings,
        rule_create(data),
        lambda: rule_sets.create(session, caller, data, now, override_reason),
        now,
        confirmed=_confirmed(data, confirm),
    )
    return await _saved(session, saved)


@get(
    "/rules/{rule_id:int}",
    responses=problems(*READ_BY_OWNERS, errors.NotFound),
    dependencies=BOUNDED,
)
async def read_rule(caller: Caller, session: AsyncSession, rule_id: int) -> SavedRule:
    """One rule, as it was answered when it was saved, with what the rule tests say of it now."""
    judged = await rule_sets.read_judged(session, caller, rule_id, clock.now())
    return await _saved(session, judged)


@patch(
    "/rules/{rule_id:int}",
    opt=WRITES,
    responses=problems(*READ_AND_TESTED, errors.InvalidQuery, errors.NotFound),
    dependencies=BOUNDED,
)
async def change_rule(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    rule_id: int,
    data: Body,
    override_reason: str | None = None,
    confirm: bool = False,
) -> SavedRule:
    """Set the fields that the body names. Red rule tests refuse a change of what governs prices,
    unless the owner overrides them with a reason.
    """
    return await _changed(
        session,
        caller,
        settings,
        rule_id,
        data,
        override_reason,
        confirmed=_confirmed(data, confirm),
    )


@delete(
    "/rules/{rule_id:int}",
    status_code=200,
    opt=WRITES,
    responses=TESTED_ON_ONE,
    dependencies=BOUNDED,
)
async def delete_rule(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    rule_id: int,
    override_reason: str | None = None,
    confirm: bool = False,
) -> Deleted:
    """The rule is gone; what it priced keeps its receipts."""
    now = clock.now()
    await write(
        session,
        caller,
        settings,
        rule_delete(rule_id),
        lambda: rule_sets.remove(session, caller, rule_id, now, override_reason),
        now,
        confirmed=confirm,
    )
    return Deleted(True)


@post(
    "/rules/{rule_id:int}/publish",
    status_code=200,
    opt=WRITES,
    responses=problems(
        *PRICING,
        errors.NotFound,
        errors.InvalidPayload,
        errors.InvalidQuery,
        errors.RuleTestsFailed,
    ),
    dependencies=BOUNDED,
)
async def publish_rule(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    rule_id: int,
    override_reason: str | None = None,
    confirm: bool = False,
) -> SavedRule:
    """A draft becomes a live rule from the next run on."""
    values = {"state": "published"}
    return await _changed(
        session, caller, settings, rule_id, values, override_reason, confirmed=confirm
    )


@post(
    "/rules/{rule_id:int}/enable",
    status_code=200,
    opt=WRITES,
    responses=TESTED_ON_ONE,
    dependencies=BOUNDED,
)
async def enable_rule(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    rule_id: int,
    override_reason: str | None = None,
    confirm: bool = False,
) -> SavedRule:
    """The rule governs again, if it is published."""
    values = {"enabled": True}
    return await _changed(
        session, caller, settings, rule_id, values, override_reason, confirmed=confirm
    )


@post(
    "/rules/{rule_id:int}/disable",
    status_code=200,
    opt=WRITES,
    responses=TESTED_ON_ONE,
    dependencies=BOUNDED,
)
async def disable_rule(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    rule_id: int,
    override_reason: str | None = None,
    confirm: bool = False,
) -> SavedRule:
    """The rule governs no card until it is enabled."""
    values = {"enabled": False}
    return await _changed(
        session, caller, settings, rule_id, values, override_reason, confirmed=confirm
    )


@post(
    "/rules/reorder",
    status_code=200,
    opt=WRITES,
    responses=problems(*READ_AND_TESTED),
    dependencies=BOUNDED,
)
async def reorder_rules(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: RuleOrder,
    override_reason: str | None = None,
    confirm: bool = False,
) -> RuleList:
    """Rules in another order of priority; the body names every one of them."""
    now = clock.now()
    rows = await write(
        session,
        caller,
        settings,
        rule_reorder(data.ids),
        lambda: rule_sets.reorder(session, caller, data.ids, now, override_reason),
        now,
        confirmed=confirm or data.confirm,
    )
    return RuleList(await _rules(session, rows))


@post(
    "/presets/{preset:str}",
    status_code=200,
    opt=WRITES,
    responses=TESTED_ON_ONE,
    dependencies=BOUNDED,
)
async def apply_preset(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    preset: str,
    override_reason: str | None = None,
    confirm: bool = False,
) -> SavedRule:
    """premium, competitive, move or buy-box: one ordinary rule, in place of the earlier
    preset's.
    """
    now = clock.now()
    saved = await write(
        session,
        caller,
        settings,
        preset_apply(preset),
        lambda: rule_sets.apply_preset(session, caller, preset, now, override_reason),
        now,
        confirmed=confirm,
    )
    return await _saved(session, saved)


@get("/sales", responses=READING)
async def list_sales(caller: Caller, session: AsyncSession) -> SaleList:
    """Temporary sales, by priority; the first that is active and selects a card applies to it."""
    return SaleList(await _sales(session, await sale_sets.read_sales(session, caller)))


@post("/sales", opt=WRITES, responses=WRITING, dependencies=BOUNDED)
async def create_sale(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: Body,
    confirm: bool = False,
) -> SaleShown:
    """A new sale: name, adjust_bp (-9000 to 0), starts_at and ends_at are needed."""
    now = clock.now()
    row = await write(
        session,
        caller,
        settings,
        sale_create(data),
        lambda: sale_sets.create_sale(session, caller, data, now),
        now,
        confirmed=_confirmed(data, confirm),
    )
    return await _sale(session, row)


@get("/sales/{sale_id:int}", responses=READING_ONE)
async def read_sale(caller: Caller, session: AsyncSession, sale_id: int) -> SaleShown:
    """One sale."""
    return await _sale(session, await sale_sets.read_sale(session, caller, sale_id))


@patch("/sales/{sale_id:int}", opt=WRITES, responses=WRITING_ONE, dependencies=BOUNDED)
async def change_sale(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    sale_id: int,
    data: Body,
    confirm: bool = False,
) -> SaleShown:
    """Set the fields that the body names."""
    now = clock.now()
    row = await write(
        session,
        caller,
        settings,
        sale_update(sale_id, data),
        lambda: sale_sets.change_sale(session, caller, sale_id, data, now),
        now,
        confirmed=_confirmed(data, confirm),
    )
    return await _sale(session, row)


@delete("/sales/{sale_id:int}", status_code=200, opt=WRITES, responses=ON_ONE, dependencies=BOUNDED)
async def delete_sale(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    sale_id: int,
    confirm: bool = False,
) -> Deleted:
    """The sale is gone, from the next run on also from the prices."""
    now = clock.now()
    await write(
        session,
        caller,
        settings,
        sale_delete(sale_id),
        lambda: sale_sets.remove_sale(session, caller, sale_id, now),
        now,
        confirmed=confirm,
    )
    return Deleted(True)


@get("/settings", responses=READ_BY_OWNER)
async def read_pricing_settings(caller: Caller, session: AsyncSession) -> PricingSettings:
    """Show the settings that apply to all rules."""
    return settings_body(await sale_sets.settings_of(session, caller))


@patch("/settings", opt=WRITES, responses=WITHOUT_QUERY, dependencies=BOUNDED)
async def change_pricing_settings(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: Body,
    confirm: bool = False,
) -> PricingSettings:
    """Set the fields that the body names."""
    now = clock.now()
    account = await write(
        session,
        caller,
        settings,
        settings_update(data),
        lambda: sale_sets.change_settings(session, caller, data, now),
        now,
        confirmed=_confirmed(data, confirm),
    )
    return settings_body(account)


@put(
    "/pins/{marketplace_id:int}",
    opt=WRITES,
    responses=problems(*PRICING, *WITH_JSON_BODY, errors.NotFound, errors.InvalidRule),
    dependencies=BOUNDED,
)
async def pin_card(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    marketplace_id: int,
    data: Body,
    confirm: bool = False,
) -> PinnedCard:
    """Fix a card's price: no rule touches it until it is unpinned."""
    now = clock.now()
    price = await write(
        session,
        caller,
        settings,
        pin_set(marketplace_id, data),
        lambda: sale_sets.pin(session, caller, marketplace_id, data, now),
        now,
        confirmed=_confirmed(data, confirm),
    )
    return PinnedCard(marketplace_id, dollars(price))


@delete(
    "/pins/{marketplace_id:int}",
    status_code=200,
    opt=WRITES,
    responses=ON_ONE,
    dependencies=BOUNDED,
)
async def unpin_card(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    marketplace_id: int,
    confirm: bool = False,
) -> Deleted:
    """The rules price the card again."""
    now = clock.now()
    await write(
        session,
        caller,
        settings,
        pin_remove(marketplace_id),
        lambda: sale_sets.unpin(session, caller, marketplace_id, now),
        now,
        confirmed=confirm,
    )
    return Deleted(True)


class PinnedMany(msgspec.Struct):
    """`requested` counts the selected cards. `truncated`: the same request again takes more."""

    changed: int
    requested: int
    truncated: bool


OF_MANY = problems(*PRICING, *WITH_JSON_BODY)


@post(
    "/pins/pin_many",
    status_code=200,
    opt=WRITES,
    responses=OF_MANY,
    dependencies=BOUNDED,
)
async def pin_cards(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: Selection,
    confirm: bool = False,
) -> PinnedMany:
    """Pin the selected cards at the price that they have."""
    now = clock.now()
    pinned = await write(
        session,
        caller,
        settings,
        pins_of("pin", data),
        lambda: pin_many(session, caller, data, now, settings),
        now,
        confirmed=confirm,
    )
    return PinnedMany(*pinned)


@post(
    "/pins/unpin_many",
    status_code=200,
    opt=WRITES,
    responses=OF_MANY,
    dependencies=BOUNDED,
)
async def unpin_cards(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: Selection,
    confirm: bool = False,
) -> PinnedMany:
    """The rules price the selected cards again."""
    now = clock.now()
    pinned = await write(
        session,
        caller,
        settings,
        pins_of("unpin", data),
        lambda: unpin_many(session, caller, data, now, settings),
        now,
        confirmed=confirm,
    )
    return PinnedMany(*pinned)


router = Router(
    path="/pricing",
    route_handlers=[
        list_rules,
        create_rule,
        read_rule,
        change_rule,
        delete_rule,
        publish_rule,
        enable_rule,
        disable_rule,
        reorder_rules,
        apply_preset,
        list_sales,
        create_sale,
        read_sale,
        change_sale,
        delete_sale,
        read_pricing_settings,
        change_pricing_settings,
        pin_card,
        unpin_card,
        pin_cards,
        unpin_cards,
    ],
    tags=["pricing"],
)
