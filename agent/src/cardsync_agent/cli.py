"""The command line: `cardsync-agent run`, `imported`, `cards` and `mcp`.

Exit codes are 0 (done, or the server asks to wait), 1 (the command failed) and 2 (wrong usage).
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

from cardsync_agent import __version__
from cardsync_agent.assistant import Proxy
from cardsync_agent.card_failures import CardFailures
from cardsync_agent.client import Client, Refused, TryAgain
from cardsync_agent.events import Reporter
from cardsync_agent.imported import NoPriceFile, read_prices, read_rejected, report
from cardsync_agent.loop import PLATFORM, Agent
from cardsync_agent.marketplace.folder import FolderMarketplace
from cardsync_agent.pace import Pace, Stop
from cardsync_agent.signed_release import read_key
from cardsync_agent.state import HOME, StateProblem, Store, only_agent
from cardsync_agent.updates import KEY_VARIABLE, UpdatePolicy, Updates

PINNED_VARIABLE = "CARDSYNC_AGENT_RELEASE_PUBLIC_KEY"
COMMAND_VARIABLE = "CARDSYNC_AGENT_UPDATE_COMMAND"
KINDS = ("full", "pricing", "orders", "refunds", "feedback", "sales", "account")


class UsageProblem(Exception):
    """The usage is wrong; the message is one sentence for the person at the command line."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    # A file name that the console cannot show must not silence us.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    say = Reporter(sys.stdout, json_events=arguments.json_events, quiet=arguments.quiet)
    try:
        return int(arguments.work(arguments, say))
    except (UsageProblem, NoPriceFile) as problem:
        sys.stderr.write(f"cardsync-agent: {problem}\n")
        return 2
    except StateProblem as problem:
        sys.stderr.write(f"cardsync-agent: {problem}\n")
        return 1


def _run(arguments: argparse.Namespace, say: Reporter) -> int:
    if arguments.request and not arguments.once:
        raise UsageProblem("--request needs --once")
    server, key, pace = _server(arguments.server), _key(arguments), _pace(arguments)
    policy = _policy(arguments)
    folder = Path(arguments.folder).expanduser().resolve()
    stop = Stop()
    stop.listen()
    with only_agent(folder):
        store = _open(folder, server, say)
        client = Client(server, key)
        market = FolderMarketplace(folder, pace.settle, stop.sleep)
        updates = Updates(policy, PLATFORM, client, store, folder, say, pace, stop)
        agent = Agent(client, store, market, folder, say, pace, stop, updates, once=arguments.once)
        agent_id = store.memory.agent_id
        text = f"cardsync-agent {__version__}: {folder} with {server}"
        say(
            "started",
            text,
            version=__version__,
            server=server,
            folder=str(folder),
            agent_id=agent_id,
        )
        try:
            return agent.once(arguments.request) if arguments.once else agent.run()
        finally:
            client.close()


def _imported(arguments: argparse.Namespace, say: Reporter) -> int:
    """Report a price file; this takes no lock of the folder, so it runs beside a running agent."""
    file = Path(arguments.file).expanduser().resolve()
    prices = read_prices(file)
    refused = read_rejected(arguments.rejected or (), prices)
    failures = _failures_beside(file)
    if refused and failures is None:
        raise UsageProblem("--rejected needs the file in exports/ or outbox/ of the agent's folder")
    client = Client(_server(arguments.server), _key(arguments))
    try:
        paused: frozenset[int] = frozenset()
        if failures is not None and not arguments.failed:
            paused = failures.note(file.name, prices.ids - set(refused.cards), refused.cards)
        say(
            "prices_reported",
            report(client, prices, arguments.failed, refused, paused & set(refused.cards)),
            rows=len(prices.rows) + prices.without_id - len(refused),
            sha256=prices.sha256,
            rejected=sorted(refused.cards),
        )
        if news := sorted(paused & set(refused.cards)):
            text = (
                f"the marketplace refused {len(news)} cards three times: they are left out of"
                " later price files until `cardsync-agent cards --resume`"
            )
            say("cards_paused", text, problem=True, cards=news)
    except (TryAgain, Refused) as trouble:
        say("problem", f"the server did not take the report: {trouble}", problem=True)
        return 1
    finally:
        client.close()
    return 0


def _mcp(arguments: argparse.Namespace, _: Reporter) -> int:
    """Standard output carries messages alone: what is to be said goes to standard error."""
    proxy = Proxy(_server(arguments.server), _key(arguments), sys.stdout, sys.stderr)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    try:
        proxy.run(sys.stdin)
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    return 0


def _failures_beside(file: Path) -> CardFailures | None:
    """Return the failures of the folder that holds this file of exports/ or outbox/."""
    folder = file.parent.parent
    is_ours = file.parent.name in ("exports", "outbox") and (folder / HOME).is_dir()
    return CardFailures(folder / HOME) if is_ours else None


def _cards(arguments: argparse.Namespace, say: Reporter) -> int:
    """Show the cards that the marketplace refused, or let paused ones go on."""
    home = Path(arguments.folder).expanduser().resolve() / HOME
    if not home.is_dir():
        raise UsageProblem(f"{arguments.folder} is no folder of an agent")
    failures = CardFailures(home)
    if arguments.resume is None:
        for id, failure in sorted(failures.all().items()):
            state = "paused" if failure.is_paused else f"refused {failure.count} times"
            text = f"{id}  {state}, last at {failure.at}: {failure.reason}"
            say("card_failure", text, card=id, count=failure.count, paused=failure.is_paused)
        return 0
    try:
        ids = None if "all" in arguments.resume else [int(text) for text in arguments.resume]
    except ValueError as trouble:
        raise UsageProblem("--resume takes card ids, or all") from trouble
    resumed = failures.resume(ids)
    say("cards_resumed", f"{len(resumed)} paused cards go on with the next file", cards=resumed)
    return 0


def _open(folder: Path, server: str, say: Reporter) -> Store:
    """Open the folder that the agent and the seller share, and the agent's memory of it."""
    try:
        for name in ("inbox", "exports"):
            (folder / name).mkdir(exist_ok=True)
    except OSError as trouble:
        raise StateProblem(f"The agent cannot use the folder {folder}: {trouble}.") from trouble
    store = Store(folder)
    if store.set_aside:
        say(
            "problem",
            f"the journal was unreadable; it was kept as {store.set_aside} and a new one was begun",
            problem=True,
        )
    store.memory.belong_to(server)
    store.save()
    return store


def _server(text: str) -> str:
    try:
        is_address = text.startswith(("http://", "https://")) and bool(httpx.URL(text).host)
    except httpx.InvalidURL:
        is_address = False
    if not is_address:
        raise UsageProblem(f"--server must be an address like https://cards.example, not {text!r}")
    return text.rstrip("/")


def _key(arguments: argparse.Namespace) -> str:
    """Read the key from --key, else --key-file, else the environment: the last two keep it out of
    the process list.
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
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageProblem(
            "the API key holds characters that no key has; is it one line, copied whole?"
        )
    return key


def _policy(arguments: argparse.Namespace) -> UpdatePolicy:
    texts = (
        arguments.release_public_key
        or os.environ.get(PINNED_VARIABLE, "").replace(",", " ").split()
    )
    try:
        keys = [read_key(text) for text in texts]
    except ValueError as trouble:
        raise UsageProblem(
            f"a release key is not what `cardsync admin release keygen` prints: {trouble}"
        ) from trouble
    command = (arguments.update_command or os.environ.get(COMMAND_VARIABLE, "")).strip() or None
    if command and not keys:
        raise UsageProblem(
            "--update-command needs --release-public-key:"
            " nothing is fetched that no pinned key signed"
        )
    return UpdatePolicy(keys, command)


def _pace(arguments: argparse.Namespace) -> Pace:
    environ = dict(os.environ)
    if arguments.interval is not None:
        environ["CARDSYNC_AGENT_PACE_INTERVAL"] = str(arguments.interval)
    try:
        return Pace.from_env(environ)
    except ValueError as trouble:
        raise UsageProblem(f"a CARDSYNC_AGENT_PACE_* variable is no number: {trouble}") from trouble


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cardsync-agent", description="Carries inventory exports up and price updates down."
    )
    parser.add_argument("--version", action="version", version=f"cardsync-agent {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_imported(commands)
    _add_cards(commands)
    _add_mcp(commands)
    run = commands.add_parser(
        "run",
        help="work for one folder, until stopped",
        description="Work for one folder, until stopped.",
    )
    run.set_defaults(work=_run)
    _add_server(run)
    run.add_argument(
        "--folder", required=True, metavar="DIR", help="holds inbox/, exports/ and outbox/"
    )
    run.add_argument(
        "--once",
        action="store_true",
        help="ask once: run the cycle if told to sync, else say why not",
    )
    run.add_argument(
        "--request",
        nargs="?",
        const="full",
        choices=KINDS,
        metavar="KIND",
        help=f"with --once: request a sync first ({', '.join(KINDS)}; default full)",
    )
    run.add_argument(
        "--release-public-key",
        action="append",
        metavar="KEY",
        help=f"fetch updates that this key signed; repeatable, or {PINNED_VARIABLE};"
        " without it updates are only announced",
    )
    run.add_argument(
        "--update-command",
        metavar="COMMAND",
        help=f"started once with the path of each verified update; or {COMMAND_VARIABLE}",
    )
    run.add_argument("--interval", type=float, help=argparse.SUPPRESS)
    return parser


def _add_imported(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    imported = commands.add_parser(
        "imported",
        help="tell the server that a price file was imported into the marketplace",
        description="Tell the server that a price file was imported into the marketplace, or was"
        " not; this ends a rollback.",
    )
    imported.set_defaults(work=_imported)
    imported.add_argument(
        "file", metavar="FILE", help="the file as it was downloaded, of exports/ or outbox/"
    )
    _add_server(imported)
    imported.add_argument(
        "--rejected",
        action="append",
        metavar="ID[=REASON]",
        help="the marketplace took the file but not this card; repeatable; a card that is refused"
        " three times in a row is left out of later files; a new listing, which has no ID yet, is"
        " named line-N by its line in the file (the header is line 1) or entry-N",
    )
    imported.add_argument(
        "--failed", metavar="REASON", help="the marketplace did not take it, and why"
    )


def _add_cards(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    cards = commands.add_parser(
        "cards",
        help="show the cards that the marketplace refused, or let paused ones go on",
        description="Show the cards that the marketplace refused, or let paused ones go on.",
    )
    cards.set_defaults(work=_cards)
    cards.add_argument("--folder", required=True, metavar="DIR", help="the agent's folder")
    cards.add_argument("--resume", nargs="+", metavar="ID", help="let these cards go on, or all")
    _add_output(cards)


def _add_mcp(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    mcp = commands.add_parser(
        "mcp",
        help="let an assistant on this computer use the shop, by standard input and output",
        description="Pass an assistant's messages (Model Context Protocol, one a line) on to the"
        " server, with the API key, until standard input ends.",
    )
    mcp.set_defaults(work=_mcp, quiet=True, json_events=False)
    _add_credential(mcp)


def _add_server(command: argparse.ArgumentParser) -> None:
    _add_credential(command)
    _add_output(command)


def _add_credential(command: argparse.ArgumentParser) -> None:
    command.add_argument("--server", required=True, metavar="URL", help="the cardsync server")
    command.add_argument(
        "--key", help=f"the API key; better --key-file or the environment variable {KEY_VARIABLE}"
    )
    command.add_argument("--key-file", metavar="FILE", help="a file that holds the API key")


def _add_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--quiet", action="store_true", help="say only what went wrong")
    command.add_argument(
        "--json-events",
        action="store_true",
        help="one JSON object per event instead of lines for people",
    )


if __name__ == "__main__":
    sys.exit(main())
