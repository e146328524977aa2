"""The marketplace's side of the agent, where inventory and orders are fetched and prices are
delivered. Each way of reaching the marketplace is an adapter; today the folder is the only one.

The agent's steps call it; it returns an inventory export as a file and order files as their bytes,
and delivers price files. Where a page has lost an element for good, any of its methods raises
`repairs.NotFound`, and the step fails with that sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cardsync_agent.inbox import InventoryExport, OrderFile
from cardsync_agent.orders import Kind
from cardsync_agent.repairs import Repairs


class Marketplace(Protocol):
    def use_repairs(self, repairs: Repairs) -> None:
        """Take the server's repairs, once, before any other call. An adapter that works on pages
        looks for its elements with `repairs.find`.
        """

    def export_inventory(self, spool: Path, known: frozenset[str]) -> InventoryExport:
        """Put the newest inventory at `spool`; content whose hash is in `known` is not taken
        again. Raises NoExport.
        """

    def order_files(self, kind: Kind) -> list[OrderFile]:
        """Return the newest files of a kind, oldest first, at least one. Raises NoExport."""

    def import_prices(
        self,
        prices: Path,
        chosen: Callable[[bytes], bytes],
        *,
        staged: bool,
        note_staged: Callable[[], None],
    ) -> Path:
        """Deliver the chosen rows of a price file exactly once; `note_staged` journals the point
        of no return.

        Returns the place of the delivered file.
        """

    def has_imported(self, prices: Path, *, staged: bool) -> bool:
        """Return whether an earlier, interrupted `import_prices` succeeded."""

    def screenshot(self) -> bytes | None:
        """Return the seller's present view as PNG, for the person who examines a failed step; None
        if there is nothing to see.
        """
