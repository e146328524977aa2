"""A stored target that is not what the steps give now is told with its reason, by the API, the
card's page and the assistant; a pin shows its target at once.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

import assistants
from browsers import signed_in
from builders import a_csv, a_row, a_shop
from cards_builder import card_ids, explained
from cardsync.platform import clock
from rollbacks_builder import a_rule, repriced

SETTINGS = "/api/pricing/settings"


@pytest.fixture
async def seller(a_seller):
    seller = await a_shop(a_seller, a_row(1, market="5.00", price="4.00"))
    assert (await explained(seller))["stale"] is None
    return seller


async def told(seller):
    """The target, the reason why it is stale, and what is said of it."""
    said = await explained(seller)
    stale = said["stale"] or {"reason": None, "message": None}
    return said["target_price"], stale["reason"], stale["message"]


async def test_a_rule_that_changed_waits_for_the_next_run(seller):
    rule = await a_rule(seller, adjust_bp=1000)
    sentence = (
        "Rules, pins, promotions or settings changed since the last run; the next run sets 5.50."
    )
    assert await told(seller) == ("4.95", "rule_changed", sentence)
    reader = await seller.token("mcp:read")
    known = await assistants.data(reader, "pricing_explain_card", marketplace_id=1)
    assert known["stale"] == {"reason": "rule_changed", "message": sentence}
    [id] = (await card_ids(seller)).values()
    page = (await (await signed_in(seller)).get(f"/cards/{id}")).text
    assert sentence in page
    await repriced(seller)
    assert await told(seller) == ("5.50", None, None)
    assert (await seller.http.delete(f"/api/pricing/rules/{rule['id']}")).status_code == 200
    assert (await told(seller))[:2] == ("5.50", "rule_changed")


async def test_so_does_a_setting(seller):
    assert (await seller.http.patch(SETTINGS, json={"hard_floor": "6.00"})).status_code == 200
    assert (await told(seller))[:2] == ("4.95", "rule_changed")


async def test_new_prices_are_told(seller):
    clock.shift(timedelta(minutes=10))
    body = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 1,
        "rows": [{"marketplace_id": 1, "old_price": "4.00", "new_price": "7.00"}],
    }
    assert (await seller.post("/api/v1/repricing_events", json=body)).status_code == 201
    await seller.service.run_jobs()
    sentence = "There are new prices of the card since the last run; the next run sets 7.00."
    assert await told(seller) == ("4.95", "new_prices", sentence)
    clock.reset()


async def test_a_pin_is_the_target_at_once_and_where_it_ends_the_rules_are(seller):
    await seller.http.put("/api/pricing/pins/1", json={"price": "4.77"})
    assert await told(seller) == ("4.77", None, None)
    await repriced(seller)
    assert await told(seller) == ("4.77", None, None)
    assert (await seller.http.delete("/api/pricing/pins/1")).status_code == 200
    assert await told(seller) == ("4.95", None, None)


async def test_the_pin_of_a_card_that_is_sold_out_waits_until_it_is_back(seller):
    sold_out = a_csv(a_row(1, market="5.00", price="4.00", quantity=0), a_row(2))
    await seller.import_csv(sold_out)
    await seller.http.put("/api/pricing/pins/1", json={"price": "4.77"})
    target, reason, said = await told(seller)
    assert (target, reason) == ("4.77", "pin_waits")
    assert said.startswith("The pin waits until the card is back in stock; until then ")
    await seller.import_csv(a_csv(a_row(1, market="5.00", price="4.00"), a_row(2)))
    assert await told(seller) == ("4.77", None, None)
