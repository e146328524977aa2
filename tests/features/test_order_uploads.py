"""Order-data uploads over HTTP: what is refused, what is kept, and what the four of them leave behind."""

from __future__ import annotations

from builders import an_order


async def test_an_order_is_accepted_and_then_there(a_seller):
    seller = await a_seller()
    answer = await seller.send("/orders", [an_order("A-1"), an_order("A-2")])
    assert answer.status_code == 202
    assert answer.json() == {"status": "accepted", "count": 2, "upload_id": answer.json()["upload_id"]}
    assert await seller.stored_orders() == []
    await seller.service.run_jobs()
    first, second = await seller.stored_orders()
    assert (first["order_number"], second["order_number"]) == ("A-1", "A-2")
    assert (first["buyer_name"], str(first["order_date"]), first["status"]) == (
        "Some Buyer",
        "2026-07-03",
        "Completed - Paid",
    )
    assert [str(first[name]) for name in ("product_amt", "shipping_amt", "total_amt")] == ["10.5", "1.31", "11.81"]
    assert (first["status_group"], first["shipping_type"]) == ("Completed - Paid", "pwe")
    assert first["order_placed_at"].isoformat() == "2026-07-03T04:00:00+00:00"
