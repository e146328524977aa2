"""The service of each platform, as data: its file's text, and the commands that install, remove and
check it. Pure.
"""

from __future__ import annotations

import plistlib
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from xml.sax.saxutils import escape

NAME = "cardsync-agent"
UNIT = f"{NAME}.service"
# A step ends within this time; afterwards the system may kill the agent.
ENDING_SECONDS = 100
Command = tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A platform's service. The commands of `try_before` and `try_remove` may fail. `leftovers` are
    other files that the service writes. `probe` fails if the platform's service manager is
    missing; then `advice` is the remedy.
    """

    file: Path
    content: bytes
    try_before: tuple[Command, ...]
    install: tuple[Command, ...]
    try_remove: tuple[Command, ...]
    after_remove: tuple[Command, ...]
    is_active: Command
    probe: Command
    advice: str
    hint: str
    leftovers: tuple[Path, ...] = ()


def plan_for(
    platform: str,
    environ: Mapping[str, str],
    home: Path,
    command: Sequence[str],
    config: Path,
    uid: int,
) -> Plan:
    """Return the plan. `platform` is sys.platform, `command` starts the agent, `config` is its
    settings file.
    """
    words = [*command, "run", "--config", str(config)]
    if platform == "win32":
        return _windows(environ, words, config)
    if platform == "darwin":
        return _macos(home, words, uid)
    return _linux(environ, home, words)


def _linux(environ: Mapping[str, str], home: Path, words: Sequence[str]) -> Plan:
    base = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    user = ("systemctl", "--user")
    return Plan(
        file=base / "systemd" / "user" / UNIT,
        content=systemd_unit(words).encode(),
        try_before=(),
        install=(
            (*user, "daemon-reload"),
            (*user, "enable", UNIT),
            (*user, "restart", UNIT),
        ),
        try_remove=((*user, "disable", "--now", UNIT),),
        after_remove=((*user, "daemon-reload"), (*user, "reset-failed", UNIT)),
        is_active=(*user, "is-active", "--quiet", UNIT),
        probe=(*user, "show-environment"),
        advice="this computer has no systemd for its users: let its own way of starting programs"
        " at sign-in start `cardsync-agent run`",
        hint="It runs while you are signed in; `loginctl enable-linger` keeps it running"
        " afterwards.",
    )


def systemd_unit(words: Sequence[str]) -> str:
    """Return the user unit's text.

    Stopping the service stops only the agent: its browser stays open and signed in.
    """
    return f"""\
[Unit]
Description=cardsync sync app: carries files between the marketplace and the cardsync server
After=graphical-session.target

[Service]
ExecStart={" ".join(map(_systemd_word, words))}
Restart=on-failure
RestartSec=10
# A mistake in the settings does not mend itself.
RestartPreventExitStatus=2
KillMode=process
TimeoutStopSec={ENDING_SECONDS}

[Install]
WantedBy=default.target
"""


def _systemd_word(word: str) -> str:
    for plain, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(plain, written)
    return f'"{word}"'


def _macos(home: Path, words: Sequence[str], uid: int) -> Plan:
    file = home / "Library" / "LaunchAgents" / f"{NAME}.plist"
    log = home / "Library" / "Logs" / f"{NAME}.log"
    domain, target = f"gui/{uid}", f"gui/{uid}/{NAME}"
    return Plan(
        file=file,
        content=launchd_plist(words, log),
        # A loaded service cannot be loaded again.
        try_before=(("launchctl", "bootout", target),),
        install=(("launchctl", "bootstrap", domain, str(file)),),
        try_remove=(("launchctl", "bootout", target),),
        after_remove=(),
        is_active=("launchctl", "print", target),
        probe=("launchctl", "print", domain),
        advice="nobody is signed in at this computer's screen: install the service from there",
        hint="It starts when you sign in.",
        leftovers=(log,),
    )


def launchd_plist(words: Sequence[str], log: Path) -> bytes:
    """Return the text of a launch agent that starts at sign-in and restarts unless it was
    stopped.
    """
    return plistlib.dumps(
        {
            "Label": NAME,
            "ProgramArguments": list(words),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": ENDING_SECONDS,
            # Stopping the service stops only the agent: its browser stays open and signed in.
            "AbandonProcessGroup": True,
            "StandardErrorPath": str(log),
        }
    )


def _windows(environ: Mapping[str, str], words: Sequence[str], config: Path) -> Plan:
    file = config.with_name(f"{NAME}-task.xml")
    user = "\\".join(part for name in ("USERDOMAIN", "USERNAME") if (part := environ.get(name, "")))
    task = ("/TN", NAME)
    return Plan(
        file=file,
        content=task_xml(words, user).encode("utf-16"),
        try_before=(("schtasks", "/End", *task),),
        install=(
            ("schtasks", "/Create", *task, "/XML", str(file), "/F"),
            ("schtasks", "/Run", *task),
        ),
        try_remove=(("schtasks", "/End", *task), ("schtasks", "/Delete", *task, "/F")),
        after_remove=(),
        is_active=("schtasks", "/Query", *task),
        probe=("schtasks", "/Query"),
        advice="this computer's task scheduler does not answer: start its service, then try again",
        hint="It starts when you sign in.",
    )


def task_xml(words: Sequence[str], user: str) -> str:
    """Return the task that starts the agent, without a window, when this person signs in."""
    program = PureWindowsPath(words[0])
    if program.name.lower() == "python.exe":
        program = program.with_name("pythonw.exe")
    arguments = subprocess.list2cmdline(words[1:])
    return f"""\
<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Carries files between the marketplace and the cardsync server.</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>{escape(user)}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{escape(user)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{escape(str(program))}</Command>
      <Arguments>{escape(arguments)}</Arguments>
    </Exec>
  </Actions>
</Task>
"""
