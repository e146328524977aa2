"""An account that is removed, beside another that is not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from tests.kills.room import Work, held
from tests.system.processes import Seller, Server, until

from builders import a_csv, a_row
from cardsync.processes import embedded
from cardsync.tables import metadata

TABLES = [table.name for table in metadata.sorted_tables if "seller_id" in table.columns]
CARDS = 50
NOW_DUE = """
    WITH asked AS (
        UPDATE account_deletion SET due_at = now() - interval '1 hour'
         WHERE seller_id = %(seller)s RETURNING 1
    )
    UPDATE work_due SET due_at = now() - interval '1 hour'
     WHERE seller_id = %(seller)s AND stream = 'deletion' RETURNING 1
"""


class Removal(Work):
    moments = ("at its upload", "at its card", "at its seller")

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.seller, self.email, self.password = self.a_shop()
        self.other, _, _ = self.a_shop()
        self.before = self.lasting_rows_of(self.other)
        self.ask()
        assert self.rows_of(self.seller)["card"] == CARDS

    def a_shop(self) -> tuple[Seller, str, str]:
        email = f"removed-{time.monotonic_ns()}@example.invalid"
        create = ["admin", "seller", "create", "--name", "A shop", "--email", email, "--json"]
        made = json.loads(self.server.run(*create).out)
        seller = Seller(self.server, made["seller_id"], made["api_key"])
        file = a_csv(*(a_row(n) for n in range(1, CARDS + 1)))
        assert seller.finished(seller.upload(file))["state"] == "done"
        until(lambda: "network_offer" in self.rows_of(seller), "its offers are written")
        return seller, email, made["password"]

    def rows_of(self, seller: Seller) -> dict[str, int]:
        with (
            embedded.running(self.server.data_dir) as database,
            psycopg.connect(database.admin_url()) as admin,
        ):
            counts = {}
            for table in TABLES:
                query = f"SELECT count(*) FROM {table} WHERE seller_id = {seller.id}"
                row = admin.execute(query).fetchone()  # type: ignore[call-overload]
                counts[table] = row[0] if row else 0
        return {table: count for table, count in counts.items() if count}

    def lasting_rows_of(self, seller: Seller) -> dict[str, int]:
        """The rows without those of work that waits, which ends by itself."""
        return {table: n for table, n in self.rows_of(seller).items() if table != "work_due"}

    def ask(self) -> None:
        with self.seller.http() as http:
            del http.headers["Authorization"]
            credentials = {"email": self.email, "password": self.password}
            signed_in = http.post("/api/session", json=credentials).json()
            told = {"X-CSRF-Token": signed_in["csrf_token"]}
            body = {"confirm": self.email}
            answer = http.post("/api/account/deletion", json=body, headers=told)
        assert answer.status_code == 200, answer.text

    def start(self) -> None:
        assert self.seller.sql(NOW_DUE)

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        table = moment.split()[-1]
        column = "id" if table == "seller" else "seller_id"
        query = f"SELECT 1 FROM {table} WHERE {column} = %(seller)s FOR UPDATE"
        with held(self.server, query, seller=self.seller.id):
            self.start()
            until(self.waits, "the removal to wait for the rows")
            yield

    def end(self) -> None:
        until(
            lambda: not self.rows_of(self.seller),
            lambda: f"{self.rows_of(self.seller)}; it says:\n{self.server.said()[-3000:]}",
        )

    def taken(self) -> dict[str, Any]:
        """Nothing of the seller is left, and nothing of another is touched."""
        rows = self.server.sql("SELECT 1 FROM seller WHERE id = %(id)s", id=self.seller.id)
        return {"seller": rows, "others moved": [self.lasting_rows_of(self.other) != self.before]}

    def is_right(self, taken: dict[str, Any]) -> None:
        assert taken == {"seller": [], "others moved": [False]}
