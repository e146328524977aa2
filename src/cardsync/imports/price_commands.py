"""The commands `cardsync price …`, which price a file, explain a price, and write rules to a file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cardsync.operations.processes.command_line import (
    ROW_ID,
    Result,
    prints,
    say,
    settings_with,
    with_database,
)
from cardsync.platform import clock, errors

if TYPE_CHECKING:
    from cardsync.access.models import Account
    from cardsync.platform.database.session import Database
    from cardsync.prices.inputs.rule_file import RuleSet
    from cardsync.prices.receipts.schemas import Explanation

KEY_VARIABLE = "CARDSYNC_API_KEY"
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class PriceGroup(click.Group):
    """A group in which `price FILE` means `price file FILE`, because `price` was a single command
    before.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["file", *args]
        return super().parse_args(ctx, args)


@click.group(cls=PriceGroup)
def price() -> None:
    """Price a file without a server, explain a card's price, or save rules in a file.

    `cardsync price EXPORT.csv --out UPDATES.csv` is the short form of `price file`.
    """


def _ask(work: Callable[[Database], Awaitable[Any]]) -> object:
    say("queries of rules are answered by PostgreSQL; nothing is stored in it")
    return with_database(work)


def _with_rules(command: Callable[..., Result]) -> Callable[..., Result]:
    preset = click.option(
        "--preset",
        help="premium, competitive, move or buy-box.  [default: competitive]",
    )
    rules = click.option(
        "--rules",
        type=FILE,
        help="Rules as `cardsync price rules` writes them, in place of a preset.",
    )
    return preset(rules(command))


def _given(preset: str | None, rules: Path | None) -> RuleSet:
    from cardsync.imports.price_file import rule_set

    if preset is not None and rules is not None:
        raise click.UsageError("--preset and --rules: give one of them")
    return rule_set(rules, preset or "competitive")


def _check_out(out: Path, *read: Path | None) -> None:
    """Raise CommandError if the output's folder does not exist, or the output is one of the files
    that are read.
    """
    if not out.parent.is_dir():
        raise errors.CommandError(f"there is no folder {out.parent}")
    for path in read:
        if path is not None and out.exists() and out.samefile(path):
            raise errors.CommandError(f"{out} is read here: name another file with --out")


@price.command("file")
@prints
@click.argument("file", type=FILE)
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the price updates go.",
)
@_with_rules
def price_one_file(
    file: Path,
    out: Path,
    preset: str | None,
    rules: Path | None,
) -> Result:
    """Price a pricing export and write the price updates, without a server. Only rules with queries
    need a database.

    Example: cardsync price file export.csv --out updates.csv --preset competitive
    """
    from cardsync.imports.price_file import price_file

    _check_out(out, file, rules)
    done = price_file(file, out, _given(preset, rules), _ask)
    return Result(done.figures | {"out": out}, done.lines)


@price.command("explain")
@prints
@click.argument(
    "marketplace_id",
    type=click.IntRange(-(2**63), 2**63 - 1),
    metavar="ID",
)
@click.option("--file", type=FILE, help="A pricing export: the card as this file has it.")
@_with_rules
@click.option(
    "--seller",
    type=ROW_ID,
    help="A seller of this machine's database: the card as it is stored.",
)
@click.option(
    "--server",
    metavar="URL",
    help=f"A cardsync server; the API key is read from {KEY_VARIABLE}.",
)
def price_explain(
    marketplace_id: int,
    file: Path | None,
    preset: str | None,
    rules: Path | None,
    seller: int | None,
    server: str | None,
) -> Result:
    """Explain a card's price: every step with the price before and after it.

    ID is the marketplace's TCGplayer Id. The JSON output is the response of GET
    /api/v1/pricing/explain/ID.

    Example: cardsync price explain 1597051 --file export.csv
    """
    from cardsync.prices.receipts import terminal

    if [file, seller, server].count(None) != 2:
        raise click.UsageError("say where the card is: one of --file, --seller and --server")
    if file is None and (preset or rules):
        raise click.UsageError(
            "--preset and --rules go with --file: a stored card is priced by its seller's rules"
        )
    if file is not None:
        from cardsync.imports.price_file import explain_in_file, left_out
        from cardsync.prices.engine.run_inputs import Run

        given = _given(preset, rules)
        printed = explain_in_file(file, marketplace_id, given, _ask)
        for line in left_out(Run(given.rules, given.seller, clock.now(), given.sales)):
            say(line.strip())
    else:
        printed = (
            _of_seller(seller, marketplace_id)
            if seller is not None
            else _of_server(str(server), marketplace_id)
        )
    return Result(printed, terminal.lines(printed, shutil.get_terminal_size().columns))


def _of_seller(seller_id: int, marketplace_id: int) -> dict[str, object]:
    import msgspec

    from cardsync.platform.storage import open_store
    from cardsync.prices.receipts.explain import explain_card

    settings = settings_with()

    async def explain(database: Database) -> Explanation:
        async with database.tenant(seller_id, snapshot=True) as session:
            await _known(session, seller_id)
            return await explain_card(
                session,
                seller_id,
                open_store(settings),
                marketplace_id,
                clock.now(),
            )

    printed: dict[str, object] = msgspec.to_builtins(with_database(explain, settings))
    return printed


async def _known(session: Any, seller_id: int) -> Account:
    from cardsync.access.models import Account

    account: Account | None = await session.get(Account, seller_id)
    if account is None:
        raise errors.CommandError(f"there is no seller {seller_id}")
    return account


def _of_server(server: str, marketplace_id: int) -> dict[str, object]:
    import httpx

    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise errors.CommandError(f"put the API key into the environment variable {KEY_VARIABLE}")
    if not (key.isascii() and key.isprintable()):
        raise errors.CommandError(f"{KEY_VARIABLE} holds characters that no API key has")
    try:
        answer = httpx.get(
            f"{server.rstrip('/')}/api/v1/pricing/explain/{marketplace_id}",
            headers={"Authorization": f"Bearer {key}", "Accept": "application/json"},
            timeout=60,
        )
        printed = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL) as e:
        raise errors.CommandError(f"{server} cannot be asked: {e}") from e
    except ValueError as e:
        raise errors.CommandError(
            f"{server} answered {answer.status_code} and no JSON: is it a cardsync server?"
        ) from e
    if answer.status_code != 200 or "steps" not in printed:
        said = printed.get("error") if isinstance(printed, dict) else None
        raise errors.CommandError(
            f"{server} answered {answer.status_code}: {said or 'not what was asked for'}"
        )
    explanation: dict[str, object] = printed
    return explanation


@price.command("rules")
@prints
@click.option("--preset", help="premium, competitive, move or buy-box.")
@click.option("--seller", type=ROW_ID, help="A seller of this machine's database.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file instead of the terminal.",
)
def price_rules(preset: str | None, seller: int | None, out: Path | None) -> Result:
    """Write a preset, or a seller's rules, sales and settings, as a file for --rules, in the JSON
    of the API.

    Example: cardsync price rules --preset competitive --out rules.json
    """
    from cardsync.imports.price_file import rule_set, write_whole
    from cardsync.prices.inputs.rule_file import rule_set_text

    if (preset is None) == (seller is None):
        raise click.UsageError("say whose rules: one of --preset and --seller")
    given = rule_set(None, preset) if preset is not None else _rules_of(seller or 0)
    text = rule_set_text(given)
    data = json.loads(text)
    if out is None:
        return Result(data, [text.removesuffix("\n")])
    _check_out(out)
    write_whole(out, text.encode())
    return Result(data, [f"{len(given.rules)} rules and {len(given.sales)} sales: {out}"])


def _rules_of(seller_id: int) -> RuleSet:
    from cardsync.prices.inputs.rule_file import RuleSet
    from cardsync.prices.inputs.rule_rows import run_of

    async def read(database: Database) -> RuleSet:
        async with database.tenant(seller_id, snapshot=True) as session:
            run = await run_of(session, await _known(session, seller_id), clock.now())
        return RuleSet(
            run.rules,
            run.sales,
            replace(run.seller, automatic_pricing_paused=False),
        )

    printed: RuleSet = with_database(read)
    return printed
