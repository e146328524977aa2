"""Turns the server's decision into the steps of a cycle, and has the table of the steps that this
agent can do.

A step is a function of a Job. It returns when it is done, or raises StepSkipped, or StepFailed;
Refused and OSError also count as its failure. Every step may run again from its beginning after a
kill -9. When a step fails, only the steps that need it are skipped.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from cardsync_agent import clock
from cardsync_agent.client import Decision
from cardsync_agent.history import fetch, fetch_sales_report
from cardsync_agent.job import Job
from cardsync_agent.orders import FEEDBACK, ORDER_LIST, PULL_SHEET, REFUNDS, SHIPPING
from cardsync_agent.prices import download_price_updates, import_prices
from cardsync_agent.state import Cycle, StepRecord
from cardsync_agent.upload import await_repricing, export_inventory, upload_inventory


@dataclass(frozen=True)
class Step:
    run: Callable[[Job], None]
    needs: str | None = None
    version: int = 1


def refresh_account(job: Job) -> None:
    """Read the account if the adapter can; the log stores the result."""
    seen = job.market.account()
    job.note = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in seen.items())


# A new step needs only one more line here.
STEPS = {
    "export_inventory": Step(export_inventory),
    "upload_inventory": Step(upload_inventory, "export_inventory"),
    "await_repricing": Step(await_repricing, "upload_inventory"),
    "download_price_updates": Step(download_price_updates, "await_repricing"),
    "import_prices": Step(import_prices, "download_price_updates"),
    "fetch_orders": Step(fetch(ORDER_LIST)),
    "fetch_order_items": Step(fetch(PULL_SHEET), "fetch_orders"),
    "fetch_shipping": Step(fetch(SHIPPING), "fetch_orders"),
    "fetch_refunds": Step(fetch(REFUNDS), "fetch_orders"),
    "fetch_feedback": Step(fetch(FEEDBACK), "fetch_orders"),
    "fetch_sales_report": Step(fetch_sales_report),
    "refresh_account": Step(refresh_account),
}

# Each kind has these steps if the server sends no plan (decisions.md, section 3).
PRICING_CHAIN = (
    "export_inventory",
    "upload_inventory",
    "await_repricing",
    "download_price_updates",
    "import_prices",
)
HISTORY = ("fetch_orders", "fetch_order_items", "fetch_shipping", "fetch_refunds", "fetch_feedback")
FULL = (*PRICING_CHAIN, *HISTORY, "fetch_sales_report", "refresh_account")
STEPS_OF_KIND = {
    "full": FULL,
    "pricing": PRICING_CHAIN,
    "orders": ("fetch_orders", "fetch_order_items", "fetch_shipping"),
    "refunds": ("fetch_orders", "fetch_refunds"),
    "feedback": ("fetch_orders", "fetch_feedback"),
    "sales": ("fetch_sales_report",),
    "account": ("refresh_account",),
}


def needed_by(name: str) -> set[str]:
    """Return the steps that must succeed before this step has something to do."""
    found = set()
    while (step := STEPS.get(name)) and step.needs:
        found.add(name := step.needs)
    return found


def begin(decision: Decision, sync_mode: str, now: datetime) -> Cycle:
    """Return the journal of a new cycle: its steps in the plan's order; omitted steps are marked as
    skipped.
    """
    steps = (
        STEPS_OF_KIND.get(decision.kind, FULL)
        if decision.plan_steps is None
        else decision.plan_steps
    )
    planned = [
        step
        for step in dict.fromkeys(steps)
        if step not in decision.plan_skipped and (sync_mode == "full" or step != "import_prices")
    ]
    return Cycle(
        sync_cycle_id=str(uuid.uuid4()),
        kind=decision.kind,
        reason=decision.reason,
        started_at=clock.rfc3339(now),
        planned=planned,
        first_sync=decision.first_sync,
        steps=[StepRecord(name, "skipped", 0, why) for name, why in decision.plan_skipped.items()],
    )
