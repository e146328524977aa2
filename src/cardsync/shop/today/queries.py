"""Reads the facts of the work list and the shop's figures for Today.

Each statement reads few rows: orders by indexes and stored sums, the newest runs and tasks, and
figures that workers compute and store (`platform/derived/stock.py`). No statement reads all cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.agents.agentwork.task_kinds import ATTEMPTS
from cardsync.agents.seller_state.exported import NOTHING
from cardsync.agents.sync.last_seen import Agent, LastSeen
from cardsync.catalog.catalog_age import INSTALLED, Dated, troubles
from cardsync.catalog.install_state import ONE_SHOP
from cardsync.platform import clock
from cardsync.platform.backups.backup_reports import NEWEST, state_of
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.platform.derived.sales_by_day import PERIODS
from cardsync.platform.money import usd
from cardsync.prices.inputs.rule_rows import all_rows
from cardsync.prices.models import PricingRule
from cardsync.prices.rules.rule_warnings import warnings_of
from cardsync.sales.orders.pullable import (
    IN_OPEN_SESSION,
    MISSING,
    PULLED,
    TO_SHIP,
    TO_SHIP_STATUSES,
    UNSETTLED,
    UNSHIPPED,
)
from cardsync.shop.today import account_conditions
from cardsync.shop.today import conditions as rules
from cardsync.shop.today.schemas import (
    FeedbackBody,
    ListedNow,
    RatingCount,
    RunMoves,
    SalesBody,
    ShippingCount,
    ToShip,
)
from cardsync.shop.today.shop_facts import NONE, Facts, FailedTask, Pending, Pull, Waiting
from cardsync.shop.today.sold_days import DAYS, Sold, sum_sales
from cardsync.shop.waiting.all_waiting import SUMS, values_of

FEEDBACKS: Final = 100
# The number of newest orders that are searched for feedback.
_AMONG: Final = 2_000
_TASKS_AMONG: Final = 500
_RUNS_AMONG: Final = 500
_FAILED_FOR: Final = timedelta(days=14)
# The orders to ship by their shipping: all, the pulled ones, those to pull, and those that are
# ready to ship. The orders of the open pull are part of that pull's condition.
_TO_SHIP = f"""
    SELECT shipping_type, count(*), sum(total_amt), count(*) FILTER (WHERE pulled),
           count(*) FILTER (WHERE to_pull), min(placed_at) FILTER (WHERE to_pull),
           sum(total_amt) FILTER (WHERE to_pull),
           count(*) FILTER (WHERE ready), min(placed_at) FILTER (WHERE ready),
           sum(total_amt) FILTER (WHERE ready)
      FROM (SELECT shipping_type, total_amt, placed_at, pulled, pulled AND NOT in_session AS ready,
                   NOT (aside OR in_session OR pulled OR missing) AS to_pull
              FROM (SELECT orders.shipping_type, orders.total_amt, {PLACED_AT} AS placed_at,
                           orders.pull_dismissed_at IS NOT NULL AS aside,
                           {IN_OPEN_SESSION} AS in_session, {PULLED} AS pulled, {MISSING} AS missing
                      FROM orders WHERE orders.seller_id = :seller AND {UNSHIPPED} OFFSET 0) found
           ) known
     GROUP BY shipping_type ORDER BY 5 DESC, 1
"""
_MISSING = f"""
    SELECT count(*), min(i.missing_at), sum(orders.total_amt), min({PLACED_AT})
      FROM pull_session_item i
      JOIN pull_session s ON s.seller_id = :seller AND s.id = i.session_id
      JOIN orders ON orders.seller_id = :seller AND orders.id = i.order_id
     WHERE i.seller_id = :seller AND {UNSETTLED} AND s.state <> 'cancelled' AND {UNSHIPPED}
"""
# The condition that an order of a pull is neither pulled nor shipped yet.
_UNSHIPPED = f"orders.shipped_marked_at IS NULL AND {TO_SHIP}"
_LEFT = f"p.pulled_at IS NULL AND {_UNSHIPPED}"
_PULL = f"""
    SELECT s.id, s.opened_at, count(p.order_id), count(p.pulled_at),
           count(orders.id) FILTER (WHERE {_LEFT}), min({PLACED_AT}) FILTER (WHERE {_LEFT}),
           sum(orders.total_amt) FILTER (WHERE {_LEFT}),
           count(orders.id) FILTER (WHERE {_UNSHIPPED})
      FROM pull_session s
      LEFT JOIN pull_session_order p ON p.seller_id = s.seller_id AND p.session_id = s.id
      LEFT JOIN orders ON orders.seller_id = p.seller_id AND orders.id = p.order_id
     WHERE s.seller_id = :seller AND s.state = 'open' GROUP BY s.id, s.opened_at
"""
_FEEDBACK = """
    SELECT rating, count(*) FROM (
        SELECT feedback_rating AS rating FROM (
            SELECT feedback_rating FROM orders WHERE seller_id = :seller
             ORDER BY order_date DESC NULLS LAST, id DESC LIMIT :among) newest
         WHERE feedback_rating IS NOT NULL LIMIT :feedbacks) last
     GROUP BY rating ORDER BY rating DESC
"""
# Runs of uploads do not name their rules, so only the newest runs are searched: a shop may have had
# thousands of uploads since another run.
_IDLE = """
    SELECT rule.name, run.finished_at
      FROM (SELECT started_at, finished_at, summary -> 'rules' AS rules
              FROM (SELECT * FROM price_run WHERE seller_id = :seller
                     ORDER BY id DESC LIMIT :runs) newest
             WHERE state = 'completed' AND summary -> 'rules' IS NOT NULL
             ORDER BY id DESC LIMIT 1) run
      JOIN pricing_rule rule ON rule.seller_id = :seller AND rule.state = 'published'
       AND rule.enabled AND rule.updated_at < run.started_at
       AND rule.settings -> 'guard' IS DISTINCT FROM 'true'::jsonb
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
_OFFERS = """
    SELECT count(*), min(updated_at), NULL::numeric, NULL::timestamptz FROM buying_offer
     WHERE seller_id = :seller AND (state IN ('accepted', 'received', 'paid')
        OR (state = 'draft' AND source = 'buylist'))
"""
_OFFERS_EXPIRING = """
    SELECT count(*), min(offered_at), NULL::numeric, min(expires_at) FROM buying_offer
     WHERE seller_id = :seller AND state = 'offered' AND expires_at > :now
       AND expires_at <= CAST(:now AS timestamptz) + interval '1 day'
"""
_DELETION = "SELECT asked_at, due_at FROM account_deletion WHERE seller_id = :seller"
# The outcomes of the installation's backups, which only operators see.
_BACKUPS = f"""
    SELECT newest.* FROM ({NEWEST}) newest
     WHERE EXISTS (SELECT FROM installation_operator o JOIN member m ON m.id = o.member_id
                    WHERE m.seller_id = :seller)
"""
# The state of the catalogs, which only operators and the owner of the installation's only shop see.
_CATALOGS = f"""
    SELECT installed.* FROM ({INSTALLED}) installed
     WHERE (EXISTS (SELECT FROM installation_operator o JOIN member m ON m.id = o.member_id
                     WHERE m.seller_id = :seller)
            OR {ONE_SHOP})
       AND NOT EXISTS (SELECT FROM catalog_updates WHERE NOT tells)
     ORDER BY game, source
"""
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


@dataclass(frozen=True, slots=True)
class Shop:
    facts: Facts
    sales: SalesBody
    to_ship: ToShip
    shipping: list[ShippingCount]
    feedback: FeedbackBody
    listed: ListedNow | None
    moves: RunMoves | None


# The statements for the conditions, and the statements for the other figures of the page.
_OF_FACTS: Final = (
    _TO_SHIP,
    _PULL,
    _MISSING,
    SUMS,
    _IDLE,
    _TASKS,
    _REJECTED,
    _UNANSWERED,
    _OFFERS,
    _OFFERS_EXPIRING,
    _FIGURES,
    _DELETION,
    _UPLOADED,
    _BACKUPS,
    _CATALOGS,
)
_OF_FIGURES: Final = (PERIODS, _FEEDBACK, _LISTED)
_TYPES: Final = {
    "seller": "bigint",
    "now": "timestamptz",
    "full": "boolean",
    "waiting": "text[]",
    "zone": "text",
    **dict.fromkeys(("first", "last", "first_read", "last_read"), "date"),
    **dict.fromkeys(("among", "feedbacks", "tasks", "runs", "attempts"), "bigint"),
    **dict.fromkeys(("failed_after", "lost"), "timestamptz"),
}
# To parse and plan the statements takes PostgreSQL as long as to run them. Those with the statuses
# to ship are planned for their values, because a plan for any statuses reads all orders.
_PLANNED: Final = {
    statement: Planned(f"today_{number}", statement, _TYPES)
    for number, statement in enumerate((*_OF_FACTS, *_OF_FIGURES))
    if ":to_ship_statuses" not in statement
}


async def read_facts(
    caller: Caller,
    reading: Reading,
    agent: Agent | None,
    now: datetime,
    renewal_days: int,
) -> Facts:
    """Read the facts for the conditions, without the other figures of the page."""
    found, broken = await at_once(_found(_OF_FACTS, caller, reading, now), _broken(reading, caller))
    return _facts(caller, found, broken, agent, now, renewal_days)


async def read_shop(
    caller: Caller,
    reading: Reading,
    seen: LastSeen,
    now: datetime,
    renewal_days: int,
) -> tuple[Shop, Agent | None]:
    """Read the facts for the conditions and the figures of the page, and the agent."""
    found, broken, agent = await at_once(
        _found((*_OF_FACTS, *_OF_FIGURES), caller, reading, now),
        _broken(reading, caller),
        seen.agent(reading, caller),
    )
    [listed] = found[_LISTED]
    figures = found[_FIGURES][0] if found[_FIGURES] else None
    shop = Shop(
        _facts(caller, found, broken, agent, now, renewal_days),
        sum_sales([Sold(*row[:3]) for row in found[PERIODS]], caller.today(now)),
        _to_ship(caller, found),
        [ShippingCount(row[0], row[4]) for row in found[_TO_SHIP] if row[4]],
        _feedback([RatingCount(*row) for row in found[_FEEDBACK]]),
        _listed(*listed) if listed[0] is not None else None,
        _moves(*figures[9:14]) if figures and figures[9] is not None else None,
    )
    return shop, agent


async def _found(
    statements: Sequence[str], caller: Caller, reading: Reading, now: datetime
) -> dict[str, list[TupleRow]]:
    today = caller.today(now)
    before_from, _ = rules.same_days_before(today)
    first = min(before_from, today - timedelta(days=DAYS - 1))
    to_ship = await reading.rows(TO_SHIP_STATUSES, {"seller": caller.seller_id})
    values = {
        **values_of(caller.seller_id, now, full=caller.entitlements(now).sync_mode == "full"),
        "to_ship_statuses": [status for (status,) in to_ship],
        "now": now,
        "today": today,
        "zone": caller.account.time_zone,
        "first": first,
        "last": today,
        "first_read": first - timedelta(days=1),
        "last_read": today + timedelta(days=1),
        "among": _AMONG,
        "feedbacks": FEEDBACKS,
        "tasks": _TASKS_AMONG,
        "runs": _RUNS_AMONG,
        "attempts": ATTEMPTS,
        "failed_after": now - _FAILED_FOR,
        "lost": now - rules.UNANSWERED,
    }
    rows = await reading.together([_PLANNED.get(one, one) for one in statements], values)
    return dict(zip(statements, rows, strict=True))


def _to_ship(caller: Caller, found: dict[str, list[TupleRow]]) -> ToShip:
    pull_id, in_pull = None, 0
    if found[_PULL]:
        pull_id, *_, in_pull = found[_PULL][0]
    by_shipping = found[_TO_SHIP]
    orders, pulled, to_pull = (sum(row[place] for row in by_shipping) for place in (1, 3, 4))
    total = caller.revenue(sum((row[2] or Decimal() for row in by_shipping), Decimal()))
    missing = found[_MISSING][0][0]
    worth = usd(total)
    return ToShip(orders, to_pull, in_pull, pulled, missing, pull_id, worth)


def _feedback(ratings: list[RatingCount]) -> FeedbackBody:
    count = sum(one.count for one in ratings)
    total = sum(one.rating * one.count for one in ratings)
    return FeedbackBody(count, round(total / count, 2) if count else None, ratings)


def _listed(
    cards: int, copies: int, listed: Decimal, market: Decimal, seen_at: datetime
) -> ListedNow:
    return ListedNow(cards, copies, usd(listed), usd(market), clock.rfc3339(seen_at))


def _moves(
    run_id: int, rises: int, rises_value: Decimal, falls: int, falls_value: Decimal
) -> RunMoves:
    return RunMoves(run_id, rises, usd(rises_value), falls, usd(falls_value))


def _facts(
    caller: Caller,
    found: dict[str, list[TupleRow]],
    broken: tuple[str, ...],
    agent: Agent | None,
    now: datetime,
    renewal_days: int,
) -> Facts:
    account, state, allowed = caller.account, caller.state, caller.entitlements(now)
    lost, lost_since, of_lost, lost_of = found[_MISSING][0]
    waits = {kind: Pending(*sums) for kind, *sums, _ in found[SUMS]}
    first = {kind: id for kind, *_, id in found[SUMS]}
    kept = found[_FIGURES][0] if found[_FIGURES] else (0, None, None) * 3
    return Facts(
        now,
        to_pull=_some(caller, [row[4:7] for row in found[_TO_SHIP]]),
        pull=_pull(caller, found[_PULL][0]) if found[_PULL] else None,
        to_ship=_some(caller, [row[7:] for row in found[_TO_SHIP]]),
        missing=Pending(lost, lost_since, of_lost, _due(caller, lost_of)),
        upload_in_review=_in_review(waits, first, "upload"),
        run_in_review=_in_review(waits, first, "run"),
        held=Pending(*kept[:3]),
        reviews=waits.get("price", NONE),
        recommended=waits.get("suggestion", NONE)._replace(deadline=None),
        price_file=Pending(*kept[6:9]) if kept[6] and _waits_for_approval(caller, now) else None,
        failed_tasks=tuple(FailedTask(*row) for row in found[_TASKS]),
        agent_seen_at=agent.last_seen_at if agent else None,
        turn=agent.turn if agent else None,
        failed_cycles=Pending(state.scheduled_failures, state.last_failure_at),
        rejected_listings=Pending(*found[_REJECTED][0]),
        unanswered_listings=Pending(*found[_UNANSWERED][0]),
        plans=(plans := waits.get("plan", NONE))._replace(money=None),
        offers=Pending(*found[_OFFERS][0]),
        offers_expiring=Pending(*found[_OFFERS_EXPIRING][0]),
        plan_id=first["plan"] if plans.number == 1 else None,
        broken_rules=broken,
        idle_rules=tuple(name for name, _ in found[_IDLE]),
        idle_since=found[_IDLE][0][1] if found[_IDLE] else None,
        dropped=Pending(*kept[3:6]),
        unpaid=not allowed.paid,
        unpaid_since=account.trial_ends_at if account.plan == "trial" else None,
        past_due=account.past_due,
        no_consent=not account.write_consent,
        pauses=tuple(name for name in account_conditions.PAUSES if getattr(account, name)),
        fresh=agent is None and not found[_UPLOADED][0][0],
        deletion=(asked[0][0], asked[0][1]) if (asked := found[_DELETION]) else None,
        backup=state_of(found[_BACKUPS], now).wrong,
        catalogs=tuple(troubles([Dated(*row) for row in found[_CATALOGS]], now, renewal_days)),
    )


def _in_review(waits: dict[str, Pending], ids: dict[str, int], kind: str) -> Waiting | None:
    return Waiting(ids[kind], waits[kind].since) if kind in waits else None


def _due(caller: Caller, oldest: datetime | None) -> datetime | None:
    return rules.ship_by(oldest, caller.account.ship_within_days) if oldest else None


def _some(caller: Caller, parts: Sequence[TupleRow]) -> Pending:
    """Return the number of orders in the parts (number, oldest, money), with the deadline of the
    oldest order.
    """
    numbers, times, sums = zip(*parts, strict=True) if parts else ((), (), ())
    oldest = min((time for time in times if time is not None), default=None)
    known = [money for money in sums if money is not None]
    return Pending(sum(numbers), oldest, sum(known) if known else None, _due(caller, oldest))


def _pull(caller: Caller, row: TupleRow) -> Pull:
    id, opened_at, orders, pulled, left, oldest, money, *_ = row
    return Pull(id, orders, pulled, Pending(left, opened_at, money, _due(caller, oldest)))


def _waits_for_approval(caller: Caller, now: datetime) -> bool:
    allowed = caller.entitlements(now)
    in_review_mode = allowed.paid and allowed.sync_mode == "read_only"
    known = caller.state.export_fingerprint
    return in_review_mode and not allowed.upload_approved and known not in (None, NOTHING)


async def _broken(reading: Reading, caller: Caller) -> tuple[str, ...]:
    """Return the names of the live pricing rules with warnings, for owners."""
    if caller.role != "owner":
        return ()
    stored = await all_rows(reading, PricingRule, caller.seller_id)
    rows = [row for row in stored if row.state == "published" and row.enabled]
    rule_findings = await warnings_of(reading, rows)
    return tuple(row.name for row, warnings in zip(rows, rule_findings, strict=True) if warnings)
