"""Computes the rights of an account from its plan and its switches. Pure. No other module computes
these rights.

An account that loses its paid plan becomes read-only, whatever mode is stored, and its waiting
price tasks are cancelled. A missing consent, an overdue payment, a pause or a suspension only holds
prices: the export is empty, and price tasks wait without being offered to the agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

SYNC_MODES = ("full", "read_only")
PriceTasks = Literal["advertised", "queued", "cancelled"]


@dataclass(frozen=True)
class Entitlements:
    """The rights of an account. `holds` are the reasons for an empty export, in their order;
    without a reason, prices may be exported. (Rollbacks and quick-add are always exported.)
    `price_tasks` is whether waiting price tasks are offered to the agent, held or cancelled.
    """

    paid: bool
    sync_mode: str
    upload_approved: bool
    holds: tuple[str, ...]
    price_tasks: PriceTasks


def is_paid(plan: str, trial_ends_at: datetime | None, now: datetime) -> bool:
    if plan == "trial":
        return trial_ends_at is None or now < trial_ends_at
    return plan in ("paid", "complimentary", "founder")


class Switches(Protocol):
    """The fields of an account that decide its rights."""

    @property
    def plan(self) -> str: ...
    @property
    def trial_ends_at(self) -> datetime | None: ...
    @property
    def sync_mode(self) -> str: ...
    @property
    def upload_approved(self) -> bool: ...
    @property
    def past_due(self) -> bool: ...
    @property
    def write_consent(self) -> bool: ...
    @property
    def automatic_pricing_paused(self) -> bool: ...
    @property
    def suspended(self) -> bool: ...


def entitlements(account: Switches, now: datetime) -> Entitlements:
    """Return the rights of an account. The requests of a suspended account are refused earlier, so
    a suspension only changes the price tasks here, for work outside a request.
    """
    paid = is_paid(account.plan, account.trial_ends_at, now)
    mode = account.sync_mode if paid else "read_only"
    reasons = {
        "not_entitled": not paid,
        "consent_missing": not account.write_consent,
        "past_due": account.past_due,
        "automatic_pricing_paused": account.automatic_pricing_paused,
    }
    holds = tuple(reason for reason, applies in reasons.items() if applies)
    price_tasks: PriceTasks = "queued" if holds or account.suspended else "advertised"
    return Entitlements(
        paid,
        mode,
        account.upload_approved and paid,
        holds,
        "cancelled" if mode == "read_only" else price_tasks,
    )
