"""Converts a seller's rules, sales and settings between table rows and the engine's values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.platform import errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source, rows_as, rows_last
from cardsync.platform.database.session import SessionReading
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.declared_fields import declared, from_row
from cardsync.prices.engine.preset_rules import preset_rule
from cardsync.prices.engine.rules import Rule, Sale
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.inputs.rule_json import IN_COLUMNS
from cardsync.prices.models import PricingRule, PricingSale

if TYPE_CHECKING:
    from cardsync.prices.engine.run_inputs import Run

SALE_COLUMNS: Final = tuple(one.name for one in declared(Sale) if one.name != "broken")
# The columns of `account` that are pricing settings.
SETTINGS: Final = tuple(
    one.name for one in declared(SellerPricing) if one.name != "awaiting_review"
)
Row = TypeVar("Row", PricingRule, PricingSale)
_CALLED: Final[Mapping[type, str]] = {PricingRule: "rule", PricingSale: "sale"}


def row_of(seller_id: int, rule: Rule, preset: str | None = None) -> PricingRule:
    fields: dict[str, object] = msgspec.to_builtins(rule)
    columns = {name: fields.pop(name) for name in IN_COLUMNS}
    columns.pop("id")
    fields.pop("broken")
    return PricingRule(seller_id=seller_id, preset=preset, settings=fields, **columns)


def rule_of(row: PricingRule) -> Rule:
    fields = {name: getattr(row, name) for name in IN_COLUMNS}
    return msgspec.convert({**row.settings, **fields}, Rule)


async def make_preset_rule(session: AsyncSession, seller_id: int, preset: str) -> None:
    """Add the rule of a preset to the seller's rules."""
    session.add(row_of(seller_id, preset_rule(preset), preset))
    await session.flush()


async def all_rows(session: Source, kind: type[Row], seller_id: int) -> list[Row]:
    """Return the seller's rules or sales, by priority."""
    if isinstance(session, Reading):
        return await rows_as(session, kind, seller_id, "ORDER BY priority, id")
    rows = await session.scalars(
        select(kind).where(kind.seller_id == seller_id).order_by(kind.priority, kind.id)
    )
    return list(rows)


async def one_row(
    source: Source,
    kind: type[Row],
    seller_id: int,
    id: int,
) -> Row:
    """Return the seller's rule or sale with this id, and end a reading. Raise NotFound."""
    if isinstance(source, Reading):
        found = await rows_as(source, kind, seller_id, "AND id = :id", rows_last, id=id)
        row = found[0] if found else None
    else:
        row = await source.scalar(select(kind).where(kind.seller_id == seller_id, kind.id == id))
    if row is None:
        raise errors.NotFound(f"there is no {_CALLED[kind]} {id}")
    return row


async def rules_of(session: Source, seller_id: int) -> list[Rule]:
    return [rule_of(row) for row in await all_rows(session, PricingRule, seller_id)]


def sale_of(row: PricingSale) -> Sale:
    return Sale(**from_row(row, SALE_COLUMNS) | {"keep_never_lower": row.keep_never_lower or False})


async def sales_of(session: Source, seller_id: int) -> list[Sale]:
    return [sale_of(row) for row in await all_rows(session, PricingSale, seller_id)]


async def live_run(session: Source, seller_id: int, now: datetime) -> tuple[Account, Run]:
    """Return the seller's account, which belongs to no session, and its run at this time."""
    reads = session if isinstance(session, Reading) else SessionReading(session)
    account, rules, sales = await at_once(
        account_of(reads, seller_id),
        rules_of(reads, seller_id),
        sales_of(reads, seller_id),
    )
    return account, _run(account, now, rules, sales)


async def account_of(session: Source, seller_id: int) -> Account:
    if isinstance(session, Reading):
        [account] = await rows_as(session, Account, seller_id, "")
        return account
    return await session.get_one(Account, seller_id)


async def run_of(session: AsyncSession, account: Account, now: datetime) -> Run:
    """Return a run with the seller's rules, sales and settings at this time."""
    reads = SessionReading(session)
    rules, sales = await at_once(
        rules_of(reads, account.seller_id), sales_of(reads, account.seller_id)
    )
    return _run(account, now, rules, sales)


def _run(account: Account, now: datetime, rules: list[Rule], sales: list[Sale]) -> Run:
    # The import of polars takes long, and a command that creates a seller needs only the preset
    # rule.
    from cardsync.prices.engine.run_inputs import Run

    return Run(rules, seller_pricing(account), now, sales)


def seller_pricing(account: Account) -> SellerPricing:
    return msgspec.convert(from_row(account, SETTINGS), SellerPricing)
