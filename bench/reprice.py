"""`python bench/reprice.py [--rows 300000] [--rounds 5]`: rules changed to new targets committed,
twenty rules with queries, every tenth card asking for another price; and the receipts of a sync:
bytes a card, and how long an explanation from them takes. `--budgeted 1` measures that alone.

Floor: the needed columns by COPY, the engine, and the changed rows back by COPY. Naive: rows
fetched, a plain Python loop (a tenth of it, scaled), an UPDATE for each changed row by
executemany.
"""

from __future__ import annotations

import random
import statistics
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import polars as pl

import ground
from cardsync.platform.database.copy import encode
from cardsync.prices.engine import engine
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.receipts import parquet_file
from ground import Report, spread
from priced_shop import NOW, READ, Shop, loop, parsed_rules, shop, with_rule


def repriced(of: Shop, adjust_amount: str) -> tuple[float, dict[str, Any]]:
    """Seconds from the request until the run is completed, and the run."""
    of.call("PATCH", f"/api/pricing/rules/{of.rule_ids[0]}", {"adjust_amount": adjust_amount})
    of.made.settle()
    started = perf_counter()
    run_id = of.call("POST", "/api/pricing/reprice", expected=202)["run_id"]
    of.run_ended(run_id)
    return perf_counter() - started, of.call("GET", f"/api/pricing/runs/{run_id}")


def floor(of: Shop, changed: int) -> tuple[float, list[float]]:
    """COPY out, engine, COPY in; and the three apart."""
    of.connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS back"
        " (id bigint, target_price numeric(12,4), rule_id bigint)"
    )
    known = parsed_rules(of.tenth)
    moments = [perf_counter()]
    cards = with_rule(of.cards(), known)
    moments.append(perf_counter())
    out = engine.price(cards, known, SellerPricing(), NOW)
    moments.append(perf_counter())
    rows = cards.select("id", target=out["target"] / 10_000, rule_id=out["rule_id"]).filter(
        pl.col("target").is_not_null()
    )
    data = encode(rows.head(changed))
    with of.connection.cursor().copy("COPY back FROM STDIN") as copy:
        copy.write(data)
    moments.append(perf_counter())
    of.connection.execute("DROP TABLE back")
    return moments[-1] - moments[0], [after - before for before, after in pairwise(moments)]


def naive(of: Shop, changed: int) -> float:
    known = parsed_rules(of.tenth)
    cards = with_rule(of.cards(), known)
    ids = cards["id"].head(changed).to_list()
    started = perf_counter()
    seller = of.seller.seller_id
    of.connection.execute(
        f"SELECT {', '.join(READ)} FROM card WHERE seller_id = {seller} AND NOT gone"
    ).fetchall()
    reading = perf_counter() - started
    looping = loop(cards, known)
    started = perf_counter()
    with of.connection.transaction(force_rollback=True), of.connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE card SET target_price = %s, priced_at = now() WHERE seller_id = %s AND id = %s",
            [("1.23", seller, id) for id in ids],
        )
    return reading + looping + perf_counter() - started


def explained(of: Shop, rounds: int) -> tuple[list[float], list[float], list[float], float]:
    """Milliseconds of explanations over HTTP, of one row out of the receipts, and of the whole
    file as rows; bytes a card.
    """
    [(key, cards)] = of.connection.execute(
        "SELECT summary ->> 'receipts', (summary ->> 'cards')::integer FROM price_run"
        f" WHERE seller_id = {of.seller.seller_id} AND summary ->> 'receipts' IS NOT NULL"
        " ORDER BY id DESC LIMIT 1"
    ).fetchall()
    path = of.made.settings.data_dir / "objects" / key
    data = path.read_bytes()
    ids = [
        id
        for (id,) in of.connection.execute(
            f"SELECT marketplace_id FROM card WHERE seller_id = {of.seller.seller_id}"
        )
    ]
    client = of.client()
    ours, rows = [], []
    for id in random.Random(7).sample(ids, 20 * rounds):
        started = perf_counter()
        status, _, body = client.request("GET", f"/api/v1/pricing/explain/{id}")
        ours.append(perf_counter() - started)
        assert status == 200, body[:300]
        assert b'"historical_breakdown":{' in body, body[:300]
        started = perf_counter()
        parquet_file.receipt(data, id)
        rows.append(perf_counter() - started)
    whole = [
        ground.seconds(lambda: next(parquet_file.unpack(data)[0].iter_rows(named=True)))
        for _ in range(3)
    ]
    client.close()
    return ours, rows, whole, len(data) / cards


def measure(data: Path, rows: int, rounds: int, budgeted: int = 0) -> Report:
    report = Report("Repricing")
    with ground.ground(data, rows, catalogs=False) as made, shop(made) as (of, running):
        spent = ground.cpu_seconds(running["web"]) + ground.cpu_seconds(made.postmaster())
        ours, rows_read, whole, per_card = explained(of, rounds)
        spent = (
            ground.cpu_seconds(running["web"]) + ground.cpu_seconds(made.postmaster()) - spent
        ) / len(ours)
        report.figure(
            "explanation with its receipt, over HTTP", statistics.median(ours) * 1000, "ms"
        )
        report.figure("explanation with its receipt, CPU", spent * 1000, "ms")
        if budgeted:
            return report
        repriced(of, "0")
        times: dict[str, list[float]] = {
            name: [] for name in ("ours", "floor", "CPU of ours", "CPU of the floor")
        }
        parts: list[list[float]] = []
        changed = 0
        for turn in range(rounds):
            database, worker = made.postmaster(), running["worker"]
            before = ground.cpu_seconds(worker) + ground.cpu_seconds(database)
            took, run = repriced(of, f"0.{turn % 2 + 4}0")
            times["ours"].append(took)
            times["CPU of ours"].append(
                ground.cpu_seconds(worker) + ground.cpu_seconds(database) - before
            )
            changed = run["changed"]
            before = process_time() + ground.cpu_seconds(database)
            took, apart = floor(of, changed)
            times["floor"].append(took)
            times["CPU of the floor"].append(process_time() + ground.cpu_seconds(database) - before)
            parts.append(apart)
        slow = naive(of, changed)
        report.note(f"{run['cards']:,} cards, {changed:,} have a new target")
        for name, values in times.items():
            report.note(f"{name:<13} {spread(values)}")
        report.note(
            "floor: COPY out, engine, COPY in  "
            + ", ".join(f"{statistics.median(one):.3f} s" for one in zip(*parts, strict=True))
        )
        report.note(f"naive         {slow:.1f} s")
        for name, values in (
            ("explain over HTTP", ours),
            ("one row of the receipts", rows_read),
            ("all their rows", whole),
        ):
            report.note(f"{name:<24} {spread(values, 'ms', 1000)}")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure(
        "rules changed to targets committed / (COPY out + engine + COPY in)",
        middle["ours"] / middle["floor"],
    )
    report.figure("the same in CPU seconds", middle["CPU of ours"] / middle["CPU of the floor"])
    report.figure("naive / ours", slow / middle["ours"])
    report.figure("receipts, bytes a card", per_card, "B")
    report.figure("one row of the receipts", statistics.median(rows_read) * 1000, "ms")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=5, budgeted=0)
