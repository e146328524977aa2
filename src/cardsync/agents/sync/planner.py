"""Plans the steps that a cycle runs, by kind, capabilities and last successes. Pure.

`STEPS` is the registry of decisions.md, section 3: the name, the prerequisites, the kind of cycle
and the freshness of each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Literal, TypeAlias

import msgspec

from cardsync.agents.limits import CAPABILITIES_BYTES
from cardsync.agents.seller_state.sync_kinds import Kind
from cardsync.platform.described import Like

Advertised: TypeAlias = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Step:
    """A step of the registry. `kind` is the kind of cycle that has this step as its purpose; other
    cycles run the step only as a prerequisite.
    """

    kind: str
    freshness_seconds: int
    needs: tuple[str, ...] = ()
    version: int = 1


# Each step follows its prerequisites.
STEPS: dict[str, Step] = {
    "export_inventory": Step("pricing", 900),
    "upload_inventory": Step("pricing", 900, ("export_inventory",)),
    "await_repricing": Step("pricing", 900, ("upload_inventory",)),
    "download_price_updates": Step("pricing", 900, ("await_repricing",)),
    "import_prices": Step("pricing", 900, ("download_price_updates",)),
    "fetch_orders": Step("orders", 600),
    "fetch_order_items": Step("orders", 600, ("fetch_orders",)),
    "fetch_shipping": Step("orders", 3600, ("fetch_orders",)),
    "fetch_refunds": Step("refunds", 3600, ("fetch_orders",)),
    "fetch_feedback": Step("feedback", 21_600, ("fetch_orders",)),
    "fetch_sales_report": Step("sales", 86_400),
    "refresh_account": Step("account", 86_400),
}
PRICING_CHAIN = tuple(name for name, step in STEPS.items() if step.kind == "pricing")
# The purpose of a first sync: orders, and every step that depends on them.
HISTORY_STEPS = tuple(name for name, step in STEPS.items() if "fetch_orders" in (name, *step.needs))


class Skipped(msgspec.Struct):
    name: str
    """The step"""
    reason: Literal["fresh"]
    """Why the step need not run: it is fresh"""
    last_succeeded_at: datetime | None
    freshness_seconds: int


class Plan(msgspec.Struct):
    """The steps to run, prerequisites first, and the steps that are fresh; or, with `error`, none."""

    kind: Annotated[str, Like(Kind)]
    """The data that the sync fetches"""
    steps: list[str]
    """The steps to run, prerequisites first"""
    skipped: list[Skipped]
    error: str | None
    """Why there is no plan, such as capability_mismatch; null with a plan"""


@dataclass(frozen=True)
class PlanFacts:
    now: datetime
    kind: str
    manual: bool
    read_only: bool
    advertised: Advertised
    last_successes: Mapping[str, datetime] = field(default_factory=dict)


def read_capabilities(values: Iterable[str] | None) -> Advertised | None:
    """Parse `step@version, step, …` from all parameters together. Return None if there is no
    text, or more than 2 KB of text.

    A name without a version means version 1. Unknown names and versions that are not numbers are
    ignored.
    """
    texts = list(values or ())
    if (
        not any(text.strip() for text in texts)
        or sum(len(text.encode()) for text in texts) > CAPABILITIES_BYTES
    ):
        return None
    found = set()
    for entry in ",".join(texts).split(","):
        name, at, version = (part.strip() for part in entry.partition("@"))
        number = version if at else "1"
        if name in STEPS and number.isascii() and number.isdigit():
            found.add((name, int(number)))
    return frozenset(found)


def own_steps(kind: str) -> tuple[str, ...]:
    return tuple(name for name, step in STEPS.items() if kind in ("full", step.kind))


def steps_of(kind: str, *, read_only: bool) -> tuple[str, ...]:
    """Return the kind's own steps and all their prerequisites, in the order of execution."""
    wanted = set(own_steps(kind))
    for name in reversed(STEPS):
        if name in wanted:
            wanted.update(STEPS[name].needs)
    if read_only:
        wanted.discard("import_prices")
    return tuple(name for name in STEPS if name in wanted)


def make_plan(facts: PlanFacts) -> Plan:
    """Make the plan, or refuse it as a whole if the agent lacks a step in the needed version."""
    wanted = steps_of(facts.kind, read_only=facts.read_only)
    kept = own_steps(facts.kind) if facts.manual else ()
    fresh = _fresh_steps(facts, wanted)
    steps = [name for name in wanted if name in kept or name not in fresh]
    missing = [name for name in steps if (name, STEPS[name].version) not in facts.advertised]
    if missing:
        needed = STEPS[missing[0]].version
        return Plan(facts.kind, [], [], f"capability_mismatch: {missing[0]}@{needed}")
    skipped = [
        Skipped(
            name,
            "fresh",
            facts.last_successes[name],
            STEPS[name].freshness_seconds,
        )
        for name in wanted
        if name not in steps
    ]
    return Plan(facts.kind, steps, skipped, None)


def _fresh_steps(facts: PlanFacts, wanted: Iterable[str]) -> set[str]:
    """Return the fresh steps. The pricing chain runs as a whole or not at all: an upload needs the
    file that the same cycle exports, and a cycle that awaits the repricing without an upload would
    report a success.
    """
    fresh = {name for name in wanted if _is_fresh(name, facts)}
    chain = {name for name in wanted if name in PRICING_CHAIN}
    return fresh if chain <= fresh else fresh - chain


def _is_fresh(name: str, facts: PlanFacts) -> bool:
    last = facts.last_successes.get(name)
    return last is not None and facts.now - last < timedelta(seconds=STEPS[name].freshness_seconds)
