"""The command line. Each command calls one function and prints its result. An error message is one
sentence with advice.

Commands import modules when they are called, because importing the modules of all commands takes
longer than most commands run.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from cardsync import __version__
from cardsync.operations.processes.command_groups import Command, Elsewhere, Program
from cardsync.operations.processes.command_line import EXIT_CODES, Result, prints

if TYPE_CHECKING:
    from datetime import datetime

    from cardsync.platform.settings import Settings

T = TypeVar("T")


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    elsewhere={
        "backup": Command(
            "cardsync.operations.commands:backup",
            "Make, list, check and rehearse backups of the database and its objects.",
        ),
        "restore": Command(
            "cardsync.operations.commands:restore",
            "Restore a backup (the newest if no NAME is given) into a database beside the present one, check it, and switch to it. Stop the service first. A restore that fails changes nothing.",
        ),
        "db": Command(
            "cardsync.operations.commands:db", "Spread the database over several machines."
        ),
        "doctor": Command(
            "cardsync.operations.commands:doctor",
            "Check the installation, with a line for each part; exit status 1 if a part is bad.",
        ),
        "catalog": Command("cardsync.catalog.commands:catalog", "The shared catalog of products."),
        "market": Command(
            "cardsync.catalog.commands:market",
            "Observed sales, listings and prices: the evidence behind prices.",
        ),
        "buy": Command(
            "cardsync.buying.collections.commands:buy",
            "Upload a customer's collection to a server, and show what the buy rules pay for it.",
        ),
        "lots": Command(
            "cardsync.sales.lots.commands:lots",
            "Upload a CSV of card costs, or a payments report, to a server.",
        ),
        "waiting": Command(
            "cardsync.shop.waiting.commands:waiting",
            "List and decide what waits for the owner on a server.",
        ),
        "price": Command(
            "cardsync.imports.price_commands:price",
            "Price a file without a server, explain a card's price, or save rules in a file. `cardsync price EXPORT.csv --out UPDATES.csv` is the short form of `price file`.",
        ),
        "pricing": Command("cardsync.prices.commands:pricing", "Look after pricing runs."),
    },
    epilog="Exit status: "
    + " ".join(f"{code}: {said}" for code, said in EXIT_CODES.items())
    + " Each command that prints data takes --json.",
)
@click.version_option(__version__)
def program() -> None:
    """cardsync keeps a trading-card seller's marketplace shop in step: inventory CSV up, price
    changes down.
    """


def served_at(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options for a server's address, port and data folder."""
    for option in (
        click.option(
            "--data-dir",
            type=click.Path(path_type=Path),
            help="Folder of the embedded database and objects.",
        ),
        click.option(
            "--port", type=click.IntRange(1, 65535), help="Port to serve on (default 8000)."
        ),
        click.option("--host", help="Address to serve on (default 127.0.0.1)."),
    ):
        command = option(command)
    return command


@program.command()
@served_at
@click.option("--workers", type=click.IntRange(1), help="Web processes (default 1).")
@click.option(
    "--no-browser",
    is_flag=True,
    help="Open no browser. Else a first run at a terminal opens one with the set-up.",
)
def serve(
    host: str | None,
    port: int | None,
    workers: int | None,
    data_dir: Path | None,
    no_browser: bool,
) -> None:
    """Run web, worker and, unless DATABASE_URL is set, the embedded database, until Ctrl-C.

    Example: cardsync serve --port 8080
    """
    from cardsync.operations.processes.command_line import say
    from cardsync.operations.processes.supervisor import serve as run_serve

    run_serve(serve_settings(host, port, workers, data_dir), say, browser=not no_browser)


@program.command("set-up-link")
@prints
@served_at
def print_set_up_link(host: str | None, port: int | None, data_dir: Path | None) -> Result:
    """Print the link that `serve` printed for creating the first shop.

    Example: cardsync set-up-link
    """
    from cardsync.operations.processes.backup_children import has_no_seller
    from cardsync.operations.processes.command_line import say
    from cardsync.operations.processes.supervisor import database
    from cardsync.platform.errors import CommandError
    from cardsync.shop.accounts import set_up_link

    settings = serve_settings(host, port, None, data_dir)
    with database(settings, say) as ready:
        if not has_no_seller(ready):
            raise CommandError(
                f"there is a shop already; its members sign in at {settings.origin}/sign-in"
            )
    link = set_up_link.link(settings)
    return Result({"set_up_url": link}, [link])


def serve_settings(
    host: str | None,
    port: int | None,
    workers: int | None,
    data_dir: Path | None,
) -> Settings:
    from cardsync.operations.processes.command_line import settings_with

    settings = settings_with(web_workers=workers, data_dir=data_dir)
    host = host or settings.host
    bind = f"[{host}]:{port or settings.port}" if ":" in host else f"{host}:{port or settings.port}"
    return settings.model_copy(update={"bind": bind})


@program.command(hidden=True)
def web() -> None:
    """Run one web process, as `serve` does."""
    from cardsync.operations.processes.command_line import settings_with
    from cardsync.platform.database.migrate import check
    from cardsync.platform.errors import CommandError

    settings = settings_with()
    if settings.database_url is None:
        raise CommandError(
            "a web process by itself needs CARDSYNC_DATABASE_URL; `cardsync serve` brings a database along"
        )
    check(settings.database_url)
    from cardsync.operations.processes.web_process import run_web

    run_web(settings)


@program.command()
def worker() -> None:
    """Run a worker process, in addition to that of `serve` or on another host.

    Example: CARDSYNC_DATABASE_URL=postgresql://… cardsync worker
    """
    from cardsync.operations.processes.worker_memory import begin_anew

    begin_anew()
    from cardsync.operations.processes.await_database import await_database
    from cardsync.operations.processes.command_line import say, settings_with
    from cardsync.operations.processes.supervisor import Stopped, database, stop_on_signals

    settings = settings_with()
    # Without signal handlers, the first process of a container ignores the signals to stop.
    stop_on_signals()
    try:
        if settings.database_url:
            await_database(settings, say)
        with database(settings, say, migrated=settings.database_url is None) as ready:
            # Imported after the checks, because this import takes long.
            from cardsync.operations.processes.worker import serve_jobs

            serve_jobs(ready)
    except Stopped:
        say("stopped")


@program.command()
@prints
def migrate() -> Result:
    """Migrate the database to this version's schema.

    Example: cardsync migrate
    """
    from cardsync.operations.processes.command_line import say, settings_with
    from cardsync.operations.processes.supervisor import database
    from cardsync.platform.database.migrate import head_revision

    with database(settings_with(), say):
        revision = head_revision()
        say(f"the database is at {revision}")
    return Result({"revision": revision}, [])


@program.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Port to serve on (default 8000).")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of the demo's data.")
@click.option("--exit", "leave", is_flag=True, help="Stop after the cycle instead of serving on.")
@click.option("--marketplace", is_flag=True, help="Run a simulated marketplace beside it.")
@click.option("--public", is_flag=True, help="For strangers: each night undoes what they change.")
@click.option(
    "--undo-at",
    type=click.DateTime(["%H:%M", "%H:%M:%S"]),
    help="When it does, by UTC (default 09:00).",
)
def demo(
    port: int | None,
    data_dir: Path | None,
    leave: bool,
    marketplace: bool,
    public: bool,
    undo_at: datetime | None,
) -> None:
    """Run a demo: a seller, one whole sync by the real agent, and a server with the result.

    Example: cardsync demo
    """
    if public:
        if leave or marketplace:
            raise click.UsageError("--public runs by itself, without --exit and --marketplace")
        from cardsync_demo.nightly_demo import NIGHT, run_public

        at = undo_at.time() if undo_at else NIGHT
        run_public(serve_settings(None, port, None, data_dir), at)
        return
    if undo_at:
        raise click.UsageError("--undo-at needs --public")
    from cardsync_demo.simulated_marketplace import must_be_here
    from cardsync_demo.story import run as run_demo

    if marketplace:
        must_be_here()
    settings = serve_settings(None, port, None, data_dir)
    run_demo(settings, leave=leave, marketplace=marketplace)


@program.command()
def openapi() -> None:
    """Print the OpenAPI description of the API.

    Example: cardsync openapi > openapi.json
    """
    from cardsync.asgi import create_app
    from cardsync.platform.settings import Settings
    from cardsync.web.openapi import document

    click.echo(document(create_app(Settings(database_url="postgresql:///"))), nl=False)


@program.command()
@click.option("--shapes", is_flag=True, help="The shapes of the bindings, from openapi.json here.")
def assistants(shapes: bool) -> None:
    """Print the operations for assistants, as docs/assistants.md.

    Example: cardsync assistants > assistants.md
    """
    if shapes:
        from cardsync.assistant import derive

        document = json.loads(Path("openapi.json").read_text("utf-8"))
        click.echo(derive.as_json(derive.derived(document)), nl=False)
        return
    from cardsync.assistant.page import page

    click.echo(page(), nl=False)


@program.command()
@prints
def texts() -> Result:
    """Print every sentence that a page can show, with its file and line.

    Example: cardsync texts
    """
    from cardsync.dashboard import page_texts

    found = page_texts.collect()
    lines = (f"{one.file}:{one.line}\t{one.text}" for one in found)
    return Result({"texts": [one._asdict() for one in found]}, lines)


@program.command(name="settings")
@prints
def print_settings() -> Result:
    """Print every setting with its default, as docs/settings.md.

    Example: cardsync settings
    """
    from cardsync.platform.settings import described_settings, settings_page

    return Result({"settings": described_settings()}, [settings_page().removesuffix("\n")])


@program.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def print_completion(shell: str) -> None:
    """Print a script for a shell that completes commands and options.

    Example: cardsync completion bash > ~/.local/share/bash-completion/completions/cardsync
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(program, {}, "cardsync", "_CARDSYNC_COMPLETE").source())


@program.command("commands")
def print_commands() -> None:
    """Print every command with an example, and the exit statuses, as docs/commands.md.

    Example: cardsync commands
    """
    from cardsync.operations.processes.commands_page import commands_page

    click.echo(commands_page(program), nl=False)


@program.command("troubleshooting")
def print_troubleshooting() -> None:
    """Print the advice for the doctor's findings and each error code, as docs/troubleshooting.md.

    Example: cardsync troubleshooting
    """
    from cardsync.operations.troubleshooting_page import troubleshooting_page

    click.echo(troubleshooting_page(), nl=False)


ADMIN = {
    "seller": Command(
        "cardsync.shop.accounts.commands:seller", "Create, change, show, move and delete sellers."
    ),
    "key": Command("cardsync.shop.accounts.commands:key", "Create, revoke and list API keys."),
    "token": Command(
        "cardsync.shop.accounts.token_commands:token",
        "Create, revoke and list tokens of assistants and scripts.",
    ),
    "operator": Command(
        "cardsync.shop.operators.commands:operator",
        "Add, remove and list the members who are operators of this installation.",
    ),
    "member": Command(
        "cardsync.shop.accounts.member_commands:member",
        "Invite, list, change and remove the members of a seller account.",
    ),
    "credits": Command(
        "cardsync.shop.credits.commands:credits", "Grant credits and read the ledger."
    ),
    "release": Command(
        "cardsync.agents.releases.commands:release",
        "Publish versions of the agent and the desktop wrapper, and kill versions that must no longer run.",
    ),
    "rotate-secret": Command(
        "cardsync.operations.commands:rotate_secret",
        "Replace the installation's secret, whether the service runs or not. Data that was sealed with the old secret is sealed again; links in mails that were sent before stop working.",
    ),
    "workflow": Command(
        "cardsync.agents.workflows.commands:workflow",
        "Publish workflow packs for the agents, and kill versions that must no longer be used.",
    ),
}


@program.group(cls=Elsewhere, elsewhere=ADMIN)
def admin() -> None:
    """Sellers, keys, tokens, members, operators, credits, releases and workflow packs; works
    whether the server runs or not.
    """


def main() -> None:
    try:
        program(prog_name="cardsync")
    finally:
        # Without `freeze`, the interpreter would collect garbage among all objects at its end,
        # which takes a fifth of the time of a short command.
        gc.freeze()
