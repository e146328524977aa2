"""The outcome of a skipped wait, as the API shows it. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec


class SkipWait(msgspec.Struct):
    status: Literal["charged", "replayed", "no_charge_needed", "sync_in_flight"]
    balance: int | msgspec.UnsetType = msgspec.UNSET
    cooldown_remaining_seconds: int | msgspec.UnsetType = msgspec.UNSET
    transaction_id: int | msgspec.UnsetType | None = msgspec.UNSET
