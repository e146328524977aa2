"""Every shell block of the documentation's Start and Run, and of the API guide, is run as it is.

Each page has a folder of its own and one shell; the server is a real one. This alone finds a command
of the documentation that asks for something else by now.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.processes import Server, a_folder

from docs_commands import DOCS, pages_of, shell_of

PAGES = [page for page in [*pages_of("Start", "Run"), DOCS / "api.md"] if shell_of(page)]
pytestmark = pytest.mark.day


@pytest.fixture(scope="module")
def server():
    with a_folder() as folder, Server(folder) as server:
        yield server


def test_the_parts_have_commands_to_run():
    assert {page.stem for page in PAGES} >= {
        "install", "first-hour", "your-export", "sync-app", "upgrading", "api",
    }  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page, server, tmp_path):
    if "jq" in shell_of(page) and shutil.which("jq") is None:
        pytest.skip("needs jq (Debian: apt install jq)")
    programs = Path(sys.executable).parent
    text = shell_of(page).replace("http://127.0.0.1:8000", server.url)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=tmp_path,
        env=server.env | {"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
