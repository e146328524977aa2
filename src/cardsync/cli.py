"""The command line: each command calls one function and prints its result. An error is one sentence
that says what to do.

A command imports what it needs when it is called: all of them together take longer to import than
most take to run.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from cardsync import __version__
from cardsync.operations.processes.command_line import EXIT_CODES, Result, prints

T = TypeVar("T")

if TYPE_CHECKING:
    from datetime import datetime

    from cardsync.platform.database.session import Database
    from cardsync.platform.settings import Settings


class Command(NamedTuple):
    """A command of another module, `module:attribute`, and its line in the list of commands."""

    place: str
    line: str


class Elsewhere(click.Group):
    """A group that loads the commands of other modules when they are called: the list of commands
    needs their lines alone.
    """

    def __init__(
        self,
        *args: Any,
        elsewhere: dict[str, Command] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.elsewhere = elsewhere or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.elsewhere:
            module, _, attribute = self.elsewhere[cmd_name].place.partition(":")
            # Modules load no garbage, and looking for some is a fifth of a start.
            gc.disable()
            try:
                found: click.Command = getattr(import_module(module), attribute)
            finally:
                gc.freeze()
                gc.enable()
            return found
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = {name: click.Command(name, help=it.line) for name, it in self.elsewhere.items()}
        click.Group(commands={**self.commands, **lines}).format_commands(ctx, formatter)


class Program(Elsewhere):
    """Turns what can go wrong into one sentence and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            # How click itself ends a command (`admin --help`): the last two are RuntimeErrors.
            raise
        except Exception as e:
            sentence = _sentence(e)
            if sentence is None:
                raise
            raise click.ClickException(sentence) from e


def _sentence(e: Exception) -> str | None:
    """Return what went wrong; None for a fault of the program."""
    from pydantic import ValidationError

    from cardsync.operations.processes.embedded_host import EmbeddedError
    from cardsync.platform import errors

    match e:
        case errors.CommandError() | EmbeddedError() | errors.Problem():
            return str(e)
        case BrokenPipeError():
            return None
        case OSError():
            return f"{e.filename}: {e.strerror}" if e.filename else str(e)
        case ValidationError():
            first = e.errors()[0]
            name = "_".join(str(part) for part in first["loc"]).upper()
            message = first["msg"].removeprefix("Value error, ")
            return f"setting CARDSYNC_{name}: {message}"
        case RuntimeError():
            return str(e)
    return None


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
            "Restore a backup, the newest without a NAME: into a database beside the present one, checked, and then switched. Stop the service first. A restore that fails changes nothing.",
        ),
        "db": Command(
            "cardsync.operations.commands:db", "Spread the database over several machines."
        ),
        "doctor": Command(
            "cardsync.operations.commands:doctor",
            "Check the installation, a line a part; exit status 1 if any is bad.",
        ),
        "buy": Command(
            "cardsync.buying.collections.commands:buy",
            "Bring a customer's collection to a server, and see what the buy rules pay for it.",
        ),
        "lots": Command(
            "cardsync.sales.lots.commands:lots",
            "Bring a CSV of what cards cost, or a payments report, to a server.",
        ),
        "price": Command(
            "cardsync.imports.price_commands:price",
            "Price a file without a server, see the reasons of a card's price, and save rules in a file. `cardsync price EXPORT.csv --out UPDATES.csv` is the short form of `price file`.",
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
    """Add the options that name a server's address and data."""
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
    """Web, worker and, unless DATABASE_URL is set, the embedded database; until Ctrl-C.

    Example: cardsync serve --port 8080
    """
    from cardsync.operations.processes.command_line import say
    from cardsync.operations.processes.supervisor import serve as run_serve

    run_serve(serve_settings(host, port, workers, data_dir), say, browser=not no_browser)


@program.command("set-up-link")
@prints
@served_at
def print_set_up_link(host: str | None, port: int | None, data_dir: Path | None) -> Result:
    """Print the link that makes the first shop, as `serve` printed it.

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
    """One web process, as `serve` starts it."""
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
    """One worker process, for more of them or for other hosts.

    Example: CARDSYNC_DATABASE_URL=postgresql://… cardsync worker
    """
    from cardsync.operations.processes.worker_memory import begin_anew

    begin_anew()
    from cardsync.operations.processes.await_database import await_database
    from cardsync.operations.processes.command_line import say, settings_with
    from cardsync.operations.processes.supervisor import Stopped, database, stop_on_signals

    settings = settings_with()
    # The first process of a container has no other way to end while it waits.
    stop_on_signals()
    try:
        if settings.database_url:
            await_database(settings, say)
        with database(settings, say, migrated=settings.database_url is None) as ready:
            # The checks above come first: the import below takes long.
            from cardsync.operations.processes.worker import serve_jobs

            serve_jobs(ready)
    except Stopped:
        say("stopped")


@program.command()
@prints
def migrate() -> Result:
    """Bring the database to this version's schema.

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
    """A demo seller, one whole cycle by the real agent, and a server to look at.

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
    """Print the interface description.

    Example: cardsync openapi > openapi.json
    """
    from cardsync.asgi import create_app
    from cardsync.platform.settings import Settings
    from cardsync.web.openapi import document

    click.echo(document(create_app(Settings(database_url="postgresql:///"))), nl=False)


@program.command()
@click.option("--shapes", is_flag=True, help="The shapes of the bindings, from openapi.json here.")
def assistants(shapes: bool) -> None:
    """Print what assistants can do, as docs/assistants.md.

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
    """Print the script that completes commands and options in a shell.

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
    """Print what the doctor and each error code ask for, as docs/troubleshooting.md.

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
        "cardsync.shop.operators.commands:operator", "Say which members run this installation, too."
    ),
    "member": Command(
        "cardsync.shop.accounts.member_commands:member",
        "Invite, list, change and remove the people of a seller account.",
    ),
    "credits": Command(
        "cardsync.shop.credits.commands:credits", "Grant credits and read the ledger."
    ),
    "release": Command(
        "cardsync.agents.releases.commands:release",
        "Publish versions of the agent and the desktop wrapper, and kill versions that must not run on.",
    ),
    "rotate-secret": Command(
        "cardsync.operations.commands:rotate_secret",
        "Put a new secret in the place of the installation's, while the service runs or not. What was sealed with the old one is sealed anew; links in mails that were sent before end.",
    ),
    "workflow": Command(
        "cardsync.agents.workflows.commands:workflow",
        "Publish workflow packs for the agents, and kill versions that must not be used on.",
    ),
}


@program.group(cls=Elsewhere, elsewhere=ADMIN)
def admin() -> None:
    """Sellers, keys, tokens, members, operators, credits, releases and workflow packs; works
    whether the server runs or not.
    """


@program.group()
def catalog() -> None:
    """The shared catalog of products."""


@catalog.command("import")
@prints
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "form",
    default="auto",
    show_default=True,
    help="csv, parquet, or the name of the file's source.",
)
@click.option("--game", help="Import only this product line, or name it where the file does not.")
@click.option("--source", help="The catalog's name; what its newer edition lacks is marked.")
@click.option(
    "--skipped",
    type=click.Path(path_type=Path),
    help="Write every skipped record with its reason to this CSV file.",
)
def catalog_import(
    path: Path,
    form: str,
    game: str | None,
    source: str | None,
    skipped: Path | None,
) -> Result:
    """Load products; loading a newer edition of the same file updates them.

    Example: cardsync catalog import cards.csv --game magic
    """
    from cardsync.catalog.load_catalog import load as load_catalog
    from cardsync.catalog.report import skipped_lines, write_skipped
    from cardsync.operations.processes.command_line import say, with_database

    async def load(database: Database) -> Result:
        report = await load_catalog(database, path, form, game, say, source)
        if skipped is not None:
            write_skipped(skipped, report.broken)
        for line in skipped_lines(report.broken):
            say(line)
        return Result(_figures(report), [report.sentence()])

    return with_database(load)


def _figures(report: object) -> dict[str, Any]:
    """Return a report's figures, with the number of its skipped records."""
    figures = vars(report).copy()
    return figures | {"skipped": len(figures.pop("broken"))}


@catalog.command("install")
@prints
@click.argument("games", metavar="GAME...", nargs=-1, required=True)
@click.option(
    "--source",
    help="Take this source. Else it is the one that is installed, or the first one of the game (docs/catalogs.md).",
)
@click.option("--fewer", is_flag=True, help="Take a catalog that has far fewer cards than before.")
def catalog_install(games: tuple[str, ...], source: str | None, fewer: bool) -> Result:
    """Download the catalogs of games from their public sources and load them; again, to renew them.
    A download that ended early goes on where it was.

    Example: cardsync catalog install magic pokemon
    """
    from cardsync.catalog.install_catalog import install
    from cardsync.catalog.install_state import sources_for
    from cardsync.catalog.sources.source_record import CatalogError
    from cardsync.operations.processes.command_line import say, settings_with, with_database

    settings = settings_with()

    async def run(database: Database) -> list[dict[str, Any]]:
        done = []
        # A word that is not a game is refused before the first download.
        async with database.shared() as session:
            chosen = [
                (game, one)
                for game in map(str.lower, games)
                for one in await sources_for(session, game, source)
            ]
        for game, one in chosen:
            tried: dict[str, Any] = {"game": game, "source": one.name}
            try:
                said = await install(database, settings, one, game, say, fewer=fewer)
                done.append(tried | {"result": said, "error": None})
            except CatalogError as e:
                done.append(tried | {"result": None, "error": str(e)})
        return done

    done = with_database(run, settings)
    failures = [one["error"] for one in done if one["error"]]
    if failures:
        say(f"Error: {'; '.join(failures)}")
    lines = [one["result"] for one in done if one["result"]]
    return Result({"catalogs": done}, lines, bool(failures))


@catalog.command("back")
@prints
@click.argument("game")
@click.option("--source", help="The source it came from, where several have an earlier version.")
def catalog_back(game: str, source: str | None) -> Result:
    """Load the version of a game's catalog again that was in use before the present one. Renewals
    take a newer one alone; `install` takes what its source has.

    Example: cardsync catalog back magic
    """
    from cardsync.catalog import install_state
    from cardsync.catalog.go_back import go_back
    from cardsync.operations.processes.command_line import say, settings_with, with_database
    from cardsync.platform import clock

    settings = settings_with()

    async def run(database: Database) -> str:
        name = game.lower()
        async with database.shared() as session:
            one = await install_state.source_to_go_back(session, name, source)
            # A worker ends it where this process dies.
            await install_state.ask_back(session, one, name, clock.now())
        return await go_back(database, settings, one, name, say)

    said = with_database(run, settings)
    return Result({"game": game.lower(), "result": said}, [said])


@catalog.command("list")
@prints
def catalog_list() -> Result:
    """List the games with their catalogs: source, date, counts and license.

    Example: cardsync catalog list
    """
    import msgspec

    from cardsync.catalog.overview import CatalogShown, listed_lines, overview
    from cardsync.catalog.update_times import updates_of
    from cardsync.operations.processes.command_line import settings_with, with_database
    from cardsync.platform import clock

    settings = settings_with()

    async def read(database: Database) -> list[CatalogShown]:
        async with database.shared() as session:
            days = (await updates_of(session, settings)).days
            return await overview(session, clock.now(), days)

    found = with_database(read, settings)
    return Result({"catalogs": msgspec.to_builtins(found)}, listed_lines(found))


@catalog.command("match")
@prints
@click.argument("path", type=click.Path(exists=True, path_type=Path, dir_okay=False))
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    help="Write every ambiguous and unmatched row with its reason to this CSV file, and name every"
    " set that no catalog knows, the one with most cards first.",
)
def catalog_match(path: Path, report: Path | None) -> Result:
    """Hold a pricing export against the catalog, and write nothing but the report.

    Example: cardsync catalog match export.csv --report unmatched.csv
    """
    from cardsync.imports.match_report import examine
    from cardsync.operations.processes.command_line import say, with_database

    async def run(database: Database) -> Result:
        counts = await examine(database, path, report, say)
        return Result(counts._asdict(), [counts.sentence()])

    return with_database(run)


@program.group()
def market() -> None:
    """Observed sales, listings and prices: the evidence behind prices."""


@market.command("import")
@prints
@click.argument(
    "paths",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path, dir_okay=False),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "csv", "parquet", "mtgjson", "tcgcsv"]),
    default="auto",
    show_default=True,
)
@click.option(
    "--kind",
    type=click.Choice(["sale", "listing"]),
    help="What the rows are; else the column `kind` says it, or whether sold_at is there.",
)
@click.option(
    "--observed-at", help="The time of tcgcsv's prices; by default the day in the file's name."
)
@click.option(
    "--printings",
    type=click.Path(exists=True, path_type=Path, dir_okay=False),
    help="MTGJSON's AllPrintings or AllIdentifiers, which names the products of AllPrices.",
)
@click.option(
    "--skipped",
    type=click.Path(path_type=Path),
    help="Write every skipped record with its reason to this CSV file.",
)
def market_import(
    paths: tuple[Path, ...],
    form: str,
    kind: str | None,
    observed_at: str | None,
    printings: Path | None,
    skipped: Path | None,
) -> Result:
    """Load observations; the same file again writes nothing.

    Example: cardsync market import prices.csv
    """
    from cardsync.catalog.market.load_observations import load as load_market
    from cardsync.catalog.report import skipped_lines, write_skipped
    from cardsync.operations.processes.command_line import say, with_database
    from cardsync.platform import clock

    moment = clock.read_moment(observed_at)
    if observed_at is not None and moment is None:
        raise click.BadParameter(f"{observed_at!r} is not a time", param_hint="--observed-at")

    async def load(database: Database) -> Result:
        reports = [
            await load_market(
                database,
                path,
                say,
                form,
                kind=kind,
                observed_at=moment,
                printings=printings,
            )
            for path in paths
        ]
        broken = [one for report in reports for one in report.broken]
        if skipped is not None:
            write_skipped(skipped, broken)
        for line in skipped_lines(broken):
            say(line)
        lines = [report.sentence() for report in reports]
        return Result({"files": [*map(_figures, reports)]}, lines)

    return with_database(load)


def main() -> None:
    try:
        program(prog_name="cardsync")
    finally:
        # The interpreter would look at all objects once more: a fifth of a short command.
        gc.freeze()
