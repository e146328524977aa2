"""An account that is removed, beside another that is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kills.room import Work, held
from tests.system.processes import Seller, Server, until

from builders import a_csv, a_row
from cardsync.tables import metadata

TABLES = [table.name for table in metadata.sorted_tables if "seller_id" in table.columns]
COUNTS = " UNION ALL ".join(
    f"SELECT '{table}' AS name, count(*) AS rows FROM {table} WHERE seller_id = %(seller)s"
    for table in TABLES
)
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
        self.other = server.seller()
        file = a_csv(*(a_row(n) for n in range(1, CARDS + 1)))
        for seller in (self.seller, self.other):
            seller.upload(file)
        for seller in (self.seller, self.other):
            until(lambda seller=seller: self.is_settled(seller), "its offers")  # type: ignore[misc]
        self.before = self.lasting_rows_of(self.other)
        self.ask()
        assert self.rows_of(self.seller)["card"] == CARDS

    def is_settled(self, seller: Seller) -> bool:
        """Whether the upload is done, and what follows it."""
        rows = self.rows_of(seller)
        return "network_offer" in rows and "work_due" not in rows

    def rows_of(self, seller: Seller) -> dict[str, int]:
        return {row["name"]: row["rows"] for row in seller.sql(COUNTS) if row["rows"]}

    def lasting_rows_of(self, seller: Seller) -> dict[str, int]:
        """The rows without those of work that waits, which ends by itself."""
        return {table: n for table, n in self.rows_of(seller).items() if table != "work_due"}

    def ask(self) -> None:
        with self.seller.http() as http:
            del http.headers["Authorization"]
            credentials = {"email": self.seller.email, "password": self.seller.password}
            signed_in = http.post("/api/session", json=credentials).json()
            told = {"X-CSRF-Token": signed_in["csrf_token"]}
            body = {"confirm": self.seller.email}
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
