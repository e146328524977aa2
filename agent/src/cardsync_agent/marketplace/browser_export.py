"""Caches the marketplace's inventory export for one cycle, because an import is compared with a
fresh export.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cardsync_agent import clock
from cardsync_agent.csv_records import Damaged
from cardsync_agent.marketplace import price_batches as batches
from cardsync_agent.marketplace.browser_workflows import BrowserWorkflows
from cardsync_agent.marketplace.export_checks import export_problem, in_one, renamed
from cardsync_agent.marketplace.price_batches import Listed, Names
from cardsync_agent.step_ends import StepFailed
from cardsync_agent.workflow.pack import Pack, values_of

# An export counts as fresh for the import that follows it in the same cycle.
FRESH_SECONDS = 1_800.0


@dataclass
class _Export:
    content: bytes
    listed: dict[int, Listed]
    at: float


class BrowserExport:
    def __init__(self, workflows: BrowserWorkflows) -> None:
        self._workflows = workflows
        self._fresh: _Export | None = None

    def forget(self) -> None:
        """Drop the export, because the marketplace has changed."""
        self._fresh = None

    def fetch(self) -> bytes:
        """Return a new export, of all product lines if the marketplace exports them separately.
        Raises StepFailed if the export cannot be correct.
        """
        pack = self._workflows.pack()
        flow = pack.workflows.get("export_inventory")
        lines = pack.product_lines if flow and "product_line" in values_of(flow) else ("",)
        try:
            content = in_one([self._of_line(pack, line) for line in lines])
        except Damaged as damaged:
            raise StepFailed(f"the marketplace's export is not used: it {damaged}") from None
        if problem := export_problem(content):
            raise StepFailed(f"the marketplace's export is not used: {problem}")
        self._fresh = _Export(content, batches.listed_of(content), clock.monotonic())
        return content

    def _of_line(self, pack: Pack, line: str) -> bytes:
        path = self._workflows.perform("export_inventory", {"product_line": line}).file("inventory")
        content = renamed(path.read_bytes(), columns_of(pack, "inventory"))
        path.unlink(missing_ok=True)
        return content

    def listed(self) -> dict[int, Listed]:
        """Return the marketplace's listings, from an export of this cycle."""
        return self._of_cycle().listed

    def by_name(self) -> dict[Names, int]:
        """Return the cards of an export of this cycle by their names."""
        return batches.cards_by_name(self._of_cycle().content)

    def _of_cycle(self) -> _Export:
        if self._fresh is None or clock.monotonic() - self._fresh.at > FRESH_SECONDS:
            self.fetch()
        assert self._fresh is not None
        return self._fresh


def columns_of(pack: Pack, kind: str) -> Mapping[str, str]:
    """Return the mapping from the marketplace's columns of a kind of file to ours."""
    form = pack.files.get(kind)
    return form.columns if form else {}
