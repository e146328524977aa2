"""Runs a copy of a database cluster beside the embedded cluster, while a block lasts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cardsync.operations.processes import embedded, postmaster
from cardsync.operations.processes.embedded_host import CLUSTER, choose_home, database_account
from cardsync.operations.processes.postmaster import Say


@contextmanager
def running_copy(folder: Path, fill: Callable[[Path], None], say: Say) -> Iterator[str]:
    """Yield the superuser's URL of the cluster that `fill` writes into the given folder. Afterwards
    the copy is deleted, and so are the remains of a killed copy.
    """
    home = choose_home(folder)
    cluster = home / CLUSTER
    _drop(folder, home, say)
    home = choose_home(folder)
    try:
        account = database_account(home)
        fill(cluster)
        for path in (cluster, *cluster.rglob("*")):
            account.own(path)
        cluster.chmod(0o700)
        with embedded.running(folder, say=say) as server:
            yield server.admin_url()
    finally:
        _drop(folder, home, say)


def _drop(folder: Path, home: Path, say: Say) -> None:
    if (home / CLUSTER).exists():
        postmaster.stop(home / CLUSTER, say)
    for path in (home, folder):
        shutil.rmtree(path, ignore_errors=True)
