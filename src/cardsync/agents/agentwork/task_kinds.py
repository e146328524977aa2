"""The kinds of task, their priorities, and the kinds that an agent can do. Pure.

An agent reports what it can do as `capabilities` (`kind@version`, with the steps of its registry)
or as `kinds`; unknown kinds are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, get_args

from cardsync.agents.limits import CAPABILITIES_BYTES

# Tasks that send targets: a pause holds these back, and a read-only account loses them. Rollbacks
# and listings are the seller's own requests and stay.
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
# The kinds that write prices to the marketplace; the phases push_queued and pushing show them.
PUSHES = ("apply_price_updates", "apply_rollback")
# While a rollback waits, its file is served instead of the files of these tasks.
BEHIND_A_ROLLBACK = ("apply_price_updates", "quick_add_listing")
# An unpaid account gets no listings; they wait until it is paid.
FOR_PAID_ACCOUNTS = ("quick_add_listing",)

NEW_STOCK, REQUESTED, RETRY, ROUTINE = range(4)
_PRIORITY = {"quick_add_listing": NEW_STOCK, "apply_rollback": REQUESTED}

ATTEMPTS = 5
# The registry of steps has this name, too.
ALSO_A_STEP = "refresh_account"


def priority_of(kind: str) -> int:
    """Return the default priority of a kind's tasks."""
    return _PRIORITY.get(kind, ROUTINE)


def named_kinds(texts: Iterable[str] | None) -> list[str] | None:
    """Return the kinds in `kind@version, step, …`, in our order. None if the text names no kind at
    all.

    A name without a version means version 1. A text of more than 2 KB counts as missing, and a list
    of only steps does not restrict tasks.
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
    """Return the kinds that a claim may include: the requested ones that the agent can do (None
    means all), without those that the account holds back.
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
