"""A deleted seller leaves nothing: every column of every table and every stored object is
searched.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psycopg
from psycopg import sql

from browsers import joined, signed_in
from builders import an_order
from cardsync.accounts import deletion, left_objects, sellers
from cardsync.database.urls import libpq_url
from cardsync.processes.worker import sweep
from cardsync.tables import GLOBAL_BY_SELLER, seller_tables, tenant_tables
from cardsync.work.jobs import mark_due_by
from dashboard_builder import filled_shop
from every_table import fill

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = ("syncs", "accepted", "debug", "receipts", "pictures", "old")


async def a_full_shop(a_seller, owner_url):
    """A shop with a row in every table, an object of every kind, and its address wherever a text
    may be.
    """
    seller, _ = await filled_shop(a_seller)
    await seller.orders([an_order(buyer_name=f"Buyer of {seller.email}")])
    await joined(seller, f"bea-{seller.email}")
    owner = await signed_in(seller)
    await owner.post("/api/searches", json={"name": seller.email, "query": "price>1"})
    fill(owner_url, seller.id, seller.email)
    for kind in KINDS:
        folder = Path(seller.service.settings.data_dir) / "objects" / kind / f"u{seller.id}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "object").write_text(seller.email)
    return seller


def traces(owner_url, settings, seller):
    """The places that name the seller: tables with a row of its id, or with its address in any
    column, as text or in bytes; and objects.
    """
    found = []
    with psycopg.connect(libpq_url(owner_url, role=None)) as owner:
        tables = owner.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace ="
            " 'public'::regnamespace ORDER BY 1"
        ).fetchall()
        marks = [seller.email, seller.email.encode().hex(), f"/u{seller.id}/"]
        for (table,) in tables:
            name = sql.Identifier(table)
            for mark in marks:
                query = sql.SQL("SELECT t::text FROM {} t WHERE strpos(t::text, %s) > 0").format(
                    name
                )
                found += [(table, row) for (row,) in owner.execute(query, [mark])]
        for table in seller_tables():
            owned = "seller_id" if "seller_id" in table.columns else "id"
            query = sql.SQL("SELECT t::text FROM {} t WHERE {} = %s").format(
                sql.Identifier(table.name), sql.Identifier(owned)
            )
            found += [(table.name, row) for (row,) in owner.execute(query, [seller.id])]
    objects = Path(settings.data_dir) / "objects"
    for path in objects.rglob("*"):
        if path.is_file() and (
            f"/u{seller.id}/" in str(path) or seller.email.encode() in path.read_bytes()
        ):
            found.append(("object", str(path)))
    return found


async def test_an_operators_deletion_leaves_nothing(a_seller, service, owner_url):
    seller = await a_full_shop(a_seller, owner_url)
    before = traces(owner_url, service.settings, seller)
    named = {place for place, _ in before}
    assert named >= {table.name for table in seller_tables()} | {"object"}
    names = [*(table.name for table in tenant_tables()), *GLOBAL_BY_SELLER]
    await sellers.delete_seller(service.database, service.work.store, seller.id, names)
    await service.run_jobs()
    assert traces(owner_url, service.settings, seller) == []


async def test_an_owners_deletion_leaves_nothing(a_seller, service, owner_url):
    """The row that `fill` puts into `account_deletion` is due."""
    seller = await a_full_shop(a_seller, owner_url)
    assert await deletion.remove(service.work, seller.id, tenant_tables(), GLOBAL_BY_SELLER)
    await service.run_jobs()
    assert traces(owner_url, service.settings, seller) == []


async def test_a_worker_deletes_what_a_killed_deletion_left(a_seller, service, owner_url):
    """Killed after its rows are gone, a deletion leaves objects and the mark of them."""
    seller, other = await a_full_shop(a_seller, owner_url), await a_seller()
    names = [*(table.name for table in tenant_tables()), *GLOBAL_BY_SELLER]
    await sellers.delete_seller(service.database, service.work.store, seller.id, names)
    folder = Path(service.settings.data_dir) / "objects" / "pictures"
    for one in (seller, other):
        (folder / f"u{one.id}").mkdir(parents=True, exist_ok=True)
        (folder / f"u{one.id}" / "object").write_text(one.email)
        async with service.database.tenant(one.id) as session:
            await mark_due_by(session, one.id, left_objects.STREAM, LONG_AGO)
    assert await sweep(service.work) >= 2
    await service.run_jobs()
    assert traces(owner_url, service.settings, seller) == []
    assert (folder / f"u{other.id}" / "object").exists()
