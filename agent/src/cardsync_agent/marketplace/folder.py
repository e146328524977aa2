"""The marketplace as a folder, for sellers who carry the files themselves.

"Export inventory" uses the newest pricing export of DIR/inbox, and the order steps use the other
files there; "import prices" places a copy of the price file in DIR/outbox.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cardsync_agent import durable
from cardsync_agent.client import PersonsTurn
from cardsync_agent.inbox import InventoryExport, OrderFile, take_newest, take_of
from cardsync_agent.marketplace import Shot, Window
from cardsync_agent.orders import Kind
from cardsync_agent.repairs import Repairs
from cardsync_agent.step_ends import NothingThere


class FolderMarketplace:
    place, publishes = "the inbox", False

    def __init__(self, folder: Path, settle: float, sleep: Callable[[float], None]) -> None:
        self.inbox, self.outbox = folder / "inbox", folder / "outbox"
        self._settle, self._sleep = settle, sleep

    def use_repairs(self, repairs: Repairs) -> None:
        """Ignore the repairs: a folder has no selectors."""

    def keep_alive(self, between: Callable[[], None]) -> None:
        """Ignore the function: no work here takes long."""

    def begin_cycle(self) -> None:
        """Do nothing: each step reads the folder again."""

    def turn(self) -> PersonsTurn | None:
        return None

    def export_inventory(self, spool: Path, known: frozenset[str]) -> InventoryExport:
        return take_newest(self.inbox, spool, known, self._settle, self._sleep)

    def order_files(self, kind: Kind, window: Window) -> list[OrderFile]:
        return take_of(self.inbox, kind, self._settle, self._sleep)

    def account(self) -> Mapping[str, str]:
        raise NothingThere("account details aren't available in folder mode")

    def import_prices(
        self,
        prices: Path,
        chosen: Callable[[bytes], bytes],
        *,
        staged: bool,
        go_on: Callable[[], None],
        note_staged: Callable[[], None],
    ) -> Path:
        target = self.outbox / prices.name
        durable.place(
            target, lambda: chosen(prices.read_bytes()), staged=staged, note_staged=note_staged
        )
        return target

    def has_imported(self, prices: Path, *, staged: bool) -> bool:
        return durable.is_placed(self.outbox / prices.name, staged=staged)

    def published(self, prices: Path) -> frozenset[int]:
        """Return no cards: a person imports the file and reports it."""
        return frozenset()

    def left_out(self, prices: Path) -> frozenset[int]:
        return frozenset()

    def pictures(self, *, of_failure: bool) -> list[Shot]:
        return []

    def close(self) -> None:
        pass
