"""The deletion of an account: what ends at once, who can take it back, and what is left of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from browsers import A_PASSWORD, joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync.operations.processes import retention
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from cardsync.shop.accounts import deletion
from cardsync.tables import GLOBAL_BY_SELLER, metadata, tenant_tables

PATH = "/api/account/deletion"
LATER = deletion.CAN_BE_TAKEN_BACK_FOR + timedelta(minutes=1)


async def a_shop(a_seller):
    seller = await a_seller()
    await seller.post("/api/v1/heartbeat")
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 6))))
    await seller.import_csv(a_csv(*(a_row(n, market="9.00") for n in range(1, 6))))
    await seller.orders([an_order(order_number=f"O-{n}") for n in range(3)])
    made = (await seller.post("/api/lists", json={"name": "Binder"})).json()["id"]
    ids = [card["id"] for card in await seller.cards()]
    await seller.post(f"/api/lists/{made}/cards", json={"card_ids": ids})
    await seller.service.app.state.last_seen.flush()
    return seller


def rows_of(owner_url, seller_id):
    """How many rows of the seller each table has."""
    with psycopg.connect(libpq_url(owner_url, role=None)) as owner:
        counts = {
            table.name: owner.execute(
                f"SELECT count(*) FROM {table.name} WHERE seller_id = {seller_id}"
            ).fetchone()[0]
            for table in metadata.sorted_tables
            if "seller_id" in table.columns
        }
    return {name: count for name, count in counts.items() if count}


async def removed(service, seller_id):
    return await deletion.remove(service.work, seller_id, tenant_tables(), GLOBAL_BY_SELLER)


async def test_it_ends_sessions_and_keys_at_once_and_can_be_taken_back(a_seller):
    seller = await a_seller()
    owner, bea = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    assert (await owner.get(PATH)).json() == {"asked_at": None, "deletes_at": None}
    wrong = await owner.post(PATH, json={"confirm": "somebody@example.invalid"})
    assert (wrong.status_code, "confirm:" in wrong.json()["error"]) == (422, True)
    assert await owner.is_in()
    asked = (await owner.post(PATH, json={"confirm": seller.email.upper()})).json()
    assert asked["deletes_at"] > asked["asked_at"]
    assert not await owner.is_in()
    assert not await bea.is_in()
    assert (await seller.get("/api/v1/status")).status_code == 401
    http = seller.service.client()
    staff = {"email": f"bea-{seller.email}", "password": A_PASSWORD}
    refused = await http.post("/api/session", json=staff)
    assert (refused.status_code, "scheduled for deletion" in refused.text) == (403, True)
    back = await signed_in(seller)
    assert (await back.get(PATH)).json() == asked
    assert (await back.send("DELETE", PATH)).json()["deletes_at"] is None
    assert (await back.send("DELETE", PATH)).status_code == 404
    await signed_in(seller, staff["email"], staff["password"])


async def test_the_form_needs_the_address_and_leads_to_the_way_back(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    assert "Delete account" in (await owner.get("/settings/data")).text
    wrong = await owner.form("/settings/data/delete", confirm="delete")
    assert (wrong.status_code, "Type your own" in wrong.text) == (422, False)
    assert "type your own email address" in wrong.text
    gone = await owner.form("/settings/data/delete", confirm=seller.email)
    assert gone.headers["location"] == "/sign-in?signed_out=deletion"
    http = seller.service.client()
    assert "deleted in seven days" in (await http.get(gone.headers["location"])).text
    who = {"email": seller.email, "password": seller.password, "next": "/cards"}
    assert (await http.post("/sign-in", data=who)).headers["location"] == "/settings/data"
    assert (await http.get("/sign-in?next=/cards")).headers["location"] == "/settings/data"
    back = await signed_in(seller)
    assert "Keep account" in (await back.get("/settings/data")).text
    kept = await back.form("/settings/data/keep")
    assert kept.headers["location"].startswith("/settings/data?done=")


async def test_staff_and_forms_without_the_token_are_refused(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    own = {"confirm": f"staff-{seller.email}"}
    assert (await staff.post(PATH, json=own)).json()["code"] == "owner_required"
    assert (await staff.form("/settings/data/delete", **own)).status_code == 403
    assert (await staff.form("/settings/data/keep")).status_code == 403
    for path in ("delete", "keep"):
        answer = await owner.http.post(f"/settings/data/{path}", data={"confirm": seller.email})
        assert answer.status_code == 403
    assert await owner.is_in()


@pytest.mark.first(1)
@pytest.mark.parametrize("rows", [10_000, 2])
async def test_after_seven_days_nothing_of_the_seller_is_left_and_all_of_another(
    a_seller, service, owner_url, monkeypatch, rows
):
    monkeypatch.setattr(deletion, "ROWS_AT_ONCE", rows)
    seller, other = await a_shop(a_seller), await a_shop(a_seller)
    owner = await signed_in(seller)
    before = rows_of(owner_url, other.id)
    assert len(before) > 12
    assert set(rows_of(owner_url, seller.id)) >= set(before) - {"member_session"}
    await owner.post(PATH, json={"confirm": seller.email})
    assert not await removed(service, seller.id)
    assert "card" in rows_of(owner_url, seller.id)
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + LATER)
    assert await removed(service, seller.id)
    assert rows_of(owner_url, seller.id) == {}
    assert rows_of(owner_url, other.id) == before
    keys = await service.objects()
    assert not any(f"/u{seller.id}/" in key for key in keys)
    assert any(f"/u{other.id}/" in key for key in keys)
    credentials = {"email": seller.email, "password": seller.password}
    assert (await service.client().post("/api/session", json=credentials)).status_code == 401
    assert not await removed(service, seller.id)


async def test_a_removal_that_was_broken_off_goes_on_and_cannot_be_taken_back(
    a_seller, service, owner_url, monkeypatch
):
    seller = await a_shop(a_seller)
    await (await signed_in(seller)).post(PATH, json={"confirm": seller.email})
    now = clock.now()
    late = await signed_in(seller)
    monkeypatch.setattr(clock, "now", lambda: now + LATER)
    done = []
    real = deletion._remove_some

    async def killed(database, seller_id, table):
        if len(done) == 8:
            raise KeyboardInterrupt
        done.append(table.name)
        return await real(database, seller_id, table)

    monkeypatch.setattr(deletion, "_remove_some", killed)
    with pytest.raises(KeyboardInterrupt):
        await removed(service, seller.id)
    monkeypatch.setattr(deletion, "_remove_some", real)
    left = rows_of(owner_url, seller.id)
    # Its offers, its evidence for the network, its recommendations and the figures of its price file
    # were due, too.
    assert (left["account_deletion"], left["work_due"]) == (1, 6)
    assert (await late.send("DELETE", PATH)).status_code == 401
    credentials = {"email": seller.email, "password": seller.password}
    refused = await service.client().post("/api/session", json=credentials)
    assert refused.status_code == 403
    assert await removed(service, seller.id)
    assert rows_of(owner_url, seller.id) == {}


async def test_taking_back_and_removing_at_once_does_one_of_both(
    a_seller, service, owner_url, monkeypatch
):
    seller = await a_shop(a_seller)
    await (await signed_in(seller)).post(PATH, json={"confirm": seller.email})
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + LATER)
    late = await signed_in(seller)
    taken, gone = await asyncio.gather(late.send("DELETE", PATH), removed(service, seller.id))
    assert (taken.status_code == 200) != gone
    assert ("card" in rows_of(owner_url, seller.id)) != gone


def test_the_sweep_knows_the_task():
    from cardsync.operations.processes.worker import STREAMS

    assert STREAMS[deletion.STREAM] is retention.remove_account
