"""Changes rules, settings or a pin only if their values still equal those that the page showed, so
that nobody overwrites an unseen change of somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors
from cardsync.platform.money import usd
from cardsync.platform.value_types import Json, JsonMapping
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_rows import all_rows, one_row, rule_of
from cardsync.prices.models import PricingRule
from cardsync.prices.rules import rule_sets, sale_sets
from cardsync.prices.rules.rule_forms import own_fields, percent_field
from cardsync.prices.rules.undo_sales import plain_settings


class ChangedMeanwhile(Exception):
    """Refuses a change, because somebody else changed the values meanwhile; `current` has the
    present values.
    """

    def __init__(self, current: JsonMapping) -> None:
        super().__init__("it has changed in the meantime")
        self.current = current


async def change_rule(
    session: AsyncSession,
    caller: Caller,
    rule_id: int,
    shown: Mapping[str, object],
    body: Mapping[str, object],
    now: datetime,
    override_reason: str | None = None,
) -> rule_sets.Saved:
    """Change the rule if it still equals `shown`. Raise ChangedMeanwhile, and the errors of
    `rule_sets.change`.
    """
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    row = await one_row(session, PricingRule, caller.seller_id, rule_id)
    await session.refresh(row)
    current = rule_json.to_json(rule_of(row))
    if own_fields(current) != dict(shown):
        raise ChangedMeanwhile(current)
    return await rule_sets.change(
        session,
        caller,
        rule_id,
        body,
        now,
        override_reason,
    )


async def reorder(
    session: AsyncSession,
    caller: Caller,
    shown: Sequence[int],
    ids: Sequence[int],
    now: datetime,
    override_reason: str | None = None,
) -> list[PricingRule]:
    """Reorder the rules if their order still equals `shown`. Raise ChangedSince, and the errors of
    `rule_sets.reorder`.
    """
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    rows = await all_rows(session, PricingRule, caller.seller_id)
    # The order of guards changes no price, so no page shows it.
    present = [row.id for row in rows if not rule_of(row).guard]
    if present != list(shown):
        raise errors.ChangedSince("the rules are now in a different order; reload them")
    return await rule_sets.reorder(session, caller, ids, now, override_reason)


async def change_settings(
    session: AsyncSession,
    caller: Caller,
    shown: Mapping[str, str],
    body: Mapping[str, object],
    now: datetime,
) -> None:
    """Change the settings if they still equal `shown`. Raise ChangedMeanwhile, and the errors of
    `sale_sets.change_settings`.
    """
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    account = await sale_sets.settings_of(session, caller)
    await session.refresh(account)
    current = settings_texts(plain_settings(account, list(shown)))
    if any(current[name] != text for name, text in shown.items() if name in body):
        raise ChangedMeanwhile(current)
    await sale_sets.change_settings(session, caller, body, now)


_PINNED_SINCE: Final = """
    SELECT price, decided_by FROM price_decision
     WHERE seller_id = :seller AND kind = 'pin' AND marketplace_id = :card AND since > :shown_at
"""


async def pin(
    session: AsyncSession,
    caller: Caller,
    marketplace_id: int,
    shown_at: datetime,
    body: Mapping[str, object],
    now: datetime,
) -> int:
    """Pin the card if nobody has pinned it since the page showed it. Raise ChangedSince, and the
    errors of `sale_sets.pin`.
    """
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    named = {"seller": caller.seller_id, "card": marketplace_id, "shown_at": shown_at}
    if row := (await session.execute(text(_PINNED_SINCE), named)).first():
        price, by = usd(row.price), row.decided_by or "somebody"
        raise errors.ChangedSince(
            f"the price is now pinned at ${price}, by {by}; unpin it, or save yours once more"
        )
    return await sale_sets.pin(session, caller, marketplace_id, body, now)


def settings_texts(values: Mapping[str, object]) -> dict[str, str]:
    """Return the texts of settings for a form. Pure."""
    return {name: _text(name, value) for name, value in values.items()}


def _text(name: str, value: Json) -> str:
    """Return the text of one setting, with basis points in percent."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return percent_field(value) if name.endswith("_bp") else str(value)
