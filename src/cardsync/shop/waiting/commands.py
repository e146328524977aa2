"""The commands `cardsync waiting …`, which list and answer the waiting decisions on a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from cardsync.operations.processes.command_line import ROW_ID, Result, prints
from cardsync.platform.value_types import JsonObject
from cardsync.web.server_commands import answered, asking, at_a_server

_KIND: Final = click.Choice(["upload", "run", "plan", "price", "suggestion"])
_PATH: Final = "/api/waiting"


@click.group()
def waiting() -> None:
    """List and decide what waits for the owner on a server."""


@waiting.command("list")
@prints
@at_a_server
@click.option("--kind", type=_KIND, help="Only one kind.")
@click.option("--page", type=click.IntRange(1), default=1, show_default=True)
def list_waiting(server: str, kind: str | None, page: int) -> Result:
    """List uploads, pricing runs, plans, prices and suggestions that wait, each with its revision.

    Example: cardsync waiting list --kind plan
    """
    query: dict[str, str | int] = {"page": page} | ({} if kind is None else {"kind": kind})
    with asking(server) as http:
        found = answered(http.get(_PATH, params=query))
    pages = f"; page {page} of {found['total_pages']}" if found["total_pages"] > 1 else ""
    return Result(found, [*map(_line, found["waiting"]), f"{found['total']:,} wait{pages}"])


def _line(one: JsonObject) -> str:
    return f"{one['kind']} {one['id']}, revision {one['revision']}: {one['summary']}"


def _of_one(command: Callable[..., Result]) -> Callable[..., None]:
    """Add the arguments of an answer to a command: kind, id and the revision from the list."""
    revision = click.option(
        "--revision", required=True, help="That of the list; a newer one is not decided."
    )
    waiting_id = click.argument("waiting_id", type=ROW_ID, metavar="ID")
    kind = click.argument("kind", type=_KIND, metavar="KIND")
    return prints(at_a_server(kind(waiting_id(revision(command)))))


@waiting.command("approve")
@_of_one
def approve(**named: Any) -> Result:
    """Approve a waiting decision, whose prices then apply. Plans can only be approved on their
    page.

    Example: cardsync waiting approve price 1597051 --revision 2026-11-30T08:00:00.000000Z
    """
    return _decided("approve", **named)


@waiting.command("decline")
@_of_one
def decline(**named: Any) -> Result:
    """Decline a waiting decision. Prices do not change.

    Example: cardsync waiting decline run 41 --revision 2026-11-30T08:00:00.000000Z
    """
    return _decided("decline", **named)


@waiting.command("snooze")
@_of_one
def snooze(**named: Any) -> Result:
    """Snooze a price or a suggestion until its figures change.

    Example: cardsync waiting snooze suggestion 7 --revision 2026-11-30T08:00:00.000000Z
    """
    return _decided("snooze", **named)


def _decided(answer: str, server: str, kind: str, waiting_id: int, revision: str) -> Result:
    body = {"answer": answer, "revision": revision}
    with asking(server) as http:
        found = answered(http.post(f"{_PATH}/{kind}/{waiting_id}", json=body))
    lines = [f"{kind} {waiting_id}: {answer}"]
    if found["run_id"] is not None:
        lines.append(f"pricing run {found['run_id']} has the prices")
    if found["waits"] is not None:
        lines.append(f"it changed, and waits again: {_line(found['waits'])}")
    return Result(found, lines, failed=found["waits"] is not None)
