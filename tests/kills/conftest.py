"""The room of kills: one for each test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kills.room import SETTINGS, Room
from tests.system.processes import Server, a_folder


@pytest.fixture(scope="session")
def room() -> Iterator[Room]:
    with a_folder() as folder, Server(folder, **SETTINGS) as server:
        yield Room(server)
