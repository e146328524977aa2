"""The room of kills: one for each test process, on a stock server where one is given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.kills.room import SETTINGS, Room
from tests.system.processes import OnStock, Server, a_folder

from another_database import another_database


@pytest.fixture(scope="session")
def room(request: pytest.FixtureRequest) -> Iterator[Room]:
    with a_folder() as folder, ExitStack() as stack:
        if "CARDSYNC_TEST_DATABASE_URL" in os.environ:
            # Its worker lives as long as the process: it would take the work of other tests.
            beside = another_database(request.getfixturevalue("owner_url"), "kills")
            server: Server = OnStock(folder, stack.enter_context(beside), **SETTINGS)
        else:
            server = Server(folder, **SETTINGS)
        yield Room(stack.enter_context(server))
