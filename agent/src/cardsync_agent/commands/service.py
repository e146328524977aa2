"""`cardsync-agent service install|remove|status`: starts the agent when the person signs in."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from cardsync_agent import durable
from cardsync_agent.commands.options import (
    Commands,
    add_config,
    config_path,
    for_people,
    new_command,
)
from cardsync_agent.commands.service_files import Command, Plan, plan_for
from cardsync_agent.events import Reporter
from cardsync_agent.shops.own_command import own_command
from cardsync_agent.shops.settings_file import key_of, read_settings
from cardsync_agent.usage import UsageProblem

SECONDS = 120


class ServiceProblem(Exception):
    """The service manager refused a command. The message is one sentence for people."""


def plan_here(config: Path) -> Plan:
    return plan_for(
        sys.platform,
        os.environ,
        Path.home(),
        own_command(os.environ, sys.executable),
        config,
        os.getuid() if sys.platform != "win32" else 0,
    )


def install(config: Path) -> Plan:
    """Install and start the service, or update an installed service. Raises UsageProblem and
    ServiceProblem.
    """
    for shop in read_settings(config).shops:
        _check_key(shop.name, key_of(shop, {}) if shop.key or shop.key_file else None)
    plan = plan_here(config)
    if not _succeeds(plan.probe):
        raise ServiceProblem(plan.advice)
    plan.file.parent.mkdir(parents=True, exist_ok=True)
    durable.write(plan.file, plan.content)
    for command in plan.try_before:
        _succeeds(command)
    for command in plan.install:
        _do(command)
    return plan


def remove(plan: Plan) -> bool:
    """Stop the service and remove everything that `install` created; return whether there was any."""
    was = plan.file.exists()
    if was:
        for command in plan.try_remove:
            _succeeds(command)
    for path in (plan.file, *plan.leftovers):
        path.unlink(missing_ok=True)
    if was:
        for command in plan.after_remove:
            _succeeds(command)
    return was


def is_installed(plan: Plan) -> bool:
    return plan.file.exists()


def is_active(plan: Plan) -> bool:
    return is_installed(plan) and _succeeds(plan.is_active)


def _check_key(name: str, key: str | None) -> None:
    if key is None:
        raise UsageProblem(
            f"the shop {name!r} has no key_file, and a service does not see this terminal's"
            " environment; `cardsync-agent setup` makes one"
        )


def _run(command: Command) -> tuple[int, str]:
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as trouble:
        return 1, str(trouble)
    return ended.returncode, ended.stdout.decode("utf-8", "replace").strip()


def _succeeds(command: Command) -> bool:
    return _run(command)[0] == 0


def _do(command: Command) -> None:
    code, output = _run(command)
    if code != 0:
        last = output.splitlines()[-1] if output else f"exit code {code}"
        raise ServiceProblem(f"`{' '.join(command)}` does not work: {last}")


def _command(arguments: argparse.Namespace, _: Reporter) -> int:
    config = config_path(arguments)
    try:
        return {"install": _install, "remove": _remove, "status": _status}[arguments.action](config)
    except ServiceProblem as problem:
        sys.stderr.write(f"cardsync-agent: {problem}\n")
        return 1


def _install(config: Path) -> int:
    plan = install(config)
    _print(f"The sync app is installed as a service and started ({plan.file}). {plan.hint}")
    return 0


def _remove(config: Path) -> int:
    was = remove(plan_here(config))
    _print("The service is removed; the settings stay." if was else "There is no service.")
    return 0


def _status(config: Path) -> int:
    plan = plan_here(config)
    if not is_installed(plan):
        _print("not installed; `cardsync-agent service install` installs it")
        return 1
    active = is_active(plan)
    words = "running" if active else "not running; `cardsync-agent service install` starts it"
    _print(f"installed ({plan.file}), {words}")
    return 0 if active else 1


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


def add(commands: Commands) -> None:
    service = new_command(
        commands,
        _command,
        "service",
        help="start the sync app with your sign-in: install, remove or status",
        description="Let this computer start the sync app whenever you sign in.",
    )
    for_people(service)
    service.add_argument("action", choices=("install", "remove", "status"))
    add_config(service)
