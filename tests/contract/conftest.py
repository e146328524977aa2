"""The agent's tests: a forking agent program for each module, a server that is played, a seller's
folder with one export in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.agent_fake_server import FakeServer, pricing_csv
from tests.contract.agent_process import Agents
from tests.contract.agent_runs import drop


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    program = Agents(tmp_path_factory.mktemp("agents"))
    yield program
    program.close()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shop = tmp_path / "shop"
    (shop / "inbox").mkdir(parents=True)
    drop(shop, pricing_csv(200))
    return shop
