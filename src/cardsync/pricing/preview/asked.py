"""The previews as web processes ask for them, each in a snapshot of its own: these functions may run
in a process beside the web process (`web/heavy_work.py`), so what they take and return is pickled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from cardsync.access.caller import Caller
from cardsync.database.seller_slots import Work
from cardsync.database.session import Database
from cardsync.pricing.inputs.rule_json import RuleFields, SaleFields
from cardsync.pricing.preview import backtest, draft, presets, preview
from cardsync.pricing.preview.draft import Draft
from cardsync.pricing.preview.shown import Backtest, PresetShown, Preview
from cardsync.read_json import Id
from cardsync.settings import Settings
from cardsync.web.made_files import Made, made

Body = Mapping[str, Any]


class PricesAsked(msgspec.Struct):
    """Whole sets of rules and sales in place of the live ones; without them, the live ones with
    drafts.
    """

    rules: list[RuleFields] | None = None
    """All rules, in place of the live ones"""
    sales: list[SaleFields] | None = None
    """All promotions, in place of the live ones"""
    search: str | None = None


class DraftAsked(msgspec.Struct):
    """A draft of a rule; `rule_id` names the rule that it changes."""

    rule: RuleFields
    rule_id: int | None = None
    sample: bool | None = None
    """Price only a part of many cards"""


class DraftOnCardsAsked(msgspec.Struct):
    """A draft of a rule, and the card or the cards to price by it."""

    rule: RuleFields
    rule_id: int | None = None
    marketplace_id: Id | None = None
    search: str | None = None


class PastAsked(msgspec.Struct):
    """Rules on stored days, from one day or moment to another, both included."""

    rules: list[RuleFields]
    """The rules to test"""
    since: str = msgspec.field(name="from")
    until: str = msgspec.field(name="to")
    sales: list[SaleFields] | None = None


async def asked_prices(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    body: Body,
) -> Preview:
    """Return the figures of all cards. Raises InvalidRule, InvalidQuery, InvalidPayload."""
    async with preview.reading(database, caller, settings) as session:
        stock, out = await preview.priced(session, caller, body, now)
        return await preview.figures(session, caller, stock, out)


async def table_of_prices(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    body: Body,
    kind: str,
) -> bytes | Made:
    """Return every card as CSV or Parquet. Raises the same."""
    async with preview.reading(database, caller, settings) as session:
        _, out = await preview.priced(session, caller, body, now)
        return await asyncio.to_thread(lambda: made(preview.every_card(out, kind)))


async def compared_presets(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
) -> list[PresetShown]:
    async with preview.reading(database, caller, settings) as session:
        return await presets.compare(session, caller, now)


async def drafted_rule(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    body: Body,
) -> Draft:
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
        return await draft.preview_draft(session, caller, body, now)


async def past_prices(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    body: Body,
) -> Backtest:
    seconds = settings.backtest_seconds
    async with database.bounded(
        caller.seller_id, seconds, snapshot=True, work=Work.PRICES_ALL
    ) as session:
        most = timedelta(seconds=seconds)
        return await backtest.backtest(session, caller, body, now, most)
