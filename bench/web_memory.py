"""`python bench/web_memory.py [--rows 300000]`: the memory of a web process while one seller asks
for all that is heavy: previews, presets, a backtest, tables, files and the archive of everything.

Each request is asked alone first, and at last all of them at once. The web process's memory counts,
not that of the processes that it starts.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any

import httpx
import polars as pl
import psutil

import backtest
import ground
import import_inventory
import old_shop
import plans
import read_orders
from ground import MB, Report
from priced_shop import Shop, in_stock, rules, shop

ORDERS = 50_000
YEARS = 3


def asked(of: Shop) -> dict[str, tuple[str, str, Any]]:
    drafted = {"rules": rules(of.tenth, "0.50")}
    first = date.today() - timedelta(days=backtest.SNAPSHOTS)
    days = {**drafted, "sales": [], "from": str(first), "to": "2100-01-01"}
    rule = {"query": "", "adjust_bp": -500}
    listing = of.connection.execute(
        "SELECT min(marketplace_id), min(id),"
        " (SELECT max(id) FROM upload WHERE report ->> 'rejected' <> '[]')"
        " FROM card WHERE contribution IS NULL"
    ).fetchone()
    assert listing is not None
    _, card, upload = listing
    ids = [one["id"] for one in of.call("GET", "/api/pricing/rules")["rules"]]
    return {
        "preview": ("POST", "/api/pricing/preview", drafted),
        "preview, CSV": ("POST", "/api/pricing/preview?format=csv", drafted),
        "preview, Parquet": ("POST", "/api/pricing/preview?format=parquet", drafted),
        "presets": ("GET", "/api/pricing/presets", None),
        "draft": ("POST", "/api/pricing/preview/draft", {"rule": rule}),
        "draft on cards": ("POST", "/api/pricing/test", {"rule": rule, "search": ""}),
        "analysis": ("GET", "/api/pricing/rules/analysis", None),
        "price file": ("GET", "/api/pricing/updates.csv", None),
        "agent's price file": ("GET", "/api/v1/export/price-updates", None),
        "explanation": ("GET", f"/api/v1/pricing/explain/{listing[0]}", None),
        "cards as CSV": ("GET", "/api/cards/export.csv", None),
        "orders as CSV": ("GET", "/api/orders/export.csv", None),
        "customers as CSV": ("GET", "/api/customers/export.csv", None),
        "activity as CSV": ("GET", "/api/v1/agent/activity/export.csv", None),
        "a card of years": ("GET", f"/api/cards/{card}?history=all", None),
        "rejected rows": ("GET", f"/api/v1/uploads/{upload}/rejected.csv", None),
        "a search": ("GET", "/api/cards?search=is:foil+price%3E5", None),
        "backtest": ("POST", "/api/pricing/backtest", days),
        "everything": ("GET", "/api/export/everything", None),
        "rule tests": ("POST", "/api/pricing/rule_tests/check", {}),
        "holds": ("GET", "/api/market_depth/holds", None),
        "rules reordered": ("POST", "/api/pricing/rules/reorder", {"ids": ids[::-1]}),
        "a plan": ("POST", plans.PLANS, plans.dry_body(of.rule_ids, 0)),
        "a rule changed": ("PATCH", f"/api/pricing/rules/{of.rule_ids[-1]}", {"adjust_bp": -300}),
    }


def with_rejected(inventory: Path) -> bytes:
    """The file with a tenth of its rows broken, as gzip."""
    frame = pl.read_csv(gzip.decompress(in_stock(inventory)), infer_schema=False)
    broken = pl.int_range(pl.len()) % 10 == 0
    copies = pl.when(broken).then(pl.lit("many")).otherwise("Total Quantity")
    csv = frame.with_columns(copies.alias("Total Quantity")).write_csv()
    return gzip.compress(csv.encode(), 6, mtime=0)


def set_the_scene(report: Report, of: Shop) -> None:
    """A past, orders, rows that have moved to the object store, and a file with broken rows."""
    backtest.set_the_past(of, 15)
    read_orders.fill(of.made, of.seller.seller_id, ORDERS)
    old_shop.aged(report, of.made, of.seller, YEARS, 90)
    import_inventory.upload(of.made, of.seller.api_key, with_rejected(of.made.inventory))
    test = {"name": "No price falls", "search": "", "expectation": "never under 0.01"}
    of.call("POST", "/api/pricing/rule_tests", test, 201)


class Watch:
    """The longest that the web process kept a look at its health waiting, in milliseconds."""

    def __init__(self, bind: str) -> None:
        self._http = httpx.Client(base_url=f"http://{bind}", timeout=60)
        self._over, self.longest = Event(), 0.0
        self._thread = Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.01):
            began = perf_counter()
            self._http.get("/healthz")
            self.longest = max(self.longest, (perf_counter() - began) * 1000)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._http.close()


def serving_process(web: psutil.Process) -> psutil.Process:
    """The child that serves: the first one only holds the address."""
    return max(web.children(recursive=True), key=lambda one: one.memory_info().rss)


def forget_peak(process: psutil.Process) -> None:
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def owner_of(of: Shop) -> dict[str, str]:
    """Sign in once: hashing a password takes 64 MB by itself."""
    with httpx.Client(base_url=f"http://{of.made.settings.bind}", timeout=600) as http:
        credentials = {"email": of.seller.email, "password": of.seller.password}
        assert http.post("/api/session", json=credentials).status_code == 200
        cookies = "; ".join(f"{name}={value}" for name, value in http.cookies.items())
        return {"Cookie": cookies, "X-CSRF-Token": http.get("/api/session").json()["csrf_token"]}


def ask(of: Shop, owner: dict[str, str], one: tuple[str, str, Any]) -> int:
    """Ask as the owner, or as the agent for its own file; read the answer without keeping it."""
    method, path, body = one
    agent = {"Authorization": f"Bearer {of.seller.api_key}"}
    headers = agent if path.startswith("/api/v1/export") else owner
    with (
        httpx.Client(base_url=f"http://{of.made.settings.bind}", timeout=600) as http,
        http.stream(method, path, json=body, headers=headers) as answer,
    ):
        for _ in answer.iter_raw():
            pass
    return answer.status_code


@contextmanager
def limited() -> Iterator[None]:
    """Writes of prices are weighed, as they are wherever nothing is measured."""
    os.environ["CARDSYNC_PRICE_WRITE_LIMITS"] = "true"
    yield


def measure(data: Path, rows: int) -> Report:
    report = Report("Memory of a web process")
    with ground.ground(data, rows, catalogs=False) as made, limited(), shop(made) as (of, running):
        set_the_scene(report, of)
        web = serving_process(running["web"])
        report.note(f"idle {web.memory_info().rss / MB:.0f} MB")
        wanted, owner = asked(of), owner_of(of)
        peaks = {}
        for name, one in wanted.items():
            before = web.memory_info().rss
            forget_peak(web)
            began = perf_counter()
            with Watch(made.settings.bind) as watch:
                status = ask(of, owner, one)
            took = perf_counter() - began
            peaks[name] = ground._status(web, "VmHWM")
            report.note(
                f"{name:<20} {status} {took:6.2f} s, {before / MB:.0f} -> {peaks[name] / MB:.0f} MB,"
                f" others waited {watch.longest:.0f} ms"
            )
        forget_peak(web)
        with ThreadPoolExecutor(len(wanted) * 2) as threads:
            statuses = list(threads.map(lambda one: ask(of, owner, one), [*wanted.values()] * 2))
        report.note(f"all at once, twice: {statuses}")
        peaks["all at once"] = ground._status(web, "VmHWM")
        report.note(f"all at once: {peaks['all at once'] / MB:.0f} MB")
    report.figure("web process, peak", max(peaks.values()) / MB, "MB")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__)
