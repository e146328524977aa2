"""`python bench/hot_paths.py [--commits 100] [--rows 30000] [--rounds 6]`: what the hot paths cost
now and so many commits before; or, with `--other FOLDER`, in another checkout of the program with
an environment and this file of its own.

Both are set up first, and then take turns at each path, because a machine that others use changes
from minute to minute. The cost is CPU of our processes and of PostgreSQL together: the least of the
rounds of each, and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import process_time

import psutil
from isal import igzip

import ground
import heartbeat
import import_inventory
import orders
import reprice
import search
from ground import Client, Database, Ground, Report
from priced_shop import Shop, shop

HERE = Path(__file__).resolve()
ROOT = HERE.parent.parent
# So many cards show the cost of a path as well as more do, and can be walked often.
ROWS = 30_000
PATHS = ("heartbeats", "first import", "import again", "orders", "reprice", "searches")


def spent_by(work: Callable[[], object], *processes: psutil.Process) -> float:
    before = sum(map(ground.cpu_seconds, processes))
    work()
    return sum(map(ground.cpu_seconds, processes)) - before


class Paths:
    """One shop with its processes; each method walks a path once and returns its CPU seconds."""

    def __init__(self, made: Ground, of: Shop, running: dict[str, psutil.Process]) -> None:
        self.made, self.shop = made, of
        self.web, self.worker = running["web"], running["worker"]
        self.database = made.postmaster()
        self.file = made.inventory.read_bytes()
        self.changed = ground.some_changed(made.inventory, 15)
        self.turn = 0

    def walk(self, path: str) -> float:
        self.turn += 1
        self.made.settle()
        cost: float = getattr(self, path.replace(" ", "_"))()
        return cost

    def heartbeats(self) -> float:
        """A thousand of them."""
        rates: list[float] = []

        def beat() -> None:
            rates.append(heartbeat.with_sockets(self.made.settings.bind, self.shop.seller.api_key))

        return 1000 * spent_by(beat, self.web, self.database) / (rates[0] * heartbeat.SECONDS)

    def first_import(self) -> float:
        self.newest = self.made.new_seller()
        return self._imported(self.file)

    def import_again(self) -> float:
        return self._imported(self.changed)

    def _imported(self, data: bytes) -> float:
        work = partial(import_inventory.upload, self.made, self.newest, data)
        return spent_by(work, self.worker, self.database)

    def orders(self) -> float:
        async def applied(database: Database) -> float:
            # A first upload warms the connections.
            for seed in (1, 2):
                body = igzip.compress(orders.orders(orders.COUNT, seed), 2)
                seller = await asyncio.to_thread(self.made.new_seller)
                before = process_time() + ground.cpu_seconds(self.database)
                await orders.applied(self.made, database, seller, [body])
                spent = process_time() + ground.cpu_seconds(self.database) - before
            return spent

        cost: float = self.made.in_database(applied)
        return cost

    def reprice(self) -> float:
        work = partial(reprice.repriced, self.shop, f"0.{self.turn % 8 + 1}0")
        return spent_by(work, self.worker, self.database)

    def searches(self) -> float:
        client = Client(self.made.settings.bind, self.shop.seller.api_key)

        def ask() -> None:
            for text in search.SEARCHES:
                search.ask(client, text)

        return spent_by(ask, self.web, self.database)


def walk_as_asked(data: Path, rows: int) -> None:
    """Walk each path that a line of the standard input names, and write its cost."""
    heartbeat.SECONDS = 2
    with ground.ground(data, rows, catalogs=False) as made, shop(made) as (of, running):
        search_of = made.new_seller().seller_id
        search.set_the_scene(made, of.seller.seller_id, [search_of, made.new_seller().seller_id])
        paths = Paths(made, of, running)
        print("ready", flush=True)
        for line in sys.stdin:
            print(f"cost {paths.walk(line.strip())}", flush=True)


class Side:
    """A checkout that walks paths in a process of its own; without an environment of its own it has
    ours.
    """

    def __init__(self, root: Path, given: list[str]) -> None:
        own = root / ".venv/bin/python"
        python = str(own) if own.exists() else sys.executable
        self.process = subprocess.Popen(
            [python, str(root / "bench/hot_paths.py"), "--walk", *given],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def told(self, word: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise RuntimeError("this side has ended")

    def walk(self, path: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        return float(self.told("cost"))

    def end(self) -> None:
        self.process.communicate()


@contextmanager
def earlier(commits: int) -> Iterator[Path]:
    """The program as it was so many commits before, with this file of today."""
    folder = Path(tempfile.mkdtemp(prefix="cardsync-before-"))
    folder.chmod(0o755)
    try:
        taken = subprocess.run(
            ["git", "archive", f"HEAD~{commits}"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", str(folder)], input=taken.stdout, check=True)
        shutil.copy(HERE, folder / "bench")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(report: Report, other: Path, data: Path, rows: int, rounds: int) -> None:
    given = ["--data", str(data), "--rows", str(rows)]
    sides = [Side(other, given), Side(ROOT, given)]
    for side in sides:
        side.told("ready")
    costs: dict[str, list[list[float]]] = {path: [] for path in PATHS}
    for turn in range(rounds + 1):
        for path in PATHS:
            order = sides if turn % 2 else sides[::-1]
            walked = {side: side.walk(path) for side in order}
            if turn:
                costs[path].append([walked[side] for side in sides])
    for side in sides:
        side.end()
    for path, walks in costs.items():
        before, now = (min(each) for each in zip(*walks, strict=True))
        report.note(f"{path:<14} least before {before:.3f} s, least now {now:.3f} s")
        ratio = statistics.median(ours / theirs for theirs, ours in walks)
        report.figure(f"{path}: CPU now / before", ratio)


def measure(data: Path, rows: int, rounds: int, commits: int) -> Report:
    report = Report(f"Hot paths, now and {commits} commits before")
    with earlier(commits) as other:
        compare(report, other, data, min(rows, ROWS), rounds)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--other", type=Path, help="another checkout's root")
    parser.add_argument("--walk", action="store_true", help="walk the paths that are asked for")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=6)
    chosen = parser.parse_args()
    if chosen.walk:
        walk_as_asked(chosen.data, chosen.rows)
    elif chosen.other:
        report = Report(f"Hot paths, here and in {chosen.other}")
        compare(report, chosen.other, chosen.data, chosen.rows, chosen.rounds)
        report.show()
    else:
        measure(chosen.data, chosen.rows, chosen.rounds, chosen.commits).show()


if __name__ == "__main__":
    main()
