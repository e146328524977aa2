"""`python bench/buylist.py [--products 500000] [--rounds 200] [--visitors 50]`: the public buylist
of a shop over so many products: a search with both prices in each condition, alone and with so many
visitors at once, and the polls of the shop's agent beside them.

Times are compared with those of the same machine without visitors, measured in one run.
"""

from __future__ import annotations

import os
import random
import statistics
from pathlib import Path
from time import perf_counter

import ground
import import_inventory
from crowd import crowding
from ground import Client, Ground, Report
from pages import p99

SYLLABLES = (
    "ba",
    "dor",
    "el",
    "fin",
    "gar",
    "hul",
    "is",
    "ka",
    "lor",
    "mun",
    "ne",
    "ost",
    "ra",
    "tu",
)
POLL = "/api/v1/sync/pending?agent_id=bench"
# Products that no inventory brings, with names of three words.
FILL = """
    INSERT INTO product (identity, game, set_name, set_code, product_name, number, number_key,
                         language)
    SELECT 'bench ' || n, 'magic', 'Set ' || n %% 400, 'S' || n %% 400,
           initcap(a[1 + n %% 14] || a[1 + n / 14 %% 14] || ' ' || a[1 + n / 196 %% 14]
                   || a[1 + n / 2744 %% 14] || ' ' || a[1 + n / 38416 %% 14]),
           (n %% 300)::text, (n %% 300)::text, 'English'
      FROM generate_series(1, %s) n, (SELECT %s::text[] AS a) words
"""


def _fill(made: Ground, products: int) -> None:
    with made.admin() as connection:
        connection.execute("UPDATE product SET provisional = false")
        connection.execute(FILL, (products, list(SYLLABLES)))
        connection.execute("VACUUM ANALYZE product")
    made.settle()


def _typed(dice: random.Random) -> str:
    """Return the beginning of two words, as visitors type it."""
    return f"{dice.choice(SYLLABLES)}{dice.choice(SYLLABLES)}+{dice.choice(SYLLABLES)}"


def _times(client: Client, paths: list[str]) -> list[float]:
    times = []
    for path in paths:
        began = perf_counter()
        status, _, body = client.request("GET", path)
        times.append((perf_counter() - began) * 1000)
        assert status in (200, 503), (path, status, body[:200])
    return times


def measure(data: Path, rows: int, products: int, rounds: int, visitors: int) -> Report:
    report = Report("The public buylist")
    os.environ["CARDSYNC_RATE_LIMIT_BUYLIST"] = "1000000000/min"
    dice = random.Random(7)
    with ground.ground(data, rows, catalogs=False) as made:
        seller = made.new_seller()
        with ground.service(made, workers=1):
            import_inventory.upload(made, seller, made.inventory.read_bytes())
        _fill(made, products)
        with ground.service(made, workers=0):
            agent, visitor = Client(made.settings.bind, seller.api_key), Client(made.settings.bind)
            agent.request("POST", "/api/buying/presets/hungry")
            opened = b'{"is_open": true}'
            json_kind = {"Content_Type": "application/json"}
            agent.request("PATCH", "/api/buying/buylist", opened, **json_kind)
            path = f"/buylist/{seller.seller_id}"
            searches = [f"{path}?q={_typed(dice)}" for _ in range(rounds)]
            listed = [f"{path}?q=a&game={line}" for line in ("magic", "pokemon")]
            _times(visitor, searches[:20] + listed)
            alone = _times(visitor, searches)
            # The server has closed the connection that was idle meanwhile.
            agent = Client(made.settings.bind, seller.api_key)
            quiet = _times(agent, [POLL] * rounds)
            url = f"http://{made.settings.bind}"
            with crowding(url, {}, ("GET", searches[0]), visitors) as statuses:
                beside = _times(agent, [POLL] * rounds)
                crowded = _times(visitor, searches[: rounds // 4])
    report.note(
        f"a search alone: p50 {statistics.median(alone):.1f} ms, p99 {p99(alone):.1f} ms;"
        f" among {visitors} visitors p50 {statistics.median(crowded):.1f} ms"
    )
    report.note(
        f"a poll alone: p50 {statistics.median(quiet):.1f} ms, p99 {p99(quiet):.1f} ms;"
        f" beside {visitors} visitors p50 {statistics.median(beside):.1f} ms,"
        f" p99 {p99(beside):.1f} ms; visitors got {dict(statuses)}"
    )
    report.figure("a search of the buylist, p99", p99(alone), "ms")
    report.figure("p99 of the agent's polls beside visitors / alone", p99(beside) / p99(quiet))
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, products=500_000, rounds=200, visitors=50)
