"""Undo of a dismissal: an order that was set aside is taken back, once, and while it is aside."""

from builders import an_order

FEED = "/api/v1/agent/activity"


async def test_an_order_that_was_set_aside_is_taken_back(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    order = await seller.stored_order("A-1")
    assert (await seller.post(f"/api/orders/{order['id']}/dismiss")).status_code == 200
    found = await seller.get(FEED, params={"action": "order.dismissed"})
    [entry] = found.json()["activity"]
    assert entry["undoable"]
    await seller.post(f"/api/orders/{order['id']}/undismiss")
    refused = await seller.post(f"{FEED}/{entry['id']}/undo")
    assert (refused.status_code, refused.json()["code"]) == (409, "changed_since")
    await seller.post(f"/api/orders/{order['id']}/dismiss")
    newest = (await seller.get(FEED, params={"action": "order.dismissed"})).json()["activity"][0]
    for _ in range(2):
        assert (await seller.post(f"{FEED}/{newest['id']}/undo")).status_code == 200
    assert (await seller.stored_order("A-1"))["pull_dismissed_at"] is None
