"""What a way to the marketplace is opened with, and the lines of `doctor` that it writes."""

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
    """One line of `doctor`: `word` is ok, look (it must be mended) or note."""

    word: str
    name: str
    text: str


@dataclass(frozen=True)
class Opening:
    """All that an adapter is opened with; `keys` are pinned, for workflow packs as for releases."""

    shop: Shop
    pace: Pace
    stop: Stop
    say: Reporter
    client: Client
    keys: Sequence[Ed25519PublicKey]
