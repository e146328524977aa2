"""Reads the facts of the work list and the shop's figures for Today.

Every statement reads few rows: orders by their indexes and their tally, runs and tasks from the
newest, and the figures that the workers keep (`derived/stock.py`). No statement reads all cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agentwork.task_kinds import ATTEMPTS
from cardsync.cards.exported import NOTHING
from cardsync.database.marketplace_time import PLACED_AT, marketplace_day
from cardsync.database.snapshot_reads import Reading
from cardsync.derived.sales_by_day import BY_ORDER_DATE
from cardsync.orders.pullable import OF_TO_SHIP_STATUS, PULLABLE, TO_SHIP, TO_SHIP_STATUSES
from cardsync.plans.decide_plan import WAITING
from cardsync.pricing.models import PricingRule
from cardsync.pricing.rules.rule_warnings import warnings_of
from cardsync.today import conditions as rules
from cardsync.today.conditions import Facts, FailedTask, Pull, Some, Waiting

FEEDBACKS: Final = 100
# Feedback is looked for among so many of the newest orders.
_AMONG: Final = 2_000
_TASKS_AMONG: Final = 500
_FAILED_FOR: Final = timedelta(days=14)

_TO_PULL = f"""
    SELECT count(*), min({PLACED_AT}), sum(orders.total_amt) FROM orders
     WHERE orders.seller_id = :seller AND {PULLABLE}
"""
# What was not pulled, is still to be shipped, and is not marked as shipped, is left.
_LEFT = f"p.pulled_at IS NULL AND orders.shipped_marked_at IS NULL AND {TO_SHIP}"
_PULL = f"""
    SELECT s.id, s.opened_at, count(p.order_id), count(p.pulled_at),
           count(orders.id) FILTER (WHERE {_LEFT}), min({PLACED_AT}) FILTER (WHERE {_LEFT}),
           sum(orders.total_amt) FILTER (WHERE {_LEFT})
      FROM pull_session s
      LEFT JOIN pull_session_order p ON p.seller_id = s.seller_id AND p.session_id = s.id
      LEFT JOIN orders ON orders.seller_id = p.seller_id AND orders.id = p.order_id
     WHERE s.seller_id = :seller AND s.state = 'open' GROUP BY s.id, s.opened_at
"""
_SHIPPING = f"""
    SELECT orders.shipping_type, sum(orders.orders)::bigint FROM order_tally AS orders
     WHERE orders.seller_id = :seller AND orders.period = 'ever' AND NOT orders.refunded
       AND {OF_TO_SHIP_STATUS}
     GROUP BY orders.shipping_type HAVING sum(orders.orders) > 0 ORDER BY 2 DESC, 1
"""
_SALES = f"""
    {BY_ORDER_DATE}
    SELECT coalesce(sum(orders) FILTER (WHERE day = :today), 0)::bigint,
           coalesce(sum(gross) FILTER (WHERE day = :today), 0),
           coalesce(sum(orders) FILTER (WHERE day >= :month), 0)::bigint,
           coalesce(sum(gross) FILTER (WHERE day >= :month), 0),
           coalesce(sum(orders) FILTER (WHERE day <= :before_to), 0)::bigint,
           coalesce(sum(gross) FILTER (WHERE day <= :before_to), 0)
      FROM sold
"""
_FEEDBACK = """
    SELECT rating, count(*) FROM (
        SELECT feedback_rating AS rating FROM (
            SELECT feedback_rating FROM orders WHERE seller_id = :seller
             ORDER BY order_date DESC NULLS LAST, id DESC LIMIT :among) newest
         WHERE feedback_rating IS NOT NULL LIMIT :feedbacks) last
     GROUP BY rating ORDER BY rating DESC
"""
_UPLOAD = """
    SELECT id, finished_at FROM upload
     WHERE seller_id = :seller AND id = :upload AND state = 'awaiting_review'
"""
_RUN = """
    SELECT id, state, finished_at, upload_id FROM price_run
     WHERE seller_id = :seller AND state IN ('completed', 'awaiting_review')
     ORDER BY finished_at DESC, id DESC LIMIT 1
"""
_IDLE = """
    SELECT rule.name, run.finished_at
      FROM (SELECT started_at, finished_at, summary -> 'rules' AS rules FROM price_run
             WHERE seller_id = :seller AND state = 'completed'
               AND summary -> 'rules' IS NOT NULL
             ORDER BY id DESC LIMIT 1) run
      JOIN pricing_rule rule ON rule.seller_id = :seller AND rule.state = 'published'
       AND rule.enabled AND rule.updated_at < run.started_at
     WHERE NOT run.rules @> to_jsonb(rule.id) ORDER BY rule.priority, rule.id
"""
_TASKS = """
    SELECT kind, since FROM (
        SELECT DISTINCT ON (kind) kind, coalesce(finished_at, claim_expires_at) AS since,
               status = 'failed' OR status = 'claimed' AS failed
          FROM (SELECT * FROM agent_task WHERE seller_id = :seller
                 ORDER BY id DESC LIMIT :tasks) newest
         WHERE status IN ('completed', 'cancelled', 'failed')
            OR status = 'claimed' AND claim_expires_at <= :now AND attempt + 1 >= :attempts
         ORDER BY kind, id DESC) last
     WHERE failed AND since > :failed_after ORDER BY kind
"""
_REJECTED = """
    SELECT count(*), min(coalesce(settled_at, updated_at)), sum(price * quantity)
      FROM quick_add WHERE seller_id = :seller AND status = 'rejected'
"""
_UNANSWERED = """
    SELECT count(*), min(served_at), sum(price * quantity) FROM quick_add
     WHERE seller_id = :seller AND status IN ('published', 'pending')
       AND status = 'pending' AND served_at <= :lost
"""
_PLANS = """
    SELECT count(*), min(created_at), min(expires_at), min(id) FROM agent_plan
     WHERE seller_id = :seller AND status = ANY (CAST(:waiting AS text[])) AND expires_at > :now
"""
# The move of all copies is kept as a whole number of ten-thousandths.
_REVIEWS = """
    SELECT count(*), min(created_at), sum(worth) / 10000.0, min(expires_at) FROM proposal
     WHERE seller_id = :seller AND family = 'review' AND state = 'pending' AND expires_at > :now
"""
_RECOMMENDED = """
    SELECT count(*), min(revision), sum(expected_value) FROM proposal
     WHERE seller_id = :seller AND state = 'pending' AND family = 'price' AND expires_at > :now
"""
_DELETION = "SELECT asked_at, due_at FROM account_deletion WHERE seller_id = :seller"
_UPLOADED = "SELECT EXISTS (SELECT FROM upload WHERE seller_id = :seller)"
_FIGURES = """
    SELECT held, held_since, held_value, dropped, dropped_since, dropped_value,
           asked, asked_since, asked_value, run_id, rises, rises_value, falls, falls_value, seen_at
      FROM shop_figures WHERE seller_id = :seller
"""
_LISTED = """
    SELECT sum(cards)::bigint, sum(copies)::bigint, sum(listed), sum(market), max(seen_at) FROM (
        SELECT DISTINCT ON (product_line) cards, copies, listed, market, seen_at
          FROM listed_value WHERE seller_id = :seller ORDER BY product_line, day DESC) newest
"""
_BY_DAY = """
    SELECT day, product_line, cards, copies, listed, market FROM listed_value
     WHERE seller_id = :seller AND day >= :since
     UNION ALL
    SELECT * FROM (
        SELECT DISTINCT ON (product_line) day, product_line, cards, copies, listed, market
          FROM listed_value WHERE seller_id = :seller AND day < :since
         ORDER BY product_line, day DESC) before
     ORDER BY 1, 2
"""
_MOVERS = """
    SELECT movers_at, movers -> :days FROM shop_figures WHERE seller_id = :seller
"""
_MOVED = """
    SELECT c.id, c.marketplace_id, c.product_name, c.set_name, c.condition_label, c.printing,
           c.language, c.quantity, moved.before, moved.after
      FROM unnest(CAST(:ids AS bigint[]), CAST(:before AS bigint[]), CAST(:after AS bigint[]))
           WITH ORDINALITY AS moved (id, before, after, place)
      JOIN card c ON c.seller_id = :seller AND c.id = moved.id
     ORDER BY moved.place
"""


class Sold(NamedTuple):
    orders: int
    gross: Decimal


class Sales(NamedTuple):
    """Orders that are not cancelled, by the marketplace's days, before refunds and fees."""

    day: date
    today: Sold
    month: Sold
    before_from: date
    before_to: date
    before: Sold


class Listed(NamedTuple):
    cards: int
    copies: int
    listed: Decimal
    market: Decimal
    seen_at: datetime


class Moves(NamedTuple):
    """The last completed pricing run's changes, each amount for all copies."""

    run_id: int
    rises: int
    rises_value: Decimal
    falls: int
    falls_value: Decimal


class DayOfLine(NamedTuple):
    day: date
    product_line: str
    cards: int
    copies: int
    listed: Decimal
    market: Decimal


class Mover(NamedTuple):
    """Prices are ten-thousandths of a dollar."""

    id: int
    marketplace_id: int
    product_name: str
    set_name: str
    condition_label: str
    printing: str
    language: str
    quantity: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Shop:
    facts: Facts
    sales: Sales
    shipping: list[tuple[str, int]]
    feedback: list[tuple[int, int]]
    listed: Listed | None
    moves: Moves | None


async def read_shop(
    session: AsyncSession,
    caller: Caller,
    reading: Reading,
    seen_at: datetime | None,
    now: datetime,
) -> Shop:
    """Read the statuses of orders to ship, then all figures in one message, and what is known of the
    rules.
    """
    today = marketplace_day(now)
    before_from, before_to = rules.same_days_before(today)
    to_ship = await reading.rows(TO_SHIP_STATUSES, {"seller": caller.seller_id})
    values = {
        "seller": caller.seller_id,
        "to_ship_statuses": [status for (status,) in to_ship],
        "now": now,
        "today": today,
        "month": today.replace(day=1),
        "zone": caller.account.time_zone,
        "first_read": before_from,
        "last_read": today,
        "before_to": before_to,
        "among": _AMONG,
        "feedbacks": FEEDBACKS,
        "upload": caller.state.review_upload_id,
        "tasks": _TASKS_AMONG,
        "attempts": ATTEMPTS,
        "failed_after": now - _FAILED_FOR,
        "lost": now - rules.UNANSWERED,
        "waiting": list(WAITING),
    }
    statements = (
        _TO_PULL, _PULL, _SHIPPING, _SALES, _FEEDBACK, _UPLOAD, _RUN, _IDLE, _TASKS, _REJECTED,
        _UNANSWERED, _PLANS, _FIGURES, _LISTED, _DELETION, _UPLOADED, _REVIEWS, _RECOMMENDED,
    )  # fmt: skip
    rows = await reading.together(statements, values)
    found = dict(zip(statements, rows, strict=True))
    [sold], [listed] = found[_SALES], found[_LISTED]
    figures = found[_FIGURES][0] if found[_FIGURES] else None
    broken = await _broken(session, caller) if caller.role == "owner" else ()
    return Shop(
        _facts(caller, found, figures, broken, seen_at, now),
        Sales(today, Sold(*sold[:2]), Sold(*sold[2:4]), before_from, before_to, Sold(*sold[4:6])),
        [(kind, number) for kind, number in found[_SHIPPING]],
        [(rating, number) for rating, number in found[_FEEDBACK]],
        Listed(*listed) if listed[0] is not None else None,
        Moves(*figures[9:14]) if figures and figures[9] is not None else None,
    )


def _facts(
    caller: Caller,
    found: dict[str, list[Any]],
    figures: Sequence[Any] | None,
    broken: tuple[str, ...],
    seen_at: datetime | None,
    now: datetime,
) -> Facts:
    account, state, allowed = caller.account, caller.state, caller.entitlements(now)
    count, oldest, money = found[_TO_PULL][0]
    plans, plans_since, expires_at, plan_id = found[_PLANS][0]
    full = allowed.sync_mode == "full"
    kept = figures or (0, None, None) * 3
    return Facts(
        now,
        to_pull=Some(count, oldest, money, _due(caller, oldest)),
        pull=_pull(caller, found[_PULL][0]) if found[_PULL] else None,
        upload_in_review=Waiting(*found[_UPLOAD][0]) if found[_UPLOAD] else None,
        run_in_review=_run_in_review(found[_RUN]) if full else None,
        held=Some(*kept[:3]),
        reviews=Some(*found[_REVIEWS][0]),
        recommended=Some(*found[_RECOMMENDED][0]),
        price_file=Some(*kept[6:9]) if kept[6] and _waits_for_approval(caller, now) else None,
        failed_tasks=tuple(FailedTask(*row) for row in found[_TASKS]),
        agent_seen_at=seen_at,
        failed_cycles=Some(state.scheduled_failures, state.last_failure_at),
        rejected_listings=Some(*found[_REJECTED][0]),
        unanswered_listings=Some(*found[_UNANSWERED][0]),
        plans=Some(plans, plans_since, None, expires_at),
        plan_id=plan_id if plans == 1 else None,
        broken_rules=broken,
        idle_rules=tuple(name for name, _ in found[_IDLE]),
        idle_since=found[_IDLE][0][1] if found[_IDLE] else None,
        dropped=Some(*kept[3:6]),
        unpaid=not allowed.paid,
        unpaid_since=account.trial_ends_at if account.plan == "trial" else None,
        past_due=account.past_due,
        no_consent=not account.write_consent,
        pauses=tuple(name for name in rules.PAUSES if getattr(account, name)),
        fresh=seen_at is None and not found[_UPLOADED][0][0],
        deletion=(asked[0][0], asked[0][1]) if (asked := found[_DELETION]) else None,
    )


def _due(caller: Caller, oldest: datetime | None) -> datetime | None:
    return rules.ship_by(oldest, caller.account.ship_within_days) if oldest else None


def _pull(caller: Caller, row: Sequence[Any]) -> Pull:
    id, opened_at, orders, pulled, left, oldest, money = row
    return Pull(id, orders, pulled, Some(left, opened_at, money, _due(caller, oldest)))


def _run_in_review(rows: Sequence[Any]) -> Waiting | None:
    """Return the run that came to its end last, if it waits and has no upload of its own."""
    if not rows:
        return None
    [(id, state, finished_at, upload_id)] = rows
    return Waiting(id, finished_at) if state == "awaiting_review" and upload_id is None else None


def _waits_for_approval(caller: Caller, now: datetime) -> bool:
    allowed = caller.entitlements(now)
    in_review_mode = allowed.paid and allowed.sync_mode == "read_only"
    known = caller.state.export_fingerprint
    return in_review_mode and not allowed.upload_approved and known not in (None, NOTHING)


async def _broken(session: AsyncSession, caller: Caller) -> tuple[str, ...]:
    """Return the names of the live rules that cannot do all that they say."""
    live = (PricingRule.state == "published") & PricingRule.enabled
    rows = (
        await session.scalars(
            select(PricingRule)
            .where(PricingRule.seller_id == caller.seller_id, live)
            .order_by(PricingRule.priority, PricingRule.id)
        )
    ).all()
    rule_findings = await warnings_of(session, rows)
    return tuple(row.name for row, warnings in zip(rows, rule_findings, strict=True) if warnings)


async def read_listed(
    reading: Reading,
    caller: Caller,
    days: int,
    now: datetime,
) -> tuple[date, list[DayOfLine]]:
    """Return the first day, and the lines' values from then on; of each line also the newest
    before.
    """
    since = now.astimezone(ZoneInfo(caller.account.time_zone)).date() - timedelta(days=days - 1)
    rows = await reading.rows(_BY_DAY, {"seller": caller.seller_id, "since": since})
    return since, [DayOfLine._make(row) for row in rows]


async def read_movers(
    reading: Reading,
    caller: Caller,
    days: int,
) -> tuple[datetime | None, list[Mover]]:
    """Return when the movers of a period were found, and the cards, the largest first."""
    kept = await reading.rows(_MOVERS, {"seller": caller.seller_id, "days": str(days)})
    if not kept or not kept[0][1]:
        return (kept[0][0] if kept else None), []
    [(found_at, moved)] = kept
    ids, before, after = (list(column) for column in zip(*moved, strict=True))
    values = {"seller": caller.seller_id, "ids": ids, "before": before, "after": after}
    return found_at, [Mover._make(row) for row in await reading.rows(_MOVED, values)]
