"""Starts the seller's browser with its own profile and attaches to it, or attaches to the browser
that an earlier agent left running. The browser stays open when the agent ends, so that the seller
stays signed in.

The agent works in one tab, and does not use the person's tabs. Nothing hides that the browser is
automated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from cardsync_agent import clock, durable
from cardsync_agent.browser.find_browser import Found
from cardsync_agent.browser.trouble import NoBrowser, browser_errors

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

_PORT_FILE = "DevToolsActivePort"
_TAB_FILE = "cardsync-tab"
_STARTS_WITHIN = 60.0
_FLAGS = (
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-crash-restore-bubble",
)
EXTRA = "driving a browser needs the extra: install cardsync-agent[browser]"


def profile_of(home: Path) -> Path:
    """Return the folder of the browser's profile in the agent's home."""
    return home / "browser"


class SellersBrowser:
    """`page()` starts or finds the browser. `release()` detaches from it and leaves it running."""

    def __init__(
        self, found: Found, profile: Path, *, headless: bool = False, flags: Sequence[str] = ()
    ) -> None:
        self._found, self._profile = found, profile
        self._flags = [*_FLAGS, f"--user-data-dir={profile}", *flags]
        if headless:
            self._flags += ["--headless=new", "--window-size=1280,900"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            self._flags.append("--no-sandbox")  # as root, Chromium runs only without its sandbox
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._page: Page | None = None

    def page(self) -> Page:
        """Return the agent's tab. Raises NoBrowser and BrowserGone."""
        browser = self.browser()
        if self._page is None or self._page.is_closed():
            self._page = self._tab(browser)
        return self._page

    def browser(self) -> Browser:
        """Return the attached browser; if it does not answer, attach again."""
        if self._browser is not None and not _answers(self._browser):
            self.release()
        if self._browser is None:
            self._browser = self._attach()
        return self._browser

    def is_running(self) -> bool:
        """Return whether a browser of this profile answers."""
        return self._address() is not None

    def release(self) -> None:
        """Detach and end Playwright's driver; the browser and its tabs stay open."""
        driver, self._driver, self._browser, self._page = self._driver, None, None, None
        if driver is not None:
            # A driver that was ended from outside cannot detach properly.
            with suppress(Exception):
                driver.stop()

    def quit(self) -> None:
        """Close the browser and detach from it."""
        if self.is_running():
            with browser_errors():
                self.browser().new_browser_cdp_session().send("Browser.close")
        self.release()

    def _attach(self) -> Browser:
        self._page = None
        self._drive()
        assert self._driver is not None
        address = self._address() or self._start()
        with browser_errors():
            return self._driver.chromium.connect_over_cdp(address, is_local=True)

    def _drive(self) -> None:
        if self._driver is not None:
            return
        try:
            from playwright.sync_api import sync_playwright
        except ImportError as missing:
            raise NoBrowser(EXTRA) from missing
        self._driver = sync_playwright().start()

    def _address(self) -> str | None:
        """Return the debugging address of the profile's browser, if the browser answers there.

        A dead browser leaves its port file, and another program may use the port now.
        """
        try:
            port, path = (self._profile / _PORT_FILE).read_text().split("\n")[:2]
            connection = HTTPConnection("127.0.0.1", int(port), timeout=3.0)
            try:
                connection.request("GET", "/json/version")
                said = json.loads(connection.getresponse().read())
            finally:
                connection.close()
            if not str(said["webSocketDebuggerUrl"]).endswith(path):
                return None
        except (OSError, ValueError, KeyError, TypeError, HTTPException):
            return None
        return f"ws://127.0.0.1:{port}{path}"

    def _start(self) -> str:
        self._profile.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._profile.chmod(0o700)
        (self._profile / _PORT_FILE).unlink(missing_ok=True)
        (self._profile / _TAB_FILE).unlink(missing_ok=True)
        try:
            process = _launch([str(self._found.path), *self._flags, "about:blank"])
        except OSError as problem:
            raise NoBrowser(f"{self._found.name} cannot be started: {problem}") from problem
        ends = clock.monotonic() + _STARTS_WITHIN
        while clock.monotonic() < ends:
            if address := self._address():
                return address
            if process.poll() is not None and not (self._profile / _PORT_FILE).exists():
                raise NoBrowser(
                    f"{self._found.name} ended at once; close the window that it may have open"
                    " for cardsync-agent, and check that this session has a screen"
                )
            clock.sleep(0.05)
        raise NoBrowser(f"{self._found.name} does not answer within {_STARTS_WITHIN:.0f} s")

    def _tab(self, browser: Browser) -> Page:
        """Find the agent's tab by its ID, or open a new tab."""
        file = self._profile / _TAB_FILE
        with browser_errors():
            context = browser.contexts[0]
            pages = context.pages
            if file.exists():
                ours = file.read_text().strip()
                page = next((page for page in pages if _id_of(page) == ours), None)
            else:  # the browser was just started, with one empty tab
                page = next((page for page in pages if page.url == "about:blank"), None)
            page = page or context.new_page()
            durable.write(file, _id_of(page).encode())
            return page


def _answers(browser: Browser) -> bool:
    from playwright.sync_api import Error

    if not browser.is_connected():
        return False
    try:
        session = browser.new_browser_cdp_session()
        session.send("Browser.getVersion")
        session.detach()
    except Error:
        return False
    return True


def _id_of(page: Page) -> str:
    session = page.context.new_cdp_session(page)
    try:
        return str(session.send("Target.getTargetInfo")["targetInfo"]["targetId"])
    finally:
        session.detach()


def _launch(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a program that outlives this program."""
    nowhere = subprocess.DEVNULL
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        return subprocess.Popen(
            command, stdin=nowhere, stdout=nowhere, stderr=nowhere, creationflags=flags
        )
    return subprocess.Popen(
        command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
