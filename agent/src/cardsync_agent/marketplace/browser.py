"""The marketplace in the seller's own browser: the pack's workflows download the exports and import
the price files.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path

from cardsync_agent import clock, durable
from cardsync_agent.client import Client, PersonsTurn, Refused, TryAgain
from cardsync_agent.events import Reporter
from cardsync_agent.inbox import InventoryExport, NoExport, OrderFile, as_sent
from cardsync_agent.marketplace import Shot, Window
from cardsync_agent.marketplace.browser_export import BrowserExport, columns_of
from cardsync_agent.marketplace.browser_import import BrowserImport
from cardsync_agent.marketplace.browser_workflows import BrowserWorkflows, Unfinished
from cardsync_agent.marketplace.export_checks import renamed
from cardsync_agent.marketplace.import_journal import ImportJournal
from cardsync_agent.orders import FEEDBACK, ORDER_LIST, PULL_SHEET, REFUNDS, SALES, SHIPPING, Kind
from cardsync_agent.repairs import Repairs
from cardsync_agent.step_ends import NothingThere, StepFailed

WORKFLOW_OF = {
    ORDER_LIST: "order_list", PULL_SHEET: "pull_sheet", SHIPPING: "shipping",
    REFUNDS: "refunds", FEEDBACK: "feedback", SALES: "sales_report",
}  # fmt: skip


class BrowserMarketplace:
    place, publishes = "the marketplace", True

    def __init__(self, workflows: BrowserWorkflows, client: Client, say: Reporter) -> None:
        self._workflows, self._client, self._say = workflows, client, say
        self._home = workflows.home
        self._journal = ImportJournal(self._home)
        self._export = BrowserExport(workflows)
        self._import = BrowserImport(self._journal, workflows, self._export, say)

    def use_repairs(self, repairs: Repairs) -> None:
        self._workflows.repairs = repairs

    def keep_alive(self, between: Callable[[], None]) -> None:
        self._workflows.between = between

    def turn(self) -> PersonsTurn | None:
        return self._workflows.turn()

    def begin_cycle(self) -> None:
        """Fetch a newer pack, if the server has a newer pack; earlier exports count as stale."""
        self._export.forget()
        self._workflows.begin_cycle()
        site = self._workflows.site
        try:
            self._workflows.packs.fetch(self._client, site.marketplace, site.locale)
        except (TryAgain, Refused, StepFailed, OSError) as away:
            self._say("problem", f"no news of workflow packs: {away}", detail=True)

    def export_inventory(self, spool: Path, known: frozenset[str]) -> InventoryExport:
        """Download an export, which always counts as new: the service itself detects that nothing
        has changed.
        """
        content = self._export.fetch()
        durable.write(spool, as_sent(content))
        kept = self._home / "inventory-export.csv"
        durable.write(kept, content)
        sha256 = hashlib.sha256(content).hexdigest()
        return InventoryExport(kept, sha256, len(content), clock.now())

    def order_files(self, kind: Kind, window: Window) -> list[OrderFile]:
        name = WORKFLOW_OF[kind]
        if problem := self._workflows.lacks(name):
            raise NoExport(problem)
        values = {"date_from": window.since.isoformat(), "date_to": window.until.isoformat()}
        if kind is SALES:
            rounds = [values | {"month": month[:7]} for month in window.months()]
        else:
            rounds = [values]
        found: list[OrderFile] = []
        for given in rounds:
            try:
                outcome = self._workflows.perform(name, given)
            except Unfinished as ended:
                if kind is SALES and ended.not_offered:
                    continue
                raise
            columns = columns_of(self._workflows.pack(), name)
            for path in outcome.files.get(name, []):
                content = renamed(path.read_bytes(), columns)
                # The file may contain names and streets, so it is deleted.
                path.unlink(missing_ok=True)
                found.append(OrderFile(path, hashlib.sha256(content).hexdigest(), content))
        if rounds and not found:
            raise NoExport(f"the marketplace gave no {kind.name}")
        return found

    def account(self) -> dict[str, str]:
        if problem := self._workflows.lacks("account"):
            raise NothingThere(problem)
        path = self._workflows.perform("account").file("account")
        header, *rows = path.read_text("utf-8-sig", "replace").splitlines()
        path.unlink(missing_ok=True)
        if not rows:
            raise StepFailed("the marketplace shows nothing of the account")
        return dict(zip(_split(header), _split(rows[0]), strict=False))

    def has_imported(self, prices: Path, *, staged: bool) -> bool:
        begun = self._journal.of(prices.name)
        return staged and begun is not None and begun.is_done

    def left_out(self, prices: Path) -> frozenset[int]:
        begun = self._journal.of(prices.name)
        return frozenset(begun.gone if begun else ())

    def published(self, prices: Path) -> frozenset[int]:
        return self._import.published(prices.name)

    def import_prices(
        self,
        prices: Path,
        chosen: Callable[[bytes], bytes],
        *,
        staged: bool,
        go_on: Callable[[], None],
        note_staged: Callable[[], None],
    ) -> Path:
        content = chosen(prices.read_bytes())
        self._import.bring(
            prices.name, content, staged=staged, go_on=go_on, note_staged=note_staged
        )
        return prices

    def pictures(self, *, of_failure: bool) -> list[Shot]:
        return self._workflows.pictures(of_failure=of_failure)

    def close(self) -> None:
        self._workflows.site.browser.release()


def _split(line: str) -> list[str]:
    return next(csv.reader([line]), [])
