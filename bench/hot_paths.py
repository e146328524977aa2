"""`python bench/hot_paths.py OTHER [--rows 30000] [--rounds 6]`: what the hot paths cost here and
in OTHER, another checkout of the program with an environment and this file of its own.

Both are set up first, and then take turns at each path, because a machine that others use changes
from minute to minute. The cost is CPU of our processes and of PostgreSQL together: the least of the
rounds of each, and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
from collections.abc import Callable
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
from ground import Client, Database, Ground
from priced_shop import Shop, shop

HERE = Path(__file__).resolve()
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
        work = partial(import_inventory.upload, self.made, self.newest.api_key, data)
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
    """A checkout that walks paths in a process of its own."""

    def __init__(self, root: Path, given: list[str]) -> None:
        command = [str(root / ".venv/bin/python"), str(root / "bench/hot_paths.py"), "-", *given]
        self.process = subprocess.Popen(
            command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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


def compare(other: Path, rounds: int, given: list[str]) -> None:
    sides = [Side(other, given), Side(HERE.parent.parent, given)]
    for side in sides:
        side.told("ready")
    costs: dict[str, list[list[float]]] = {path: [] for path in PATHS}
    for turn in range(rounds + 1):
        for path in PATHS:
            order = sides if turn % 2 else sides[::-1]
            walked = {side: side.walk(path) for side in order}
            if turn:
                costs[path].append([walked[side] for side in sides])
                before, now = (min(each) for each in zip(*costs[path], strict=True))
                ratio = statistics.median(b / a for a, b in costs[path])
                print(
                    f"| {path} | {before:.3f} s | {now:.3f} s | {now / before:.3f} | {ratio:.3f} |"
                    f" n {turn}",
                    flush=True,
                )
    for side in sides:
        side.end()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", help="another checkout's root")
    parser.add_argument("--data", type=Path, default=HERE.parent.parent.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=6)
    chosen = parser.parse_args()
    if chosen.other == "-":
        walk_as_asked(chosen.data, chosen.rows)
    else:
        compare(
            Path(chosen.other),
            chosen.rounds,
            ["--data", str(chosen.data), "--rows", str(chosen.rows)],
        )
