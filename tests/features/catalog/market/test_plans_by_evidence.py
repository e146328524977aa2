"""Plans on rules that look at the market: their effect is what the next run would ask by the same
evidence.
"""

from __future__ import annotations

import pytest
from tests.features.catalog.market.test_recommendations import ago, listings, sale

from plans_builder import allow, changes, planned


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({"price_source": "sales_anchor"}, "-4.00"),
        ({"undercut_up_bp": 100}, "3.86"),
    ],
)
async def test_a_plan_that_begins_to_look_at_the_market_is_judged_by_it(
    listed,
    observed,
    product,
    fields,
    change,
):
    seller = await listed(market="10.00", low="10.00", price="10.00")
    # The preset's rule would look at the market already.
    settings = {"default_rule_enabled": False}
    assert (await seller.http.patch("/api/pricing/settings", json=settings)).status_code == 200
    rule = {"name": "Mine", "state": "published", "priority": 1}
    answer = await seller.post("/api/pricing/rules", json=rule)
    assert answer.status_code == 201, answer.text
    await allow(seller, "auto_unless_critical")
    fetched = ago(hours=1)
    await observed(
        *(sale(product, "6.00", ago(days=2, minutes=n), fetched) for n in range(3)),
        *listings(product, "14.00", "15.00"),
    )
    update = {"op": "update", "rule_id": answer.json()["id"], "set": fields}
    told = await planned(seller, changes(update, dry_run=True))
    assert told["listed_value_change"] == change
