"""The usage errors of the command line, and the two values that every command checks: the server's
address and the API key.
"""

from __future__ import annotations

import httpx

KEY_VARIABLE = "CARDSYNC_AGENT_KEY"


class UsageProblem(Exception):
    """The usage is wrong; the message is one sentence for the person at the command line."""


def checked_server(text: str, name: str = "--server") -> str:
    """Return the server's address without its last slash. Raises UsageProblem, naming `name`."""
    try:
        is_address = text.startswith(("http://", "https://")) and bool(httpx.URL(text).host)
    except httpx.InvalidURL:
        is_address = False
    if not is_address:
        raise UsageProblem(f"{name} must be an address like https://cards.example, not {text!r}")
    return text.rstrip("/")


def checked_key(text: str) -> str:
    """Return the key without white space around it. Raises UsageProblem, which never contains the
    key.
    """
    key = text.strip()
    if not (key and key.isascii() and key.isprintable() and " " not in key):
        raise UsageProblem(
            "the API key holds characters that no key has; is it one line, copied whole?"
        )
    return key
