"""kill -9 of the worker while an account is removed: the next worker goes on, nothing of the seller
is left, and nothing of another is touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from tests.system.processes import Seller, Server, a_folder, kill, until

from builders import a_csv, a_row
from cardsync.processes import embedded
from cardsync.tables import metadata

WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
NOW_DUE = """
    UPDATE account_deletion SET due_at = now() - interval '1 hour' WHERE seller_id = %(seller)s;
    UPDATE work_due SET due_at = now() - interval '1 hour'
     WHERE seller_id = %(seller)s AND stream = 'deletion'
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_folder() as folder, Server(folder, SWEEP_SECONDS="1") as server:
        yield server


@contextmanager
def as_admin(server: Server) -> Iterator[psycopg.Connection]:
    with (
        embedded.running(server.data_dir) as database,
        psycopg.connect(database.admin_url()) as admin,
    ):
        yield admin


def rows_of(server: Server, seller_id: int) -> dict[str, int]:
    tables = [t.name for t in metadata.sorted_tables if "seller_id" in t.columns]
    found = {}
    with as_admin(server) as admin:
        for table in tables:
            query = f"SELECT count(*) FROM {table} WHERE seller_id = {seller_id}"
            row = admin.execute(query).fetchone()  # type: ignore[call-overload]
            found[table] = row[0] if row else 0
    return {table: count for table, count in found.items() if count}


def a_shop(server: Server, email: str) -> tuple[Seller, str]:
    create = ["admin", "seller", "create", "--name", "A shop", "--email", email, "--json"]
    made = json.loads(server.run(*create).out)
    seller = Seller(server, made["seller_id"], made["api_key"])
    file = a_csv(*(a_row(n) for n in range(1, 51)))
    assert seller.finished(seller.upload(file))["state"] == "done"
    until(lambda: "network_offer" in rows_of(server, seller.id), "its offers are written")
    return seller, made["password"]


def ask(seller: Seller, email: str, password: str) -> None:
    with seller.http() as http:
        del http.headers["Authorization"]
        signed_in = http.post("/api/session", json={"email": email, "password": password}).json()
        told = {"X-CSRF-Token": signed_in["csrf_token"]}
        answer = http.post("/api/account/deletion", json={"confirm": email}, headers=told)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("table", ["card", "upload", "seller"])
def test_killed_in_the_middle(server: Server, table: str) -> None:
    email = f"{table}@example.invalid"
    seller, password = a_shop(server, email)
    other, _ = a_shop(server, f"other-{email}")
    before = rows_of(server, other.id)
    ask(seller, email, password)
    assert rows_of(server, seller.id)["card"] == 50
    column = "id" if table == "seller" else "seller_id"
    with as_admin(server) as admin:
        admin.execute(
            f"SELECT 1 FROM {table} WHERE {column} = {seller.id} FOR UPDATE"  # type: ignore[call-overload]
        )
        with as_admin(server) as second:
            second.execute(NOW_DUE.replace("%(seller)s", str(seller.id)))  # type: ignore[call-overload]
        until(lambda: server.sql(WAITING), "the removal waits for the rows")
        kill(*server.children("worker"))
        admin.rollback()
    until(
        lambda: not rows_of(server, seller.id),
        lambda: f"{rows_of(server, seller.id)}; the server says:\n{server.said()[-3000:]}",
    )
    assert server.sql("SELECT 1 FROM seller WHERE id = %(id)s", id=seller.id) == []
    assert rows_of(server, other.id) == before
