"""The kinds of task, their priorities, and the kinds that an agent can do. Pure.

An agent reports its abilities as `capabilities` (`kind@version` and names of steps) or as `kinds`;
unknown kinds are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, get_args

from cardsync.agents.limits import CAPABILITIES_BYTES

# Tasks that send targets: a pause delays them, and they are cancelled for a read-only account.
# Rollbacks and listings are the seller's own requests: they are kept.
PRICE_TASKS = ("apply_price_updates",)
Kind = Literal[
    "refresh_orders",
    "backfill_orders",
    "backfill_sales_report",
    "apply_price_updates",
    "apply_rollback",
    "quick_add_listing",
    "refresh_account",
]
KINDS: tuple[str, ...] = get_args(Kind)
# The kinds that write prices to the marketplace. Their tasks cause the sync phases push_queued and
# pushing.
PUSHES = ("apply_price_updates", "apply_rollback")
# While a rollback waits, its file is served instead of the files of these tasks.
BEHIND_A_ROLLBACK = ("apply_price_updates", "quick_add_listing")
# Listings of an unpaid account wait until the account is paid.
FOR_PAID_ACCOUNTS = ("quick_add_listing",)

NEW_STOCK, REQUESTED, RETRY, ROUTINE = range(4)
_PRIORITY = {"quick_add_listing": NEW_STOCK, "apply_rollback": REQUESTED}

ATTEMPTS = 5
# The kind that is also the name of a step.
ALSO_A_STEP = "refresh_account"


def priority_of(kind: str) -> int:
    """Return the default priority of a kind's tasks."""
    return _PRIORITY.get(kind, ROUTINE)


def named_kinds(texts: Iterable[str] | None) -> list[str] | None:
    """Return the kinds that `kind@version, step, …` names, in the order of `KINDS`; None if it
    names no kind.

    A name without a version means version 1. A text of more than 2 KB counts as missing. If
    `refresh_account` is the only kind among several names, it counts as a step.
    """
    given = list(texts or ())
    if sum(len(text.encode()) for text in given) > CAPABILITIES_BYTES:
        return None
    entries = (entry.partition("@") for entry in ",".join(given).split(","))
    known = {name.strip() for name, at, version in entries if not at or version.strip() == "1"}
    named = [kind for kind in KINDS if kind in known]
    if named == [ALSO_A_STEP] and known != {ALSO_A_STEP}:
        return None
    return named or None


def handed_out(
    kinds: Collection[str] | None,
    can: Collection[str] | None,
    *,
    prices_held: bool,
    rollback_waits: bool,
    paid: bool,
) -> list[str]:
    """Return the kinds that a claim may include: the requested kinds that the agent can do (None
    means all), without the kinds that the account or an open rollback delays.
    """
    held = {
        *(PRICE_TASKS if prices_held else ()),
        *(BEHIND_A_ROLLBACK if rollback_waits else ()),
        *(() if paid else FOR_PAID_ACCOUNTS),
    }
    return [
        kind
        for kind in KINDS
        if kind not in held and (kinds is None or kind in kinds) and (can is None or kind in can)
    ]
