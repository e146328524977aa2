"""`python bench/first_looks.py [--rows 300000] [--rounds 5]`: what the owner of a shop waits for
after a first import: how its bar moves, the page of a rule that is opened first, the presets, a
sheet of 200 labels, the price file, and how heavy an empty page is.

Floors: the same rule once its process is warm, one preview, the sheet again. Naive: a process that
starts when the rule is opened, a preview for each preset, QR codes with every mask tried as
pictures of their own, a page that carries the palette's list.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, sleep
from typing import Any

import httpx
import psutil
import segno

import ground
import import_inventory
from cardsync.dashboard.goals import PALETTE
from cardsync.prices.engine.preset_rules import PRESETS
from cardsync.prices.inputs.rule_json import to_json
from cardsync.shop.accounts.sellers import CreatedSeller
from ground import Ground, Report, spread

LABELS = "/print/labels?kind=cards&sheet=avery-5160&per_page=200&search={search}"
# Sheets of other cards each time: the codes of one sheet are kept.
SEARCHES = ("", "is:foil", "-is:foil", "cond:LP", "price>1", "game:magic", "game:pokemon", "qty>2")


class Clock:
    """Times of requests and the processor time of the service beside them."""

    def __init__(self, made: Ground, children: list[Any], http: httpx.Client) -> None:
        self._processes = [psutil.Process(one.process.pid) for one in children if one.process]
        self._processes.append(made.postmaster())
        self._http = http

    def spent(self) -> float:
        return sum(map(ground.cpu_seconds, self._processes))

    def get(self, path: str) -> tuple[float, float, str]:
        """Seconds, processor seconds, and the page."""
        began, spent = perf_counter(), self.spent()
        answer = self._http.get(path)
        took = perf_counter() - began
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:200])
        return took, self.spent() - spent, answer.text

    def heavy(self) -> list[psutil.Process]:
        found = [one for parent in self._processes for one in ground.tree(parent)]
        return [one for one in found if one.cmdline()[-2:] == ["cardsync", "heavy"]]


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("First looks at a shop")
    with ground.ground(data, rows) as made:
        seller = made.new_seller(sync_mode="read_only")
        with (
            ground.service(made, workers=1) as children,
            httpx.Client(base_url=f"http://{made.settings.bind}", timeout=120) as http,
        ):
            credentials = {"email": seller.email, "password": seller.password}
            session = http.post("/api/session", json=credentials).raise_for_status().json()
            http.headers["X-CSRF-Token"] = session["csrf_token"]
            clock = Clock(made, children, http)
            _bar(report, made, seller)
            _rule(report, clock, http, rounds)
            _presets(report, clock, http, rounds)
            _labels(report, clock, rounds)
            _price_file(report, clock, rounds)
            _weight(report, http)
    return report


def _bar(report: Report, made: Ground, seller: CreatedSeller) -> None:
    """Import, and look at what the page shows of it."""
    moves, ended = [], Event()

    def look() -> None:
        sql = f"SELECT work_done FROM sync_state WHERE seller_id = {seller.seller_id} AND work_total > 0"
        with made.admin() as connection:
            while not ended.wait(0.02):
                for (done,) in connection.execute(sql):
                    if not moves or moves[-1][1] != done:
                        moves.append((perf_counter(), done))

    looking = Thread(target=look)
    looking.start()
    took, told = import_inventory.upload(made, seller, made.inventory.read_bytes())
    ended.set()
    looking.join()
    rests = [later - earlier for (earlier, _), (later, _) in pairwise(moves)]
    report.note(f"import of {told['rows']:,} rows {took:.1f} s, the bar moved {len(moves)} times")
    # A quick import has fewer; the rest below is what a person feels.
    report.figure("places of the import's bar", len(moves), "")
    report.figure("its longest rest / the import", max(rests) / took)


def _rule(report: Report, clock: Clock, http: httpx.Client, rounds: int) -> None:
    [rule, *_] = http.get("/api/pricing/rules").json()["rules"]
    path, effect = f"/pricing/rules/{rule['id']}", "Listed value"
    # The owner reads the list of rules meanwhile.
    clock.get("/pricing")
    sleep(3)
    first, cpu, page = clock.get(path)
    report.note(f"rule, first opened: {first:.3f} s, CPU {cpu:.3f} s, {effect in page=}")
    report.figure("rule page first opened after an import, with its effect", first, "s")
    warm = [clock.get(path)[:2] for _ in range(rounds)]
    naive = []
    for _ in range(rounds):
        for process in clock.heavy():
            process.kill()
        sleep(0.1)
        # A read over the API waits for a process, as the page once did.
        began, spent = perf_counter(), clock.spent()
        body = {"rule": {}, "rule_id": rule["id"], "sample": True}
        http.post("/api/pricing/preview/draft", json=body).raise_for_status()
        naive.append((perf_counter() - began, clock.spent() - spent))
    _turns(report, "rule page, warm", warm)
    report.figure(
        "rule page first opened / warm", first / statistics.median(one[0] for one in warm)
    )
    _turns(report, "a process that starts, and its read", naive)
    middle = statistics.median
    for place, unit in enumerate(("", ", CPU")):
        ratio = middle(one[place] for one in naive) / middle(one[place] for one in warm)
        report.figure(f"process that starts / rule page{unit}", ratio)
    for process in clock.heavy():
        process.kill()
    sleep(0.1)
    began = perf_counter()
    at_once, _, page = clock.get(path)
    while effect not in page:
        page = clock.get(path)[2]
        sleep(0.02)
    whole = perf_counter() - began
    report.figure("rule page where no process is there", at_once, "s")
    report.figure("its effect there", whole, "s")


def _presets(report: Report, clock: Clock, http: httpx.Client, rounds: int) -> None:
    def naive() -> None:
        for rule in PRESETS.values():
            body = {"rules": [to_json(rule) | {"name": rule.name}]}
            http.post("/api/pricing/preview", json=body).raise_for_status()

    names = ("page", "set-up", "exact", "naive")
    turns: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    clock.get("/pricing/presets")
    for _ in range(rounds):
        turns["page"].append(clock.get("/pricing/presets")[:2])
        turns["set-up"].append(clock.get("/set-up/presets")[:2])
        turns["exact"].append(clock.get("/pricing/presets?exact=true")[:2])
        turns["naive"].append(_timed(clock, naive))
    for name, values in turns.items():
        _turns(report, f"presets, {name}", values)
    for name in ("page", "set-up"):
        took = statistics.median(one[0] for one in turns[name])
        report.figure(f"presets, {name}", took, "s")
    for place, unit in enumerate(("", ", CPU")):
        of = {name: statistics.median(one[place] for one in found) for name, found in turns.items()}
        report.figure(f"a preview for each / presets{unit}", of["naive"] / of["exact"])


def _labels(report: Report, clock: Clock, rounds: int) -> None:
    first, again, size = [], [], 0
    for search in SEARCHES[:rounds]:
        path = LABELS.format(search=search)
        took, cpu, page = clock.get(path)
        first.append((took, cpu))
        again.append(clock.get(path)[:2])
        size = page.count("QR code for")
    assert size == 200, size
    addresses = [f"http://127.0.0.1:8000/cards/{number}" for number in range(10**6, 10**6 + size)]

    def naive() -> None:
        for address in addresses:
            segno.make(address, error="m", micro=False).svg_data_uri()

    slow = ground.seconds(naive)
    _turns(report, "200 labels, first", first)
    _turns(report, "200 labels, again", again)
    took = statistics.median(one[0] for one in first)
    report.note(f"200 codes with every mask {slow:.2f} s")
    report.figure("200 labels", took, "s")
    report.figure("200 codes with every mask / 200 labels", slow / took)


def _price_file(report: Report, clock: Clock, rounds: int) -> None:
    turns = [clock.get("/sync/prices")[:2] for _ in range(rounds)]
    _turns(report, "price file", turns)
    report.figure("price file page", statistics.median(one[0] for one in turns), "s")


def _weight(report: Report, http: httpx.Client) -> None:
    page, goals = len(http.get("/lists").content), len(http.get(PALETTE).content)
    report.note(f"an empty page {page:,} B, what its palette asks for {goals:,} B")
    report.figure("an empty page", page / 1000, "kB")
    report.figure("with the palette's list / without", (page + goals) / page)


def _timed(clock: Clock, work: Callable[[], object]) -> tuple[float, float]:
    spent = clock.spent()
    took = ground.seconds(work)
    return took, clock.spent() - spent


def _turns(report: Report, name: str, turns: list[tuple[float, float]]) -> None:
    report.note(f"{name:<38} {spread([one[0] for one in turns])}")
    report.note(f"{name + ', CPU':<38} {spread([one[1] for one in turns])}")


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)
