"""Runs a new shop for the first time, in Review Mode: fetches everything, changes nothing at the
marketplace, and reports the findings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from cardsync_agent.events import Reporter
from cardsync_agent.pace import Pace, Stop
from cardsync_agent.shops.one_shop import Errand, run_shop
from cardsync_agent.shops.settings_file import Shop, key_of
from cardsync_agent.state import StateProblem
from cardsync_agent.updates import UpdatePolicy


@dataclass
class Findings:
    """The findings, collected from the run's events."""

    cards: int | None = None
    prices: int | None = None
    prices_file: str = ""
    orders: int = 0
    waiting: str | None = None
    ended: str | None = None
    left_out: list[str] = field(default_factory=list)

    def __call__(self, event: str, text: str, problem: bool, more: Mapping[str, object]) -> None:
        if event == "upload_done":
            report = more.get("report")
            rows = report.get("rows") if isinstance(report, dict) else None
            self.cards = rows if isinstance(rows, int) else None
        elif event == "export_saved":
            self.prices, self.prices_file = _whole(more.get("rows")), str(more.get("path"))
        elif event == "export_empty":
            self.prices = 0
        elif event == "rows_sent" and more.get("kind") == "order_list":
            self.orders += _whole(more.get("rows"))
        elif event in ("waiting", "plan_refused", "refused", "problem"):
            self.waiting = text
        elif event == "cycle_finished":
            self.ended = str(more.get("status"))
        elif event == "step_finished" and more.get("status") == "skipped":
            self.left_out.append(str(more.get("error")))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def lines_of(found: Findings, shop: Shop) -> list[str]:
    """Return the findings as lines for the person. Pure."""
    if found.ended is None:
        reason = (found.waiting or "the server wants none now").removeprefix("waiting: ")
        return [f"No sync was made: {reason}."]
    lines = []
    if found.cards is None:
        lines.append(_nothing_there(shop))
    else:
        lines.append(f"Found {found.cards:,} cards of your inventory.")
    if found.orders:
        lines.append(f"Found {found.orders:,} orders.")
    if found.prices:
        lines.append(f"{found.prices:,} price changes wait; they are in {found.prices_file}.")
    elif found.prices == 0:
        lines.append("No price changes wait.")
    return [*lines, "Nothing was changed at your marketplace."]


def _nothing_there(shop: Shop) -> str:
    if shop.adapter == "folder":
        return (
            f"There is no pricing export in {shop.folder / 'inbox'} yet:"
            " save your marketplace's export there."
        )
    return "No inventory was fetched; `cardsync-agent logs` says why."


def dry_run(shop: Shop, say: Reporter) -> list[str]:
    """Run the shop once in Review Mode; return the lines for the person."""
    found = Findings()
    stop = Stop()
    stop.listen()
    try:
        with say.heard_by(found):
            pace = Pace.from_env(os.environ, shop.pace)
            errand = Errand(once=True, review=True)
            run_shop(shop, key_of(shop), UpdatePolicy([]), pace, say, stop, errand)
    except StateProblem as problem:
        return [f"No sync was made: {problem}"]
    return lines_of(found, shop)
