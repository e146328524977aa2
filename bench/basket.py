"""`python bench/basket.py [--rounds 5]`: baskets over HTTP, solved in the solver's process: 60
cards over 150 sellers, and 200 cards over 200 sellers. Each seller holds a share of the cards; its
prices lie around the card's own, and its postage has steps.

Beside the gap of the split stand the time of the whole request, the saving against the greedy
split, and how long other requests wait while a basket is solved.
"""

from __future__ import annotations

import json
import random
import statistics
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

import ground
from ground import Client, Ground, Report

PATH = "/api/discovery/basket"
POSTAGE = ("0:1.27,12:3.20", "0:0.99,20:4.50,50:0", "0:1.50", "0:2.00,30:0")
_FIRST = 2_000_000


def _sellers(made: Ground, sellers: int, share: float, cards: int, seed: int) -> list[int]:
    """Let this many sellers, and no others, offer a share of these many products."""
    rng = random.Random(seed)
    with made.admin() as connection:
        connection.execute("TRUNCATE network_offer")
        connection.execute("DELETE FROM network_seller WHERE seller_id >= %s", (_FIRST,))
        # Names that one printing alone has, so that the reference is clear.
        rows: list[tuple[int]] = connection.execute(
            "SELECT min(id) FROM product WHERE game = 'pokemon' AND number <> ''"
            " AND length(name_key) > 1 GROUP BY name_key, number_key, set_name"
            " HAVING count(*) = 1 ORDER BY 1 LIMIT 20000"
        ).fetchall()
        products = [id for (id,) in rng.sample(rows, cards)]
        with connection.cursor().copy(
            "COPY network_seller (seller_id, exposed, store_name, postage_steps) FROM STDIN"
        ) as copy:
            for n in range(sellers):
                copy.write_row((_FIRST + n, True, f"Shop {n}", rng.choice(POSTAGE)))
        with connection.cursor().copy(
            "COPY network_offer (product_id, seller_id, condition, price, quantity) FROM STDIN"
        ) as copy:
            for product in products:
                price = 10 ** rng.uniform(-0.7, 1.3)
                for n in range(sellers):
                    if rng.random() < share:
                        asked = max(0.05, price * rng.uniform(0.8, 1.6))
                        row = (product, _FIRST + n, "NM", f"{asked:.2f}", rng.randint(1, 6))
                        copy.write_row(row)
        connection.execute("ANALYZE network_offer, network_seller")
    return products


def _body(made: Ground, products: list[int], rng: random.Random) -> bytes:
    with made.admin() as connection:
        rows = connection.execute(
            "SELECT product_name, set_name, number, finish FROM product WHERE id = ANY (%s)",
            (products,),
        ).fetchall()
    cards: list[dict[str, Any]] = [
        {"name": name, "set": of, "number": number, "quantity": rng.choice((1, 1, 1, 2, 4))}
        | ({"finish": finish} if finish else {})
        for name, of, number, finish in rows
    ]
    return json.dumps({"cards": cards}).encode()


def _waits(made: Ground, key: str, stop: threading.Event, waits: list[float]) -> None:
    client = Client(made.settings.bind, key)
    while not stop.is_set():
        began = perf_counter()
        client.request("GET", "/api/lists")
        waits.append((perf_counter() - began) * 1000)
        stop.wait(0.05)
    client.close()


def _measure(
    report: Report,
    made: Ground,
    key: str,
    size: tuple[int, int, float],
    rounds: int,
) -> None:
    cards, sellers, share = size
    times: list[float] = []
    gaps: list[float] = []
    savings: list[float] = []
    unavailable = 0
    waits: list[float] = []
    client = Client(made.settings.bind, key)
    for turn in range(rounds):
        products = _sellers(made, sellers, share, cards, turn)
        body = _body(made, products, random.Random(turn))
        stop = threading.Event()
        beside = threading.Thread(target=_waits, args=(made, key, stop, waits))
        beside.start()
        began = perf_counter()
        status, _, answer = client.request("POST", PATH, body, Content_Type="application/json")
        times.append(perf_counter() - began)
        stop.set()
        beside.join()
        assert status == 200, answer[:300]
        found = json.loads(answer)
        gaps.append(found["gap"] * 100)
        unavailable += len(found["unavailable"])
        if found["greedy_total"]:
            savings.append((1 - found["total"] / found["greedy_total"]) * 100)
    client.close()
    name = f"{cards} cards x {sellers} sellers, {share:.0%} of the cards each"
    report.note(
        f"{name}: gap {statistics.median(gaps):.2f} % (median), {statistics.median(times):.2f} s;"
        f" {statistics.median(savings):.1f} % cheaper than greedy; {unavailable} not available;"
        f" another request waited {statistics.median(waits):.1f} ms (p50),"
        f" {sorted(waits)[len(waits) * 99 // 100]:.1f} ms (p99)"
    )
    report.figure(f"{name}: worst gap", max(gaps), "%")
    report.figure(f"{name}: longest request", max(times), "s")


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Baskets")
    with ground.ground(data, 1_000) as made:
        seller = made.new_seller()
        with ground.service(made, workers=0):
            for share in (0.15, 0.4):
                size = (60, 150, share)
                _measure(report, made, seller.api_key, size, rounds)
                size = (200, 200, share)
                _measure(report, made, seller.api_key, size, max(1, rounds // 2))
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)
