"""The presets are compared by one reading of the cards, and each says what the preview says once it
is chosen.
"""

from __future__ import annotations

import html
import re

import pytest

from browsers import signed_in
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


@pytest.mark.parametrize("path", ["/pricing/presets", "/set-up/presets"])
async def test_the_pages_show_a_sample_of_many_cards_and_then_the_exact_figures(
    a_seller, monkeypatch, path
):
    monkeypatch.setattr("cardsync.prices.preview.draft.FEW", 0)
    monkeypatch.setattr("cardsync.prices.preview.draft.ONE_IN", 2)
    seller = await a_seller()
    # One card is dearer than the others: a sample counts it twice or not at all.
    rows = [a_row(n, market="30.00", low="20.00", price="100.00" if n == 1 else "1.00")
            for n in range(1, 65)]  # fmt: skip
    await seller.import_csv(a_csv(*rows))
    exact = (await seller.get("/api/pricing/presets")).json()["presets"][0]["preview"]
    assert (exact["cards"], exact["listed_value_before"]) == (64, "163.00")
    owner = await signed_in(seller)
    about = _form((await owner.get(path)).text)
    assert "Estimated from one card in every 2" in about
    assert "for your 64 cards" not in about
    assert "$163.00" not in about
    [link, request] = re.search(r'<a href="([^"]+)" data-hx-get="([^"]+)"', about).groups()
    assert link == request == f"{path}?exact=true"
    page = _form((await owner.get(html.unescape(link))).text)
    assert "Estimated" not in page
    assert "for your 64 cards" in page
    assert page.count("$163.00") >= 4


def _form(page: str) -> str:
    """Return the one form whose content the script replaces."""
    [_, form] = page.split('id="strategies">')
    return form.partition("</form>")[0]


@pytest.mark.parametrize("days", [0, 75])
async def test_a_sample_knows_the_history_of_its_cards(a_seller, monkeypatch, days):
    monkeypatch.setattr("cardsync.prices.preview.draft.FEW", 0)
    monkeypatch.setattr("cardsync.prices.preview.draft.ONE_IN", 2)
    seller = await a_seller()
    rows = [a_row(n, market="10.00", low="9.00", price="20.00") for n in range(1, 65)]
    await seller.import_csv(a_csv(*rows))
    if days:
        await seller.made_old("card", "observed_at", days)
    rule = {"price_source": "market", "query": "price>0", "cap": {"up_bp": 100, "down_bp": 100},
            "stale": {"after_days": 60, "step_bp": 500, "every_days": 7, "limit_bp": 4000}}  # fmt: skip
    path = "/api/pricing/preview/draft"
    exact = (await seller.post(path, json={"rule": rule})).json()
    told = (await seller.post(path, json={"rule": rule, "sample": True})).json()
    assert told["one_in"] == 2
    same = ("held", "down", "listed_value_before", "listed_value_after")
    assert [told[name] for name in same] == [exact[name] for name in same]
