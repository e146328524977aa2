"""`cardsync-agent run`: one shop by options, or the shops of the settings file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from cardsync_agent.commands.options import (
    Commands,
    add_config,
    add_only_shop,
    add_server,
    folder_of,
    key_of_options,
    new_command,
    settings_of_options,
)
from cardsync_agent.events import Reporter
from cardsync_agent.pace import Pace, Stop
from cardsync_agent.shops.all_shops import Crew, stop_with_parent
from cardsync_agent.shops.one_shop import Errand, run_shop
from cardsync_agent.shops.own_command import own_command
from cardsync_agent.shops.settings_file import Settings, Shop, key_of
from cardsync_agent.signed_release import read_key
from cardsync_agent.updates import UpdatePolicy
from cardsync_agent.usage import UsageProblem, checked_server

PINNED_VARIABLE = "CARDSYNC_AGENT_RELEASE_PUBLIC_KEY"
COMMAND_VARIABLE = "CARDSYNC_AGENT_UPDATE_COMMAND"
KINDS = ("full", "pricing", "orders", "refunds", "feedback", "sales", "account")


def run(arguments: argparse.Namespace, say: Reporter) -> int:
    if arguments.request and not arguments.once:
        raise UsageProblem("--request needs --once")
    stop = Stop()
    stop.listen()
    if arguments.child:
        stop_with_parent(stop)
    if arguments.server is None and arguments.folder is None:
        return _run_settings(arguments, say, stop)
    if arguments.server is None or arguments.folder is None or arguments.config or arguments.shop:
        raise UsageProblem(
            "give both --server and --folder, or neither of them to run the shops of the settings"
            " file"
        )
    shop = Shop("", checked_server(arguments.server), folder_of(arguments.folder))
    key, pace = key_of_options(arguments), _pace(arguments)
    return run_shop(shop, key, _policy(arguments), pace, say, stop, _errand(arguments))


def _run_settings(arguments: argparse.Namespace, say: Reporter, stop: Stop) -> int:
    """Run one shop in this process; run several shops in child processes."""
    settings = settings_of_options(arguments)
    if arguments.key or arguments.key_file:
        raise UsageProblem("--key and --key-file belong to --server: a settings file names its own")
    chosen = [settings.shop(arguments.shop)] if arguments.shop else list(settings.shops)
    if len(chosen) > 1:
        commands = {shop.name: _command_of(shop, settings, arguments) for shop in chosen}
        crew = Crew(commands, say, _pace(arguments), stop)
        return crew.once() if arguments.once else crew.run()
    [shop] = chosen
    policy, pace = _policy(arguments, settings, shop), _pace(arguments, shop)
    return run_shop(shop, key_of(shop), policy, pace, say, stop, _errand(arguments))


def _errand(arguments: argparse.Namespace) -> Errand:
    return Errand(once=arguments.once, request=arguments.request)


def _command_of(shop: Shop, settings: Settings, arguments: argparse.Namespace) -> list[str]:
    command = own_command(os.environ, sys.executable)
    command += ["run", "--config", str(settings.path), "--shop", shop.name, "--child"]
    for name in ("quiet", "json_events", "once"):
        if getattr(arguments, name):
            command.append("--" + name.replace("_", "-"))
    if arguments.request:
        command += ["--request", arguments.request]
    for key in arguments.release_public_key or ():
        command += ["--release-public-key", key]
    if arguments.update_command:
        command += ["--update-command", arguments.update_command]
    if arguments.interval is not None:
        command += ["--interval", str(arguments.interval)]
    return command


def _policy(
    arguments: argparse.Namespace, settings: Settings | None = None, shop: Shop | None = None
) -> UpdatePolicy:
    """Return the update policy. Of several shops only the first fetches updates, because there is
    one program to replace.
    """
    environ = os.environ.get(PINNED_VARIABLE, "").replace(",", " ").split()
    of_file: Sequence[str] = settings.release_public_keys if settings else ()
    try:
        keys = [read_key(text) for text in arguments.release_public_key or environ or of_file]
    except ValueError as trouble:
        raise UsageProblem(
            f"a release key is not what `cardsync admin release keygen` prints: {trouble}"
        ) from trouble
    text = arguments.update_command or os.environ.get(COMMAND_VARIABLE, "")
    command = (text or (settings and settings.update_command) or "").strip() or None
    if command and not keys:
        raise UsageProblem(
            "--update-command needs --release-public-key:"
            " nothing is fetched that no pinned key signed"
        )
    fetches = settings is None or shop is None or shop.name == settings.shops[0].name
    return UpdatePolicy(keys, command if fetches else None, fetches=fetches)


def _pace(arguments: argparse.Namespace, shop: Shop | None = None) -> Pace:
    environ = dict(os.environ)
    if arguments.interval is not None:
        environ["CARDSYNC_AGENT_PACE_INTERVAL"] = str(arguments.interval)
    try:
        return Pace.from_env(environ, shop.pace if shop else None)
    except ValueError as trouble:
        raise UsageProblem(
            f"a CARDSYNC_AGENT_PACE_* variable is not a number: {trouble}"
        ) from trouble


def add(commands: Commands) -> None:
    command = new_command(
        commands,
        run,
        "run",
        help="work, until stopped, for the shops of the settings file or for one folder",
        description="Work until stopped: for the shops of the settings file, or, with --server and"
        " --folder, for one folder.",
    )
    add_server(command)
    command.add_argument(
        "--folder", metavar="DIR", help="holds inbox/, exports/ and outbox/; with --server"
    )
    add_config(command)
    add_only_shop(command)
    command.add_argument(
        "--once",
        action="store_true",
        help="ask once: run the cycle if told to sync, else say why not",
    )
    command.add_argument(
        "--request",
        nargs="?",
        const="full",
        choices=KINDS,
        metavar="KIND",
        help=f"with --once: request a sync first ({', '.join(KINDS)}; default full)",
    )
    _add_updates(command)
    command.add_argument("--interval", type=float, help=argparse.SUPPRESS)
    command.add_argument("--child", action="store_true", help=argparse.SUPPRESS)


def _add_updates(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--release-public-key",
        action="append",
        metavar="KEY",
        help=f"fetch updates that this key signed; repeatable, or {PINNED_VARIABLE};"
        " without it updates are only announced",
    )
    command.add_argument(
        "--update-command",
        metavar="COMMAND",
        help=f"started once with the path of each verified update; or {COMMAND_VARIABLE}",
    )
