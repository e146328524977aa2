"""The command line: `cardsync-agent run`, `imported`, `cards`, `mcp` and the workflow commands.

Exit codes are 0 (done, or the server asks to wait), 1 (the command failed) and 2 (wrong usage).
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cardsync_agent import __version__
from cardsync_agent.assistant import Proxy
from cardsync_agent.card_failures import CardFailures
from cardsync_agent.client import Client, Refused, TryAgain
from cardsync_agent.commands import doctor, everyday, run_command, service, setup
from cardsync_agent.commands.options import (
    Commands,
    add_agents_folder,
    add_credential,
    add_output,
    add_server,
    add_settings,
    new_command,
    one_folder,
    server_and_key,
)
from cardsync_agent.events import Reporter
from cardsync_agent.imported import NoPriceFile, read_prices, read_rejected, report
from cardsync_agent.marketplace.import_journal import ImportJournal
from cardsync_agent.state import HOME, StateProblem
from cardsync_agent.usage import UsageProblem
from cardsync_agent.workflow_commands import add_workflow_commands


def main(argv: Sequence[str] | None = None) -> int:
    _make_streams()
    arguments = _parser().parse_args(argv)
    # A file name that the console cannot show must not stop the output.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # The processes of several shops share one output, so each process adds its shop's name.
    shop = arguments.shop if getattr(arguments, "child", False) else ""
    say = Reporter(sys.stdout, json_events=arguments.json_events, quiet=arguments.quiet, shop=shop)
    whose = f"[{shop}] " if shop else ""
    try:
        return int(arguments.work(arguments, say))
    except (UsageProblem, NoPriceFile) as problem:
        sys.stderr.write(f"cardsync-agent: {whose}{problem}\n")
        return 2
    except StateProblem as problem:
        sys.stderr.write(f"cardsync-agent: {whose}{problem}\n")
        return 1


def _make_streams() -> None:
    """Redirect missing output streams to nowhere: a program without a console, such as one started
    by Windows' task scheduler, has no streams. The missing output is in the shop's log.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
            setattr(sys, name, nowhere)


def _imported(arguments: argparse.Namespace, say: Reporter) -> int:
    """Report a price file; this takes no lock of the folder, so it runs beside a running agent."""
    file = Path(arguments.file).expanduser().resolve()
    prices = read_prices(file)
    refused = read_rejected(arguments.rejected or (), prices)
    failures = _failures_beside(file)
    if refused and failures is None:
        raise UsageProblem(
            "--rejected needs the file in exports/ or outbox/ of the sync app's folder"
        )
    client = Client(*server_and_key(arguments, file))
    try:
        paused: frozenset[int] = frozenset()
        if failures is not None and not arguments.failed:
            paused = failures.note(file.name, prices.ids - set(refused.cards), refused.cards)
        if failures is not None:
            home = file.parent.parent / HOME
            ImportJournal(home).settle(file.name, published=not arguments.failed)
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
    """Run an assistant's proxy. Standard output carries only messages; all other output is on
    standard error.
    """
    proxy = Proxy(*server_and_key(arguments), sys.stdout, sys.stderr)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    try:
        proxy.run(sys.stdin)
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    return 0


def _failures_beside(file: Path) -> CardFailures | None:
    """Return the failures of the folder that contains this file of exports/ or outbox/."""
    folder = file.parent.parent
    is_ours = file.parent.name in ("exports", "outbox") and (folder / HOME).is_dir()
    return CardFailures(folder / HOME) if is_ours else None


def _cards(arguments: argparse.Namespace, say: Reporter) -> int:
    """Show the cards that the marketplace refused, or resume paused cards."""
    home = (folder := one_folder(arguments)) / HOME
    if not home.is_dir():
        raise UsageProblem(f"{arguments.folder or folder} is no folder of a sync app")
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cardsync-agent", description="Carries inventory exports up and price updates down."
    )
    parser.add_argument("--version", action="version", version=f"cardsync-agent {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    setup.add(commands)
    run_command.add(commands)
    everyday.add(commands)
    doctor.add(commands)
    service.add(commands)
    _add_imported(commands)
    _add_cards(commands)
    _add_mcp(commands)
    add_workflow_commands(commands, add_output)
    return parser


def _add_imported(commands: Commands) -> None:
    imported = new_command(
        commands,
        _imported,
        "imported",
        help="tell the server that a price file was imported into the marketplace",
        description="Tell the server that a price file was imported into the marketplace, or was"
        " not; this ends a rollback.",
    )
    imported.add_argument(
        "file", metavar="FILE", help="the file as it was downloaded, of exports/ or outbox/"
    )
    add_server(imported)
    add_settings(imported)
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


def _add_cards(commands: Commands) -> None:
    cards = new_command(
        commands,
        _cards,
        "cards",
        help="show the cards that the marketplace refused, or let paused ones go on",
    )
    add_agents_folder(cards)
    add_settings(cards)
    cards.add_argument("--resume", nargs="+", metavar="ID", help="let these cards go on, or all")
    add_output(cards)


def _add_mcp(commands: Commands) -> None:
    mcp = new_command(
        commands,
        _mcp,
        "mcp",
        help="let an assistant on this computer use the shop, by standard input and output",
        description="Pass an assistant's messages (Model Context Protocol, one a line) on to the"
        " server, with the API key, until standard input ends.",
    )
    mcp.set_defaults(quiet=True, json_events=False)
    add_credential(mcp)
    add_settings(mcp)


if __name__ == "__main__":
    sys.exit(main())
