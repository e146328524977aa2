"""Watches the agent's tab: a step that leads to a foreign origin ends the workflow, and so do the
marketplace's own errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from cardsync_agent import clock
from cardsync_agent.browser.navigation_guard import NavigationGuard
from cardsync_agent.browser.origins import is_allowed, origin_of, shown
from cardsync_agent.browser.trouble import Busy, ForeignOrigin, MarketplaceDown

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Frame, Page, Request, Response

_BUSY = (429, 503)
# Seconds to wait if the answer does not give them.
_USUAL_WAIT = 30.0


@dataclass(frozen=True)
class _Answer:
    status: int
    retry_after: float | None
    url: str


class TabWatch:
    """Records the tab's events, and blocks requests to a foreign origin. `check` evaluates the
    events between the actions.
    """

    def __init__(self, browser: Browser, page: Page, origins: Collection[str]) -> None:
        self.page, self._browser, self._origins = page, browser, origins
        self.navigations = 0
        self.popups: list[Page] = []
        # The text of a dialog that was dismissed, because accepting it may move money.
        self.asked: str | None = None
        self._foreign: str | None = None
        self._document: _Answer | None = None
        self._background: _Answer | None = None
        self._listeners = {
            "request": self._on_request,
            "response": self._on_response,
            "framenavigated": self._on_navigation,
            "popup": self._on_popup,
            "dialog": self._on_dialog,
        }
        self._guard: NavigationGuard | None = None
        self._begin()

    def _begin(self) -> None:
        self._guard = NavigationGuard(self._browser, self.page, self._origins)
        for event, listener in self._listeners.items():
            self.page.on(event, listener)  # type: ignore[call-overload]

    def close(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.close()
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def begin_step(self) -> None:
        """Forget the answers of the last step."""
        self._document = self._background = None
        self.asked = None

    def check(self) -> None:
        """Raise ForeignOrigin after leaving a foreign page, and Busy or MarketplaceDown by the
        answers.
        """
        self._close_popups()
        url = self.page.url
        if url.startswith("chrome-error:"):
            raise MarketplaceDown("the marketplace's page cannot be reached; is the network there?")
        held = self._guard.blocked if self._guard else None
        foreign = held or self._foreign or (None if is_allowed(url, self._origins) else url)
        if foreign:
            self._foreign = None
            if self._guard:
                self._guard.blocked = None
            self.leave()
            raise ForeignOrigin(
                f"the page leads to {origin_of(foreign) or shown(foreign)}, which is no address of"
                " this marketplace; the sync app left it"
            )
        if self._document is not None:
            _judge(self._document)

    def check_background(self) -> None:
        """Raise Busy or MarketplaceDown if a background request of the page met that error. Called
        when a post-condition fails.
        """
        if self._background is not None:
            _judge(self._background)

    def leave(self) -> None:
        """Go to an empty page, also during another navigation."""
        from playwright.sync_api import Error

        for left in range(5, 0, -1):
            try:
                self.page.goto("about:blank")
                return
            except Error as error:
                interrupted = "interrupted" in str(error) or "ERR_ABORTED" in str(error)
                if not interrupted or left == 1:
                    raise
                self.page.wait_for_timeout(100)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Stop watching while the person acts, who may open any address in any number of
        windows.
        """
        self.close()
        try:
            yield
        finally:
            self._foreign = self._document = self._background = None
            self.popups.clear()
            if not self.page.is_closed():
                self._begin()

    def status(self) -> int | None:
        """Return the status of the document that this step opened."""
        return self._document.status if self._document else None

    def _close_popups(self) -> None:
        """Close windows that the page opened, because the agent has one tab."""
        while self.popups:
            popup = self.popups.pop()
            if popup.is_closed():
                continue
            if not is_allowed(popup.url, self._origins):
                self._foreign = popup.url
            popup.close()

    def _on_popup(self, popup: Page) -> None:
        self.popups.append(popup)

    def _on_dialog(self, dialog: Dialog) -> None:
        if dialog.type == "beforeunload":
            dialog.accept()
            return
        self.asked = dialog.message[:200] if dialog.type != "alert" else self.asked
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if self._is_document(request) and not is_allowed(request.url, self._origins):
            self._foreign = request.url

    def _on_response(self, response: Response) -> None:
        retry_after = seconds_of(response.headers.get("retry-after", ""))
        answer = _Answer(response.status, retry_after, response.url)
        if self._is_document(response.request):
            self._document = answer
        elif (
            response.status >= 429
            and response.request.resource_type in ("xhr", "fetch")
            and origin_of(response.url) in {origin_of(origin) for origin in self._origins}
        ):
            self._background = answer

    def _on_navigation(self, frame: Frame) -> None:
        if frame == self.page.main_frame:
            self.navigations += 1
            if not is_allowed(frame.url, self._origins) and not frame.url.startswith("chrome-err"):
                self._foreign = frame.url

    def _is_document(self, request: Request) -> bool:
        from playwright.sync_api import Error

        try:
            return request.is_navigation_request() and request.frame == self.page.main_frame
        except Error:  # a window that has no frame yet
            return False


def _judge(answer: _Answer) -> None:
    if answer.status in _BUSY:
        wait = _USUAL_WAIT if answer.retry_after is None else answer.retry_after
        raise Busy(f"the marketplace asks to wait {wait:.0f} s ({answer.status})", wait)
    if answer.status >= 500:
        raise MarketplaceDown(
            f"the marketplace has an error of its own ({answer.status} at {shown(answer.url)})"
        )


def seconds_of(text: str) -> float | None:
    """Parse Retry-After, which is a number of seconds or a date. Return None for any other text."""
    if text.isascii() and text.strip().isdigit():
        return float(text)
    try:
        left = parsedate_to_datetime(text) - clock.now()
    except (TypeError, ValueError):
        return None
    return max(left.total_seconds(), 0.0)
