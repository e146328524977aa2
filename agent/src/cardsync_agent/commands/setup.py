"""`cardsync-agent setup`: asks for server, key, folder and the adapter of the marketplace, writes
the settings, lets the person sign in, and makes a first run that changes nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from cardsync_agent.commands import service
from cardsync_agent.commands.checks import key_trouble
from cardsync_agent.commands.draft import Draft, own_key_file, write
from cardsync_agent.commands.dry_run import dry_run
from cardsync_agent.commands.options import (
    Commands,
    add_config,
    add_credential,
    config_path,
    folder_of,
    for_people,
    key_of_options,
    new_command,
)
from cardsync_agent.commands.questions import NoAnswer, Questions
from cardsync_agent.events import Reporter
from cardsync_agent.inbox import TABLES
from cardsync_agent.marketplace.adapters import ADAPTERS, adapter_of
from cardsync_agent.shops.found_browser import find_browser
from cardsync_agent.shops.quiet_hours import read_span
from cardsync_agent.shops.settings_file import (
    Settings,
    Shop,
    checked_name,
    key_of,
    read_settings,
)
from cardsync_agent.state import is_locked
from cardsync_agent.usage import KEY_VARIABLE, UsageProblem, checked_key, checked_server

SERVER = "http://127.0.0.1:8000"
FOLDER = "~/cards"
FIRST_NAME = "cards"
MEANINGS = {
    "folder": "you save the marketplace's exports in a folder, and import the price files",
    "browser": "the sync app does it in a browser of its own, in which you sign in once",
}


def setup(arguments: argparse.Namespace, say: Reporter) -> int:
    if not arguments.yes and not sys.stdin.isatty():
        raise UsageProblem(
            "setup asks questions and needs a terminal; without one give --yes with --server,"
            " --key-file and --folder"
        )
    config = config_path(arguments)
    try:
        draft = _ask(arguments, Questions(asks=not arguments.yes), config)
    except NoAnswer:
        _print("Nothing was changed.")
        return 1
    draft.folder.mkdir(parents=True, exist_ok=True)
    settings = write(draft, config)
    shop = settings.shop(draft.name)
    _print(
        f"Wrote {config} and the key's file {draft.key_file}." if draft.key else f"Wrote {config}."
    )
    try:
        _first_run(arguments, shop, say)
        _offer_service(arguments, config)
    except (NoAnswer, KeyboardInterrupt):
        _print("\nStopped; the settings are kept.")
        return 1
    return 0


def _ask(arguments: argparse.Namespace, ask: Questions, config: Path) -> Draft:
    present = read_settings(config) if config.exists() else None
    name = _ask_name(arguments, ask, present)
    before = next((shop for shop in present.shops if shop.name == name), None) if present else None
    server, key, key_file = _ask_server_and_key(arguments, ask, before, name, config)
    folder = ask.text(
        "Folder for exports and price files",
        arguments.folder or str(before.folder if before else _free_folder(name, present)),
        lambda text: _folder(text, name, present),
    )
    draft = Draft(name, server, folder, key_file, key, "folder")
    _ask_marketplace(arguments, ask, before, draft)
    draft.quiet = _ask_quiet(arguments, ask, before)
    draft.pace = dict(before.pace) if before else {}
    if ask.asks and not ask.agree(f"Write these settings to {config}"):
        raise NoAnswer
    return draft


def _ask_name(arguments: argparse.Namespace, ask: Questions, present: Settings | None) -> str:
    """Return the shop's name; a first shop gets the default, because most people have only one
    shop.
    """
    first = present.shops[0].name if present else FIRST_NAME
    if arguments.shop or present is None:
        return checked_name(arguments.shop or first)
    names = ", ".join(shop.name for shop in present.shops)
    question = f"Name of the shop (there {'is' if len(present.shops) == 1 else 'are'} {names};"
    return ask.text(f"{question} another name adds one)", first, checked_name)


def _ask_server_and_key(
    arguments: argparse.Namespace, ask: Questions, before: Shop | None, name: str, config: Path
) -> tuple[str, str | None, Path]:
    """Ask for server and key until the server accepts the key. The key is None if its file stays
    unchanged.
    """
    server, own = arguments.server or (before.server if before else SERVER), None
    while True:
        server = ask.text("Address of the cardsync server", server, _server)
        key, key_file = _ask_key(arguments, ask, before, own)
        if (trouble := key_trouble(server, key)) is None:
            if ask.asks:
                _print("  The server accepts the key.")
            break
        if not ask.asks:
            raise UsageProblem(trouble)
        _print(f"  {trouble}")
        # The next question does not offer a key that the server has refused as its default.
        own = None if "does not accept" in trouble else key
    if key_file is not None:
        return server, None, key_file
    return server, key, own_key_file(name, config)


def _ask_key(
    arguments: argparse.Namespace, ask: Questions, before: Shop | None, last: str | None
) -> tuple[str, Path | None]:
    """Return the key, and its file if that stays unchanged."""
    if arguments.key_file and last is None:
        return key_of_options(arguments), folder_of(arguments.key_file)
    given = last or arguments.key or os.environ.get(KEY_VARIABLE, "")
    kept = _kept_key(before) if not given else None
    key = ask.secret("API key, from the dashboard (not shown)", given or kept or "", _key)
    if before is not None and before.key_file is not None and key == kept:
        return key, before.key_file
    return key, None


def _kept_key(before: Shop | None) -> str | None:
    try:
        return key_of(before, {}) if before else None
    except UsageProblem:
        return None


def _server(text: str) -> str:
    return checked_server(text, "the server's address")


def _key(text: str) -> str:
    if not text:
        raise UsageProblem(f"no API key: make one in the dashboard, or give it by {KEY_VARIABLE}")
    return checked_key(text)


def _free_folder(name: str, present: Settings | None) -> str:
    return FOLDER if present is None else f"{FOLDER}-{name}"


def _folder(text: str, name: str, present: Settings | None) -> Path:
    folder = folder_of(text)
    for shop in present.shops if present else ():
        if shop.folder == folder and shop.name != name:
            raise UsageProblem(f"{folder} is the folder of the shop {shop.name}: take another")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise UsageProblem(f"{there} is no folder that you can write: take another")
    return folder


def _ask_marketplace(
    arguments: argparse.Namespace, ask: Questions, before: Shop | None, draft: Draft
) -> None:
    found = find_browser(os.environ)
    if ask.asks and found is not None:
        _print(f"  Found {found.name} ({found.path}).")
    default = arguments.adapter or (before.adapter if before else "folder")
    if not before and not arguments.adapter and found is not None and "browser" in ADAPTERS:
        default = "browser"
    draft.adapter = default
    if not arguments.adapter and len(ADAPTERS) > 1:
        options = [(name, MEANINGS[name]) for name in ADAPTERS]
        draft.adapter = ask.choice("The way to your marketplace:", options, default)
    adapter_of(Shop("", "", draft.folder, adapter=draft.adapter))
    if draft.adapter != "browser":
        return
    known = ADAPTERS["browser"].marketplaces()
    chosen = before.browser if before else None
    first = chosen.marketplace if chosen else (known[0] if known else "")
    draft.marketplace = _ask_which(ask, arguments.marketplace or first, known)
    draft.locale = arguments.locale or (chosen.locale if chosen else "en-US")
    draft.browser = arguments.browser or (str(chosen.path) if chosen and chosen.path else "")
    if found is None and not draft.browser:
        raise UsageProblem("no browser was found: install Chrome, Edge or Chromium, or --browser")


def _ask_which(ask: Questions, default: str, known: list[str]) -> str:
    def check(text: str) -> str:
        if text not in known:
            raise UsageProblem(f"the sync app knows these marketplaces: {', '.join(known)}")
        return text

    if known == [default]:
        return default
    return ask.text(f"Marketplace ({', '.join(known)})", default, check)


def _ask_quiet(arguments: argparse.Namespace, ask: Questions, before: Shop | None) -> list[str]:
    def check(text: str) -> list[str]:
        if text in ("", "none"):
            return []
        try:
            return [str(read_span(part)) for part in text.split(",")]
        except ValueError as trouble:
            raise UsageProblem(str(trouble)) from trouble

    given: str | None = arguments.quiet_hours
    if given is not None:
        return check(given)
    kept = ", ".join(map(str, before.quiet)) if before else ""
    return ask.text("Quiet hours, in which no sync starts, like 22:00-07:00", kept or "none", check)


def _first_run(arguments: argparse.Namespace, shop: Shop, say: Reporter) -> None:
    if is_locked(shop.folder):
        _print(f"A sync app works in {shop.folder}: start it again, so that it reads the settings.")
        return
    adapter = adapter_of(shop)
    if adapter.sign_in is not None and not arguments.no_sign_in:
        _print("Sign in to your marketplace in the browser window that opens.")
        try:
            adapter.sign_in(shop, say)
        except UsageProblem as problem:
            _print(f"{problem}. Mend that, then run `cardsync-agent setup` again.")
            return
    if arguments.no_dry_run:
        return
    if shop.adapter == "folder" and not _has_files(shop):
        _print(
            f"Save your marketplace's exports in {shop.folder / 'inbox'}; the sync app finds them."
        )
        return
    _print("A first run in Review Mode: nothing is changed at your marketplace.")
    for line in dry_run(shop, say):
        _print(line)


def _has_files(shop: Shop) -> bool:
    """Return whether there is an export: a run without one would only report a failed sync."""
    inbox = shop.folder / "inbox"
    inbox.mkdir(parents=True, exist_ok=True)
    return any(path.name.lower().endswith(TABLES) for path in inbox.iterdir())


def _offer_service(arguments: argparse.Namespace, config: Path) -> None:
    if service.is_installed(service.plan_here(config)):
        _print("Next: `cardsync-agent service install` starts the service with these settings.")
        return
    ask = Questions(asks=not arguments.yes)
    if ask.asks and ask.agree("Start the sync app now, and whenever you sign in"):
        try:
            plan = service.install(config)
        except service.ServiceProblem as problem:
            _print(f"That is not possible here: {problem}.")
        else:
            _print(f"The sync app runs. {plan.hint}")
            return
    _print(
        "Next: `cardsync-agent run` starts the sync app, `cardsync-agent service install` starts it"
    )
    _print("      with your sign-in, and `cardsync-agent doctor` checks everything.")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def add(commands: Commands) -> None:
    command = new_command(
        commands,
        setup,
        "setup",
        help="set up a shop, by questions or, with --yes, by options",
        description="Set up a shop: its server and key, its folder, and the way to its"
        " marketplace. Then a first run that changes nothing says what it found.",
    )
    for_people(command)
    add_config(command)
    command.add_argument("--shop", metavar="NAME", help="the shop's name")
    add_credential(command)
    command.add_argument("--folder", metavar="DIR", help=f"the shop's folder ({FOLDER})")
    command.add_argument("--adapter", choices=tuple(MEANINGS), help="the way to the marketplace")
    command.add_argument("--marketplace", metavar="NAME", help="with --adapter browser")
    command.add_argument("--locale", metavar="LOCALE", help="the marketplace's language (en-US)")
    command.add_argument("--browser", metavar="FILE", help="a browser that is not found by itself")
    command.add_argument("--quiet-hours", metavar="SPAN", help="like 22:00-07:00, or none")
    command.add_argument("--yes", action="store_true", help="ask nothing, take the defaults")
    command.add_argument("--no-sign-in", action="store_true", help="do not open the marketplace")
    command.add_argument("--no-dry-run", action="store_true", help="make no first run")
