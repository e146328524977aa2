"""The command `cardsync buy`: uploads a customer's collection to a server, and prints the matched
cards and the sums that the buy rules pay for them.
"""

from __future__ import annotations

from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Final

import click

from cardsync.operations.processes.command_line import Result, prints
from cardsync.platform import clock
from cardsync.platform.value_types import JsonObject
from cardsync.web.server_commands import answered, asking, of_a_file

if TYPE_CHECKING:
    import httpx

_PATIENCE: Final = 300.0


@click.command("buy")
@prints
@of_a_file
def buy(file: Path, server: str) -> Result:
    """Upload a customer's collection to a server, and show what the buy rules pay for it.

    Example: cardsync buy collection.csv
    """
    with asking(server) as http:
        found, value = _brought(http, file)
    return Result({"collection": found, "value": value}, _told(found, value))


def _brought(http: httpx.Client, file: Path) -> tuple[dict[str, object], dict[str, object]]:
    path = "/api/buying/collections"
    sent = http.post(path, params={"name": file.name}, content=file.read_bytes())
    found = answered(sent)
    until = clock.monotonic() + _PATIENCE
    while found["state"] == "queued" and clock.monotonic() < until:
        sleep(0.3)
        found = answered(http.get(f"{path}/{found['id']}"))
    return found, answered(http.get(f"{path}/{found['id']}/value"))


def _told(found: JsonObject, value: JsonObject) -> list[str]:
    """Return the printed lines: the progress and the result of a collection."""
    told = ", ".join(filter(None, (found["format_label"] or found["state"], found["read_as"])))
    lines = [f"collection {found['id']}: {told}"]
    if found["state"] == "needs_columns":
        return [*lines, "say on its page which column is which"]
    if found["state"] == "failed":
        return [*lines, found["error"] or "the file could not be read"]
    lines += [
        (
            f"{found['rows']:,} rows, {found['copies']:,} cards; {found['matched']:,} rows matched,"
            f" {found['waiting']:,} wait for a choice, {found['rejected_count']:,} not read"
        ),
        *(f"rows left out, {one['reason']}: {one['rows']:,}" for one in found["left_out_for"]),
        *([f"lines of no copies, passed over: {found['empty']:,}"] if found["empty"] else []),
        *(
            f"  line {one['line']}, {one['column'] or 'whole row'}: {one['reason']}"
            for one in found["rejected"][:20]
        ),
        f"{value['bought']:,} cards bought: ${value['cash']} in cash or ${value['credit']} in credit",
        *(
            [
                f"not counted: {value['not_counted']:,} rows, {value['without_price']:,} without a price"
            ]
            if value["not_counted"]
            else []
        ),
    ]
    return lines
