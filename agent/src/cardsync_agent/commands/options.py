"""The options that several commands share, with their help: the output, the credential, and the
shops of a command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from cardsync_agent.events import Reporter
from cardsync_agent.shops.places import settings_path
from cardsync_agent.shops.settings_file import Settings, Shop, key_of, read_settings
from cardsync_agent.state import HOME
from cardsync_agent.usage import KEY_VARIABLE, UsageProblem, checked_key, checked_server

# `add_subparsers` returns this type.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Work: TypeAlias = Callable[[argparse.Namespace, Reporter], int]


def new_command(
    commands: Commands, work: Work, name: str, help: str, description: str | None = None
) -> argparse.ArgumentParser:
    """Add a command that calls `work`; its description defaults to its help."""
    said = description or f"{help[:1].upper()}{help[1:]}."
    command = commands.add_parser(name, help=help, description=said)
    command.set_defaults(work=work)
    return command


def for_people(command: argparse.ArgumentParser) -> None:
    """Make the command print plain lines, whatever the agent's output is."""
    command.set_defaults(quiet=False, json_events=False)


def add_server(command: argparse.ArgumentParser) -> None:
    add_credential(command)
    add_output(command)


def add_credential(command: argparse.ArgumentParser) -> None:
    command.add_argument("--server", metavar="URL", help="the cardsync server")
    command.add_argument(
        "--key", help=f"the API key; better --key-file or the environment variable {KEY_VARIABLE}"
    )
    command.add_argument("--key-file", metavar="FILE", help="a file that holds the API key")


def add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--quiet", action="store_true", help="say only what went wrong")
    command.add_argument(
        "--json-events",
        action="store_true",
        help="one JSON object per event instead of lines for people",
    )


def add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--config", metavar="FILE", help="the settings file (default: this computer's)"
    )


def add_settings(command: argparse.ArgumentParser) -> None:
    """Add the option for a shop of the settings file, used without --server."""
    add_config(command)
    command.add_argument("--shop", metavar="NAME", help="the shop of the settings file")


def add_only_shop(command: argparse.ArgumentParser) -> None:
    command.add_argument("--shop", metavar="NAME", help="only this shop of the settings file")


def add_agents_folder(command: argparse.ArgumentParser, *, required: bool = False) -> None:
    command.add_argument("--folder", required=required, metavar="DIR", help="the sync app's folder")


def add_shops(command: argparse.ArgumentParser) -> None:
    """Add the option for the shops of a command for people, which prints plain lines."""
    for_people(command)
    add_config(command)
    add_only_shop(command)
    command.add_argument(
        "--folder", metavar="DIR", help="the folder of a sync app without a settings file"
    )


def key_of_options(arguments: argparse.Namespace) -> str:
    """Read the key from --key, else --key-file, else the environment: the key file and the
    environment keep the key out of the process list.
    """
    key: str = arguments.key or ""
    if not key and arguments.key_file:
        try:
            key = Path(arguments.key_file).expanduser().read_text()
        except (OSError, UnicodeDecodeError) as trouble:
            raise UsageProblem(f"the key file cannot be read: {trouble}") from trouble
    key = (key or os.environ.get(KEY_VARIABLE, "")).strip()
    if not key:
        raise UsageProblem(f"no API key: give --key, --key-file or {KEY_VARIABLE}")
    return checked_key(key)


def folder_of(text: str) -> Path:
    return Path(text).expanduser().resolve()


def config_path(arguments: argparse.Namespace) -> Path:
    if arguments.config:
        return folder_of(arguments.config)
    return settings_path(sys.platform, os.environ, Path.home())


def settings_of_options(arguments: argparse.Namespace) -> Settings:
    return read_settings(config_path(arguments))


def server_and_key(arguments: argparse.Namespace, file: Path | None = None) -> tuple[str, str]:
    """Return server and key of the options, else of a shop of the settings file: the named shop,
    the shop whose folder contains `file`, or the only shop. Raises UsageProblem.
    """
    if arguments.server is not None:
        return checked_server(arguments.server), key_of_options(arguments)
    shop = _one_shop(arguments, file)
    return shop.server, key_of(shop)


def one_folder(arguments: argparse.Namespace) -> Path:
    """Return --folder, else the folder of the named shop, or of the only shop."""
    return folder_of(arguments.folder) if arguments.folder else _one_shop(arguments).folder


def _one_shop(arguments: argparse.Namespace, file: Path | None = None) -> Shop:
    settings = settings_of_options(arguments)
    if arguments.shop:
        return settings.shop(arguments.shop)
    mine = [shop for shop in settings.shops if file is not None and shop.folder in file.parents]
    if len(mine or settings.shops) != 1:
        names = ", ".join(shop.name for shop in settings.shops)
        raise UsageProblem(f"name the shop by --shop: {names}")
    return (mine or list(settings.shops))[0]


def shops_of_options(arguments: argparse.Namespace) -> list[Shop]:
    """Return the shops of the command: all shops of the settings file, the named shop, or the shop
    of --folder, whose server is unknown.
    """
    if arguments.folder:
        folder = folder_of(arguments.folder)
        if not (folder / HOME).is_dir():
            raise UsageProblem(f"no sync app has worked in {folder}")
        return [Shop(name="", server="", folder=folder)]
    settings = settings_of_options(arguments)
    return [settings.shop(arguments.shop)] if arguments.shop else list(settings.shops)
