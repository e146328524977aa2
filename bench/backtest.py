"""`python bench/backtest.py [--rows 300000]`: thirty stored snapshots of a third of the rows,
each with 15 % of its prices moved, priced one after the other by twenty rules with queries, over
HTTP; the web process's peak memory. `--percent 100` moves every price every day.

Floor: every stored observation by COPY, once, and the engine once a snapshot. Naive: for each
snapshot the rows as of its moment by DISTINCT ON, fetched, and a plain Python loop (one snapshot,
a tenth of its loop; scaled).

At last the same days with a market: each card's product was looked at on each of them, and all
rules have a gate and go up to listings.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from time import perf_counter

import ground
from cardsync.prices.engine import engine
from cardsync.prices.engine.seller_pricing import SellerPricing
from ground import MB, Report, spread
from priced_shop import NOW, Shop, loop, parsed_rules, rules, shop, with_rule
from reprice_by_evidence import CARDS, CELLS, GATE, PRODUCTS, SALES

SNAPSHOTS = 30
_AMOUNTS = ("price", "market", "low", "low_with_shipping", "direct_low")
_SALES = 1_000_000
_SPAN = 5_000_000
# Every product was looked at an hour before each snapshot.
_DAYS = """
    CREATE TEMP TABLE looked_days AS
    SELECT exported_at - interval '1 hour' AS at, row_number() OVER () AS day FROM upload
     WHERE stream = 'inventory'
"""
_LISTINGS = """
    INSERT INTO market_listing (product_id, observed_at, cell, listings, copies, low)
    SELECT DISTINCT ON (product_id, cell, at) product_id, at, cell, 1 + n %% 12, 20,
           greatest(1, price * (100 + (n + day) %% 20) / 100)
      FROM held, looked_days
"""
_SALES_LOOKS = """
    INSERT INTO market_sales_look (product_id, looked_at)
    SELECT DISTINCT product_id, at FROM held, looked_days
"""
_LOOKS = """
    INSERT INTO market_look (product_id, sales_at, listings_at)
    SELECT product_id, max(looked_at), max(looked_at) FROM market_sales_look GROUP BY product_id
"""


def set_the_past(of: Shop, percent: int) -> int:
    """Twenty-nine uploads before the one that there is, a day apart, and what each of them had
    superseded. Returns how many rows.
    """
    seller, amounts = of.seller.seller_id, ", ".join(_AMOUNTS)
    moved = ", ".join(f"round({name} * (0.8 + 0.01 * ((c.id + n) % 40)), 4)" for name in _AMOUNTS)
    days = f"generate_series(1, {SNAPSHOTS - 1}) AS n"
    with of.made.admin() as connection:
        for back in range(3):
            connection.execute(
                "SELECT ensure_price_observation_partition((date_trunc('month', now()) -"
                " make_interval(months => %s))::date)",
                [back],
            )
        # The newest observation of every card stands on the card; these are those before it.
        done = connection.execute(
            f"INSERT INTO price_observation (seller_id, card_id, observed_at, quantity, {amounts})"
            f" SELECT seller_id, id, observed_at - make_interval(days => n), quantity, {moved}"
            f" FROM card c, {days}"
            f" WHERE seller_id = {seller}"
            f" AND (n = {SNAPSHOTS - 1} OR (c.id * 7919 + n * 104729) % 100 < {percent})"
        )
        connection.execute(
            "INSERT INTO upload (seller_id, stream, state, storage_key, exported_at, received_at)"
            " SELECT seller_id, stream, state, storage_key,"
            f" exported_at - make_interval(days => n), received_at FROM upload, {days}"
            f" WHERE seller_id = {seller} AND stream = 'inventory'"
        )
        connection.execute("VACUUM ANALYZE price_observation, card, upload")
    of.made.settle()
    return done.rowcount


def set_the_market(of: Shop) -> None:
    with of.made.admin() as connection:
        for statement in (
            PRODUCTS,
            CELLS,
            CARDS,
            _DAYS,
            _LISTINGS,
            SALES,
            _SALES_LOOKS,
            _LOOKS,
        ):
            connection.execute(statement, {"sales": _SALES, "span": _SPAN})
        connection.execute("VACUUM ANALYZE")
    of.made.settle()


def floor(of: Shop) -> None:
    known = parsed_rules(of.tenth)
    cards = with_rule(of.cards(), known)
    amounts = ", ".join(f"(c.{name} * 10000)::bigint" for name in _AMOUNTS)
    sql = (
        f"COPY (SELECT card_id, observed_at, quantity, {amounts} FROM price_observation c"
        f" WHERE seller_id = {of.seller.seller_id}) TO STDOUT"
    )
    of.copied(sql)
    for _ in range(SNAPSHOTS):
        engine.price(cards, known, SellerPricing(), NOW)


def naive(of: Shop) -> float:
    known = parsed_rules(of.tenth)
    seller, columns = of.seller.seller_id, ", ".join(("observed_at", "quantity", *_AMOUNTS))
    query = (
        "SELECT DISTINCT ON (card_id) *"
        f" FROM (SELECT card_id, {columns} FROM price_observation WHERE seller_id = {seller}"
        f" AND observed_at <= now() - interval '5 days' UNION ALL SELECT id, {columns} FROM card"
        f" WHERE seller_id = {seller}"
        " AND observed_at <= now() - interval '5 days') o ORDER BY card_id, observed_at DESC"
    )
    once = ground.seconds(lambda: of.connection.execute(query).fetchall())
    return SNAPSHOTS * (once + loop(with_rule(of.cards(), known), known))


def measure(data: Path, rows: int, rounds: int, percent: int) -> Report:
    report = Report("Backtest")
    times: dict[str, list[float]] = {name: [] for name in ("backtest", "CPU of it", "floor")}
    with ground.ground(data, rows // 3, catalogs=False) as made, shop(made) as (of, running):
        stored = set_the_past(of, percent)
        web, database = running["web"], made.postmaster()
        body = {
            "rules": rules(of.tenth, "0.50"),
            "sales": [],
            "from": "2000-01-01",
            "to": "2100-01-01",
        }
        idle = ground.memory(web)
        for _ in range(rounds):
            spent = ground.cpu_seconds(web) + ground.cpu_seconds(database)
            started = perf_counter()
            told = of.call("POST", "/api/pricing/backtest", body)
            times["backtest"].append(perf_counter() - started)
            times["CPU of it"].append(
                ground.cpu_seconds(web) + ground.cpu_seconds(database) - spent
            )
            times["floor"].append(ground.seconds(lambda: floor(of)))
        assert told["summary"]["snapshots"] == SNAPSHOTS, told["summary"]
        peak = ground.peak_memory(web)
        set_the_market(of)
        gated = {"market_gate": GATE, "undercut_up_bp": 100}
        followed = body | {"rules": [rule | gated for rule in body["rules"]]}
        started = perf_counter()
        changed = of.call("POST", "/api/pricing/backtest", followed)["summary"]["changed"]
        with_market = perf_counter() - started
        assert changed != told["summary"]["changed"]
        report.note(
            f"with the market of each day {with_market:.1f} s, {changed:,} price changes,"
            f" peak {ground.peak_memory(web) / MB:.0f} MB"
        )
        report.note(
            f"{told['days'][-1]['cards']:,} cards, {stored:,} stored observations,"
            f" {told['summary']['changed']:,} price changes"
        )
        for name, values in times.items():
            report.note(f"{name:<9} {spread(values)}")
        slow = naive(of)
        report.note(f"naive     {slow:.1f} s")
        report.note(f"web process: idle {idle / MB:.0f} MB, peak {peak / MB:.0f} MB")
    middle = {name: statistics.median(values) for name, values in times.items()}
    report.figure(f"backtest of {SNAPSHOTS} snapshots", middle["backtest"], "s")
    report.figure("CPU of it", middle["CPU of it"], "s")
    report.figure("web process, peak", peak / MB, "MB")
    report.figure("backtest / (COPY out + 30 engines)", middle["backtest"] / middle["floor"])
    report.figure("naive / backtest", slow / middle["backtest"])
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, rounds=2, percent=15)
