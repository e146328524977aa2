"""The service of each platform: its file is what that platform reads, and names the agent's own
command.
"""

from __future__ import annotations

import plistlib
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cardsync_agent.commands.service_files import (
    launchd_plist,
    plan_for,
    systemd_unit,
    task_xml,
)

HOME = Path("/home/kim")
CONFIG = HOME / "my settings" / "agent.toml"
COMMAND = ["/opt/python", "-m", "cardsync_agent"]
TASK = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"


def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    plan = plan_for("linux", {}, HOME, COMMAND, CONFIG, 1000)
    assert plan.file == HOME / ".config/systemd/user/cardsync-agent.service"
    lines = plan.content.decode().splitlines()
    [start] = [line for line in lines if line.startswith("ExecStart=")]
    assert start == (
        'ExecStart="/opt/python" "-m" "cardsync_agent" "run" "--config"'
        ' "/home/kim/my settings/agent.toml"'
    )
    assert all(command[:2] == ("systemctl", "--user") for command in plan.install)


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is absent")
    unit = tmp_path / "cardsync-agent.service"
    unit.write_text(systemd_unit(["/bin/sh", "-c", 'echo "100 %" \\ $HOME']))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--recursive-errors=no", unit],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert "cardsync-agent" not in checked.stderr, checked.stderr


def test_what_systemd_would_expand_is_written_as_it_is() -> None:
    unit = systemd_unit(['/a "b"', "50 %n", "$HOME", "back\\slash"])
    assert 'ExecStart="/a \\"b\\"" "50 %%n" "$$HOME" "back\\\\slash"' in unit


def test_launchd_reads_the_plist() -> None:
    plan = plan_for("darwin", {}, HOME, COMMAND, CONFIG, 501)
    assert plan.file == HOME / "Library/LaunchAgents/cardsync-agent.plist"
    read = plistlib.loads(plan.content)
    assert read["ProgramArguments"] == [*COMMAND, "run", "--config", str(CONFIG)]
    assert read["RunAtLoad"] is True
    assert read["KeepAlive"] == {"SuccessfulExit": False}
    assert plan.install == (("launchctl", "bootstrap", "gui/501", str(plan.file)),)
    assert Path(read["StandardErrorPath"]) in plan.leftovers
    assert plan.content == launchd_plist(read["ProgramArguments"], plan.leftovers[0])


def test_the_task_scheduler_reads_the_task() -> None:
    command = ["C:\\Py & Co\\python.exe", "-m", "cardsync_agent"]
    environ = {"USERDOMAIN": "SHOP", "USERNAME": "kim"}
    plan = plan_for("win32", environ, HOME, command, CONFIG, 0)
    assert plan.file == CONFIG.with_name("cardsync-agent-task.xml")
    text = plan.content.decode("utf-16")
    assert text.startswith('<?xml version="1.0" encoding="UTF-16"?>')
    task = ElementTree.fromstring(plan.content)
    run = task.find(f"{TASK}Actions/{TASK}Exec")
    assert run is not None
    assert run.findtext(f"{TASK}Command") == "C:\\Py & Co\\pythonw.exe"
    assert run.findtext(f"{TASK}Arguments") == (f'-m cardsync_agent run --config "{CONFIG}"')
    assert task.findtext(f"{TASK}Triggers/{TASK}LogonTrigger/{TASK}UserId") == "SHOP\\kim"
    assert task.findtext(f"{TASK}Settings/{TASK}ExecutionTimeLimit") == "PT0S"
    assert plan.try_remove[-1] == ("schtasks", "/Delete", "/TN", "cardsync-agent", "/F")


def test_a_program_that_is_no_python_keeps_its_name() -> None:
    assert "<Command>C:\\agent.exe</Command>" in task_xml(["C:\\agent.exe", "run"], "kim")
