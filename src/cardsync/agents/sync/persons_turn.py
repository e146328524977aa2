"""The reasons for which an agent waits for its person. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args

TurnKind = Literal["sign_in", "second_factor", "captcha", "human", "confirm_repair", "paused"]
KINDS: Final[dict[str, TurnKind]] = {kind: kind for kind in get_args(TurnKind)}


class Turn(NamedTuple):
    """An agent waits since this time, at a page of this host."""

    kind: TurnKind
    host: str | None
    since: datetime


def read_turn(kind: str | None, host: str | None, since: datetime | None) -> Turn | None:
    """Return the turn that a report or a row describes. None for an empty kind, and for a kind of a
    newer program.
    """
    known = KINDS.get(kind or "")
    return Turn(known, host or None, since) if known and since else None
