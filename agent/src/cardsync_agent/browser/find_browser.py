"""Finds a browser that the agent can drive: the computer's Chrome, Edge or Chromium, else
Playwright's own Chromium. CARDSYNC_AGENT_BROWSER may contain the path of another browser.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cardsync_agent.browser.trouble import NoBrowser

VARIABLE = "CARDSYNC_AGENT_BROWSER"
Kind = Literal["chrome", "edge", "chromium", "playwright", "given"]

_ON_PATH: tuple[tuple[str, str, Kind], ...] = (
    ("google-chrome-stable", "Google Chrome", "chrome"),
    ("google-chrome", "Google Chrome", "chrome"),
    ("microsoft-edge-stable", "Microsoft Edge", "edge"),
    ("microsoft-edge", "Microsoft Edge", "edge"),
    ("chromium", "Chromium", "chromium"),
    ("chromium-browser", "Chromium", "chromium"),
)
_OF_MAC: tuple[tuple[str, Kind], ...] = (
    ("Google Chrome", "chrome"),
    ("Microsoft Edge", "edge"),
    ("Chromium", "chromium"),
)
_OF_WINDOWS: tuple[tuple[str, str, Kind], ...] = (
    ("Google/Chrome/Application/chrome.exe", "Google Chrome", "chrome"),
    ("Microsoft/Edge/Application/msedge.exe", "Microsoft Edge", "edge"),
    ("Chromium/Application/chrome.exe", "Chromium", "chromium"),
)
_PLAYWRIGHTS = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium-*/chrome-win*/chrome.exe",
)


@dataclass(frozen=True)
class Found:
    path: Path
    name: str
    kind: Kind


def find(environ: Mapping[str, str], platform: str = sys.platform) -> Found | None:
    """Return the first browser that can be started. Raises NoBrowser if the variable does not name
    a program.
    """
    if given := environ.get(VARIABLE, "").strip():
        path = Path(given).expanduser()
        if not _can_start(path):
            raise NoBrowser(f"{VARIABLE} names {given}, which is no program")
        return Found(path, path.stem, "given")
    return next((found for found in _candidates(environ, platform) if _can_start(found.path)), None)


def _can_start(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _candidates(environ: Mapping[str, str], platform: str) -> Iterator[Found]:
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "~").expanduser()
    if platform == "win32":
        roots = [environ.get(name) for name in ("PROGRAMFILES", "PROGRAMFILES(X86)")]
        for root in filter(None, (*roots, environ.get("LOCALAPPDATA"))):
            for below, name, kind in _OF_WINDOWS:
                yield Found(Path(root) / below, name, kind)
        cache = Path(environ.get("LOCALAPPDATA") or home) / "ms-playwright"
    elif platform == "darwin":
        for folder in (Path("/Applications"), home / "Applications"):
            for name, kind in _OF_MAC:
                yield Found(folder / f"{name}.app" / "Contents" / "MacOS" / name, name, kind)
        cache = home / "Library" / "Caches" / "ms-playwright"
    else:
        for command, name, kind in _ON_PATH:
            if there := shutil.which(command, path=environ.get("PATH", "")):
                yield Found(Path(there), name, kind)
        cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "ms-playwright"
    cache = Path(environ.get("PLAYWRIGHT_BROWSERS_PATH") or cache)
    for pattern in _PLAYWRIGHTS:
        for path in sorted(cache.glob(pattern), key=_revision, reverse=True):
            yield Found(path, "Playwright's Chromium", "playwright")


def _revision(path: Path) -> int:
    """Return the number in `chromium-1234`, so that the newest is first."""
    numbers = [part.partition("-")[2] for part in path.parts if part.startswith("chromium-")]
    return int(numbers[-1]) if numbers and numbers[-1].isdigit() else 0
