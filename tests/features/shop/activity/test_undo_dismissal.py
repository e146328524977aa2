"""Undo of an order's marks: one that was set aside, or marked as shipped, is taken back, once, and
while it has the mark.
"""

import pytest

from builders import an_order

FEED = "/api/v1/agent/activity"
MARKS = {
    "dismiss": ("undismiss", "order.dismissed", "pull_dismissed_at"),
    "mark_shipped": ("unmark_shipped", "order.marked_shipped", "shipped_marked_at"),
}


@pytest.mark.parametrize("mark", MARKS)
async def test_an_order_that_was_set_aside_is_taken_back(a_seller, mark):
    remove, action, column = MARKS[mark]
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    order = f"/api/orders/{(await seller.stored_order('A-1'))['id']}"
    assert (await seller.post(f"{order}/{mark}")).status_code == 200
    found = await seller.get(FEED, params={"action": action})
    [entry] = found.json()["activity"]
    assert entry["undoable"]
    await seller.post(f"{order}/{remove}")
    refused = await seller.post(f"{FEED}/{entry['id']}/undo")
    assert (refused.status_code, refused.json()["code"]) == (409, "changed_since")
    await seller.post(f"{order}/{mark}")
    newest = (await seller.get(FEED, params={"action": action})).json()["activity"][0]
    for _ in range(2):
        assert (await seller.post(f"{FEED}/{newest['id']}/undo")).status_code == 200
    assert (await seller.stored_order("A-1"))[column] is None
