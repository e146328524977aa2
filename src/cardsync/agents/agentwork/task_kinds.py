"""The kinds of task, their priorities, and the kinds that an agent can do. Pure.

An agent reports what it can do as `capabilities` (`kind@version`, beside the steps of its registry)
or as `kinds`; unknown kinds are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, get_args

from cardsync.agents.limits import CAPABILITIES_BYTES

# Pushing targets: a pause holds these tasks back, and a read-only account loses them. Rollbacks and
# listings are the seller's own doing and stay.
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
# The kinds that write prices to the marketplace: phases push_queued and pushing show them.
PUSHES = ("apply_price_updates", "apply_rollback")
# While a rollback waits, its file is served in place of the files that these tasks are for.
BEHIND_A_ROLLBACK = ("apply_price_updates", "quick_add_listing")
# An unpaid account is served no listings; they wait for it.
FOR_PAID_ACCOUNTS = ("quick_add_listing",)

NEW_STOCK, REQUESTED, RETRY, ROUTINE = range(4)
_PRIORITY = {"quick_add_listing": NEW_STOCK, "apply_rollback": REQUESTED}

ATTEMPTS = 5
# The registry of steps knows this name, too.
ALSO_A_STEP = "refresh_account"


def priority_of(kind: str) -> int:
    """The priority of a task of that kind, unless another is given."""
    return _PRIORITY.get(kind, ROUTINE)


def named_kinds(texts: Iterable[str] | None) -> list[str] | None:
    """The kinds among `kind@version, step, …`, in our order; None if they name no kind at all.

    A name without a version means 1. More than 2 KB of texts count as no list, and a list of steps
    alone does not restrict tasks.
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
    """The kinds that a claim may hand out: the requested ones that the agent can do (None means
    all), without those that the account holds back.
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
