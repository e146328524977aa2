"""The commands of the catalog and of market evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cardsync.operations.processes.command_line import Result, prints
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    from cardsync.platform.database.session import Database


@click.group()
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


def _figures(report: object) -> JsonObject:
    """Return a report's figures, with the number of skipped records instead of the records."""
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
    """Download the catalogs of games from their public sources and load them, or renew installed
    catalogs. An interrupted download continues.

    Example: cardsync catalog install magic pokemon
    """
    from cardsync.catalog.install_catalog import install
    from cardsync.catalog.install_state import sources_for
    from cardsync.catalog.sources.source_record import CatalogError
    from cardsync.operations.processes.command_line import say, settings_with, with_database

    settings = settings_with()

    async def run(database: Database) -> list[JsonObject]:
        done = []
        # An unknown game raises an error before the first download.
        async with database.shared() as session:
            chosen = [
                (game, one)
                for game in map(str.lower, games)
                for one in await sources_for(session, game, source)
            ]
        for game, one in chosen:
            tried: dict[str, object] = {"game": game, "source": one.name}
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
    """Load the previous version of a game's catalog again. Automatic renewals do not install the
    replaced version again, only a newer one; `install` loads the source's present version.

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
            # If this process dies, a worker completes the request.
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

    from cardsync.catalog import install_state
    from cardsync.catalog.overview import CatalogShown, listed_lines, overview
    from cardsync.catalog.update_times import updates_of
    from cardsync.operations.processes.command_line import settings_with, with_database
    from cardsync.platform import clock

    settings = settings_with()

    async def read(database: Database) -> list[CatalogShown]:
        async with database.shared() as session:
            days = (await updates_of(session, settings)).days
            installs = await install_state.installs(session)
            return overview(installs, await install_state.counts(session), clock.now(), days)

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
    """Match a pricing export with the catalog, and write only the report.

    Example: cardsync catalog match export.csv --report unmatched.csv
    """
    from cardsync.imports.match_report import examine
    from cardsync.operations.processes.command_line import say, with_database

    async def run(database: Database) -> Result:
        counts = await examine(database, path, report, say)
        return Result(counts._asdict(), [counts.sentence()])

    return with_database(run)


@click.group()
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
    """Load observations. Loading the same file again writes nothing.

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
