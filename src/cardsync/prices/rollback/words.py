"""Describes a rollback in one sentence, before, during and after the rollback. Pure."""

from __future__ import annotations

from typing import Final

from cardsync.prices.models import PriceRollback, RollbackState
from cardsync.prices.rollback.scope import Scope

_BEFORE: Final = {
    "run_id": "what they were before pricing run {}",
    "rule_id": "what they were before rule {} set them",
    "list": "what they were before the last change of the cards on list {}",
    "since": "what they were at {}",
}
_NOW: Final[dict[RollbackState, str]] = {
    "requested": "{prices} will go back to {before}; rollback {id} is being prepared.",
    "ready": "{prices} will go back to {before}; rollback {id} waits for the agent.",
    "served": "{prices} go back to {before}; the agent has the file of rollback {id}.",
    "applied": "{prices} went back to {before}, by rollback {id}.",
    "failed": "Rollback {id} of {prices} failed: {error}.",
    "expired": "Rollback {id} of {prices} expired before an agent applied it.",
    "cancelled": "Rollback {id} of {prices} was canceled.",
}


def asked(scope: Scope, cards: int) -> str:
    return f"{_prices(cards)} will go back to {_before(scope)}."


def describe_rollback(rollback: PriceRollback) -> str:
    error = (rollback.error or {}).get("message", "")
    return _NOW[rollback.state].format(
        id=rollback.id,
        prices=_prices(rollback.cards),
        before=_before(rollback.scope),
        error=error,
    )


def _prices(cards: int) -> str:
    return "1 price" if cards == 1 else f"{cards:,} prices"


def _before(scope: Scope) -> str:
    [(name, value)] = scope.items()
    return _BEFORE[name].format(value)
