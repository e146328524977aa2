"""The facts of a shop at a moment, and a condition that follows from them. Pure."""

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
    """A count of things, with the time since when there are any, their worth, and the deadline to
    act.
    """

    number: int
    since: datetime | None = None
    money: Decimal | None = None
    deadline: datetime | None = None


NONE: Final = Pending(0)


class FailedTask(NamedTuple):
    kind: str
    since: datetime | None


class Pull(NamedTuple):
    """The open pull; `left` are the pull's orders that are still to be pulled and shipped."""

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
    """The facts about a shop at a moment."""

    now: datetime
    to_pull: Pending = NONE
    pull: Pull | None = None
    # Pulled orders of ended pulls that are still to be shipped, and cards that were not found.
    to_ship: Pending = NONE
    missing: Pending = NONE
    upload_in_review: Waiting | None = None
    run_in_review: Waiting | None = None
    held: Pending = NONE
    # Prices that wait for the owner's approval, and suggested prices with the money that they may
    # earn.
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
    # Offers that wait for the shop, and those whose days are almost over.
    offers: Pending = NONE
    offers_expiring: Pending = NONE
    # The waiting plan, if only one waits.
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
    # No upload and no agent has come yet.
    fresh: bool = False
    # The time of the request and the time of the removal, if the account will be deleted.
    deletion: tuple[datetime, datetime] | None = None
    # A sentence where the shop runs the installation and its backups are not as they should be.
    backup: str | None = None
    # The old catalogs, where the shop decides about them.
    catalogs: tuple[Trouble, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """`title` names the waiting work and `detail` the reason; `label` and `path` are the next step.
    Staff may not do the next step of an owner's condition. `variant` distinguishes conditions of
    one kind that hold at the same time.
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
