"""`cardsync-agent doctor`: one line for each requirement, with the remedy for a problem."""

from __future__ import annotations

import argparse
import sys

from cardsync_agent.commands.checks import look, of_settings, of_shop
from cardsync_agent.commands.options import (
    Commands,
    add_config,
    add_only_shop,
    for_people,
    new_command,
    settings_of_options,
)
from cardsync_agent.events import Reporter
from cardsync_agent.marketplace.opening import Look
from cardsync_agent.usage import UsageProblem


def doctor(arguments: argparse.Namespace, _: Reporter) -> int:
    """Print all checks; return 1 if there is a problem to fix."""
    try:
        settings = settings_of_options(arguments)
    except UsageProblem as problem:
        _show([look("settings", str(problem))])
        return 1
    shops = [settings.shop(arguments.shop)] if arguments.shop else settings.shops
    found = of_settings(settings)
    _show(found)
    for shop in shops:
        sys.stdout.write(f"\n{shop.name}\n")
        looks = of_shop(shop)
        _show(looks)
        found += looks
    return 1 if any(one.word == "look" for one in found) else 0


def _show(looks: list[Look]) -> None:
    for one in looks:
        sys.stdout.write(f"{one.word:<5} {one.name:<12} {one.text}\n")
    sys.stdout.flush()


def add(commands: Commands) -> None:
    command = new_command(
        commands,
        doctor,
        "doctor",
        help="check everything, one line each, with what to do",
        description="Check settings, server, key, clock, marketplace, folder and service. Lines"
        " with `look` must be mended: the exit code is then 1.",
    )
    for_people(command)
    add_config(command)
    add_only_shop(command)
