"""Runs pg_dump, pg_restore and similar programs on a database. A program gets the password in its
environment, because other users of the machine can read arguments.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cardsync.platform import errors
from cardsync.platform.database.urls import connect

_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
# The folders in which Debian and other systems install the programs of each version.
_ELSEWHERE: Final = ("/usr/lib/postgresql", "/usr/pgsql")


def folder_of(server: int, bundled: Iterable[Path]) -> Path:
    """Return the folder of the oldest programs that support a server of this major version: a newer
    pg_restore writes settings that an older server refuses. Raises CommandError.
    """
    on_path = shutil.which("pg_dump")
    places = [Path(on_path).parent] if on_path else []
    places += [path for root in _ELSEWHERE for path in Path(root).glob("*/bin")]
    places += [install / "bin" for install in bundled]
    known = {
        version: place
        for place in reversed(places)
        if (version := _major(place / "pg_dump")) is not None and version >= server
    }
    if not known:
        raise errors.CommandError(
            f"pg_dump of PostgreSQL {server} or newer is needed: install its client programs"
        )
    return known[min(known)]


def _major(program: Path) -> int | None:
    if not program.exists():
        return None
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = _VERSION.search(answer.stdout)
    return int(found[1]) if found else None


def server_version(url: str) -> int:
    """Return the major version of a database's server."""
    with connect(url, role=None) as connection:
        return connection.info.server_version // 10_000


def run(program: Path, url: str | None, *arguments: str) -> None:
    """Run a program of PostgreSQL, on a database if `url` is given. Raises CommandError with the
    program's last output.

    The program runs at low priority, because the service continues meanwhile.
    """
    ran = subprocess.run(
        ["nice", "-n", "10", str(program), *_address(url), *arguments],
        env=_environment(url),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if ran.returncode != 0:
        words = " ".join(ran.stderr.split())[-600:]
        raise errors.CommandError(f"{program.name} failed: {words or ran.returncode}")


def _address(url: str | None) -> list[str]:
    """Return the arguments that name a database, without its password."""
    if url is None:
        return []
    given = conninfo_to_dict(url).items()
    named = {name: str(value) for name, value in given if value and name != "password"}
    return ["--no-password", f"--dbname={make_conninfo(**named)}"]


def _environment(url: str | None) -> dict[str, str]:
    """Return our environment, with the password of the address if it has one."""
    password = conninfo_to_dict(url or "").get("password")
    return os.environ | ({"PGPASSWORD": str(password)} if password else {})
