"""`python bench/phone_marks.py [--rounds 20] [--phones 16]`: a mark of one phone of a pull until it
is on the event streams of all others, each on a connection of its own; beside it a NOTIFY of
the database until a listener has it.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from time import perf_counter

import httpx
import psycopg

import ground
import read_orders
from cardsync.shop.accounts.sellers import CreatedSeller
from ground import Ground, Report

sys.path.append(str(ground.HERE.parent / "tests" / "system"))

from pull_streams import seconds_to_each

ORDERS = 4_000


def phone_links(http: httpx.Client, seller: CreatedSeller, phones: int) -> list[str]:
    """Open a pull of the orders that are to be shipped; return a link to it for each phone."""
    credentials = {"email": seller.email, "password": seller.password}
    signed_in = http.post("/api/session", json=credentials)
    http.headers["X-CSRF-Token"] = signed_in.json()["csrf_token"]
    orders = http.get("/api/orders?pull_session=none&per_page=50").json()["orders"]
    body: dict[str, object] = {"order_ids": [order["id"] for order in orders]}
    session = http.post("/api/pull_sessions", json=body).json()["id"]
    urls: list[str] = []
    for _ in range(phones):
        made = http.post("/api/pull_links", json={"session_id": session}).json()["links"]
        urls.append(made[0]["url"])
    return [f"{http.base_url}".rstrip("/") + url[url.index("/p/") :] for url in urls]


def notified(made: Ground, rounds: int) -> float:
    """Median seconds from a NOTIFY to its listener."""
    times = []
    with (
        psycopg.connect(made.admin_url, autocommit=True) as listener,
        psycopg.connect(made.admin_url, autocommit=True) as teller,
    ):
        listener.execute("LISTEN bench")
        for _ in range(rounds):
            began = perf_counter()
            teller.execute("NOTIFY bench")
            next(iter(listener.notifies(timeout=10, stop_after=1)))
            times.append(perf_counter() - began)
    return statistics.median(times)


def measure(data: Path, rows: int, rounds: int, phones: int) -> Report:
    report = Report(f"A mark to {phones} other phones")
    with ground.ground(data, rows, catalogs=False) as made:
        seller = made.new_seller()
        read_orders.fill(made, seller.seller_id, ORDERS)
        floor = notified(made, rounds)
        with (
            ground.service(made, workers=0),
            httpx.Client(base_url=f"http://{made.settings.bind}", timeout=60) as http,
        ):
            links = phone_links(http, seller, phones)
            [item, *_] = [line["item_id"] for line in http.get(f"{links[0]}/queue").json()["lines"]]
            waits = []
            for _ in range(rounds):
                _, each = seconds_to_each(links, item, [])
                waits.append(max(each))
    slowest = sorted(waits)
    report.note(f"a NOTIFY reaches its listener in {floor * 1000:.2f} ms")
    report.figure("the slowest phone, p50", statistics.median(waits) * 1000, "ms")
    report.figure("the slowest phone of all rounds", slowest[-1] * 1000, "ms")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=20, phones=16)
