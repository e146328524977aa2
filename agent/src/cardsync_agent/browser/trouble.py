"""Defines the errors that end work in the seller's browser early. Each message is one sentence for
the seller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


class Trouble(Exception):
    """The workflow ended early.

    `changed` means that a step that imports, publishes or deletes had begun, so that only the
    marketplace shows whether it was done. `may_try_again` means that the same work may succeed
    later.
    """

    may_try_again = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.workflow, self.step, self.changed = "", "", False
        self.files: Mapping[str, Sequence[Path]] = {}
        self.places: Mapping[str, str] = {}


class NoBrowser(Trouble):
    """No browser can be found, started or driven on this computer."""


class BrowserGone(Trouble):
    """The browser or its tab was closed in the meantime."""

    may_try_again = True


class ForeignOrigin(Trouble):
    """The page or a file came from an address that the pack does not list."""


class Busy(Trouble):
    """The marketplace asks the agent to wait. `retry_after` is in seconds."""

    may_try_again = True

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class MarketplaceDown(Trouble):
    """The marketplace answers with its own error, or not at all."""

    may_try_again = True


class StepNotDone(Trouble):
    """A step could not be done, or its post-condition did not hold."""


class NotOffered(StepNotDone):
    """The page does not offer the option that a named value asks for."""


class ElementLost(StepNotDone):
    """No locator and no repair of an element finds exactly one element."""


class PasswordField(Trouble):
    """The step would have filled, or submitted, a field for a secret."""


class BadDownload(Trouble):
    """A download was cut off, too large, or not a CSV file."""

    may_try_again = True


class YourTurnMissed(Trouble):
    """The person did not do their part in time."""


class Interrupted(Trouble):
    """The marketplace needed the person after something had been changed already."""


@contextmanager
def browser_errors() -> Iterator[None]:
    """Convert Playwright's errors to BrowserGone and StepNotDone."""
    from playwright.sync_api import Error, TimeoutError

    try:
        yield
    except TimeoutError as late:
        raise StepNotDone(_first_line(late)) from late
    except Error as error:
        if is_closed(error):
            raise BrowserGone(
                "the browser was closed meanwhile; it is started again at the next try"
            ) from error
        raise StepNotDone(_first_line(error)) from error


def is_changing(error: Exception) -> bool:
    """Return whether a Playwright error only means that the page is navigating."""
    text = str(error)
    return "context was destroyed" in text or "navigat" in text or "detached" in text


def is_closed(error: Exception) -> bool:
    """Return whether a Playwright error means that the browser or its tab was closed."""
    text = str(error)
    return (
        type(error).__name__ == "TargetClosedError"
        or "has been closed" in text
        or "Connection closed" in text
        or "Target crashed" in text
    )


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return (text[0] if text else type(error).__name__)[:300]
