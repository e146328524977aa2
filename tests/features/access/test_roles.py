"""Stories of what staff and sessions may do; `test_credentials.py` asks every route with each role."""

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop


async def test_staff_can_not_set_prices_by_any_way(a_seller):
    """They could once: their sessions made rules, pins and sales and let them run."""
    seller = await a_shop(a_seller, a_row(1, market="2.00"))
    staff = await joined(seller, f"staff-{seller.email}")
    before = (await seller.get("/api/pricing/rules")).json()
    target = (await seller.cards())[0]["target_price"]
    sale = {
        "name": "All",
        "adjust_bp": -9000,
        "starts_at": "2020-01-01T00:00:00Z",
        "ends_at": "2099-01-01T00:00:00Z",
    }
    rule = {
        "name": "Cheap",
        "price_source": "market",
        "adjust_bp": -9000,
        "state": "published",
        "priority": 1,
    }
    tries = [
        await staff.post("/api/pricing/rules", json=rule),
        await staff.send("PUT", "/api/pricing/pins/1", json={"price": "0.01"}),
        await staff.post("/api/pricing/sales", json=sale),
        await staff.post("/api/pricing/reprice"),
    ]
    assert {(answer.status_code, answer.json()["code"]) for answer in tries} == {
        (403, "owner_required")
    }
    await seller.service.run_jobs()
    assert (await seller.get("/api/pricing/rules")).json() == before
    assert (await seller.cards())[0]["target_price"] == target


async def test_a_session_without_its_csrf_token_writes_nothing_of_the_agents_surface(a_seller):
    seller = await a_shop(a_seller, a_row(1, market="2.00"))
    owner = await signed_in(seller)
    for path in ("request", "cancel", "skip_wait"):
        answer = await owner.http.post(f"/api/v1/sync/{path}", headers={"X-Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["code"]) == (403, "csrf_failed")
    assert not (await seller.get("/api/v1/sync/pending")).json()["sync_requested"]


async def test_a_session_asks_for_a_sync_and_cancels_it_as_a_key_does(a_seller):
    seller = await a_seller.synced()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    assert (await staff.post("/api/v1/sync/request", json={"kind": "orders"})).json() == {
        "status": "requested"
    }
    assert (await seller.get("/api/v1/sync/pending")).json()["kind"] == "orders"
    assert (await owner.get("/api/v1/status")).json()["phase"] == "collecting"
    assert (await owner.post("/api/v1/sync/cancel")).json() == {"status": "cancelled"}
    headers = {"X-Idempotency-Key": "once"}
    await seller.grant(1)
    spent = await owner.post("/api/v1/sync/skip_wait", headers=headers)
    assert (spent.status_code, spent.json()["status"]) == (200, "charged")


async def test_an_owner_watches_an_upload_without_keeping_its_agent_alive(a_seller):
    """A page that is left open must not hold the sync lock of an agent that has died."""
    seller = await a_seller()
    owner = await signed_in(seller)
    upload = (await seller.import_csv(a_csv(a_row(1))))["id"]
    await seller.post("/api/v1/sync/request")
    await seller.get("/api/v1/sync/pending")
    lock = "SELECT lock_refreshed_at FROM sync_state WHERE seller_id = :id"
    before = await seller.service.sql(seller.id, lock, id=seller.id)
    told = await owner.get(f"/api/v1/uploads/{upload}")
    assert (told.status_code, told.json()["state"]) == (200, "done")
    assert await seller.service.sql(seller.id, lock, id=seller.id) == before
    await seller.get(f"/api/v1/uploads/{upload}")
    assert await seller.service.sql(seller.id, lock, id=seller.id) != before
    explained = await owner.get("/api/v1/pricing/explain/1")
    assert (explained.status_code, explained.json()["marketplace_id"]) == (200, 1)
