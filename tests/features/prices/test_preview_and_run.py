"""A preview of the live rules, a run by them and Today say the same of one shop; where something has
changed since the run, the preview says which cards differ.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cards_builder import found as found_cards
from cardsync.platform import clock
from world import sent

ROWS = [
    a_row(1, market="10.00", price="9.00", quantity=2),
    a_row(2, market="10.00", price="11.00"),
    a_row(3, market="30.00", price="10.00", name="Beyond the review limit"),
    a_row(4, market="20.00", price="5.00", name="Held", rarity="M"),
    a_row(5, market="8.00", price="7.00", name="Pinned"),
    a_row(6, market="6.00", price="6.00"),
    a_row(7, market="50.00", price="40.00", name="Out of stock", quantity=0),
    a_row(8, market="", low="", price="1.00", name="Nothing to price from"),
    a_row(9, market="4.00", price="", name="A first price"),
    a_row(10, market="20.00", price="5.00", name="Held on sale", rarity="M"),
]
COUNTS = ("up", "down", "up_value", "down_value", "held", "reviewed")


async def a_shop(a_seller, *, asks_database):
    """A shop with all that keeps a price from moving; with queries, a run follows each import."""
    seller = await a_seller()
    await seller.import_csv(a_csv(*ROWS))
    rule = {"name": "At the market", "state": "published", "cap": {"up_bp": 15_000, "mode": "hold"}}
    rule["cap"] |= {"down_bp": 5_000, "period": "day"}
    if asks_database:
        await sent(seller, "rules", **rule | {"query": "rarity:M"})
        await sent(seller, "rules", name="All others", state="published")
        hours = [clock.rfc3339(clock.now() + timedelta(hours=n)) for n in (-1, 5)]
        sale = {"adjust_bp": -1_000, "starts_at": hours[0], "ends_at": hours[1]}
        await sent(seller, "sales", name="A tenth off", query='name:"on sale"', **sale)
    else:
        await sent(seller, "rules", **rule)
    limits = {"review_up_bp": 6_000, "review_down_bp": None}
    assert (await seller.http.patch("/api/pricing/settings", json=limits)).status_code == 200
    pin = await seller.http.put("/api/pricing/pins/5", json={"price": "7.77"})
    assert pin.status_code == 200, pin.text
    return seller


async def agree(seller):
    """Compare the last run with the preview and Today, and return the preview."""
    run = (await seller.get("/api/pricing/runs")).json()["runs"][0]
    told = await sent(seller, "preview", 200)
    assert {name: told[name] for name in COUNTS} == {name: run[name] for name in COUNTS}
    stays = told["unchanged"] + told["held"] + told["reviewed"]
    assert run["priced"] == told["up"] + told["down"] + stays
    gone = run["blocked"].pop("out_of_stock", 0)
    assert (told["cards"] + gone, told["blocked"]) == (run["cards"], run["blocked"])
    assert (told["differs"], told["differing"]) == (0, [])
    today = (await seller.get("/api/today")).json()["last_run"]
    assert today == {
        "run_id": run["id"],
        "rises": run["up"],
        "rises_value": run["up_value"],
        "falls": run["down"],
        "falls_value": run["down_value"],
    }
    after, before = Decimal(told["listed_value_after"]), Decimal(told["listed_value_before"])
    assert after - before == Decimal(told["up_value"]) - Decimal(told["down_value"])
    assert len(await found_cards(seller, "is:held")) == told["held"] + told["reviewed"]
    return told


@pytest.mark.parametrize("asks_database", [False, True])
async def test_a_preview_and_every_kind_of_run_agree(a_seller, asks_database):
    seller = await a_shop(a_seller, asks_database=asks_database)
    await seller.import_csv(a_csv(*ROWS))
    told = await agree(seller)
    # One that its cap holds waits for nobody; one on sale moves all the same.
    assert (told["up"], told["down"], told["reviewed"]) == (
        (3, 2, 1) if asks_database else (3, 1, 0)
    )
    assert told["held"] == (1 if asks_database else 3)
    await sent(seller, "reprice", 202)
    await seller.service.run_jobs()
    assert await agree(seller) == told
    # Nothing was pushed, so the next import finds the same prices to ask for, none of them new.
    await seller.import_csv(a_csv(*ROWS))
    assert await agree(seller) == told
    run = (await seller.get("/api/pricing/runs")).json()["runs"][0]
    assert run["changed"] == 0


async def test_what_has_changed_since_the_run_is_named_on_the_workshop_and_the_presets(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="<b>Elf", market="9.00", price="8.50")))
    browser = await signed_in(seller)
    [rule] = (await browser.get("/api/pricing/rules")).json()["rules"]
    address = f"/pricing/rules/{rule['id']}"
    form = {"csrf_token": browser.session["csrf_token"], "face": "text", "action": "preview"}
    page = (await browser.get(f"{address}?face=text")).text
    form["was"] = re.search(r'name="was" value="([^"]*)"', page)[1].replace("&#34;", '"')

    async def shown(text):
        page = await browser.http.post(address, data=form | {"text": text})
        assert page.status_code == 200, page.text
        return page.text

    assert "than in the last run" not in await shown(form["was"])
    assert "than in the last run" not in (await browser.get("/pricing/presets")).text
    # A typed or imported price sets the target at once; evidence that arrives later does not.
    await seller.service.sql(
        seller.id, "UPDATE card SET market = 12 WHERE seller_id = :seller", seller=seller.id
    )
    told = await sent(seller, "preview", 200)
    assert told["differs"] == 1
    [(_, _, *shown_of_it)] = [tuple(card.values()) for card in told["differing"]]
    assert shown_of_it == ["<b>Elf", "Dominaria United", "Near Mint", "8.50", "8.91", "11.88"]
    page = await shown(form["was"])
    assert "1 card would get a different price than in the last run" in page
    assert "market prices changed since that run" in page
    assert "&lt;b&gt;Elf" in page
    edited = await shown(form["was"].replace('"adjust_bp": -100', '"adjust_bp": -200'))
    assert "market prices changed since that run" not in edited
    assert "1 card would get a different price than in the last run" in edited
    presets = (await browser.get("/pricing/presets")).text
    assert presets.count("changed since the last run because") == 1
