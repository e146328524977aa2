"""The errors of the routes of accounts, credits, activity and notices."""

from __future__ import annotations

from typing import Literal

import msgspec

from cardsync.platform.errors import TOP_UP_PATH, Problem, WithStatus


class IdempotencyKeyRequired(Problem):
    """The header X-Idempotency-Key is missing or blank; send a new key, a UUID say, for each wait
    that you want to skip.
    """

    status = 400
    code = "idempotency_key_required"


class InsufficientBalanceBody(msgspec.Struct):
    status: Literal["insufficient_balance"]
    """Always insufficient_balance"""
    balance: Literal[0]
    top_up_path: str


class InsufficientBalance(WithStatus):
    """The shop has no credit to skip the wait."""

    status = 402
    code = "insufficient_balance"
    shape = InsufficientBalanceBody

    def __init__(self) -> None:
        super().__init__(InsufficientBalanceBody("insufficient_balance", 0, TOP_UP_PATH))


class NotUndoable(Problem):
    """This entry can't be undone."""

    status, code = 409, "not_undoable"
