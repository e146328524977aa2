"""The command `cardsync lots` uploads card costs or a payments report and prints the result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from cardsync.operations.processes.command_line import Result, prints
from cardsync.platform.value_types import JsonObject
from cardsync.web.server_commands import of_a_file

_SHOWN: Final = 20


@click.command("lots")
@prints
@of_a_file
@click.option("--payments", is_flag=True, help="The file is a payments report, with fees by order.")
def lots(file: Path, server: str, payments: bool) -> Result:
    """Upload a CSV of card costs, or a payments report, to a server.

    Example: cardsync lots costs.csv
    """
    from cardsync.platform import errors
    from cardsync.platform.table_text import NotATable, lines_of
    from cardsync.web.server_commands import answered, asking

    data = file.read_bytes()
    try:
        lines, encoding = lines_of(data)
    except NotATable as e:
        raise errors.CommandError(f"{file}: {e}") from None
    # The server recognizes a repeated file by its text, so UTF-8 text is sent unchanged.
    csv = data.decode("utf-8-sig") if encoding == "utf-8" else "\n".join(lines)
    path = "/api/buying/payments" if payments else "/api/buying/lots/file"
    with asking(server) as http:
        found = answered(http.post(path, json={"csv": csv}))
    lines = _payments(found) if payments else _lots(found)
    lines += [
        f"  line {one['row']}, {one['field']}: {one['reason']}"
        for one in found["rejected"][:_SHOWN]
    ]
    if (more := len(found["rejected"]) - _SHOWN) > 0:
        lines.append(f"  and {more:,} more")
    return Result(found, lines)


def _lots(found: JsonObject) -> list[str]:
    if found["known_before"]:
        return ["the same file was here before: nothing was added"]
    return [f"lots added: {found['lots']:,}, rows not read: {len(found['rejected']):,}"]


def _payments(found: Mapping[str, object]) -> list[str]:
    orders, changed = found["orders"], found["changed"]
    return [f"orders with fees: {orders:,}, new or changed: {changed:,}"]
