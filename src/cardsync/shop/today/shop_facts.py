"""Defines the facts about a shop at one time, and the conditions that follow from facts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from cardsync.agents.sync.persons_turn import Turn
from cardsync.catalog.catalog_age import Trouble

Severity = Literal["bad", "warn", "info"]
Kind = Literal[
    "orders_to_pull",
    "pull_under_way",
    "orders_to_ship",
    "cards_missing",
    "upload_in_review",
    "run_in_review",
    "prices_held",
    "prices_to_review",
    "prices_recommended",
    "price_file_to_approve",
    "task_failed",
    "agent_silent",
    "your_turn",
    "sync_failing",
    "listings_rejected",
    "listings_unanswered",
    "plans_waiting",
    "offers_waiting",
    "offers_expiring",
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
    "backup_wrong",
    "catalog_old",
]


class Pending(NamedTuple):
    """A number of waiting things, the time since which they wait, their worth, and the deadline."""

    number: int
    since: datetime | None = None
    money: Decimal | None = None
    deadline: datetime | None = None


NONE: Final = Pending(0)


class FailedTask(NamedTuple):
    kind: str
    since: datetime | None


class Pull(NamedTuple):
    """The open pull. `left` are its orders that are neither pulled nor shipped yet."""

    id: int
    orders: int
    pulled: int
    left: Pending


class Waiting(NamedTuple):
    """An upload or a pricing run that waits for the owner's decision."""

    id: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a shop at the time `now`."""

    now: datetime
    to_pull: Pending = NONE
    pull: Pull | None = None
    # `to_ship` are pulled orders of ended pulls that are not shipped yet; `missing` are cards that
    # were not found in a pull.
    to_ship: Pending = NONE
    missing: Pending = NONE
    upload_in_review: Waiting | None = None
    run_in_review: Waiting | None = None
    held: Pending = NONE
    # `reviews` are prices that wait for the owner's approval; `recommended` are suggested prices,
    # with the profit that they may bring.
    reviews: Pending = NONE
    recommended: Pending = NONE
    price_file: Pending | None = None
    failed_tasks: tuple[FailedTask, ...] = ()
    agent_seen_at: datetime | None = None
    turn: Turn | None = None
    failed_cycles: Pending = NONE
    rejected_listings: Pending = NONE
    unanswered_listings: Pending = NONE
    plans: Pending = NONE
    # `offers` are offers to customers that wait for the shop; `offers_expiring` end within a day.
    offers: Pending = NONE
    offers_expiring: Pending = NONE
    # The id of the waiting plan, if exactly one plan waits.
    plan_id: int | None = None
    broken_rules: tuple[str, ...] = ()
    idle_rules: tuple[str, ...] = ()
    idle_since: datetime | None = None
    dropped: Pending = NONE
    unpaid: bool = False
    unpaid_since: datetime | None = None
    past_due: bool = False
    no_consent: bool = False
    pauses: tuple[Kind, ...] = ()
    # True if the shop has had no upload and no request of an agent yet.
    fresh: bool = False
    # If the account will be deleted: the time of the request and the time of the removal.
    deletion: tuple[datetime, datetime] | None = None
    # A sentence about a problem with the installation's backups, if an operator is a member of the
    # shop.
    backup: str | None = None
    # The catalogs with problems, such as old catalogs, if a member of the shop may decide about
    # catalogs.
    catalogs: tuple[Trouble, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a shop. `title` is the waiting work and `detail` the reason; `label` and
    `path` are the button and the page of the next step. With `owner_only`, staff may not do the
    next step. `variant` distinguishes conditions of the same kind.
    """

    kind: Kind
    severity: Severity
    title: str
    label: str
    path: str
    since: datetime | None = None
    money: Decimal | None = None
    deadline: datetime | None = None
    count: int = 1
    subject: int | None = None
    owner_only: bool = True
    detail: str = ""
    variant: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.title}. {self.detail}".rstrip()
