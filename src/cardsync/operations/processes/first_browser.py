"""Opens the browser on a first run, if a person at a terminal has a display of this machine."""

from __future__ import annotations

import os
import sys
import webbrowser


def show(address: str) -> None:
    if not (sys.stderr.isatty() and _has_display()):
        return
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    # A text-mode browser would take over the terminal.
    if type(browser) is not webbrowser.GenericBrowser:
        browser.open(address)


def _has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
