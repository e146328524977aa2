"""A real streaming replica of a database of the tests, by the same PostgreSQL's own programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from cardsync.operations.processes.embedded_host import Account, database_account, find_install


class Replica:
    def __init__(self, folder: Path, account: Account, programs: Path, name: str) -> None:
        self.folder, self._account, self._programs = folder, account, programs
        self.url = f"postgresql://cardsync_app@/{name}?host={folder}&port=6543"
        self.admin_url = f"postgresql://postgres@/{name}?host={folder}&port=6543"

    def call(self, program: str, *arguments: str) -> None:
        with (self.folder / f"{program}.log").open("wb") as log:
            done = self._account.spawn([str(self._programs / program), *arguments], log)
        assert done.wait(120) == 0, (self.folder / f"{program}.log").read_text()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c port=6543"
        log = str(self.folder / "log")
        data = str(self.folder / "data")
        self.call("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        self.call("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")


@contextmanager
def replica_of(admin_url: str, home: Path, folder: Path) -> Iterator[Replica]:
    """Yield a running replica of the embedded server whose data is in `home`."""
    account = database_account(home)
    account.own(folder)
    given = conninfo_to_dict(admin_url)
    name = str(given["dbname"])
    made = Replica(folder, account, find_install(home, account) / "bin", name)
    place = f"host={given['host']} port={given.get('port', 5432)} user={given['user']}"
    made.call("pg_basebackup", "-d", place, "-D", str(folder / "data"), "-R", "-X", "stream")
    made.start()
    try:
        yield made
    finally:
        made.stop()
