"""Where inventory and orders come from and where prices go. An adapter per way of reaching the
marketplace; today the folder alone.

In: the agent's steps. Out: an inventory export as a file, order files as their bytes, price
updates delivered.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cardsync_agent.inbox import InventoryExport, OrderFile
from cardsync_agent.orders import Kind


class Marketplace(Protocol):
    def export_inventory(self, spool: Path, known: frozenset[str]) -> InventoryExport:
        """Put the newest inventory at `spool`; content whose hash is in `known` is not wanted
        again. Raises NoExport.
        """

    def order_files(self, kind: Kind) -> list[OrderFile]:
        """The newest of a kind, oldest first, never none. Raises NoExport."""

    def import_prices(self, prices: Path, *, staged: bool, note_staged: Callable[[], None]) -> Path:
        """Deliver a price file exactly once; `note_staged` journals the point of no return.

        Returns where it went.
        """

    def has_imported(self, prices: Path, *, staged: bool) -> bool:
        """Whether an earlier, interrupted `import_prices` came through."""

    def screenshot(self) -> bytes | None:
        """What the seller would see now, as PNG, for whoever looks into a step that failed; None
        where there is nothing to see.
        """
