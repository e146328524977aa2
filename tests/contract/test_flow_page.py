"""docs/flow.md names files: each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = sorted(set(re.findall(r"`([\w/]+\.(?:py|md))`", (ROOT / "docs" / "flow.md").read_text())))
ROOMS = [ROOT, ROOT / "src" / "cardsync", ROOT / "agent" / "src" / "cardsync_agent", ROOT / "docs"]


@pytest.mark.parametrize("name", NAMED)
def test_a_file_that_the_flow_page_names_is_there(name: str) -> None:
    assert any((room / name).is_file() for room in ROOMS)
