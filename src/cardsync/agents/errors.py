"""The errors of this district."""

from __future__ import annotations

from typing import Literal

import msgspec

from cardsync.platform.errors import TOP_UP_PATH, Problem, WithStatus


class MeteredCooldownBody(msgspec.Struct):
    status: Literal["cooldown"]
    """Always cooldown"""
    cooldown_remaining_seconds: int
    balance: int
    """The credits that are left"""
    top_up_path: str


class MeteredCooldown(WithStatus):
    """The cooldown after the last sync is not over; a credit skips it (POST
    /api/v1/sync/skip_wait).
    """

    status = 402
    code = "cooldown"
    shape = MeteredCooldownBody

    def __init__(self, remaining_seconds: int, balance: int) -> None:
        super().__init__(MeteredCooldownBody("cooldown", remaining_seconds, balance, TOP_UP_PATH))


class CorrectionDisabled(Problem):
    """This selector has failed three times for this step, or for three sellers, and is not used
    again; verify another.
    """

    status, code = 409, "correction_disabled"


class NoSyncInProgress(Problem):
    """No sync is in progress."""

    status = 409
    code = "no_sync_in_progress"


class ClaimExpired(Problem):
    """The token does not match the task's claim: it expired, or the task was claimed again."""

    status, code = 409, "claim_expired"


class RangeNotSatisfiable(Problem):
    """The range begins behind the end of the file."""

    status = 416
    code = "range_not_satisfiable"


class CooldownBody(msgspec.Struct):
    status: Literal["cooldown"]
    """Always cooldown"""
    cooldown_remaining_seconds: int


class Cooldown(WithStatus):
    """The cooldown after the last sync is not over."""

    status = 429
    code = "cooldown"
    shape = CooldownBody

    def __init__(self, remaining_seconds: int) -> None:
        super().__init__(
            CooldownBody("cooldown", remaining_seconds),
            headers={"Retry-After": str(remaining_seconds)},
        )
