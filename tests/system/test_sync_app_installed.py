"""The sync app as a seller gets it: by the lines that set-up shows, and as the one file of a release.

The other tests start it from the checkout; only here an install lacks what the app needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.system.inventories import inventory
from tests.system.processes import Server, processes_of

from cardsync.agents.releases.own_sync_app import address
from cardsync.dashboard.agent_commands import shells
from waiting import until

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy"))
import release

pytestmark = [pytest.mark.night, pytest.mark.day]
PIP = (sys.executable, "-m", "pip")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    release.wheel_of(release.TOP / "agent", folder)
    return folder


def test_the_lines_of_linux_install_the_app_and_bring_an_inventory(
    server: Server, dist: Path, tmp_path: Path
) -> None:
    [wheel] = dist.glob("*.whl")
    packages = tmp_path / "packages"
    release.run(*PIP, "wheel", "-q", "-w", str(packages), str(wheel))
    seller = server.seller(sync_mode="full")
    home = tmp_path / "home"
    inbox = home / "cards" / "inbox"
    inbox.mkdir(parents=True)
    (inbox / "export.csv").write_bytes(inventory(60))
    os.utime(inbox / "export.csv", (time.time() - 3600,) * 2)
    app = address(server.url)
    [linux] = [one.lines for one in shells(server.url, app, seller.api_key) if one.key == "linux"]
    # The server has the app; a folder has what it needs.
    for path in packages.glob("cardsync_agent-*"):
        path.unlink()
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
           "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages)}  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as out, subprocess.Popen(
        ["sh", "-ec", linux], cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
    ) as shell:  # fmt: skip
        try:
            until(
                lambda: shell.poll() is not None or seller.sql(
                    "SELECT 1 FROM upload WHERE seller_id = %(seller)s AND state = 'done'"
                ),
                lambda: log.read_text(),
                180,
            )  # fmt: skip
            assert shell.poll() is None, log.read_text()
        finally:
            for process in processes_of(home):
                process.terminate()
            shell.wait(60)
    assert (home / "cardsync-sync" / "bin" / "cardsync-agent").exists()
    assert seller.get("/api/cards").json()["total"] == 60


def test_the_one_file_starts_and_says_its_version_and_its_help(
    dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = release.TOP / "requirements" / "release.txt"
    tools = tmp_path / "tools"
    release.run(*PIP, "install", "-q", "--require-hashes", "--target", str(tools), "-r", str(pins))
    monkeypatch.setattr(release, "TOOLS", tools)
    release.sync_app(dist)
    [file] = dist.glob("*.pex")
    programs = [path for path in dist.glob("cardsync-agent-*") if path != file]
    # A machine that does not reach where pex takes Python from says so, and has no half a program.
    assert programs or "no sync app that brings Python along" in capsys.readouterr().out
    for path in (file, *programs):
        env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"] if path == file else ""}
        told = [
            subprocess.run(
                [path, option], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
            ).stdout
            for option in ("--version", "--help")
        ]
        assert told[0] == f"cardsync-agent {release.__version__}\n"
        assert "usage: cardsync-agent" in told[1]
