"""`cardsync-agent status`, `logs`, `pause` and `resume`, which read and write the shops' homes,
with or without a running agent.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cardsync_agent import clock
from cardsync_agent.commands.options import Commands, add_shops, new_command, shops_of_options
from cardsync_agent.commands.status_words import Known, lines_of, state_of
from cardsync_agent.events import Reporter
from cardsync_agent.marketplace.adapters import adapter_of
from cardsync_agent.shops.log_file import last_lines, new_lines
from cardsync_agent.shops.rest import pause, read_length, rest_now, resume
from cardsync_agent.shops.settings_file import Shop
from cardsync_agent.shops.status_file import read_status
from cardsync_agent.state import is_locked, make_home
from cardsync_agent.usage import UsageProblem


def known_of(shop: Shop) -> Known:
    return Known(
        runs=is_locked(shop.folder),
        status=read_status(shop.home),
        rest=rest_now(shop.home, shop.quiet),
        unfinished=_unfinished(shop.home),
    )


def _unfinished(home: Path) -> str | None:
    """Read the journal without its lock, which the running agent has."""
    try:
        cycle: Any = json.loads((home / "state.json").read_bytes()).get("cycle")
        if not cycle:
            return None
        what = "the task" if cycle.get("task") else "the sync"
        return f"{what} that it began: {cycle['kind'].replace('_', ' ')}"
    except (OSError, ValueError, KeyError, AttributeError):
        return None


def _status(arguments: argparse.Namespace, _: Reporter) -> int:
    shops = shops_of_options(arguments)
    known = [(shop, known_of(shop)) for shop in shops]
    if arguments.json:
        _print(json.dumps([_as_json(shop, facts) for shop, facts in known], indent=1))
        return 0
    for number, (shop, facts) in enumerate(known):
        if number:
            _print("")
        _print(f"{shop.name}  {shop.folder}" if shop.name else str(shop.folder))
        for line in lines_of(facts, clock.now()):
            _print(f"  {line}")
        for look in adapter_of(shop).looks(shop):
            if look.word != "ok":
                _print(f"  {look.name}: {look.text}")
    return 0


def _as_json(shop: Shop, known: Known) -> dict[str, object]:
    rest = known.rest
    return {
        "shop": shop.name,
        "folder": str(shop.folder),
        "state": state_of(known),
        "runs": known.runs,
        "paused": rest is not None,
        "paused_reason": rest.reason if rest else None,
        "paused_until": clock.rfc3339(rest.until) if rest and rest.until else None,
        "unfinished": known.unfinished,
        "status": asdict(known.status) if known.status else None,
    }


def _logs(arguments: argparse.Namespace, _: Reporter) -> int:
    shops = shops_of_options(arguments)
    if arguments.follow and len(shops) > 1:
        raise UsageProblem("--follow shows one shop: name it with --shop")
    for shop in shops:
        if len(shops) > 1:
            _print(f"{shop.name}  {shop.folder}")
        for line in last_lines(shop.home, arguments.n):
            _print(line)
    if arguments.follow:
        with suppress(KeyboardInterrupt, BrokenPipeError):
            for line in new_lines(shops[0].home):
                _print(line)
    return 0


def _pause(arguments: argparse.Namespace, _: Reporter) -> int:
    try:
        length = read_length(arguments.length)
    except ValueError as trouble:
        raise UsageProblem(str(trouble)) from trouble
    for shop in shops_of_options(arguments):
        rest = pause(make_home(shop.folder), length)
        _print(_of(shop, f"{rest.text}. A step that runs now ends first."))
    return 0


def _resume(arguments: argparse.Namespace, _: Reporter) -> int:
    for shop in shops_of_options(arguments):
        was_paused = resume(shop.home)
        rest = rest_now(shop.home, shop.quiet)
        text = rest.text if rest else "goes on" if was_paused else "was not paused"
        _print(_of(shop, text))
    return 0


def _of(shop: Shop, text: str) -> str:
    return f"{shop.name}: {text}" if shop.name else text


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def add(commands: Commands) -> None:
    status = new_command(commands, _status, "status", help="say what the sync app does now")
    add_shops(status)
    status.add_argument("--json", action="store_true", help="for programs")
    logs = new_command(commands, _logs, "logs", help="show the sync app's own log")
    add_shops(logs)
    logs.add_argument("-n", type=_count, default=30, metavar="N", help="so many lines (30)")
    logs.add_argument("-f", "--follow", action="store_true", help="and those that follow")
    paused = new_command(
        commands,
        _pause,
        "pause",
        help="start no sync and no task for 1h, 4h, 24h, or until resumed (on)",
        description="Start no sync and no task for a time. A step that runs now ends first.",
    )
    paused.add_argument("length", metavar="1h|4h|24h|on", help="how long; on: until resumed")
    add_shops(paused)
    resumed = new_command(commands, _resume, "resume", help="end the pause")
    add_shops(resumed)


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number
