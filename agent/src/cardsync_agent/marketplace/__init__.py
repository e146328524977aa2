"""The marketplace's side of the agent: it fetches inventory and orders, and delivers prices. Each
way of reaching the marketplace is an adapter: a folder that a person fills, or the seller's own
browser.

The agent's steps call the adapter, which returns an inventory export as a file and order files as
their bytes, and delivers price files. If an element of a page cannot be found, any method raises
`repairs.NotFound` or StepFailed, and the step fails with the exception's sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple, Protocol

from cardsync_agent.client import PersonsTurn
from cardsync_agent.inbox import InventoryExport, OrderFile
from cardsync_agent.orders import Kind
from cardsync_agent.repairs import Repairs
from cardsync_agent.step_ends import StepFailed


class Shot(NamedTuple):
    """A PNG of a page, and the page's address without its query."""

    content: bytes
    page_url: str


@dataclass(frozen=True)
class Window:
    """The time span of the wanted orders. `months` returns the months whose sales the server lacks
    (ISO dates of their first days); it is called only for sales reports.
    """

    since: date
    until: date
    months: Callable[[], Sequence[str]] = field(default=lambda: (), repr=False)


class NotTaken(StepFailed):
    """The marketplace's report does not agree with the sent file, so nothing was published.
    `rejected` has the reason of each card.
    """

    def __init__(self, message: str, rejected: Mapping[int, str]) -> None:
        super().__init__(message)
        self.rejected = rejected


class Marketplace(Protocol):
    @property
    def place(self) -> str:
        """The name of the place from which the adapter takes files, for sentences: `the inbox`, for
        example.
        """

    @property
    def publishes(self) -> bool:
        """Whether the marketplace has the prices after `import_prices`. Then the agent reports
        them; otherwise a person imports the file and reports it.
        """

    def use_repairs(self, repairs: Repairs) -> None:
        """Set the server's repairs, once, before any other call."""

    def keep_alive(self, between: Callable[[], None]) -> None:
        """Set the function to call between the parts of long work; it may end the work by an
        exception.
        """

    def begin_cycle(self) -> None:
        """Begin a cycle or task. Data that was fetched earlier must not be used any more."""

    def turn(self) -> PersonsTurn | None:
        """Return why the adapter waits for its person; None if it does not wait."""

    def export_inventory(self, spool: Path, known: frozenset[str]) -> InventoryExport:
        """Write the newest inventory to `spool`; content whose hash is in `known` is not used
        again. Raises NoExport.
        """

    def order_files(self, kind: Kind, window: Window) -> list[OrderFile]:
        """Return the newest files of a kind, oldest first, at least one; none if no month of sales
        is wanted. Raises NoExport.
        """

    def account(self) -> Mapping[str, str]:
        """Return the account's data that the marketplace shows. Raises NothingThere."""

    def import_prices(
        self,
        prices: Path,
        chosen: Callable[[bytes], bytes],
        *,
        staged: bool,
        go_on: Callable[[], None],
        note_staged: Callable[[], None],
    ) -> Path:
        """Deliver the chosen rows of a price file exactly once. `go_on` is called before each
        batch, and `note_staged` journals that the import can no longer be undone. Both functions
        may end the import by an exception; then no further part of the file is published.

        Return the place of the delivered file. Raises NotTaken.
        """

    def has_imported(self, prices: Path, *, staged: bool) -> bool:
        """Return whether an earlier, interrupted `import_prices` succeeded."""

    def published(self, prices: Path) -> frozenset[int]:
        """Return the cards of a file that an import published and verified before it ended."""

    def left_out(self, prices: Path) -> frozenset[int]:
        """Return the cards of a delivered file that the marketplace did not list."""

    def pictures(self, *, of_failure: bool) -> list[Shot]:
        """Return the pictures that a step made for the log and, after a failure, a picture of the
        marketplace's current page.
        """

    def close(self) -> None:
        """Release the adapter's resources; the seller's browser stays open."""
