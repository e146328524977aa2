"""Calls a server with a seller's API key, for commands that sellers use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from cardsync.platform import errors
from cardsync.platform.value_types import JsonObject

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
KEY_VARIABLE: Final = "CARDSYNC_API_KEY"


def at_a_server(command: Callable[..., T]) -> Callable[..., T]:
    """Add the option for the server's address to a command."""
    return click.option(
        "--server",
        metavar="URL",
        default="http://127.0.0.1:8000",
        show_default=True,
        help=f"A cardsync server; the API key is read from {KEY_VARIABLE}.",
    )(command)


def of_a_file(command: Callable[..., T]) -> Callable[..., T]:
    """Add the arguments for the file and for the server's address to a command."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.argument("file", type=file)(at_a_server(command))


@contextmanager
def asking(server: str) -> Iterator[httpx.Client]:
    """Yield an HTTP client that sends the API key. Raises CommandError if there is no key, or if
    the server cannot be reached.
    """
    import httpx

    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise errors.CommandError(f"put the API key into the environment variable {KEY_VARIABLE}")
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
    try:
        with httpx.Client(base_url=server.rstrip("/"), headers=headers, timeout=60) as http:
            yield http
    except (httpx.HTTPError, httpx.InvalidURL) as e:
        raise errors.CommandError(f"{server} cannot be asked: {e}") from e


def answered(answer: httpx.Response) -> JsonObject:
    """Return the JSON object in the server's answer. Raises CommandError for an error."""
    try:
        found = answer.json()
    except ValueError as e:
        status = answer.status_code
        raise errors.CommandError(
            f"{answer.url} answered {status} and no JSON: is it a cardsync server?"
        ) from e
    if answer.is_error or not isinstance(found, dict):
        said = found.get("error") if isinstance(found, dict) else None
        raise errors.CommandError(f"the server answered {answer.status_code}: {said or found}")
    return found
