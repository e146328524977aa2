"""Checks the address of each navigation of the agent's tab, and of the windows that the tab opens,
before the request is sent. A request to a foreign origin is blocked. The rest of the browser is not
affected.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cardsync_agent.browser.origins import is_allowed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page


class NavigationGuard:
    """`blocked` is the address of the last blocked request. The person's own tabs are not
    affected.
    """

    def __init__(self, browser: Browser, page: Page, origins: Collection[str]) -> None:
        self._origins = origins
        self.blocked: str | None = None
        self._page = page.context.new_cdp_session(page)
        self._main = str(self._page.send("Target.getTargetInfo")["targetInfo"]["targetId"])
        # The frames of our windows, and the addresses for which a window is about to open.
        self._ours, self._opening = {self._main}, set[str]()
        self._page.on("Page.windowOpen", self._on_window)
        self._page.send("Page.enable")
        # A new window sends its first request before the agent can attach to it, so requests of the
        # whole browser are intercepted.
        self._browser: CDPSession = browser.new_browser_cdp_session()
        self._browser.on("Fetch.requestPaused", self._on_request)
        patterns = [{"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"}]
        self._browser.send("Fetch.enable", {"patterns": patterns})

    def close(self) -> None:
        """End the interception; without this call, it ends when the agent has detached."""
        from playwright.sync_api import Error

        for session in (self._browser, self._page):
            with suppress(Error):
                session.detach()

    def _on_window(self, event: dict[str, Any]) -> None:
        self._opening.add(str(event["url"]))

    def _on_request(self, event: dict[str, Any]) -> None:
        from playwright.sync_api import Error

        asked = {"requestId": event["requestId"]}
        with suppress(Error):  # the tab, or the browser, was closed in the meantime
            if self._may_go(event):
                self._browser.send("Fetch.continueRequest", asked)
            else:
                self.blocked = str(event["request"]["url"])
                self._browser.send("Fetch.failRequest", asked | {"errorReason": "Aborted"})

    def _may_go(self, event: dict[str, Any]) -> bool:
        url, frame = str(event["request"]["url"]), str(event["frameId"])
        if is_allowed(url, self._origins):
            return True
        if frame in self._ours or self._is_our_window(frame, url):
            return False
        # A frame in our page may show another site, but no form may send data to that site.
        return event["request"]["method"] == "GET" or frame not in self._frames()

    def _is_our_window(self, frame: str, url: str) -> bool:
        """Return whether our tab opened the window: the window names it as its opener, or the tab
        was about to open this address.
        """
        targets = self._browser.send("Target.getTargets")["targetInfos"]
        window = next((one for one in targets if one["targetId"] == frame), None)
        is_new = window is not None and window["url"] in ("", "about:blank")
        if window is None or not (
            window.get("openerId") in self._ours or (is_new and url in self._opening)
        ):
            return False
        self._ours.add(frame)
        return True

    def _frames(self) -> set[str]:
        tree = self._page.send("Page.getFrameTree")["frameTree"]
        found, left = set[str](), [tree]
        while left:
            one = left.pop()
            found.add(one["frame"]["id"])
            left += one.get("childFrames", [])
        return found
