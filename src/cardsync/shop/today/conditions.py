"""Derives the conditions of a shop's work list from its facts, the most urgent first. Pure.

A condition lasts as long as its facts are true, and ends by itself. `since` is the time of its
beginning, if that is known. Each kind has at most one condition at a time, except failed tasks (one
per kind of task) and rules (one per finding).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

from cardsync.platform.plurals import counted
from cardsync.shop.today.account_conditions import of_account, of_agent, of_whole_account
from cardsync.shop.today.shop_facts import Condition, Facts, Kind, Severity

_RANK: Final = {"bad": 0, "warn": 1, "info": 2}
SOON: Final = timedelta(days=1)
# The time after which the missing answer to a file of new listings counts as lost.
UNANSWERED: Final = timedelta(hours=1)
_SATURDAY: Final = 5
_LATE: Final = "The oldest is past its shipping deadline."
# The paths of the pages for the next steps of conditions.
PRICE_FILE: Final = "/sync/prices"
TO_SHIP: Final = "/orders?state=to_ship&pull_session=pulled"
MISSING: Final = "/pulls#missing"
REJECTED: Final = "/add-cards?status=rejected"
UNANSWERED_PAGE: Final = "/add-cards/recover"
REVIEWS: Final = "/pricing/reviews"
OFFERS: Final = "/buying/offers"
RULES: Final = "/activity?action=pricing"


# The conditions in which a buyer waits. They precede other conditions of the same urgency.
FOR_BUYERS: Final[tuple[Kind, ...]] = (
    "orders_to_pull",
    "pull_under_way",
    "orders_to_ship",
    "cards_missing",
)


def conditions(facts: Facts, *, owner: bool) -> list[Condition]:
    """Return the conditions that follow from the facts. Bad conditions are first, then conditions
    in which a buyer waits, then conditions with a deadline, the nearest first; the rest is ordered
    by severity and money.
    """
    found = [one for rule in _RULES for one in rule(facts)]
    return sorted((one for one in found if owner or not one.owner_only), key=_urgency)


def _urgency(one: Condition) -> tuple[bool, bool, float, int, Decimal, str, str]:
    at = one.deadline.timestamp() if one.deadline else math.inf
    money = one.money or Decimal()
    rank = _RANK[one.severity]
    own = one.kind not in FOR_BUYERS
    return one.severity != "bad", own, at, rank, -money, one.kind, one.sentence


def _by(deadline: datetime | None, now: datetime) -> Severity:
    """Return the severity of unshipped orders with this deadline."""
    if deadline is None or deadline > now + SOON:
        return "info"
    return "bad" if deadline <= now else "warn"


def ship_by(placed_at: datetime, days: int) -> datetime:
    """Return an order's deadline: `days` working days after it was placed."""
    due, left = placed_at, days
    while left:
        due += timedelta(days=1)
        left -= due.weekday() < _SATURDAY
    return due


def same_days_before(today: date) -> tuple[date, date]:
    """Return the first day of the previous month, and the day of that month that corresponds to
    `today`: the same number, or the month's last day if the month is shorter.
    """
    last = today.replace(day=1) - timedelta(days=1)
    return last.replace(day=1), last.replace(day=min(today.day, last.day))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"“{name}”" for name in names[:3]) + (", …" if len(names) > 3 else "")


def _to_pull(facts: Facts) -> Iterator[Condition]:
    some = facts.to_pull
    if not some.number:
        return
    severity = _by(some.deadline, facts.now)
    yield Condition(
        "orders_to_pull",
        severity,
        f"{counted(some.number, 'order', 'orders')} to pull",
        "Start pull",
        "/pulls",
        some.since,
        some.money,
        some.deadline,
        some.number,
        owner_only=False,
        detail=_LATE if severity == "bad" else "",
    )


def _pull(facts: Facts) -> Iterator[Condition]:
    pull = facts.pull
    if pull is None:
        return
    left = pull.left
    severity = _by(left.deadline, facts.now)
    yield Condition(
        "pull_under_way",
        severity,
        f"Pull {pull.id}: {pull.pulled:,} of {counted(pull.orders, 'order', 'orders')} pulled",
        "Continue the pull" if left.number else "Complete the pull",
        f"/pulls/{pull.id}",
        left.since,
        left.money,
        left.deadline,
        left.number,
        pull.id,
        owner_only=False,
        detail=_LATE if severity == "bad" else "",
    )


def _to_ship(facts: Facts) -> Iterator[Condition]:
    some = facts.to_ship
    if some.number:
        severity = _by(some.deadline, facts.now)
        orders = counted(some.number, "order", "orders")
        yield Condition(
            "orders_to_ship",
            severity,
            f"{orders} pulled, to ship",
            f"Ship {orders}",
            TO_SHIP,
            some.since,
            some.money,
            some.deadline,
            some.number,
            owner_only=False,
            detail=_LATE if severity == "bad" else "",
        )
    lost = facts.missing
    if lost.number:
        severity = _by(lost.deadline, facts.now)
        yield Condition(
            "cards_missing",
            severity if severity == "bad" else "warn",
            f"{counted(lost.number, 'card', 'cards')} missing from a pull",
            "Decide",
            MISSING,
            lost.since,
            lost.money,
            lost.deadline,
            lost.number,
            owner_only=False,
            detail="The order waits until you choose another copy, a refund or a message.",
        )


def _reviews(facts: Facts) -> Iterator[Condition]:
    upload = facts.upload_in_review
    if upload is not None:
        yield Condition(
            "upload_in_review",
            "bad",
            "An upload needs your review",
            "Review the upload",
            REVIEWS,
            upload.since,
            subject=upload.id,
            detail="Its prices are not used until you decide.",
        )
    run = facts.run_in_review
    if run is not None:
        yield Condition(
            "run_in_review",
            "bad",
            "A pricing run needs your review",
            "Review the run",
            REVIEWS,
            run.since,
            subject=run.id,
            detail="Its price changes are large.",
        )


def _prices(facts: Facts) -> Iterator[Condition]:
    held = facts.held
    if held.number:
        prices = counted(held.number, "price is", "prices are")
        yield Condition(
            "prices_held",
            "warn",
            f"{prices} limited by a cap",
            "See the cards",
            "/cards?search=is%3Astuck",
            held.since,
            held.money,
            count=held.number,
            detail="The rule only allows smaller changes.",
        )
    reviews = facts.reviews
    if reviews.number:
        prices = counted(reviews.number, "price change needs", "price changes need")
        yield Condition(
            "prices_to_review",
            "warn",
            f"{prices} approval",
            "Review",
            REVIEWS,
            reviews.since,
            reviews.money,
            reviews.deadline,
            count=reviews.number,
            detail="They exceed your limits." if reviews.number > 1 else "It exceeds your limits.",
        )
    raises = facts.recommended
    if raises.number:
        prices = counted(raises.number, "price is", "prices are")
        yield Condition(
            "prices_recommended",
            "info",
            f"{prices} suggested",
            "See suggestions",
            "/recommendations",
            raises.since,
            raises.money,
            count=raises.number,
            detail="Based on recent sales and listings.",
        )
    file = facts.price_file
    if file is not None:
        change = counted(file.number, "price change", "price changes")
        yield Condition(
            "price_file_to_approve",
            "warn",
            f"{change} ready to send",
            "Approve the price file",
            PRICE_FILE,
            file.since,
            file.money,
            count=file.number,
            detail="You're in Review Mode.",
        )


def _listings(facts: Facts) -> Iterator[Condition]:
    rejected, lost = facts.rejected_listings, facts.unanswered_listings
    if rejected.number:
        was = "was" if rejected.number == 1 else "were"
        yield Condition(
            "listings_rejected",
            "warn",
            f"{counted(rejected.number, 'new listing', 'new listings')} {was} rejected by"
            " TCGplayer",
            "See why",
            REJECTED,
            rejected.since,
            rejected.money,
            count=rejected.number,
        )
    if lost.number:
        yield Condition(
            "listings_unanswered",
            "warn",
            f"{counted(lost.number, 'new listing', 'new listings')} unconfirmed",
            "Check them",
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
        f"{counted(some.number, 'plan', 'plans')} from assistants {waits} for your approval",
        "Review the plan" if one else "See the plans",
        f"/plans/{facts.plan_id}" if one else REVIEWS,
        some.since,
        deadline=some.deadline,
        count=some.number,
        subject=facts.plan_id,
    )


def _offers(facts: Facts) -> Iterator[Condition]:
    some = facts.offers
    if some.number:
        waits = "waits" if some.number == 1 else "wait"
        yield Condition(
            "offers_waiting",
            "warn",
            f"{counted(some.number, 'offer', 'offers')} to customers {waits} for you",
            "See the offers",
            OFFERS,
            some.since,
            count=some.number,
            detail="Carts to price, cards to count, to pay or to add to inventory.",
        )
    ending = facts.offers_expiring
    if ending.number:
        ends = "ends" if ending.number == 1 else "end"
        yield Condition(
            "offers_expiring",
            "info",
            f"{counted(ending.number, 'offer', 'offers')} to customers {ends} within a day",
            "See the offers",
            f"{OFFERS}?status=offered",
            ending.since,
            deadline=ending.deadline,
            count=ending.number,
        )


def _rules(facts: Facts) -> Iterator[Condition]:
    broken, idle = facts.broken_rules, facts.idle_rules
    if broken:
        working = "rule isn't", "rules aren't"
        yield Condition(
            "rules_broken",
            "bad",
            f"{counted(len(broken), *working)} working as written",
            "See what changed",
            RULES,
            count=len(broken),
            detail=f"{_listed(broken)}.",
        )
    if idle:
        yield Condition(
            "rules_never_match",
            "info",
            f"{counted(len(idle), 'rule matches', 'rules match')} no cards",
            "See what changed",
            RULES,
            facts.idle_since,
            count=len(idle),
            detail=f"{_listed(idle)}.",
        )


def _stock(facts: Facts) -> Iterator[Condition]:
    some = facts.dropped
    if some.number:
        yield Condition(
            "cards_dropped",
            "info",
            f"{counted(some.number, 'card', 'cards')} disappeared this week without a sale",
            "See the cards",
            "/cards?search=is%3Adropped&status=all&sort=updated&direction=desc",
            some.since,
            some.money,
            count=some.number,
            owner_only=False,
        )


_RULES: Final[tuple[Callable[[Facts], Iterator[Condition]], ...]] = (
    _to_pull,
    _pull,
    _to_ship,
    _reviews,
    _prices,
    of_agent,
    _listings,
    _plans,
    _offers,
    _rules,
    _stock,
    of_whole_account,
    of_account,
)
