"""How often a page takes a connection and waits for the database, once its process has answered it
before. The numbers of the table may only fall.
"""

from __future__ import annotations

from typing import NamedTuple

from browsers import signed_in
from cardsync.platform.database.watched_pools import WAITS
from dashboard_builder import filled_shop
from pages import PAGES
from sent_statements import counting, prepared


class Reads(NamedTuple):
    connections: int
    round_trips: int


ASKED = 3
MOST: dict[str, Reads] = {}


def connections() -> int:
    """Return how often this process has taken a connection."""
    [waits] = WAITS.collect()
    return sum(int(one.value) for one in waits.samples if one.name.endswith("_count"))


@prepared
async def test_no_page_reads_the_database_more_often_than_the_table_says(a_seller):
    seller, ids = await filled_shop(a_seller)
    browser = await signed_in(seller)
    counted: dict[str, Reads] = {}
    async with counting(seller.service.app.state.database) as sent:
        for page in (one for one in PAGES if one.kind == "page"):
            asked = []
            # The process also works in the background, so the least of several counts is right.
            for _ in range(ASKED):
                sent.read()
                before = connections(), sent.round_trips
                answer = await browser.get(page.address(ids))
                assert answer.status_code == 200, page.route
                sent.read()
                asked.append(Reads(connections() - before[0], sent.round_trips - before[1]))
            counted[page.route] = Reads(*map(min, zip(*asked[1:], strict=True)))
    print("\n" + "\n".join(f"    {route!r}: {tuple(reads)}," for route, reads in counted.items()))
    assert counted == MOST
