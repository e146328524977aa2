"""The room of kills: one for each test process, on a stock server where one is given."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.kills.room import SETTINGS, Room
from tests.system.processes import OnStock, Server, a_folder


@pytest.fixture(scope="session")
def room(request: pytest.FixtureRequest) -> Iterator[Room]:
    with a_folder() as folder:
        if "CARDSYNC_TEST_DATABASE_URL" in os.environ:
            server: Server = OnStock(folder, request.getfixturevalue("owner_url"), **SETTINGS)
        else:
            server = Server(folder, **SETTINGS)
        with server:
            yield Room(server)
