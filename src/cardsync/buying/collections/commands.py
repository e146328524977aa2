"""The command `cardsync buy`: it brings a customer's collection to a server, and prints what was
found and what the buy rules pay for it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import sleep
from typing import Any, Final

import click
import httpx

from cardsync import clock, errors

KEY_VARIABLE: Final = "CARDSYNC_API_KEY"
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_PATIENCE: Final = 300.0


@click.command("buy")
@click.argument("file", type=FILE)
@click.option(
    "--server",
    metavar="URL",
    default="http://127.0.0.1:8000",
    show_default=True,
    help=f"A cardsync server; the API key is read from {KEY_VARIABLE}.",
)
@click.option("--json", "as_json", is_flag=True, help="The answers of the server as one object.")
def buy(file: Path, server: str, as_json: bool) -> None:
    """Bring a customer's collection to a server, and see what the buy rules pay for it."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise errors.CommandError(f"put the API key into the environment variable {KEY_VARIABLE}")
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
    try:
        with httpx.Client(base_url=server.rstrip("/"), headers=headers, timeout=60) as http:
            found, value = _brought(http, file)
    except (httpx.HTTPError, httpx.InvalidURL) as e:
        raise errors.CommandError(f"{server} cannot be asked: {e}") from e
    if as_json:
        click.echo(json.dumps({"collection": found, "value": value}, ensure_ascii=False))
        return
    for line in _told(found, value):
        click.echo(line)


def _brought(http: httpx.Client, file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    path = "/api/buying/collections"
    sent = http.post(path, params={"name": file.name}, content=file.read_bytes())
    found = _answer(sent)
    until = clock.monotonic() + _PATIENCE
    while found["state"] == "queued" and clock.monotonic() < until:
        sleep(0.3)
        found = _answer(http.get(f"{path}/{found['id']}"))
    return found, _answer(http.get(f"{path}/{found['id']}/value"))


def _answer(answer: httpx.Response) -> dict[str, Any]:
    try:
        told = answer.json()
    except ValueError as e:
        status = answer.status_code
        raise errors.CommandError(
            f"{answer.url} answered {status} and no JSON: is it a cardsync server?"
        ) from e
    if answer.status_code not in (200, 202) or not isinstance(told, dict):
        said = told.get("error") if isinstance(told, dict) else None
        raise errors.CommandError(f"the server answered {answer.status_code}: {said or told}")
    return told


def _told(found: dict[str, Any], value: dict[str, Any]) -> list[str]:
    """Return the story of a collection in lines."""
    lines = [f"collection {found['id']}: {found['format_label'] or found['state']}"]
    if found["state"] == "needs_columns":
        return [*lines, "say on its page which column is which"]
    if found["state"] == "failed":
        return [*lines, found["error"] or "the file could not be read"]
    lines += [
        (
            f"{found['rows']:,} rows, {found['copies']:,} cards; {found['matched']:,} rows matched,"
            f" {found['waiting']:,} wait for a choice, {found['rejected_count']:,} not read"
        ),
        *(
            f"  line {one['line']}, {one['column'] or 'whole row'}: {one['reason']}"
            for one in found["rejected"][:20]
        ),
        f"{value['bought']:,} cards bought: ${value['cash']} in cash or ${value['credit']} in credit",
    ]
    return lines
