"""Finds this computer's browser for the agent, and its version, for `setup` and `doctor`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from cardsync_agent.browser.find_browser import Found, find
from cardsync_agent.browser.trouble import NoBrowser

SECONDS = 20


def find_browser(environ: Mapping[str, str]) -> Found | None:
    """Return the browser; None if there is no browser, or if the environment names a missing
    program.
    """
    try:
        return find(environ)
    except NoBrowser:
        return None


def version_of(browser: Path) -> str | None:
    """Return the browser's own version text, such as `Chromium 140.0.1`."""
    try:
        ended = subprocess.run(
            [browser, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = ended.stdout.decode("utf-8", "replace").split("\n")
    return lines[0].strip()[:80] or None
