"""`python bench/backups.py [--rows 1000000] [--rounds 2]`: a backup of a shop with history and its
restore on trial, against bare pg_dump and pg_restore with the same options; and heartbeats while
they run, against heartbeats alone.
"""

from __future__ import annotations

import multiprocessing
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, sleep

from psycopg.conninfo import make_conninfo

import ground
import import_inventory
from cardsync.operations import pg_tools
from cardsync.operations.installation_backups import InstallationBackups
from cardsync.operations.processes.copied_cluster import running_copy
from cardsync.operations.processes.embedded_host import bundled
from cardsync.platform.backups import backup_folder
from cardsync.platform.database.urls import libpq_url
from cardsync.prices.receipts.replayed_receipts import fault
from ground import Client, Ground, Report

BODY = b'{"version":"1.2.3","platform":"linux/x86_64"}'
# An agent's heartbeats come every 30 s; these are those of some fifty agents.
BETWEEN = 0.02
SHOP = 250_000


def beats(bind: str, key: str, asked: Connection) -> None:
    """Send the seconds that each heartbeat took, once somebody asks for them."""
    client = Client(bind, key)
    times = []
    asked.send("begun")
    while not asked.poll():
        began = perf_counter()
        status, _, body = client.request(
            "POST", "/api/v1/heartbeat", BODY, Content_Type="application/json"
        )
        times.append(perf_counter() - began)
        assert status == 200, body
        sleep(BETWEEN)
    asked.send(times)


@contextmanager
def heartbeats(made: Ground, key: str, into: list[float]) -> Iterator[None]:
    """Let heartbeats go on for as long as the block lasts: from a process of its own, because the
    backup's checks keep this one's interpreter busy.
    """
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=beats, args=(made.settings.bind, key, there), daemon=True
    )
    process.start()
    assert here.recv() == "begun"
    try:
        yield
    finally:
        here.send("end")
        into.extend(here.recv())
        process.join()


def p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def bare(made: Ground, tools: Path) -> tuple[float, float]:
    """The seconds of pg_dump and of pg_restore into a new database."""
    dump = made.folder / "bare.dump"
    url = libpq_url(made.admin_url, role=None)
    began = perf_counter()
    options = ("--format=custom", "--compress=gzip:1", f"--file={dump}")
    pg_tools.run(tools / "pg_dump", url, *options)
    dumped = perf_counter() - began
    with made.admin() as connection:
        connection.execute("CREATE DATABASE bare TEMPLATE template0")
    began = perf_counter()
    options = ("--no-owner", "--exit-on-error", "--jobs=2")
    pg_tools.run(tools / "pg_restore", make_conninfo(url, dbname="bare"), *options, str(dump))
    loaded = perf_counter() - began
    with made.admin() as connection:
        connection.execute("DROP DATABASE bare")
    dump.unlink()
    return dumped, loaded


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Backup and restore")
    shops = -(-rows // SHOP)
    with ground.ground(data, rows // shops) as made, ground.service(made, workers=1):
        later = ground.some_changed(made.inventory, 30)
        for _ in range(shops):
            seller = made.new_seller()
            for file in (made.inventory.read_bytes(), later):
                import_inventory.upload(made, seller, file)
        report.note(f"{rows:,} cards of {shops} shops, each imported twice")
        made.settle()
        owner = made.settings.model_copy(update={"migration_database_url": made.admin_url})
        run_copy = partial(running_copy, made.folder / "copied", say=lambda _: None)
        backups = InstallationBackups(owner, bundled().values(), fault, run_copy, lambda _: None)
        tools = backups.target.tools
        quiet: list[float] = []
        with heartbeats(made, seller.api_key, quiet):
            sleep(20)
        ratios: dict[str, list[float]] = {"backup": [], "restore": []}
        busy: list[float] = []
        for number in range(rounds):
            dumped, loaded = bare(made, tools)
            with heartbeats(made, seller.api_key, busy):
                began = perf_counter()
                one = backups.take()
                backup = perf_counter() - began
                began = perf_counter()
                backups.rehearse(one.name)
                restore = perf_counter() - began
            backup_folder.drop(one)
            sleep(1)  # a backup is named by its second
            ratios["backup"].append(backup / dumped)
            ratios["restore"].append(restore / loaded)
            report.note(
                f"round {number + 1}: backup {backup:.1f} s (pg_dump {dumped:.1f}), restore on trial"
                f" {restore:.1f} s (pg_restore {loaded:.1f}), {one.bytes / 1e6:,.0f} MB"
            )
        for name, bare_name in (("backup", "pg_dump"), ("restore", "pg_restore")):
            report.figure(f"{name} ÷ {bare_name}", statistics.median(ratios[name]))
        report.note(
            f"heartbeats p99: alone {p99(quiet) * 1e3:.1f} ms, meanwhile {p99(busy) * 1e3:.1f} ms"
            f" ({len(busy):,} of them)"
        )
        report.figure("heartbeat p99 meanwhile ÷ alone", p99(busy) / p99(quiet))
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=2)
