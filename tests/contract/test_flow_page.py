"""docs/flow.md names files: each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = sorted(set(re.findall(r"`([\w/]+\.(?:py|md))`", (ROOT / "docs" / "flow.md").read_text())))
ROOMS = [ROOT, ROOT / "src" / "cardsync", ROOT / "agent" / "src" / "cardsync_agent", ROOT / "docs"]


def test_each_file_that_the_flow_page_names_is_there() -> None:
    assert [name for name in NAMED if not any((room / name).is_file() for room in ROOMS)] == []
