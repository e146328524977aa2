"""Takes one download of the browser into the agent's folder: a complete CSV file, or nothing.

The browser itself writes the file. The agent watches its progress, so that a download that is too
large or stalls ends early.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardsync_agent import clock
from cardsync_agent.browser.origins import may_download, origin_of, shown
from cardsync_agent.browser.trouble import BadDownload, ForeignOrigin

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page, Response

MOST_BYTES = 100_000_000
STALLED = 60.0
_TYPES = frozenset(
    {
        "text/csv", "application/csv", "text/comma-separated-values", "application/octet-stream",
        "application/vnd.ms-excel", "application/force-download", "application/x-download",
    }
)  # fmt: skip
_PART = ".part"


@dataclass
class _Progress:
    guid: str = ""
    url: str = ""
    name: str = ""
    state: str = ""
    received: int = 0
    total: int = 0
    moved: float = 0.0
    types: dict[str, str] = field(default_factory=dict)


class CsvDownload:
    """A context manager that watches the browser's downloads. The caller's block acts on the page
    and then calls `take`.
    """

    def __init__(
        self, browser: Browser, page: Page, folder: Path, origins: Collection[str],
        most_bytes: int = MOST_BYTES, stalled: float = STALLED,
    ) -> None:  # fmt: skip
        self._browser, self._page, self._folder = browser, page, folder
        self._origins, self._most, self._stalled = origins, most_bytes, stalled
        self._parts = folder / _PART
        self._at = _Progress()
        self._session: CDPSession | None = None

    def __enter__(self) -> CsvDownload:
        self._parts.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._session = self._browser.new_browser_cdp_session()
        self._session.on("Browser.downloadWillBegin", self._on_begin)
        self._session.on("Browser.downloadProgress", self._on_progress)
        self._page.on("response", self._on_response)
        self._session.send(
            "Browser.setDownloadBehavior",
            {"behavior": "allowAndName", "downloadPath": str(self._parts), "eventsEnabled": True},
        )
        return self

    def __exit__(self, *_: object) -> None:
        from playwright.sync_api import Error

        assert self._session is not None
        try:
            self._page.remove_listener("response", self._on_response)
            if self._at.guid and self._at.state not in ("completed", "canceled"):
                self._session.send("Browser.cancelDownload", {"guid": self._at.guid})
            # Restore the usual folder of the person's own downloads.
            self._session.send("Browser.setDownloadBehavior", {"behavior": "default"})
            self._session.detach()
        except Error:
            pass  # the browser is closed, so its settings are gone
        discard_parts(self._folder)

    def has_begun(self) -> bool:
        return bool(self._at.guid)

    def take(self, target: Path, between: Callable[[], None]) -> Path:
        """Wait for the file and put it at `target`. `between` is called repeatedly. Raises
        BadDownload and ForeignOrigin.
        """
        at = self._at
        if not may_download(at.url, self._origins):
            raise ForeignOrigin(
                f"the file would come from {origin_of(at.url) or shown(at.url)}, which is no"
                " address of this marketplace; it was not taken"
            )
        while at.state not in ("completed", "canceled"):
            if max(at.received, at.total) > self._most:
                raise BadDownload(f"{at.name} has more than {self._most:,} bytes; it was not taken")
            if clock.monotonic() - at.moved > self._stalled:
                raise BadDownload(f"{at.name} does not come any further; it was not taken")
            between()
        part = self._parts / at.guid
        if at.state == "canceled" or not part.exists():
            raise BadDownload(f"{at.name} was cut off; it was not taken")
        self._check(part)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(part, target)  # noqa: PTH105
        return target

    def _check(self, part: Path) -> None:
        at, size = self._at, part.stat().st_size
        if at.total and size != at.total:
            raise BadDownload(f"{at.name} has {size:,} of {at.total:,} bytes; it was not taken")
        if size > self._most:
            raise BadDownload(f"{at.name} has more than {self._most:,} bytes; it was not taken")
        said = at.types.get(at.url, "")
        if said and said not in _TYPES:
            raise BadDownload(f"{at.name} is {said}, and no CSV file; it was not taken")
        with part.open("rb") as file:
            if problem := no_csv(file.read(4096)):
                raise BadDownload(f"{at.name} {problem}; it was not taken")

    def _on_begin(self, event: dict[str, Any]) -> None:
        if not self._at.guid:
            self._at.guid, self._at.url = str(event["guid"]), str(event["url"])
            self._at.name = Path(str(event.get("suggestedFilename") or "the file")).name
            self._at.moved = clock.monotonic()

    def _on_progress(self, event: dict[str, Any]) -> None:
        at = self._at
        if event["guid"] != at.guid:
            return
        if event["receivedBytes"] > at.received:
            at.moved = clock.monotonic()
        at.received = max(at.received, int(event["receivedBytes"]))
        at.total = max(at.total, int(event["totalBytes"]))
        at.state = str(event["state"])

    def _on_response(self, response: Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._at.types[response.url] = kind


def no_csv(head: bytes) -> str | None:
    """Return why content with this beginning is not a CSV file."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "is empty"
    if text.startswith(b"<"):
        return "is a page, and no CSV file"
    if b"\0" in text or text.startswith((b"%PDF", b"PK\x03\x04")):
        return "is no text, and no CSV file"
    return None


def discard_parts(folder: Path) -> None:
    """Remove unfinished files of an earlier run."""
    parts = folder / _PART
    for part in parts.iterdir() if parts.is_dir() else ():
        part.unlink(missing_ok=True)
