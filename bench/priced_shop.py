"""A shop that the measurements of pricing share: the real worker imports it. Twenty rules with
queries, the bare reading of its cards, and the plain Python loop over them belong to it.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import polars as pl
import psutil
import psycopg

import ground
import import_inventory
from cardsync.platform.database.urls import libpq_url
from cardsync.prices.engine.rules import Rule
from cardsync.prices.engine.run_inputs import TIME, Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.inputs.rule_file import read_rules
from cardsync.shop.accounts.sellers import CreatedSeller
from engine import plain_target
from ground import Client, Ground

NOW = datetime.now(UTC)
READ = (
    "id",
    "marketplace_id",
    "quantity",
    "price",
    "market",
    "low",
    "low_with_shipping",
    "direct_low",
    "observed_at",
)
_AMOUNTS = ("price", "market", "low", "low_with_shipping", "direct_low")
COLUMNS = ", ".join(
    f"(c.{name} * 10000)::bigint"
    if name in _AMOUNTS
    else "(extract(epoch FROM c.observed_at) * 1000000)::bigint"
    if name == "observed_at"
    else f"c.{name}"
    for name in READ
)


def rules(tenth: int, adjust_amount: str) -> list[dict[str, Any]]:
    """Twenty, as they are posted.

    The first takes the cards whose id is at most `tenth` and asks for `adjust_amount` more.
    """
    bands = [(n * 2, n * 2 + 2) for n in range(12)]
    queries = [
        f"id<={tenth}",
        "is:foil market>20",
        "game:pokemon r:rare cond:NM",
        "game:pokemon_japan",
        *(f"market:{low}..{high} cond:NM|LP" for low, high in bands),
        "cond>=MP",
        "market<0.25",
        "game:magic price>5",
        "",
    ]
    return [
        {
            "name": f"Rule {n}",
            "priority": n + 1,
            "state": "published",
            "query": query,
            "fallback_sources": ["low"],
            "adjust_bp": 10 * n - 100,
            "adjust_amount": adjust_amount if n == 0 else "0",
            "floor": "0.05",
        }
        for n, query in enumerate(queries)
    ]


@dataclass
class Shop:
    """A seller whose cards are imported, with the rules above; a connection of its own in the
    seller's scope.
    """

    made: Ground
    seller: CreatedSeller
    connection: psycopg.Connection[Any]
    tenth: int = 0
    rule_ids: list[int] = field(default_factory=list)

    def client(self) -> Client:
        return Client(self.made.settings.bind, self.seller.api_key)

    def call(self, method: str, path: str, body: Any = None, expected: int = 200) -> Any:
        client = self.client()
        content = None if body is None else json.dumps(body).encode()
        status, _, told = client.request(method, path, content, Content_Type="application/json")
        client.close()
        assert status == expected, told[:300]
        return json.loads(told)

    def post_rules(self) -> None:
        self.rule_ids = [
            self.call("POST", "/api/pricing/rules", body, 201)["id"] for body in rules(0, "0")
        ]

    def set_tenth(self) -> None:
        """The first rule governs as many cards with a price source as are a tenth of all."""
        own = f"seller_id = {self.seller.seller_id}"
        [(count,)] = self.connection.execute(f"SELECT count(*) FROM card WHERE {own}")
        [(self.tenth,)] = self.connection.execute(
            f"SELECT id FROM card WHERE {own} AND coalesce(market, low) IS NOT NULL"
            f" ORDER BY id OFFSET {count // 10} LIMIT 1"
        )
        self.call("PATCH", f"/api/pricing/rules/{self.rule_ids[0]}", {"query": f"id<={self.tenth}"})

    def run_ended(self, run_id: int | None = None) -> int:
        """Waits for the run, or for the newest."""
        which = f"AND id = {run_id}" if run_id else "ORDER BY id DESC LIMIT 1"
        query = f"SELECT id, state FROM price_run WHERE seller_id = {self.seller.seller_id} {which}"
        while True:
            for id, state in self.connection.execute(query):
                if state != "running":
                    assert state == "completed", state
                    return int(id)
            sleep(0.005)

    def cards(self) -> pl.DataFrame:
        """The columns that every pricing needs, by COPY, typed."""
        sql = (
            f"COPY (SELECT {COLUMNS} FROM card c"
            f" WHERE seller_id = {self.seller.seller_id} AND NOT gone"
            " ORDER BY id) TO STDOUT WITH (FORMAT csv)"
        )
        schema = dict.fromkeys(READ, pl.Int64)
        return typed(pl.read_csv(self.copied(sql), has_header=False, schema=schema))

    def copied(self, sql: str) -> bytes:
        """Return the bytes that a COPY sends."""
        out = io.BytesIO()

        def drain(copy: psycopg.Copy) -> Any:
            while part := (yield from copy._read_gen()):
                out.write(part)

        with self.connection.cursor().copy(sql) as copy:
            # As the application does it: one wait for all rows.
            self.connection.wait(drain(copy))
        return out.getvalue()


def typed(rows: pl.DataFrame) -> pl.DataFrame:
    """The engine's inputs."""
    return rows.rename({"price": "current_price"}).with_columns(
        pl.col("observed_at").cast(TIME),
        *(pl.lit(None, pl.String).alias(name) for name in ("condition", "printing", "language")),
        custom=pl.lit(False),
    )


def with_rule(cards: pl.DataFrame, known: list[Rule]) -> pl.DataFrame:
    """Every card with one of the rules: which one decides nothing of how long a pricing takes."""
    return cards.with_columns(
        rule_id=pl.lit(pl.Series([rule.id for rule in known])).gather(pl.col("id") % len(known))
    )


def parsed_rules(tenth: int) -> list[Rule]:
    return [replace(rule, id=n + 1) for n, rule in enumerate(read_rules(rules(tenth, "0")))]


def loop(cards: pl.DataFrame, known: list[Rule], part: int = 10) -> float:
    """Seconds of a plain Python loop over the cards, measured on a part of them and scaled."""
    few = cards.head(cards.height // part)
    seller, of = SellerPricing(), {rule.id: rule for rule in known}
    run = Run(known, seller, NOW, ())
    started = perf_counter()
    for row in few.with_columns(sale_id=pl.lit(None, pl.Int64)).iter_rows(named=True):
        plain_target(row, of, {}, run)
    return (perf_counter() - started) * cards.height / few.height


def in_stock(inventory: Path) -> bytes:
    """The generated file with every card in stock, as gzip."""
    frame = pl.read_csv(gzip.decompress(inventory.read_bytes()), infer_schema=False)
    quantity = pl.col("Total Quantity").replace("0", "1")
    csv = frame.with_columns(quantity).write_csv(quote_style="always", line_terminator="\r\n")
    return gzip.compress(csv.encode(), 6, mtime=0)


@contextmanager
def shop(made: Ground) -> Iterator[tuple[Shop, dict[str, psutil.Process]]]:
    """The shop, imported and priced by its rules, and the web and worker processes, which run
    on.
    """
    seller = made.new_seller(sync_mode="read_only")
    with (
        ground.service(made, workers=1) as children,
        psycopg.connect(libpq_url(made.url), autocommit=True) as own,
    ):
        own.execute(f"SET app.seller_id = '{seller.seller_id}'")
        opened = Shop(made, seller, own)
        opened.post_rules()
        import_inventory.upload(made, seller, in_stock(made.inventory))
        opened.run_ended()
        opened.set_tenth()
        with made.admin() as connection:
            connection.execute("VACUUM ANALYZE card, price_change, price_observation")
        made.settle()
        running = {
            name: psutil.Process(child.process.pid)
            for name in ("web", "worker")
            for child in children
            if child.process and child.name.startswith(name)
        }
        yield opened, running
