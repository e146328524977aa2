"""What an account may do: plan and switches in, permissions out. Pure.

Losing the paid entitlement holds an account read-only whatever is stored; being past due does not, it only empties the export.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

PLANS = ("free", "trial", "paid", "complimentary", "founder")
SYNC_MODES = ("full", "read_only")


@dataclass(frozen=True)
class Entitlements:
    paid: bool
    sync_mode: str
    upload_approved: bool


def is_paid(plan: str, trial_ends_at: datetime | None, now: datetime) -> bool:
    if plan == "trial":
        return trial_ends_at is None or now < trial_ends_at
    return plan in ("paid", "complimentary", "founder")


def entitlements(
    plan: str, trial_ends_at: datetime | None, sync_mode: str, *, upload_approved: bool, now: datetime
) -> Entitlements:
    paid = is_paid(plan, trial_ends_at, now)
    return Entitlements(paid, sync_mode if paid else "read_only", upload_approved and paid)
