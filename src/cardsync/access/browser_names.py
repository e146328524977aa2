"""Names a browser for its member by the User-Agent header, like `Firefox on Windows`. Pure."""

from __future__ import annotations

from typing import Final

# The first that is named counts: most browsers name those that they descend from, too.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
UNKNOWN: Final = "Another program"


def browser_name(user_agent: str | None) -> str:
    sent = user_agent or ""
    browser = next((name for mark, name in _BROWSERS if mark in sent), UNKNOWN)
    system = next((name for mark, name in _SYSTEMS if mark in sent), "")
    return f"{browser} on {system}" if system else browser
