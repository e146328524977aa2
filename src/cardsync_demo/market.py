"""Makes market observations for a few of the demo's cards and imports them like `cardsync market
import`, so that the demo has suggestions and badges.
"""

from __future__ import annotations

import csv
import io
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

import httpx
from rich.console import Console
from sqlalchemy import text

from cardsync.access.models import Account
from cardsync.catalog.market.load_observations import load
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.platform.derived.kept_figures import TASKS, Figure, mark
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Row
from cardsync.platform.work.jobs import enqueue
from cardsync_demo.order_files import MOST_WAIT

HEADER: Final = (
    "product_id",
    "condition",
    "printing",
    "language",
    "price",
    "quantity",
    "sold_at",
    "fetched_at",
    "observed_at",
)
# A price that rises by more than this waits for the owner's review.
LOOK_AT_RISES_BP: Final = 1_500
_CARDS: Final = text("""
    SELECT p.marketplace_product_id AS product, c.condition, c.printing, c.language, c.price
      FROM card c JOIN product p ON p.id = c.product_id
     WHERE c.seller_id = :seller AND NOT c.gone AND c.quantity > 0 AND c.price > 0
       AND c.condition = 'NM' AND p.marketplace_product_id IS NOT NULL
     ORDER BY c.price DESC, c.id
""")


async def set_limits(database: Database, seller_id: int) -> None:
    """Set the limit above which the demo's prices wait for a review when they rise."""
    async with database.tenant(seller_id) as session:
        account = await session.get_one(Account, seller_id)
        account.review_up_bp = LOOK_AT_RISES_BP


async def observe(settings: Settings, seller_id: int) -> str:
    """Import the observations, request suggestions, and return a sentence about the import."""
    assert settings.database_url is not None
    async with Database.open(settings.database_url, pool=2, hot_pool=1) as opened:
        async with opened.tenant(seller_id) as session:
            cards = (await session.execute(_CARDS, {"seller": seller_id})).all()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "market.csv"
            path.write_text(_file(cards, clock.now()), encoding="utf-8")
            report = await load(opened, path, lambda _: None)
        async with opened.tenant(seller_id) as session:
            await mark(session, seller_id, Figure.RECOMMENDATIONS)
            await enqueue(session, TASKS[Figure.RECOMMENDATIONS], seller_id=seller_id)
    return report.sentence()


def _file(cards: Sequence[Row], now: datetime) -> str:
    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(HEADER)
    # The most expensive card was bought out. Some of the other cards are listed for more, the
    # others sell for more.
    for place, card in enumerate(cards):
        rows = _bought_out(card.price, now) if place == 0 else _calm(place, card.price, now)
        for price, quantity, sold_at, seen_at in rows:
            amount = f"{price:.2f}"
            fetched = "" if sold_at is None else clock.rfc3339(seen_at)
            observed = "" if sold_at else clock.rfc3339(seen_at)
            writer.writerow(
                (
                    card.product,
                    card.condition,
                    card.printing,
                    card.language,
                    amount,
                    quantity,
                    clock.rfc3339(sold_at) if sold_at else "",
                    fetched,
                    observed,
                )
            )
    return output.getvalue()


_Row = tuple[Decimal, int, datetime | None, datetime]


def _bought_out(price: Decimal, now: datetime) -> Iterator[_Row]:
    """Yield the observations of a buyout: twelve copies in the morning, two an hour ago, and the
    sales in between.
    """
    morning, lately = now - timedelta(hours=9), now - timedelta(hours=1)
    for copies in (6, 6):
        yield price, copies, None, morning
    for _ in range(2):
        yield price * 2, 1, None, lately
    for minutes in range(5):
        yield price, 2, now - timedelta(hours=4, minutes=minutes), lately


def _calm(place: int, price: Decimal, now: datetime) -> Iterator[_Row]:
    seen = now - timedelta(hours=2)
    rise = Decimal(1) + Decimal(place % 3 + 1) / 10
    # The undercut rule already follows the listings, so a suggestion needs a card that has no
    # higher listings but sells for more.
    if place % 2:
        for sale in range(5):
            yield price * rise, 1, now - timedelta(days=3 + sale), seen
        return
    for listing in range(2 if place % 4 == 0 else 5):
        yield price * rise + listing, 1, None, seen


def show(console: Console, server: str, api_key: str, said: str) -> None:
    """Print the suggestions as soon as the worker has made them."""
    console.rule("[bold]the market's evidence", align="left")
    console.print(f"[green]✓[/] {said}", highlight=False)
    with httpx.Client(
        base_url=server,
        headers={"Authorization": f"Bearer {api_key}"},
        timeout=MOST_WAIT,
    ) as http:
        until = time.monotonic() + MOST_WAIT
        while True:
            answer = http.get("/api/recommendations", params={"per_page": 3}).json()
            if answer.get("total") or time.monotonic() > until:
                break
            time.sleep(0.2)
        waiting = http.get("/api/pricing/reviews").json()["total"]
    console.print(f"[green]✓[/] {answer['total']} prices are recommended:")
    for one in answer["recommendations"]:
        name = one["card"]["product_name"]
        console.print(
            f"  {one['current_price']:>8} → {one['proposed_price']:>8}  {name}", markup=False
        )
        console.print(f"{'':22}{one['evidence']['reason']}", markup=False, style="dim")
    console.print(f"[green]✓[/] {waiting} prices rise further than the limit and wait for a look")
