"""Finds whether rules that are still drafts would change a price of the seller.

Nothing is read where there is no draft.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.pricing.engine import engine
from cardsync.pricing.engine.rules import Rule
from cardsync.pricing.inputs.cards_to_price import read_stock
from cardsync.pricing.inputs.rule_rows import rules_of, run_of


async def would_change(session: AsyncSession, seller_id: int, now: datetime) -> bool:
    """Whether a card that a draft would govern would be asked for another price than it has."""
    drafts = [rule.id for rule in await rules_of(session, seller_id) if _is_draft(rule)]
    if not drafts:
        return False
    account = await session.get_one(Account, seller_id)
    live = await run_of(session, account, now)
    as_published = [
        replace(rule, state="published") if _is_draft(rule) else rule for rule in live.rules
    ]
    stock = await read_stock(session, account, replace(live, rules=as_published))
    out = await asyncio.to_thread(
        engine.price,
        stock.cards,
        stock.run.rules,
        stock.run.seller,
        stock.run.now,
        stock.run.sales,
    )
    return not out.filter(pl.col("changed") & pl.col("rule_id").is_in(drafts)).is_empty()


def _is_draft(rule: Rule) -> bool:
    return rule.state == "draft" and rule.enabled
