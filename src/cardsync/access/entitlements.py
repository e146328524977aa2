"""Computes the rights of an account from its plan and its switches. Pure; nothing else computes
them.

An account that loses the paid plan becomes read-only, whatever mode is stored, and its waiting
price tasks are cancelled. Missing consent, an overdue payment, a pause or a suspension only holds
prices: the export is empty, and price tasks stay queued and are not offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

SYNC_MODES = ("full", "read_only")
PriceTasks = Literal["advertised", "queued", "cancelled"]


@dataclass(frozen=True)
class Entitlements:
    """`holds` are the reasons for an empty export, in the export's order. Without one, prices may
    be exported (rollbacks and quick-add always). `price_tasks` is whether waiting price tasks are
    offered, held or cancelled.
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


def entitlements(
    *,
    plan: str,
    trial_ends_at: datetime | None,
    sync_mode: str,
    upload_approved: bool,
    past_due: bool,
    write_consent: bool,
    automatic_pricing_paused: bool,
    suspended: bool,
    now: datetime,
) -> Entitlements:
    """Return the rights of an account. Requests of a suspended account were refused before; for
    work without a request, a suspension changes only the price tasks.
    """
    paid = is_paid(plan, trial_ends_at, now)
    mode = sync_mode if paid else "read_only"
    reasons = {
        "not_entitled": not paid,
        "consent_missing": not write_consent,
        "past_due": past_due,
        "automatic_pricing_paused": automatic_pricing_paused,
    }
    holds = tuple(reason for reason, applies in reasons.items() if applies)
    price_tasks: PriceTasks = "queued" if holds or suspended else "advertised"
    return Entitlements(
        paid,
        mode,
        upload_approved and paid,
        holds,
        "cancelled" if mode == "read_only" else price_tasks,
    )
