"""`python bench/old_shop.py [--rows 300000] [--years 5] [--every 30] [--orders 100000]
[--rounds 20]`: a shop of so many years beside a young one with the same cards. The old one has an
observation of each card every so many days, four cycles, pricing runs and uploads a day, forty
entries of the activity, and the same number of orders each year; what is old has moved to the
object store by the program itself. The young one has the same of its first month, so that its pages
are full, and the orders of a year.

Both take turns at each path, so that a machine that others use is slow for both. The figure is the
median of the old one's times against that of the young one's.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx

import ground
import import_inventory
from cardsync.operations import put_away
from cardsync.platform.database.session import Database
from cardsync.platform.old_data.old_kinds import KINDS
from cardsync.platform.storage import open_store
from cardsync.platform.work.jobs import Work
from cardsync.shop.accounts.sellers import CreatedSeller
from cardsync.stock.cards import history
from ground import Ground, Report
from pages import a_shop, timed

SEARCH = "is:foil price>5"
READS = {
    "cards": "/api/cards",
    "cards, a search": f"/api/cards?search={SEARCH}",
    "card": "/api/cards/{card}",
    "explain": "/api/v1/pricing/explain/{listing}",
    "orders": "/api/orders",
    "orders, a search": "/api/orders?search=smith",
    "orders, a rare search": "/api/orders?search={number}",
    "status": "/api/v1/status",
    "price file": "/api/v1/export/price-updates",
    "activity": "/api/v1/agent/activity",
    "cycles": "/api/v1/sync/cycles",
}
PAGES = {
    "page of today": "/today",
    "page of cards": "/cards",
    "page of a card": "/cards/{card}",
    "page of orders": "/orders",
    "page of orders, a search": "/orders?search=smith",
    "page of orders, a rare search": "/orders?search={number}",
    "page of sales": "/sales",
    "page of pricing": "/pricing",
    "page of runs": "/pricing/runs",
    "page of the sync": "/sync",
    "page of the activity": "/activity",
}
# Its exact total is the count of all orders that match.
COUNTED = "orders, a search"
FILLED = (
    # An observation of each card.
    """
    INSERT INTO price_observation (seller_id, card_id, observed_at, quantity, price, market)
    SELECT c.seller_id, c.id, d, 1, 1 + (c.id %% 100) / 10.0, 2 FROM card c,
           generate_series(now() - %(past)s * interval '1 day', now() - interval '2 days',
                           %(every)s * interval '1 day') d
     WHERE c.seller_id = %(seller)s
    """,
    """
    INSERT INTO activity (seller_id, actor, action, summary, created_at)
    SELECT %(seller)s, 'key 1', 'list.created', 'list ' || d, d
      FROM generate_series(now() - %(past)s * interval '1 day', now(), interval '36 minutes') d
    """,
    """
    INSERT INTO sync_cycle (seller_id, sync_cycle_id, status, started_at, logged_at, steps)
    SELECT %(seller)s, 'old ' || d, 'success', d, d,
           '[{"name": "export_inventory", "status": "success", "duration_ms": 5, "error": null}]'
      FROM generate_series(now() - %(past)s * interval '1 day', now(), interval '6 hours') d
    """,
    """
    WITH sent AS (
        INSERT INTO upload (seller_id, stream, state, storage_key, exported_at, received_at,
                            finished_at)
        SELECT %(seller)s, 'inventory', 'done', 'accepted/none', d, d, d
          FROM generate_series(now() - %(past)s * interval '1 day', now() - interval '2 days',
                               interval '6 hours') d
        RETURNING id, received_at)
    , run AS (
        INSERT INTO price_run (seller_id, trigger, upload_id, state, started_at, finished_at)
        SELECT %(seller)s, 'sync', id, 'completed', received_at, received_at FROM sent
        RETURNING id)
    INSERT INTO price_change (seller_id, run_id, card_id, old_price, new_price)
    SELECT %(seller)s, r.id, c.id, 1, 2 FROM run r CROSS JOIN LATERAL (
        SELECT id FROM card WHERE seller_id = %(seller)s AND id %% 200 = r.id %% 200 LIMIT 100) c
    """,
)
MONTHS = """
    SELECT ensure_price_observation_partition(d::date)
      FROM generate_series(now() - %(past)s * interval '1 day', now(), interval '1 month') d
"""


YOUNG_DAYS = 30


def aged(report: Report, made: Ground, seller: CreatedSeller, days: int, every: int) -> None:
    values = {"seller": seller.seller_id, "past": days, "every": every}
    with made.admin() as connection:
        connection.execute(MONTHS, values)
        for statement in FILLED:
            connection.execute("SET session_replication_role = replica")
            connection.execute(statement, values)

    async def move(database: Database) -> int:
        work = Work(made.settings, database, open_store(made.settings))
        moved = 0
        for kind in KINDS.values():
            async for slab in put_away.slabs(work, seller.seller_id, kind):
                moved += slab
        await history.drop_old(work)
        return moved

    began = perf_counter()
    moved = made.in_database(move)
    took = perf_counter() - began
    report.note(f"{moved:,} old rows moved in {took:.1f} s, {moved / took:,.0f} rows/s")
    with made.admin() as connection:
        connection.execute("VACUUM ANALYZE")
    made.settle()


class Walker:
    """A shop with a key and a member's session."""

    def __init__(self, made: Ground, seller: CreatedSeller) -> None:
        self.made, self.seller = made, seller
        url = f"http://{made.settings.bind}"
        self.agent = httpx.Client(
            base_url=url, timeout=120, headers={"Authorization": f"Bearer {seller.api_key}"}
        )
        self.member = httpx.Client(base_url=url, timeout=120)
        credentials = {"email": seller.email, "password": seller.password}
        assert self.member.post("/api/session", json=credentials).status_code == 200
        cards: list[dict[str, Any]] = self.agent.get("/api/cards").json()["cards"]
        card = cards[0]
        [order] = self.agent.get("/api/orders?per_page=1").json()["orders"]
        self.ids = {
            "card": card["id"],
            "listing": card["marketplace_id"],
            "number": order["order_number"][-7:],
        }

    def walk(self) -> dict[str, float]:
        """The milliseconds of each path."""
        took = {"heartbeat": self._beat()}
        for http, paths in ((self.agent, READS), (self.member, PAGES)):
            took |= {name: timed(http, path.format(**self.ids)) for name, path in paths.items()}
        return took

    def _beat(self) -> float:
        began = perf_counter()
        assert self.agent.post("/api/v1/heartbeat", json={}).status_code == 200
        return (perf_counter() - began) * 1000


def measure(data: Path, rows: int, years: int, every: int, orders: int, rounds: int) -> Report:
    report = Report(f"A shop of {years} years against a young one, {rows:,} cards")
    with ground.ground(data, rows, catalogs=False) as made:
        # A third shop is first: either of the two fills what another's updates left free.
        a_shop(made, orders, 365)
        young, old = a_shop(made, orders, 365), a_shop(made, orders * years, 365 * years)
        aged(report, made, young, YOUNG_DAYS, every)
        aged(report, made, old, years * 365, every)
        took: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"young": [], "old": []})
        with ground.service(made, workers=1):
            shops = {"young": Walker(made, young), "old": Walker(made, old)}
            for turn in range(-2, rounds):
                for name, shop in shops.items() if turn % 2 else reversed(shops.items()):
                    for path, one in shop.walk().items():
                        if turn >= 0:
                            took[path][name].append(one)
            for turn in range(max(3, rounds // 5)):
                body = ground.some_changed(made.inventory, 15, 1.25 + turn / 100)
                for name, shop in shops.items() if turn % 2 else reversed(shops.items()):
                    again, _ = import_inventory.upload(made, shop.seller, body)
                    took["import again"][name].append(again * 1000)
    ratios = []
    for path, times in took.items():
        young_ms, old_ms = (statistics.median(times[name]) for name in ("young", "old"))
        report.note(f"{path}: {young_ms:.1f} -> {old_ms:.1f} ms")
        report.figure(f"{path}: old / young", old_ms / young_ms)
        if path != COUNTED:
            ratios.append(old_ms / young_ms)
    report.figure("the slowest of all: old / young", max(ratios))
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, years=5, every=30, orders=100_000, rounds=20)
