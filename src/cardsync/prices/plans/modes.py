"""Decides by the permission modes, the risk and the changes whether a plan applies, asks a member
or is refused. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from cardsync.access.caller import Caller
from cardsync.prices.plans.risk import Risk

Mode = Literal["deny", "always_ask", "ask_for_mutations", "auto_low_risk", "auto_unless_critical"]
Credential = Literal["key", "token"]
Answer = Literal["apply", "ask", "refuse"]
DEFAULTS: Final[dict[Credential, Mode]] = {"key": "auto_low_risk", "token": "ask_for_mutations"}
_STRICTEST: Final[tuple[Answer, ...]] = ("refuse", "ask", "apply")


def credential_of(caller: Caller) -> Credential | None:
    """Return the kind of the caller's credential; a member's session needs no permission, and a
    phone's link has no more than a token.
    """
    credential = caller.identity.credential
    if credential == "session":
        return None
    return "key" if credential == "key" else "token"


def answer(mode: Mode, risk: Risk, *, changes: bool) -> Answer:
    """Return the answer for one kind of action. Under `ask_for_mutations` a plan that would change
    nothing asks no member; under `always_ask` it asks too.
    """
    if mode == "deny":
        return "refuse"
    if mode == "always_ask":
        return "ask"
    if mode == "ask_for_mutations":
        return "ask" if changes else "apply"
    if mode == "auto_low_risk":
        return "apply" if risk == "low" else "ask"
    return "ask" if risk == "critical" else "apply"


def answer_of_all(modes: Iterable[Mode], risk: Risk, *, changes: bool) -> Answer:
    """Return the strictest answer: a plan applies as a whole or not at all."""
    found = {answer(mode, risk, changes=changes) for mode in modes}
    return next(one for one in _STRICTEST if one in found)
