"""`python bench/preview.py [--rows 300000] [--rounds 5]`: twenty rules with queries previewed
over every card, over HTTP, and a table of every card downloaded.

Floor: the needed columns by COPY, the engine and its summary. Naive: rows fetched and a plain
Python loop (a tenth of it, scaled).
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from time import perf_counter, process_time

import ground
from cardsync.prices.engine import engine
from cardsync.prices.engine.seller_pricing import SellerPricing
from ground import MB, Report, spread
from priced_shop import NOW, READ, Shop, loop, parsed_rules, rules, shop, with_rule

# The cards that a draft selects.
DRAFTS = {"nothing": "price>99999", "a tenth": "id<={tenth}", "all": ""}
TABLES = ("card", "price_run", "price_change", "price_observation", "activity")


def floor(of: Shop) -> None:
    known = parsed_rules(of.tenth)
    engine.summary(engine.price(with_rule(of.cards(), known), known, SellerPricing(), NOW))


def naive(of: Shop) -> float:
    known = parsed_rules(of.tenth)
    cards = with_rule(of.cards(), known)
    query = (
        f"SELECT {', '.join(READ)} FROM card WHERE seller_id = {of.seller.seller_id} AND NOT gone"
    )
    return ground.seconds(lambda: of.connection.execute(query).fetchall()) + loop(cards, known)


def written(of: Shop) -> list[tuple[int, int]]:
    """Count the rows of each table, and add up the hashes of their versions."""
    with of.made.admin() as connection:
        return [
            connection.execute(
                f"SELECT count(*), coalesce(sum(hashtext(xmin::text)), 0)::bigint FROM {table}"
            ).fetchone()
            for table in TABLES
        ]


def measure(data: Path, rows: int, rounds: int) -> Report:
    report = Report("Preview")
    times: dict[str, list[float]] = {
        name: []
        for name in ("preview", "download", "floor", "CPU of a preview", "CPU of the floor")
    }
    with ground.ground(data, rows, catalogs=False) as made, shop(made) as (of, running):
        body = {"rules": rules(of.tenth, "0.50")}
        web, database = running["web"], made.postmaster()
        before = written(of)
        for turn in range(rounds + 1):
            spent = ground.cpu_seconds(web) + ground.cpu_seconds(database)
            started = perf_counter()
            told = of.call("POST", "/api/pricing/preview", body)
            took, spent = (
                perf_counter() - started,
                ground.cpu_seconds(web) + ground.cpu_seconds(database) - spent,
            )
            begun = process_time() + ground.cpu_seconds(database)
            bare = ground.seconds(lambda: floor(of))
            begun = process_time() + ground.cpu_seconds(database) - begun
            if turn:
                for name, value in zip(
                    times, (took, _download(of, body), bare, spent, begun), strict=True
                ):
                    times[name].append(value)
        assert written(of) == before, "a preview wrote something"
        drafts = {
            name: [_draft(of, query) for _ in range(rounds + 1)][1:]
            for name, query in DRAFTS.items()
        }
        drafts |= {
            f"{name}, first": [_draft(of, query, sample=True) for _ in range(rounds + 1)][1:]
            for name, query in DRAFTS.items()
        }
        slow = naive(of)
        moved = told["up"] + told["down"]
        report.note(
            f"{told['cards']:,} cards, {moved:,} would move,"
            f" web peak {ground.peak_memory(web) / MB:.0f} MB"
        )
        for name, values in times.items():
            report.note(f"{name:<17} {spread(values)}")
        report.note(f"naive             {slow:.1f} s")
    for name, values in drafts.items():
        report.note(f"draft, {name:<9} {spread(values, 'ms', 1000)}")
    report.figure("typing to a draft's counts", statistics.median(drafts["a tenth"]), "s")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure("preview of 20 rules", middle["preview"], "s")
    report.figure("CPU of a preview", middle["CPU of a preview"], "s")
    report.figure("preview / (COPY out + engine + summary)", middle["preview"] / middle["floor"])
    report.figure(
        "the same in CPU seconds", middle["CPU of a preview"] / middle["CPU of the floor"]
    )
    report.figure("naive / preview", slow / middle["preview"])
    return report


def _draft(of: Shop, query: str, *, sample: bool = False) -> float:
    """Return how long the preview of a rule takes while it is written."""
    rule = {"query": query.format(tenth=of.tenth), "adjust_bp": -500}
    body = {"rule": rule, "sample": sample}
    started = perf_counter()
    of.call("POST", "/api/pricing/preview/draft", body)
    return perf_counter() - started


def _download(of: Shop, body: object) -> float:
    client = of.client()
    started = perf_counter()
    status, _, told = client.request(
        "POST",
        "/api/pricing/preview?format=parquet",
        json.dumps(body).encode(),
        Content_Type="application/json",
    )
    assert status == 200, told[:300]
    return perf_counter() - started


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5)
