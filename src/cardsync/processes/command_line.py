"""The parts that all commands share: settings with the given options, a database beside a running
server or without one, and printed results.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import click

from cardsync import clock
from cardsync.logs import setup_logging
from cardsync.processes.supervisor import database
from cardsync.secret import seal
from cardsync.settings import Settings

T = TypeVar("T")
ROW_ID = click.IntRange(1, 2**63 - 1)


def say(line: str) -> None:
    """Print progress for people; standard output is for results. The work goes on even if the line
    cannot be printed.
    """
    with suppress(OSError):
        click.echo(line, err=True)


def settings_with(**given: Any) -> Settings:
    values = {name: value for name, value in given.items() if value is not None}
    settings = Settings(**values)
    setup_logging(settings.log_level, settings.log_format)
    return settings


def plain(value: Any) -> Any:
    """Return a value as JSON carries it."""
    return (
        clock.rfc3339(value)
        if isinstance(value, datetime)
        else str(value)
        if isinstance(value, Decimal)
        else value
    )


def show(values: dict[str, Any], as_json: bool) -> None:
    plain_values = {name: plain(value) for name, value in values.items()}
    if as_json:
        click.echo(json.dumps(plain_values))
        return
    width = max(map(len, plain_values), default=0)
    for name, value in plain_values.items():
        click.echo(f"{name:<{width}}  {value if value is not None else '-'}")


def with_database(
    work: Callable[[Any], Awaitable[T]],
    settings: Settings | None = None,
    *,
    as_owner: bool = False,
) -> T:
    """Run `work(database)` beside a running server or without one; as the role that owns the
    tables, for what the application itself may not do.
    """
    # `serve` shares this module and needs none of it.
    from cardsync.database.session import Database
    from cardsync.database.urls import APP_ROLE

    async def main(ready: Settings) -> T:
        url = ready.migration_database_url if as_owner else ready.database_url
        assert url is not None
        role = None if as_owner else APP_ROLE
        async with Database.open(
            url, pool=2, hot_pool=1, seal=partial(seal, ready), role=role
        ) as opened:
            return await work(opened)

    with database(settings or settings_with(), say) as ready:
        return asyncio.run(main(ready))
