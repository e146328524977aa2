"""The first cards in the order of names, which a page shows before all cards are counted, are those
of the pass over all cards.
"""

import random
from types import SimpleNamespace

import pytest
from tests.features.stock.search.test_search_agrees import an_inventory, some_trees

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.stock.cards import queries
from cardsync.stock.cards.card_filter import CardFilter, CardPage
from cardsync.stock.cards.queries import count_cards, find_cards, order_of_cards
from cardsync.stock.search.tree import print_query
from sent_statements import counting, prepared

MANY = 10**9
MEMBERS = (None, 1, 2)
SEARCHES = [
    "",
    "b",
    "po",
    "-bolt",
    "bolt or price>=1",
    "price>0",
    "is:foil",
    "set:base",
    "nothing so",
]
CONTRIBUTED = """
    UPDATE card SET contributed_by = 1 + marketplace_id % 2,
           contribution = CASE marketplace_id % 4 WHEN 0 THEN 'private' WHEN 1 THEN 'retired'
                                      ELSE 'published' END
     WHERE seller_id = :s AND marketplace_id % 3 = 0
"""
# The text compresses badly, so no index takes it.
LENGTHENED = """
    UPDATE card SET search_text = search_text || (
           SELECT string_agg(md5(CAST(n AS text)), '') FROM generate_series(1, 300) AS n)
     WHERE seller_id = :s AND id = (SELECT min(id) FROM card WHERE seller_id = :s AND NOT gone)
"""


@pytest.fixture
def probed(monkeypatch):
    def up_to(cards: int) -> None:
        monkeypatch.setattr(queries, "PROBED", cards)

    return up_to


async def found_by(reading, caller, wanted, page):
    found = await find_cards(reading, caller, wanted, page, worth=True)
    order = await order_of_cards(reading, caller, wanted, page)
    return [row.id for row in found.cards], found.total, found.worth, order


@pytest.mark.day
@pytest.mark.parametrize("long", [False, True])
async def test_the_first_cards_are_those_of_a_pass_over_all(service, probed, monkeypatch, long):
    seller, _ = await an_inventory(service, 11)
    await service.sql(seller.id, CONTRIBUTED, s=seller.id)
    if long:
        await service.sql(seller.id, LENGTHENED, s=seller.id)
    searches = [*SEARCHES, *map(print_query, some_trees(11, 40))]
    dice, sooner = random.Random(11), 0
    readings = service.app.state.database.readings
    for search in searches:
        wanted = CardFilter(search=search, status=dice.choice(["active", "active", "all"]))
        page = CardPage(
            page=dice.choice([1, 1, 2]),
            per_page=dice.choice([1, 2]),
            direction=dice.choice(["asc", "desc"]),
        )
        caller = SimpleNamespace(
            seller_id=seller.id, member_id=dice.choice(MEMBERS), sees_revenue=True
        )
        monkeypatch.setattr(queries, "FEW", dice.choice([1, 4, 100]))
        async with readings.of(seller.id, 20) as reading:
            probed(MANY)
            expected = await found_by(reading, caller, wanted, page)
            probed(dice.choice([8, 16]))
            assert await found_by(reading, caller, wanted, page) == expected, (search, page, caller)
            first = await find_cards(reading, caller, wanted, page, counted=False)
            counted = await count_cards(reading, caller, wanted, worth=True)
        ids, total, worth, order = expected
        assert [row.id for row in first.cards] == ids, (search, page)
        assert first.has_more == (first.total < total), (search, page)
        assert counted == (total, worth), search
        assert len(order.split(",")) == max(total, 1), search
        begin = page.offset
        assert list(map(int, filter(None, order.split(","))))[begin : begin + page.per_page] == ids
        sooner += first.has_more
    assert (sooner > 2) != long


@pytest.mark.day
async def test_a_page_shows_its_rows_before_it_counts_all(a_seller, probed):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, price="2.00") for n in range(1, 62))))
    probed(10)
    browser = await signed_in(seller)
    page = (await browser.get("/cards")).text
    assert page.count('name="card_ids"') == 50
    assert "more than 50 cards</a>" in page
    assert 'rel="next"' in page
    assert 'data-hx-get="/cards/count"' in page
    assert "listed" not in page
    # A browser without scripts follows the link.
    assert 'href="/cards?count=all"' in page
    whole = (await browser.get("/cards?count=all")).text
    answer = (await browser.get("/cards/count")).text
    for one in (whole, answer):
        assert '<span data-total="61">61 cards · $122.00 listed</span>' in one
        assert "page <span data-page-now>1</span> of 2</span>" in one
    assert answer.count('data-hx-swap-oob="true"') == 3
    last = (await browser.get("/cards?page=2")).text
    assert '<span data-total="61">61 cards' in last
    assert (await browser.get("/api/cards")).json()["total"] == 61


@pytest.mark.day
@pytest.mark.parametrize(("few", "reads"), [(3, 1), (2, 2)])
async def test_other_columns_are_read_only_of_cards_whose_texts_match(
    a_seller, monkeypatch, few, reads
):
    seller = await a_seller()
    rows = [a_row(n, name=f"Card {n}", price=f"{n}.00") for n in range(1, 8)]
    rows += [a_row(8, name="Mox Jet", price="1.00"), a_row(9, name="Mox Ruby", price="9.00")]
    await seller.import_csv(a_csv(*rows))
    monkeypatch.setattr(queries, "FEW", few)
    async with counting(seller.service.app.state.database) as sent:
        for by in ("name", "price"):
            address = f"/api/cards?search=mox price>5&sort={by}"
            found = (await seller.get(address)).json()
            assert [one["product_name"] for one in found["cards"]] == ["Mox Ruby"]
            assert found["total"] == 1
    read = [one for one in sent.sent if "FROM found" in one]
    assert len(read) == 2 * reads, read
    assert sum("FROM few" in one for one in read) == 2


@pytest.mark.day
@prepared
async def test_a_page_reads_cards_in_three_messages(a_seller, probed):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, price="2.00") for n in range(1, 62))))
    browser = await signed_in(seller)
    [card, *_] = (await browser.get("/api/cards")).json()["cards"]
    columns = "columns=trend,cost,last_sold,price"
    for cards, address, most in (
        (10, f"/cards?{columns}", 2),
        (100, f"/cards?{columns}", 3),
        (10, "/cards?search=nothing", 2),
        (10, f"/cards/more?{columns}&ids={card['id']}", 1),
        (10, "/cards/order", 1),
        (10, "/cards/count", 1),
    ):
        probed(cards)
        await browser.get(address)
        async with counting(seller.service.app.state.database) as sent:
            await browser.get(address)
        read = [one for one in sent.sent if "FROM card" in one or "market_look" in one]
        assert len(read) == most, (address, read)
        # A page without one reading of its own would open a session for each of these.
        assert not any("saved_search" in one and "FROM card" not in one for one in sent.sent)
