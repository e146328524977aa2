"""Finds the conditions that make up a shop's work list, the most urgent first. Pure.

A condition lasts as long as its facts do, and there is one of each kind (of tasks and rules one for
each kind of task and for each finding). It begins at `since`, as far as that is known, and ends by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, NamedTuple

Severity = Literal["bad", "warn", "info"]
Kind = Literal[
    "orders_to_pull",
    "pull_under_way",
    "upload_in_review",
    "run_in_review",
    "prices_held",
    "prices_to_review",
    "prices_recommended",
    "price_file_to_approve",
    "task_failed",
    "agent_silent",
    "sync_failing",
    "listings_rejected",
    "listings_unanswered",
    "plans_waiting",
    "rules_broken",
    "rules_never_match",
    "cards_dropped",
    "account_to_be_deleted",
    "set_up_unfinished",
    "payment_past_due",
    "plan_unpaid",
    "consent_missing",
    "auto_sync_paused",
    "automatic_pricing_paused",
]
_RANK: Final = {"bad": 0, "warn": 1, "info": 2}
SOON: Final = timedelta(days=1)
SILENT: Final = timedelta(hours=2)
SILENT_LONG: Final = timedelta(days=1)
# Without an answer for so long, the answer to a file of new listings counts as lost.
UNANSWERED: Final = timedelta(hours=1)
_SATURDAY: Final = 5
_LATE: Final = "; the oldest is past its shipping deadline."

# The pages that do the next steps, where a capability may still bring one of its own.
PRICE_FILE: Final = "/sync/prices"
FAILED_TASKS: Final = "/sync?tasks=failed"
REJECTED: Final = "/add-cards?status=rejected"
UNANSWERED_PAGE: Final = "/add-cards/recover"
RULES: Final = "/activity?action=pricing"

TASKS: Final = {
    "refresh_orders": "fetching new orders",
    "backfill_orders": "fetching the orders of earlier years",
    "backfill_sales_report": "fetching the sales reports",
    "apply_price_updates": "importing the prices",
    "apply_rollback": "importing a rollback",
    "quick_add_listing": "importing new listings",
    "refresh_account": "refreshing the account",
}
PAUSES: Final[dict[Kind, str]] = {
    "auto_sync_paused": "The automatic sync is paused: nothing runs until somebody asks for it.",
    "automatic_pricing_paused": "Automatic pricing is paused: no price goes to the marketplace.",
}


class Some(NamedTuple):
    """A number of things: since when there are any, what they are worth, and by when somebody has
    to act.
    """

    number: int
    since: datetime | None = None
    money: Decimal | None = None
    deadline: datetime | None = None


NONE: Final = Some(0)


class FailedTask(NamedTuple):
    kind: str
    since: datetime | None


class Pull(NamedTuple):
    """The open pull; `left` is what it has still to pull, and ship."""

    id: int
    orders: int
    pulled: int
    left: Some


class Waiting(NamedTuple):
    """An upload or a pricing run that waits for the owner's word."""

    id: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts hold what is known of a shop at a moment."""

    now: datetime
    to_pull: Some = NONE
    pull: Pull | None = None
    upload_in_review: Waiting | None = None
    run_in_review: Waiting | None = None
    held: Some = NONE
    # Prices that wait for the owner's word, and recommended ones with what they may bring.
    reviews: Some = NONE
    recommended: Some = NONE
    price_file: Some | None = None
    failed_tasks: tuple[FailedTask, ...] = ()
    agent_seen_at: datetime | None = None
    failed_cycles: Some = NONE
    rejected_listings: Some = NONE
    unanswered_listings: Some = NONE
    plans: Some = NONE
    # The only plan that waits, if it is one.
    plan_id: int | None = None
    broken_rules: tuple[str, ...] = ()
    idle_rules: tuple[str, ...] = ()
    idle_since: datetime | None = None
    dropped: Some = NONE
    unpaid: bool = False
    unpaid_since: datetime | None = None
    past_due: bool = False
    no_consent: bool = False
    pauses: tuple[Kind, ...] = ()
    # No upload and no agent has come yet.
    fresh: bool = False
    # Since when, and by when, if the account is to be deleted.
    deletion: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """`label` and `path` are the next step; staff may not do that of an owner's condition."""

    kind: Kind
    severity: Severity
    sentence: str
    label: str
    path: str
    since: datetime | None = None
    money: Decimal | None = None
    deadline: datetime | None = None
    count: int = 1
    subject: int | None = None
    owner_only: bool = True


def conditions(facts: Facts, *, owner: bool) -> list[Condition]:
    """Return the conditions that hold: the bad ones first, then those with a deadline, the nearest
    first, and then by severity and money.
    """
    found = [one for rule in _RULES for one in rule(facts)]
    return sorted((one for one in found if owner or not one.owner_only), key=_urgency)


def _urgency(one: Condition) -> tuple[bool, float, int, Decimal, str, str]:
    at = one.deadline.timestamp() if one.deadline else math.inf
    money = one.money or Decimal()
    rank = _RANK[one.severity]
    return one.severity != "bad", at, rank, -money, one.kind, one.sentence


def _by(deadline: datetime | None, now: datetime) -> Severity:
    """Return how urgent it is to ship by a deadline."""
    if deadline is None or deadline > now + SOON:
        return "info"
    return "bad" if deadline <= now else "warn"


def ship_by(placed_at: datetime, days: int) -> datetime:
    """Return the end of an order's time: so many working days after it was placed."""
    due, left = placed_at, days
    while left:
        due += timedelta(days=1)
        left -= due.weekday() < _SATURDAY
    return due


def same_days_before(today: date) -> tuple[date, date]:
    """Return the first day of the month before, and the day in it that has today's number; the
    last one if the month is shorter.
    """
    last = today.replace(day=1) - timedelta(days=1)
    return last.replace(day=1), last.replace(day=min(today.day, last.day))


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"“{name}”" for name in names[:3]) + (", …" if len(names) > 3 else "")


def _to_pull(facts: Facts) -> Iterator[Condition]:
    some = facts.to_pull
    if not some.number:
        return
    severity = _by(some.deadline, facts.now)
    waits = "waits" if some.number == 1 else "wait"
    sentence = f"{counted(some.number, 'order', 'orders')} {waits} to be pulled"
    yield Condition(
        "orders_to_pull",
        severity,
        f"{sentence}{_LATE if severity == 'bad' else '.'}",
        "See the orders",
        "/orders?pull_session=none&direction=asc",
        some.since,
        some.money,
        some.deadline,
        some.number,
        owner_only=False,
    )


def _pull(facts: Facts) -> Iterator[Condition]:
    pull = facts.pull
    if pull is None:
        return
    left = pull.left
    severity = _by(left.deadline, facts.now)
    sentence = (
        f"Pull {pull.id}: {pull.pulled:,} of {counted(pull.orders, 'order', 'orders')} pulled"
    )
    yield Condition(
        "pull_under_way",
        severity,
        f"{sentence}{_LATE if severity == 'bad' else '.'}",
        "Continue the pull" if left.number else "Complete the pull",
        f"/pulls/{pull.id}",
        left.since,
        left.money,
        left.deadline,
        left.number,
        pull.id,
        owner_only=False,
    )


def _reviews(facts: Facts) -> Iterator[Condition]:
    upload = facts.upload_in_review
    if upload is not None:
        yield Condition(
            "upload_in_review",
            "bad",
            "An upload waits for your review. Its prices go nowhere until you have decided.",
            "Decide",
            "/today#reviews",
            upload.since,
            subject=upload.id,
        )
    run = facts.run_in_review
    if run is not None:
        yield Condition(
            "run_in_review",
            "bad",
            "A pricing run waits for your review, because its prices move far.",
            "Decide",
            "/today#reviews",
            run.since,
            subject=run.id,
        )


def _prices(facts: Facts) -> Iterator[Condition]:
    held = facts.held
    if held.number:
        prices = counted(held.number, "price is", "prices are")
        yield Condition(
            "prices_held",
            "warn",
            f"{prices} held by a cap: the move is too large for its rule.",
            "See the cards",
            "/cards?search=is%3Aheld",
            held.since,
            held.money,
            count=held.number,
        )
    reviews = facts.reviews
    if reviews.number:
        prices = counted(reviews.number, "price is", "prices are")
        yield Condition(
            "prices_to_review",
            "warn",
            f"{prices} held for your review: the move is beyond your limits.",
            "Look at them",
            "/pricing/reviews",
            reviews.since,
            reviews.money,
            reviews.deadline,
            count=reviews.number,
        )
    raises = facts.recommended
    if raises.number:
        prices = counted(raises.number, "price is", "prices are")
        yield Condition(
            "prices_recommended",
            "info",
            f"{prices} recommended, from fresh sales and listings.",
            "See the recommendations",
            "/recommendations",
            raises.since,
            raises.money,
            count=raises.number,
        )
    file = facts.price_file
    if file is not None:
        change = counted(file.number, "price change", "price changes")
        waits = "waits" if file.number == 1 else "wait"
        yield Condition(
            "price_file_to_approve",
            "warn",
            f"{change} {waits} in a file, because the account is in Review Mode.",
            "Approve the file",
            PRICE_FILE,
            file.since,
            file.money,
            count=file.number,
        )


def _agent(facts: Facts) -> Iterator[Condition]:
    for task in facts.failed_tasks:
        yield Condition(
            "task_failed",
            "bad",
            f"The agent's last try at {TASKS.get(task.kind, task.kind)} has failed.",
            "See what happened",
            FAILED_TASKS,
            task.since,
        )
    seen = facts.agent_seen_at
    if seen is not None and facts.now - seen >= SILENT:
        yield Condition(
            "agent_silent",
            "bad" if facts.now - seen >= SILENT_LONG else "warn",
            "The agent is silent: it does not run, or it cannot reach this service.",
            "See when it was seen",
            "/today#sync",
            seen,
            owner_only=False,
        )
    failed = facts.failed_cycles
    if failed.number:
        yield Condition(
            "sync_failing",
            "warn",
            f"The last {counted(failed.number, 'sync', 'syncs')} failed. The next one comes later"
            " than usual.",
            "Sync now",
            "/today#sync",
            failed.since,
            count=failed.number,
            owner_only=False,
        )


def _listings(facts: Facts) -> Iterator[Condition]:
    rejected, lost = facts.rejected_listings, facts.unanswered_listings
    if rejected.number:
        was = "was" if rejected.number == 1 else "were"
        yield Condition(
            "listings_rejected",
            "warn",
            f"{counted(rejected.number, 'new listing', 'new listings')} {was} rejected by the"
            " marketplace.",
            "See why",
            REJECTED,
            rejected.since,
            rejected.money,
            count=rejected.number,
        )
    if lost.number:
        was = "was" if lost.number == 1 else "were"
        yield Condition(
            "listings_unanswered",
            "warn",
            f"{counted(lost.number, 'new listing', 'new listings')} {was} sent, and the answer was"
            " lost.",
            "Compare with your stock",
            UNANSWERED_PAGE,
            lost.since,
            lost.money,
            count=lost.number,
        )


def _plans(facts: Facts) -> Iterator[Condition]:
    some = facts.plans
    if not some.number:
        return
    waits = "waits" if some.number == 1 else "wait"
    one = facts.plan_id is not None
    yield Condition(
        "plans_waiting",
        "warn",
        f"{counted(some.number, 'plan', 'plans')} of assistants {waits} for your click.",
        "Look at the plan" if one else "See the plans",
        f"/plans/{facts.plan_id}" if one else "/activity?outcome=pending_review",
        some.since,
        deadline=some.deadline,
        count=some.number,
        subject=facts.plan_id,
    )


def _rules(facts: Facts) -> Iterator[Condition]:
    broken, idle = facts.broken_rules, facts.idle_rules
    if broken:
        does = "does" if len(broken) == 1 else "do"
        yield Condition(
            "rules_broken",
            "bad",
            f"{counted(len(broken), 'rule', 'rules')} {does} not do all that it says:"
            f" {_listed(broken)}.",
            "See what changed",
            RULES,
            count=len(broken),
        )
    if idle:
        governs = "governs" if len(idle) == 1 else "govern"
        yield Condition(
            "rules_never_match",
            "info",
            f"{counted(len(idle), 'rule', 'rules')} {governs} no card: {_listed(idle)}.",
            "See what changed",
            RULES,
            facts.idle_since,
            count=len(idle),
        )


def _stock(facts: Facts) -> Iterator[Condition]:
    some = facts.dropped
    if some.number:
        yield Condition(
            "cards_dropped",
            "info",
            f"{counted(some.number, 'card', 'cards')} left your stock this week without a sale.",
            "See the cards",
            "/cards?search=is%3Agone&status=all&sort=updated&direction=desc",
            some.since,
            some.money,
            count=some.number,
            owner_only=False,
        )


def _whole_account(facts: Facts) -> Iterator[Condition]:
    if facts.deletion:
        since, due = facts.deletion
        yield Condition(
            "account_to_be_deleted",
            "bad",
            "This account is about to be deleted, with everything in it.",
            "Keep the account",
            "/settings/data",
            since,
            deadline=due,
        )
    if facts.fresh:
        yield Condition(
            "set_up_unfinished",
            "info",
            "The set-up is not finished: no pricing export has come yet.",
            "Go on with it",
            "/set-up/prices",
        )


def _account(facts: Facts) -> Iterator[Condition]:
    if facts.past_due:
        yield Condition(
            "payment_past_due",
            "bad",
            "The plan's payment is past due. No price goes to the marketplace until it is paid.",
            "See the account",
            "/account",
        )
    if facts.unpaid:
        yield Condition(
            "plan_unpaid",
            "warn",
            "The account has no paid plan. Prices are worked out, and none goes to the marketplace.",
            "See the account",
            "/account",
            facts.unpaid_since,
        )
    if facts.no_consent:
        yield Condition(
            "consent_missing",
            "warn",
            "Your consent to write to the marketplace is missing, so no price goes there.",
            "Give it",
            "/settings/sync",
        )
    for pause in facts.pauses:
        yield Condition(
            pause,
            "info",
            PAUSES[pause],
            "Change the settings",
            "/settings/sync",
        )


_RULES: Final[tuple[Callable[[Facts], Iterator[Condition]], ...]] = (
    _to_pull,
    _pull,
    _reviews,
    _prices,
    _agent,
    _listings,
    _plans,
    _rules,
    _stock,
    _whole_account,
    _account,
)
