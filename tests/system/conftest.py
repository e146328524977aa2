"""The parts that tests of real processes share: a running server, agent programs, and the browser
of the pages' tests, Debian's chromium by Playwright.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.contract.agent_process import Agents
from tests.system.processes import Server, a_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def _running_server() -> Iterator[Server]:
    groups = ("ANONYMOUS", "SIGN_IN", "SIGN_IN_ACCOUNT", "SIGN_IN_ADDRESS")
    unlimited = {f"RATE_LIMIT_{group}": "0" for group in groups}
    with (
        a_folder() as folder,
        Server(folder, WEB_WORKERS="2", DEVELOPMENT_PAGES="true", **unlimited) as started,
    ):
        yield started


@pytest.fixture(scope="module")
def server(_running_server: Server) -> Server:
    """The server of all files of a test process that need no settings of their own; each makes its
    own sellers. It is started again if a test has left it ended.
    """
    if _running_server.process is None or _running_server.process.poll() is not None:
        _running_server.start()
    return _running_server


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    program = Agents(tmp_path_factory.mktemp("agents"))
    yield program
    program.close()


# One for each file: its event loop would be in the way of asynchronous tests in the same process.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        yield started
        started.close()
