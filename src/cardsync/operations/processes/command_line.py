"""The shared parts of all commands: their result, printed for people or as JSON; settings with the
given options; and a database beside a running server or without one.

Nothing is imported here before it is used: importing libraries takes longer than most commands.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click

from cardsync.platform import clock
from cardsync.platform.value_types import JsonMapping

if TYPE_CHECKING:
    from cardsync.platform.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")
_OBJECTS_UNTIL_A_LOOK: Final = 50_000
ROW_ID = click.IntRange(1, 2**63 - 1)
# The exit statuses of all commands, as `cardsync --help` and docs/commands.md list them.
EXIT_CODES: Final = {
    0: "The command did its work.",
    1: "It was refused or failed: the error says why. Or what it checked is not good: `doctor`"
    " found a bad part, `pricing replay` another price.",
    2: "It was called in a wrong way: an unknown option, a missing argument or a wrong value.",
}


@dataclass(frozen=True, slots=True)
class Result:
    """The data that a command prints. For people the `lines` are printed; without lines, each name
    with its value. `failed` ends the command with exit status 1.
    """

    data: JsonMapping
    lines: Iterable[str] | None = None
    failed: bool = False


def prints(command: Callable[P, Result]) -> Callable[..., None]:
    """Make a command from a function that returns its result; with `--json`, it prints the data as
    one JSON object.
    """

    @functools.wraps(command)
    def run(*arguments: P.args, as_json: bool, **options: P.kwargs) -> None:  # type: ignore[valid-type]
        # Importing modules creates little garbage, and collecting it takes a fifth of a start.
        gc.set_threshold(_OBJECTS_UNTIL_A_LOOK)
        _load_logs()
        result = command(*arguments, **options)
        if as_json:
            click.echo(json.dumps(result.data, default=plain))
        else:
            for line in _names_and_values(result.data) if result.lines is None else result.lines:
                click.echo(line)
        if result.failed:
            raise SystemExit(1)

    option = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.")
    own = getattr(command, "__click_params__", [])
    # Click reads decorators from the last to the first, so this option comes last.
    run.__dict__.update(__click_params__=[option, *own], prints=True)
    return run


def _load_logs() -> None:
    """Import structlog without rich, which structlog would import for tracebacks that no command
    prints.
    """
    if not {"structlog", "rich"} & sys.modules.keys():
        sys.modules["rich"] = None  # type: ignore[assignment]
        try:
            import structlog  # noqa: F401
        finally:
            del sys.modules["rich"]


def _names_and_values(data: JsonMapping) -> Iterable[str]:
    width = max(map(len, data), default=0)
    for name, value in data.items():
        yield f"{name:<{width}}  {plain(value) if value is not None else '-'}"


def say(line: str) -> None:
    """Print progress for people; standard output is for results. The work continues even if the
    line cannot be printed.
    """
    with suppress(OSError):
        click.echo(line, err=True)


def settings_with(**given: Any) -> Settings:
    from cardsync.platform.logs import setup_logging
    from cardsync.platform.settings import Settings

    values = {name: value for name, value in given.items() if value is not None}
    settings = Settings(**values)
    setup_logging(settings.log_level, settings.log_format)
    return settings


def plain(value: object) -> Any:
    """Convert a value to JSON's types."""
    if isinstance(value, datetime):
        return clock.rfc3339(value)
    return str(value) if isinstance(value, Decimal | PurePath) else value


def with_database(
    work: Callable[[Any], Awaitable[T]],
    settings: Settings | None = None,
    *,
    as_owner: bool = False,
) -> T:
    """Run `work(database)`, whether a server runs or not; optionally as the role that owns the
    tables, for statements that the application's role may not run.
    """
    import asyncio

    from cardsync.operations.processes.supervisor import database
    from cardsync.platform.database.session import Database
    from cardsync.platform.database.urls import APP_ROLE
    from cardsync.platform.secret import seal

    async def main(ready: Settings) -> T:
        url = ready.migration_database_url if as_owner else ready.database_url
        assert url is not None
        role = None if as_owner else APP_ROLE
        sealed = functools.partial(seal, ready)
        async with Database.open(url, pool=2, hot_pool=1, seal=sealed, role=role) as opened:
            return await work(opened)

    with database(settings or settings_with(), say) as ready:
        return asyncio.run(main(ready))
