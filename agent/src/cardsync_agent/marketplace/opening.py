"""The arguments with which an adapter is opened, and its lines of `doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from cardsync_agent.client import Client
from cardsync_agent.events import Reporter
from cardsync_agent.pace import Pace, Stop
from cardsync_agent.shops.settings_file import Shop


@dataclass(frozen=True)
class Look:
    """One line of `doctor`. `word` is ok, look (it must be fixed) or note."""

    word: str
    name: str
    text: str


@dataclass(frozen=True)
class Opening:
    """The arguments with which an adapter is opened. `keys` are the pinned keys that verify
    workflow packs.
    """

    shop: Shop
    pace: Pace
    stop: Stop
    say: Reporter
    client: Client
    keys: Sequence[Ed25519PublicKey]
