"""Finds the cards in the scope of a rollback, with their earlier prices.

The earlier price depends on the scope. For a run it is the price before the run. For a time it is
the price before the first change since then. For a list it is the price before each card's last
change. For a rule it is the price before the rule's latest consecutive changes; a card that another
rule has priced since is not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state.exported import IMPORTABLE
from cardsync.platform import clock, errors
from cardsync.platform.database.copy import read_rows
from cardsync.platform.read_json import Id, read
from cardsync.platform.value_types import JsonObject
from cardsync.prices.limits import ROLLBACK_DIFF_SHOWN

Scope = JsonObject
SCOPES: Final = ("run_id", "rule_id", "list", "since")

_CHANGES: Final = """
    SELECT card_id, run_id, rule_id, old_price FROM price_change
     WHERE seller_id = :seller AND run_id = ANY (CAST(:runs AS bigint[])) AND card_id > :after
         AND card_id <= :last
"""
_FIRST: Final = f"SELECT DISTINCT ON (card_id) card_id, old_price AS price FROM ({_CHANGES}) p ORDER BY card_id, run_id"
_BEFORE: Final = {
    "run_id": _FIRST,
    "since": _FIRST,
    "list": f"""
        SELECT DISTINCT ON (p.card_id) p.card_id, p.old_price AS price
          FROM ({_CHANGES}) p JOIN card_list_entry e ON e.seller_id = :seller AND e.list_id = :list
              AND e.card_id = p.card_id
         ORDER BY p.card_id, p.run_id DESC
    """,
    "rule_id": f"""
        SELECT DISTINCT ON (card_id) card_id, old_price AS price
          FROM (SELECT card_id, run_id, old_price, count(*) FILTER (WHERE rule_id IS DISTINCT
              FROM :rule_id)
                           OVER (PARTITION BY card_id ORDER BY run_id DESC) AS others
                  FROM ({_CHANGES}) p) newest
         WHERE others = 0 ORDER BY card_id, run_id
    """,
}
# If a card's target is already its price on the marketplace, the card's price is restored, too.
_REACHED: Final = f"""
    SELECT c.id, c.marketplace_id, c.product_name, c.set_name, c.condition_label,
           c.price AS current_price, c.target_price, p.price
      FROM ({{before}}) p JOIN card c ON c.seller_id = :seller AND c.id = p.card_id
     WHERE {IMPORTABLE.format(seller_id=":seller")} AND p.price >= 0.01 AND (c.price IS DISTINCT
         FROM p.price OR c.target_price <> p.price)
"""
_DIFF: Final = f"""
    SELECT *, count(*) OVER () AS cards FROM ({_REACHED}) reached
        ORDER BY marketplace_id LIMIT {ROLLBACK_DIFF_SHOWN}
"""
_MOVES: Final = f"""
    SELECT r.id, r.marketplace_id, c.quantity, (c.market * 10000)::bigint,
           (coalesce(r.target_price, r.current_price) * 10000)::bigint, (r.price * 10000)::bigint
      FROM ({_REACHED}) r JOIN card c ON c.seller_id = :seller AND c.id = r.id
"""
KEEP: Final = f"""
    INSERT INTO price_rollback_card (seller_id, rollback_id, card_id, price, current_price,
        target_price)
    SELECT :seller, :rollback, id, price, current_price, target_price FROM ({_REACHED}) reached
    ON CONFLICT (seller_id, rollback_id, card_id) DO NOTHING
"""
_ALL: Final = 2**63 - 1


async def read_scope(session: AsyncSession, caller: Caller, body: Mapping[str, object]) -> Scope:
    """Return the one scope of a body, in the form in which it is stored. Raises InvalidPayload,
    NotFound.
    """
    caller.must_be_owner()
    seller_id = caller.seller_id
    given = [name for name in SCOPES if body.get(name) is not None]
    if len(given) != 1:
        raise errors.InvalidPayload("exactly one of run_id, rule_id, list and since is needed")
    [name] = given
    value = body[name]
    if name == "since":
        return {"since": _moment(value)}
    if name == "list":
        return {"list": await _list(session, seller_id, read(value, int | str, "list"))}
    if not await session.scalar(
        text(_KNOWN[name]), {"seller": seller_id, "id": read(value, Id, name)}
    ):
        raise errors.NotFound(
            f"there is no {'pricing run' if name == 'run_id' else 'rule'} {value}"
        )
    return {name: value}


# The changes of a deleted rule are still stored.
_KNOWN: Final = {
    "run_id": "SELECT EXISTS (SELECT FROM price_run WHERE seller_id = :seller AND id = :id)",
    "rule_id": """
        SELECT EXISTS (SELECT FROM pricing_rule WHERE seller_id = :seller AND id = :id)
            OR EXISTS (SELECT FROM price_change WHERE seller_id = :seller AND rule_id = :id)
    """,
}


def _moment(value: object) -> str:
    moment = clock.read_moment(value) if isinstance(value, str) else None
    if moment is None:
        raise errors.InvalidPayload("since: must be a time like 2026-11-21T08:00:00Z")
    return clock.rfc3339(moment)


async def _list(session: AsyncSession, seller_id: int, value: int | str) -> int:
    """Return the id of a list that is named by its id or its slug."""
    named = "id = :named" if isinstance(value, int) else "slug = :named"
    found = None
    if isinstance(value, str) or abs(value) < 2**63:
        found = await session.scalar(
            text(
                f"SELECT id FROM card_list WHERE seller_id = :seller AND deleted_at IS NULL AND {named}"
            ),
            {"seller": seller_id, "named": value},
        )
    if found is None:
        raise errors.NotFound(f"there is no list {value}")
    return int(found)


async def is_newest_run(
    session: AsyncSession, seller_id: int, scope: Scope, since: datetime
) -> bool:
    """Return whether the scope is the newest completed run and that run ended after `since`."""
    if "run_id" not in scope:
        return False
    values = {"seller": seller_id, "since": since}
    return bool(scope["run_id"] == await session.scalar(text(_NEWEST), values))


_NEWEST: Final = """
    SELECT CASE WHEN r.finished_at > :since THEN r.id END FROM price_run r
     WHERE r.seller_id = :seller AND r.state = 'completed' ORDER BY r.id DESC LIMIT 1
"""


async def is_lost(session: AsyncSession, seller_id: int, scope: Scope) -> bool:
    """Return whether the scope names a list that was deleted since the request. The cards of such a
    list are no longer known.
    """
    if "list" not in scope:
        return False
    there = "SELECT EXISTS (SELECT FROM card_list WHERE seller_id = :seller AND id = :id AND deleted_at IS NULL)"
    return not await session.scalar(text(there), {"seller": seller_id, "id": scope["list"]})


async def _runs(session: AsyncSession, seller_id: int, scope: Scope) -> list[int]:
    """Return the runs whose changes count. A run that began before `since` and ended after it may
    have changed prices since then.
    """
    if "run_id" in scope:
        return [scope["run_id"]]
    since = clock.read_moment(scope.get("since"))
    found = await session.scalars(
        text("""
            SELECT id FROM price_run WHERE seller_id = :seller
               AND (CAST(:since AS timestamptz) IS NULL OR finished_at IS NULL
                 OR finished_at >= :since)
        """),
        {"seller": seller_id, "since": since},
    )
    return list(found)


async def values_of(
    session: AsyncSession,
    seller_id: int,
    scope: Scope,
    after: int = 0,
    last: int = _ALL,
) -> JsonObject:
    """Return the values of a statement over the scope, for the card ids above `after` and up to
    `last`.
    """
    runs = await _runs(session, seller_id, scope)
    named = {name: value for name, value in scope.items() if name in ("rule_id", "list")}
    return {"seller": seller_id, "runs": runs, "after": after, "last": last, **named}


def statement(form: str, scope: Scope) -> str:
    """Return the statement `form` (`KEEP` or the diff) over the cards of the scope."""
    [name] = scope
    return form.format(before=_BEFORE[name])


async def diff_of(
    session: AsyncSession,
    seller_id: int,
    scope: Scope,
) -> tuple[int, list[JsonObject]]:
    """Return the number of cards that would change, and the first of these cards."""
    values = await values_of(session, seller_id, scope)
    rows = [
        dict(row)
        for row in (await session.execute(text(statement(_DIFF, scope)), values)).mappings()
    ]
    return (rows[0]["cards"] if rows else 0), rows


async def moves_of(session: AsyncSession, seller_id: int, scope: Scope) -> pl.DataFrame:
    """Return the rollback's effect on prices: `id`, `marketplace_id`, `quantity`, `market`, and the
    targets before (`today`) and after (`today_after`), in ten-thousandths.
    """
    values = await values_of(session, seller_id, scope)
    names = ("id", "marketplace_id", "quantity", "market", "today", "today_after")
    schema = dict.fromkeys(names, pl.Int64)
    return await read_rows(session, statement(_MOVES, scope), schema, values)
