"""A frozen offer never changes, whatever is done to it in whatever order: the prices, cards and
copies that were offered are those at the end, and what is paid is never more than they come to.
"""

import random
from decimal import Decimal

import pytest

from offers_builder import a_customer, done, drafted, step, want

STEPS = 25
OFFERED = """
    SELECT to_jsonb(l) - 'accepted' - 'lot_id' - 'quick_add_id' - 'cost_each'
           - 'received_copies' - 'received_condition' - 'received_cash_each'
           - 'received_credit_each' AS said
      FROM buying_offer_line l WHERE seller_id = :id AND offer_id = :offer ORDER BY l.id
"""


async def anything(seller, offer, dice):
    """Do one thing to the offer, which may be refused. Return it as it is then."""
    line = dice.choice(offer["lines"])["id"]
    condition = dice.choice(["NM", "LP", "MP", "HP", "DMG"])
    came = {"id": line, "copies": dice.randint(0, 2), "condition": condition}
    name, body = dice.choice(
        [
            ("offer", {"days": 1}),
            ("accept", {"way": dice.choice(["cash", "credit"])}),
            ("accept", {"way": "split", "cash_part": "1.00", "lines": [line]}),
            ("receive", {}),
            ("receive", {"lines": [came]}),
            ("pay", {}),
            ("stock", {}),
            ("reprice", {}),
            ("rules", {}),
        ]
    )
    path = f"/api/buying/offers/{offer['id']}"
    if name == "reprice":
        lines = [await want(seller, copies=1, cash_each="0.01")]
        await seller.http.patch(path, json={"revision": offer["revision"], "lines": lines})
    elif name == "rules":
        await seller.post(f"/api/buying/presets/{dice.choice(['conservative', 'hungry'])}")
    else:
        await step(seller, offer, name, **body)
    return (await seller.get(path)).json()


@pytest.mark.parametrize("seed", range(4))
async def test_a_frozen_offer_never_changes(seller, seed):
    """Random steps find an order of them that nobody has thought of."""
    dice = random.Random(seed)
    mia = await a_customer(seller)
    offer = await done(seller, await drafted(seller, customer_id=mia["id"]), "offer")
    named = {"id": seller.id, "offer": offer["id"]}
    frozen = await seller.service.sql(seller.id, OFFERED, **named)
    whole = offer["totals"]
    for _ in range(STEPS):
        offer = await anything(seller, offer, dice)
        assert await seller.service.sql(seller.id, OFFERED, **named) == frozen
    if offer["paid_at"]:
        assert Decimal(offer["paid_cash"]) <= Decimal(whole["cash"])
        assert Decimal(offer["paid_credit"]) <= Decimal(whole["credit"])
    credit = (await seller.get(f"/api/buying/customers/{mia['id']}/credit")).json()
    assert credit["balance"] == (offer["paid_credit"] or "0.00")
