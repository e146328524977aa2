"""A deleted seller leaves nothing: every column of every table and every stored object is
searched.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import sql
from structlog.testing import capture_logs

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync.operations.processes.worker import sweep
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.work.jobs import mark_due_by
from cardsync.shop.accounts import deletion, left_objects, sellers
from cardsync.tables import GLOBAL_BY_SELLER, seller_tables, tenant_tables
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
        await an_object(seller, kind)
    return seller


async def an_object(seller, kind) -> str:
    key = f"{kind}/u{seller.id}/object"
    store = seller.service.work.store
    with store.spool() as (path, file):
        file.write(seller.email.encode())
        file.flush()
        await store.write(key, path)
    return key


async def traces(owner_url, seller):
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
    for key in await seller.service.objects():
        body = await seller.service.work.store.read(key)
        if f"/u{seller.id}/" in key or seller.email.encode() in body:
            found.append(("object", key))
    return found


async def test_an_operators_deletion_leaves_nothing(a_seller, service, owner_url):
    seller = await a_full_shop(a_seller, owner_url)
    before = await traces(owner_url, seller)
    named = {place for place, _ in before}
    assert named >= {table.name for table in seller_tables()} | {"object"}
    await deleted(service, seller)
    await service.run_jobs()
    assert await traces(owner_url, seller) == []


async def deleted(service, seller) -> None:
    names = [*(table.name for table in tenant_tables()), *GLOBAL_BY_SELLER]
    await sellers.delete_seller(service.database, service.work.store, seller.id, names)


async def test_work_that_takes_its_locks_in_another_order_delays_a_deletion(
    a_seller, service, owner_url
):
    """Alone makes a real deadlock, of which PostgreSQL breaks off the deletion."""
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    async with service.database.tenant(seller.id) as session:
        await mark_due_by(session, seller.id, left_objects.STREAM, LONG_AGO)
    address = libpq_url(owner_url, role=None)
    connect = psycopg.AsyncConnection.connect
    async with await connect(address) as worker, await connect(address, autocommit=True) as watch:
        of = [seller.id]
        await worker.execute("SELECT FROM work_due WHERE seller_id = %s FOR UPDATE", of)
        with capture_logs() as logs:
            deleting = asyncio.create_task(deleted(service, seller))
            waits = "SELECT FROM pg_locks WHERE NOT granted AND %s = ANY (pg_blocking_pids(pid))"
            while not (await watch.execute(waits, [worker.info.backend_pid])).rowcount:
                await asyncio.sleep(0.02)
            await worker.execute("UPDATE card SET quantity = quantity WHERE seller_id = %s", of)
            await worker.commit()
            await deleting
    assert [line["event"] for line in logs].count("seller_not_deleted") == 1
    assert await traces(owner_url, seller) == []


async def test_a_deletion_that_gets_no_lock_says_so_and_leaves_the_whole_shop(
    a_seller, service, owner_url
):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    name = f"refuse_{seller.id}"
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '55P03'; END $$"
        )
        owner.execute(
            f"CREATE TRIGGER {name} BEFORE DELETE ON seller FOR EACH ROW "
            f"WHEN (OLD.id = {seller.id}) EXECUTE FUNCTION {name}()"
        )
        try:
            with pytest.raises(sellers.SellerError, match="was not deleted: other work was using"):
                await deleted(service, seller)
        finally:
            owner.execute(f"DROP FUNCTION {name} CASCADE")
    assert len(await seller.cards()) == 1
    assert (await seller.get("/api/v1/status")).status_code == 200
    await deleted(service, seller)
    await service.run_jobs()
    assert await traces(owner_url, seller) == []


async def test_an_owners_deletion_leaves_nothing(a_seller, service, owner_url):
    """The row that `fill` puts into `account_deletion` is due."""
    seller = await a_full_shop(a_seller, owner_url)
    assert await deletion.remove(service.work, seller.id, tenant_tables(), GLOBAL_BY_SELLER)
    await service.run_jobs()
    assert await traces(owner_url, seller) == []


async def test_a_worker_deletes_what_a_killed_deletion_left(a_seller, service, owner_url):
    """Killed after its rows are gone, a deletion leaves objects and the mark of them."""
    seller, other = await a_full_shop(a_seller, owner_url), await a_seller()
    await deleted(service, seller)
    for one in (seller, other):
        kept = await an_object(one, "pictures")
        async with service.database.tenant(one.id) as session:
            await mark_due_by(session, one.id, left_objects.STREAM, LONG_AGO)
    assert await sweep(service.work) >= 2
    await service.run_jobs()
    assert await traces(owner_url, seller) == []
    assert kept in await service.objects()
