"""The reasons for which an agent waits for its person. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args

TurnKind = Literal["sign_in", "second_factor", "captcha", "human", "confirm_repair", "paused"]
KINDS: Final[dict[str, TurnKind]] = {kind: kind for kind in get_args(TurnKind)}


class Turn(NamedTuple):
    """The reason for which an agent waits, the host of its page, and the beginning of the wait."""

    kind: TurnKind
    host: str | None
    since: datetime


def read_turn(kind: str | None, host: str | None, since: datetime | None) -> Turn | None:
    """Return the turn of a report or a row; None for an empty kind and for the unknown kind of a
    newer agent.
    """
    known = KINDS.get(kind or "")
    return Turn(known, host or None, since) if known and since else None
