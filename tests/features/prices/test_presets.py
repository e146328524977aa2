"""The presets are compared by one reading of the cards, and each says what the preview says once it
is chosen.
"""

from __future__ import annotations

import pytest

from builders import a_csv, a_row
from cardsync.prices.engine.preset_rules import PRESETS
from world import sent

ROWS = [
    a_row(1, market="10.00", price="9.00", low="8.00", quantity=2),
    a_row(2, market="10.00", price="11.00", low="9.50"),
    a_row(3, market="30.00", price="10.00", low="25.00", name="Far under the market"),
    a_row(4, market="20.00", price="5.00", low="19.00", name="Of a rule", rarity="M"),
    a_row(5, market="8.00", price="7.00", low="7.50", name="Pinned"),
    a_row(6, market="", low="", price="1.00", name="Nothing to price from"),
    a_row(7, market="4.00", low="3.00", price="", name="A first price"),
    a_row(8, market="6.00", low="5.00", price="6.00", name="Guarded", rarity="R"),
]


@pytest.mark.parametrize("days", [0, 75])
async def test_each_preset_says_what_its_preview_says(a_seller, days):
    """Only `Move` asks how long a card is listed, `Premium` and `Competitive` ask for listings:
    what is read for one of them changes no other.
    """
    seller = await a_seller()
    await seller.import_csv(a_csv(*ROWS))
    await sent(seller, "rules", name="Own", query="rarity:M", adjust_bp=500, state="published")
    await sent(seller, "rules", name="Held", query="rarity:R", guard=True, floor="9.00",
               state="published")  # fmt: skip
    pin = await seller.http.put("/api/pricing/pins/5", json={"price": "7.77"})
    assert pin.status_code == 200, pin.text
    if days:
        await seller.made_old("card", "observed_at", days)
    compared = (await seller.get("/api/pricing/presets")).json()["presets"]
    assert [one["preset"] for one in compared] == list(PRESETS)
    differing = set()
    for one in compared:
        await sent(seller, f"presets/{one['preset']}", 200)
        alone = await sent(seller, "preview", 200)
        for told in (alone, one["preview"]):
            # The rule of a preset has another number once it is live.
            told["largest"] = [move | {"rule_id": None} for move in told["largest"][:10]]
        assert one["preview"] == alone
        differing.add((alone["up_value"], alone["down_value"]))
    assert len(differing) == len(PRESETS)
