"""Finding anything by a few words, over HTTP."""

from __future__ import annotations

import re

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync.sales.orders import queries
from cardsync.stock.cards import queries as card_queries
from sent_statements import counting


def found(page):
    """The links that were found, by their kind."""
    kinds = {}
    for href, kind in re.findall(r'href="([^"]*)" data-found="(\w+)"', page):
        kinds.setdefault(kind, []).append(href.replace("&amp;", "&"))
    return kinds


async def test_cards_orders_buyers_sets_lists_rules_and_pages_are_found(a_seller):
    seller = await a_seller()
    rows = [a_row(n, name=f"Black Lotus {n}", set="Lotus Valley") for n in range(1, 9)]
    await seller.import_csv(a_csv(*rows))
    order = an_order("L-1", buyer_name="Lotus Lane", status="Ready to Ship")
    await seller.orders([order])
    owner = await signed_in(seller)
    await owner.post("/api/lists", json={"name": "Every lotus"})
    rule = {"name": "Lotus rule", "query": "lotus", "price_source": "market", "priority": 9}
    assert (await owner.post("/api/pricing/rules", json=rule)).status_code == 201
    page = (await owner.get("/find", params={"search": "lotus"})).text
    kinds = found(page)
    assert len(kinds["Cards"]) == 7
    assert kinds["Cards"][0] == "/cards?search=lotus"
    assert ">All 8</a>" in page
    for kind in ("Orders", "Buyers", "Sets", "Lists", "Rules"):
        assert len(kinds[kind]) == 1, kind
        assert (await owner.get(kinds[kind][0], follow_redirects=True)).status_code == 200
    staff = await joined(seller, f"staff-{seller.email}")
    assert "Rules" not in found((await staff.get("/find?search=lotus")).text)
    assert found((await owner.get("/find?search=shelv")).text)["Pages"][0] == "/shelves"


async def test_many_cards_are_found_without_a_count_or_a_second_search(a_seller, monkeypatch):
    seller = await a_seller()
    await seller.import_csv(a_csv(*[a_row(n, name=f"Black Lotus {n}") for n in range(1, 40)]))
    owner = await signed_in(seller)
    asked = {"search": "lotus", "part": "cards"}
    counted = (await owner.get("/find", params=asked)).text
    monkeypatch.setattr(card_queries, "PROBED", 30)
    monkeypatch.setattr(card_queries, "REACHED_BY", 1)
    monkeypatch.delattr(card_queries, "_page_of_all")
    page = (await owner.get("/find", params=asked)).text
    assert ">All 39</a>" in counted
    assert ">All</a>" in page
    assert found(page) == found(counted)


async def test_a_part_of_a_page_reads_no_counts_of_its_frame(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="Black Lotus")))
    owner = await signed_in(seller)
    [card] = (await owner.get("/api/cards")).json()["cards"]
    kept = seller.service.app.state.waiting

    async def counts_read_by(address: str) -> int:
        kept.forget(seller.id)
        async with counting(seller.service.app.state.database) as sent:
            assert (await owner.get(address)).status_code == 200
        return sent.statements("JOIN pull_session_order")

    for address in ("/find?search=lotus", "/cards", "/today"):
        assert await counts_read_by(address), address
    for address in (
        *(f"/find?search=lotus&part={part}" for part in ("cards", "names", "orders", "sold_out")),
        f"/cards/more?ids={card['id']}",
        f"/cards/peek?card={card['id']}",
        "/cards/order",
        "/cards/count",
        "/orders/peek",
        "/sync/prices/count",
    ):
        assert await counts_read_by(address) == 0, address
    # The parts did not renew the old counts.
    assert await counts_read_by("/cards")


async def test_what_cannot_be_read_as_a_search_is_looked_for_as_a_text(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="Prise>1")))
    owner = await signed_in(seller)
    assert len(found((await owner.get("/find", params={"search": "prise>1"})).text)["Cards"]) == 1
    for words in ('"', "((", "zzz", "\\", "set:"):
        page = await owner.get("/find", params={"search": words})
        assert page.status_code == 200, words
    assert "Nothing found" in (await owner.get("/find?search=zzz")).text
    assert "Type into the field" in (await owner.get("/find")).text


async def test_the_palette_asks_part_by_part_and_many_orders_lead_to_all(a_seller, monkeypatch):
    monkeypatch.setattr(queries, "PROBED", 100)
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="Lane of Lotus")))
    await seller.orders([an_order(f"L-{n}", buyer_name="Lotus Lane") for n in range(1, 300)])
    owner = await signed_in(seller)
    asked = {"search": "lane"}
    kinds = {
        part: found((await owner.get("/find", params=asked | {"part": part})).text)
        for part in ("cards", "names", "orders")
    }
    assert list(kinds["cards"]) == ["Cards"]
    assert kinds["names"] == {}
    assert list(kinds["orders"]) == ["Orders", "Buyers"]
    assert "/orders?search=lane" in kinds["orders"]["Orders"]
    assert len(kinds["orders"]["Orders"]) == 7
    page = (await owner.get("/find", params=asked)).text
    assert [*found(page)] == ["Cards", "Orders", "Buyers"]
    assert "Results for" in page
    assert ">All</a>" in page
