"""A key that takes an offer into stock, or puts a returned copy back, says what cards cost: where a
rule asks that, it writes prices.
"""

import pytest

from builders import a_row
from cards_builder import card_ids
from lots_builder import settle
from offers_builder import buys, done, drafted, step, want
from orders_builder import an_item, an_order
from plans_builder import PRICING, a_shop_under_limits, needs_review


@pytest.mark.parametrize("asks", [True, False])
async def test_an_offer_that_a_key_stocks_is_measured_where_a_floor_asks_costs(
    a_limited_seller, asks
):
    row = a_row(10, name="Bolt 10", market="10.00", price="10.00", low="")
    seller, owner, _ = await a_shop_under_limits(a_limited_seller, row)
    await buys(owner)
    dear = await want(seller, "Bolt 10", 1, cash_each="90.00", credit_each="90.00")
    offer = await done(seller, await drafted(seller, dear), "offer")
    offer = await done(seller, offer, "accept", way="cash")
    offer = await done(seller, await done(seller, offer, "receive"), "pay")
    if asks:
        rule = {"name": "R", "state": "published", "priority": 1, "floor_cost_bp": 0}
        answer = await owner.post(f"{PRICING}/rules", json=rule | {"confirm": True})
        assert answer.status_code == 201, answer.text
    answer = await step(seller, offer, "stock")
    if not asks:
        assert answer.status_code == 200, answer.text
        return
    waits = needs_review(answer)
    assert waits["cards_affected"] == 1
    assert waits["confirm_url"].endswith(f"/buying/offers/{offer['id']}")
    same = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()
    assert same["state"] == "paid"
    await done(owner, same, "stock")
    await settle(seller)


@pytest.mark.parametrize("box", [7, 8])
async def test_a_returned_copy_that_a_key_puts_back_is_measured_where_a_rule_asks_places(
    a_limited_seller, box
):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    order = await an_order(seller, buyer_name="Some Buyer", total_amt=5, refund_amt=5)
    await an_item(seller, order, sku_id=1, quantity=1, product_name="Card 1")
    rule = {"name": "R", "state": "published", "priority": 1, "query": "box:7", "adjust_bp": -9000}
    answer = await owner.post(f"{PRICING}/rules", json=rule | {"confirm": True})
    assert answer.status_code == 201, answer.text
    card = (await card_ids(seller))[1]
    body = {"places": [{"card_id": card, "box": box, "slot": 1, "quantity": 1}]}
    path = f"/api/returns/{order}/restocked"
    answer = await seller.post(path, json=body)
    if box == 8:
        assert answer.status_code == 200, answer.text
        return
    waits = needs_review(answer)
    assert (waits["cards_affected"], waits["confirm_url"].endswith("/returns")) == (1, True)
    assert (await owner.post(path, json=body)).status_code == 200
