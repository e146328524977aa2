"""The JSON struct of a skipped wait, and the function that fills it. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from cardsync.credits.skip_wait import SkippedWait


class SkipWait(msgspec.Struct):
    status: Literal["charged", "replayed", "no_charge_needed", "sync_in_flight"]
    balance: int | msgspec.UnsetType = msgspec.UNSET
    cooldown_remaining_seconds: int | msgspec.UnsetType = msgspec.UNSET
    transaction_id: int | msgspec.UnsetType | None = msgspec.UNSET


def skipped_wait(done: SkippedWait) -> SkipWait:
    if done.status == "sync_in_flight":
        return SkipWait(done.status)
    return SkipWait(done.status, done.balance, done.cooldown_remaining, done.transaction_id)
