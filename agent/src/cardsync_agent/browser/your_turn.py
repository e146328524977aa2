"""Waits while a page needs the person: sign-in, a second factor, a CAPTCHA. The agent reports the
wait and checks the page from time to time; it reads nothing that the person types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from cardsync_agent import clock
from cardsync_agent.browser.desktop_notification import notify
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.origins import fits, is_allowed, shown
from cardsync_agent.browser.trouble import BrowserGone, YourTurnMissed
from cardsync_agent.workflow.locators import is_seen
from cardsync_agent.workflow.pack import Pack

if TYPE_CHECKING:
    from playwright.sync_api import Page

T = TypeVar("T")
_TO_DO = {
    "sign_in": "sign in",
    "second_factor": "enter the code of the second factor",
    "captcha": "complete the CAPTCHA",
}


@dataclass(frozen=True)
class YourTurn:
    """`kind` is sign_in, second_factor, captcha or human. `url` has no query."""

    kind: str
    url: str
    to_do: str

    def __str__(self) -> str:
        return f"your turn: {self.to_do} at {self.url} in the browser window of cardsync-agent"


class Turns:
    """`say` is called with each turn that begins, and with None when it is over. `pause` sleeps,
    and raises if the agent must stop.
    """

    def __init__(
        self,
        pack: Pack,
        pace: HumanPace,
        say: Callable[[YourTurn | None], None],
        pause: Callable[[float], None],
        notify: Callable[[str, str], object] = notify,
    ) -> None:
        self._pack, self._pace, self._say, self._pause = pack, pace, say, pause
        self._notify = notify

    def now(self, page: Page) -> YourTurn | None:
        """Return the person's turn that the page requires, or None."""
        if not is_allowed(page.url, self._pack.origins):
            signs_in = is_allowed(page.url, self._pack.sign_in_origins)
            return YourTurn("sign_in", shown(page.url), _TO_DO["sign_in"]) if signs_in else None
        for turn in self._pack.your_turn:
            if turn.url is not None and fits(turn.url, page.url):
                return YourTurn(turn.kind, shown(page.url), _TO_DO[turn.kind])
        every = [name for turn in self._pack.your_turn for name in turn.any_of]
        if not is_seen(page, *(self._pack.elements[name] for name in every)):
            return None
        for turn in self._pack.your_turn:
            if is_seen(page, *(self._pack.elements[name] for name in turn.any_of)):
                return YourTurn(turn.kind, shown(page.url), _TO_DO[turn.kind])
        return None

    def wait(self, page: Page, turn: YourTurn) -> None:
        """Return once the marketplace's page needs no person any more. Raises YourTurnMissed."""
        self.wait_until(page, turn, lambda: self._is_over(page))

    def wait_until(self, page: Page, turn: YourTurn, is_over: Callable[[], bool]) -> None:
        """Wait until the person has done what a step needs."""
        self._begin(page, turn)
        ends = clock.monotonic() + self._pace.turn_most
        while not _safely(page, is_over):
            if clock.monotonic() > ends:
                raise YourTurnMissed(
                    f"{turn}; the sync app waited {clock.span(self._pace.turn_most)}"
                )
            self._pause(self._pace.turn_look)
            _let_happen(page)
            new = _safely(page, lambda: self.now(page))
            if new and new.kind != turn.kind and turn.kind != "human":
                turn = new
                self._begin(page, turn)
        self._say(None)

    def _begin(self, page: Page, turn: YourTurn) -> None:
        self._say(turn)
        self._notify("cardsync-agent", str(turn))
        _safely(page, page.bring_to_front)

    def _is_over(self, page: Page) -> bool:
        at_home = page.url != "about:blank" and is_allowed(page.url, self._pack.origins)
        whole = at_home and page.evaluate("() => document.readyState") == "complete"
        return whole and self.now(page) is None


def _safely(page: Page, look: Callable[[], T]) -> T | None:
    """Check a page that may be navigating. Return None if the page cannot be read right now."""
    from playwright.sync_api import Error

    try:
        return look()
    except Error as problem:
        if page.is_closed():
            raise BrowserGone(
                "the tab was closed while it was your turn; it is opened again at the next try"
            ) from problem
        return None


def _let_happen(page: Page) -> None:
    """Let Playwright process the browser's events."""
    _safely(page, lambda: page.wait_for_timeout(1))
