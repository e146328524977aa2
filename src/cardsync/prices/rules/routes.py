"""HTTP routes of pricing's rules, sales, pins and settings.

Bodies are read field by field (`inputs/rule_json.py`), so that an error names its field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch, post, put
from litestar.di import Provide
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors
from cardsync.platform.described import Like
from cardsync.platform.money import dollars
from cardsync.platform.value_types import HandlerOptions, JsonObject
from cardsync.prices.inputs.rule_file import SettingFields
from cardsync.prices.inputs.rule_json import SALE_NEEDS, RuleFields, SaleFields
from cardsync.prices.models import PricingRule, PricingSale
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING as PROVIDED
from cardsync.prices.plans.writer import Writer
from cardsync.prices.rules import rule_sets, sale_sets
from cardsync.prices.rules.rule_warnings import warnings_of
from cardsync.prices.rules.schemas import (
    PinnedCard,
    PricingRuleShown,
    PricingSettings,
    RuleList,
    SaleList,
    SaleShown,
    SavedRule,
    rule_bodies,
    saved_rule,
    settings_body,
)
from cardsync.stock.cards.bulk_selection import Selection
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    Deleted,
    problems,
    provide_bounded_session,
)

Body = JsonObject


class RuleOrder(msgspec.Struct):
    """The id of every rule, the highest priority first; the default rule keeps its priority."""

    ids: list[int]
    confirm: bool = False


async def _rules(session: AsyncSession, rows: Sequence[PricingRule]) -> list[PricingRuleShown]:
    return rule_bodies(rows, await warnings_of(session, rows))


async def _saved(session: AsyncSession, saved: rule_sets.Saved) -> SavedRule:
    warnings = await warnings_of(session, [saved.row])
    return saved_rule(saved.row, warnings, saved.verdicts)


async def _switched(writer: Writer, rule_id: int, values: Body, reason: str | None) -> SavedRule:
    saved = await writes.change_rule(writer, rule_id, values, reason)
    return await _saved(writer.session, saved)


async def _sale(session: AsyncSession, caller: Caller, row: PricingSale) -> SaleShown:
    return (await sale_sets.shown_sales(session, caller, [row]))[0]


WRITE: HandlerOptions = {"opt": WRITES, "dependencies": PROVIDED}
ACT: HandlerOptions = WRITE | {"status_code": 200}
BOUNDED = {"session": Provide(provide_bounded_session)}
READING = problems(*BEHIND_A_KEY)
READING_ONE = problems(*BEHIND_A_KEY, errors.NotFound)
READ_BY_OWNER = problems(*READ_BY_OWNERS)
LIMITED = (errors.NeedsReview, errors.RefusedByGrant, errors.ConfirmationNeeded)
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
    """List the rules by priority. The first published and enabled rule that selects a card governs
    it.
    """
    return RuleList(await _rules(session, await rule_sets.read_all(session, caller)))


@post("/rules", **WRITE, responses=problems(*READ_AND_TESTED, errors.InvalidQuery))
async def create_rule(
    writer: Writer,
    data: Annotated[Body, Like(RuleFields, "name")],
    override_reason: str | None = None,
) -> SavedRule:
    """Create a rule: by default a draft, directly before the default rule. Red rule tests refuse a
    published rule, unless the owner overrides them with a reason.
    """
    return await _saved(writer.session, await writes.create_rule(writer, data, override_reason))


@get(
    "/rules/{rule_id:int}",
    responses=problems(*READ_BY_OWNERS, errors.NotFound),
    dependencies=BOUNDED,
)
async def read_rule(caller: Caller, session: AsyncSession, rule_id: int) -> SavedRule:
    """Return one rule, with the present results of the rule tests."""
    judged = await rule_sets.read_judged(session, caller, rule_id, clock.now())
    return await _saved(session, judged)


@patch(
    "/rules/{rule_id:int}",
    **WRITE,
    responses=problems(*READ_AND_TESTED, errors.InvalidQuery, errors.NotFound),
)
async def change_rule(
    writer: Writer,
    rule_id: int,
    data: Annotated[Body, Like(RuleFields)],
    override_reason: str | None = None,
) -> SavedRule:
    """Set the fields that the body names. Red rule tests refuse a change of the live rules, unless
    the owner overrides them with a reason.
    """
    return await _switched(writer, rule_id, data, override_reason)


@delete("/rules/{rule_id:int}", **ACT, responses=TESTED_ON_ONE)
async def delete_rule(writer: Writer, rule_id: int, override_reason: str | None = None) -> Deleted:
    """Delete a rule; the receipts of its prices stay."""
    await writes.remove_rule(writer, rule_id, override_reason)
    return Deleted(True)


@post(
    "/rules/{rule_id:int}/publish",
    **ACT,
    responses=problems(
        *PRICING,
        errors.NotFound,
        errors.InvalidPayload,
        errors.InvalidQuery,
        errors.RuleTestsFailed,
    ),
)
async def publish_rule(
    writer: Writer, rule_id: int, override_reason: str | None = None
) -> SavedRule:
    """Publish a draft: the rule is live from the next run on."""
    return await _switched(writer, rule_id, {"state": "published"}, override_reason)


@post("/rules/{rule_id:int}/enable", **ACT, responses=TESTED_ON_ONE)
async def enable_rule(
    writer: Writer, rule_id: int, override_reason: str | None = None
) -> SavedRule:
    """Enable a rule: it governs cards again, if it is published."""
    return await _switched(writer, rule_id, {"enabled": True}, override_reason)


@post("/rules/{rule_id:int}/disable", **ACT, responses=TESTED_ON_ONE)
async def disable_rule(
    writer: Writer, rule_id: int, override_reason: str | None = None
) -> SavedRule:
    """Disable a rule: it governs no card until it is enabled again."""
    return await _switched(writer, rule_id, {"enabled": False}, override_reason)


@post("/rules/reorder", **ACT, responses=problems(*READ_AND_TESTED))
async def reorder_rules(
    writer: Writer, data: RuleOrder, override_reason: str | None = None
) -> RuleList:
    """Change the order of priority; the body names every rule."""
    sure = writer._replace(confirmed=writer.confirmed or data.confirm)
    rows = await writes.reorder_rules(sure, data.ids, override_reason)
    return RuleList(await _rules(writer.session, rows))


@post("/presets/{preset:str}", **ACT, responses=TESTED_ON_ONE)
async def apply_preset(
    writer: Writer, preset: str, override_reason: str | None = None
) -> SavedRule:
    """Apply the preset premium, competitive, move or buy-box: its rule replaces the rule of the
    earlier preset.
    """
    return await _saved(writer.session, await writes.apply_preset(writer, preset, override_reason))


@get("/sales", responses=READING)
async def list_sales(caller: Caller, session: AsyncSession) -> SaleList:
    """List the temporary sales by priority. The first active sale that selects a card applies to
    it.
    """
    stored = await sale_sets.read_sales(session, caller)
    return SaleList(await sale_sets.shown_sales(session, caller, stored))


@post("/sales", **WRITE, responses=WRITING)
async def create_sale(
    writer: Writer,
    data: Annotated[Body, Like(SaleFields, *SALE_NEEDS)],
) -> SaleShown:
    """Create a sale; name, adjust_bp (-9000 to 0), starts_at and ends_at are required."""
    return await _sale(writer.session, writer.caller, await writes.create_sale(writer, data))


@get("/sales/{sale_id:int}", responses=READING_ONE)
async def read_sale(caller: Caller, session: AsyncSession, sale_id: int) -> SaleShown:
    """Return one sale."""
    return await _sale(session, caller, await sale_sets.read_sale(session, caller, sale_id))


@patch("/sales/{sale_id:int}", **WRITE, responses=WRITING_ONE)
async def change_sale(
    writer: Writer, sale_id: int, data: Annotated[Body, Like(SaleFields)]
) -> SaleShown:
    """Set the fields that the body names."""
    changed = await writes.change_sale(writer, sale_id, data)
    return await _sale(writer.session, writer.caller, changed)


@delete("/sales/{sale_id:int}", **ACT, responses=ON_ONE)
async def delete_sale(writer: Writer, sale_id: int) -> Deleted:
    """Delete a sale; the next run removes it from the prices."""
    await writes.remove_sale(writer, sale_id)
    return Deleted(True)


@get("/settings", responses=READ_BY_OWNER)
async def read_pricing_settings(caller: Caller, session: AsyncSession) -> PricingSettings:
    """Show the settings that apply to all rules."""
    return settings_body(await sale_sets.settings_of(session, caller))


@patch("/settings", **WRITE, responses=WITHOUT_QUERY)
async def change_pricing_settings(
    writer: Writer, data: Annotated[Body, Like(SettingFields)]
) -> PricingSettings:
    """Set the fields that the body names."""
    return settings_body(await writes.change_settings(writer, data))


@put(
    "/pins/{marketplace_id:int}",
    **WRITE,
    responses=problems(*PRICING, *WITH_JSON_BODY, errors.NotFound, errors.InvalidRule),
)
async def pin_card(
    writer: Writer, marketplace_id: int, data: Annotated[Body, Like(sale_sets.PinFields, "price")]
) -> PinnedCard:
    """Fix a card's price: no rule touches it until it is unpinned."""
    price = await writes.pin(writer, marketplace_id, data)
    return PinnedCard(marketplace_id, dollars(price))


@delete("/pins/{marketplace_id:int}", **ACT, responses=ON_ONE)
async def unpin_card(writer: Writer, marketplace_id: int) -> Deleted:
    """Unpin a card: the rules price it again."""
    await writes.unpin(writer, marketplace_id)
    return Deleted(True)


class PinnedMany(msgspec.Struct):
    """`requested` counts the selected cards. `truncated`: more cards are selected; the same request
    again changes them.
    """

    changed: int
    """Number of cards whose pin is new, changed or removed"""
    requested: int
    truncated: bool


OF_MANY = problems(*PRICING, *WITH_JSON_BODY)


@post("/pins/pin_many", **ACT, responses=OF_MANY)
async def pin_cards(writer: Writer, data: Selection) -> PinnedMany:
    """Pin the selected cards at their current prices."""
    return PinnedMany(*await writes.pin_many(writer, data))


@post("/pins/unpin_many", **ACT, responses=OF_MANY)
async def unpin_cards(writer: Writer, data: Selection) -> PinnedMany:
    """Unpin the selected cards: the rules price them again."""
    return PinnedMany(*await writes.unpin_many(writer, data))


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
