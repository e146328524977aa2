"""GET /api/cards of a shop with so many cards that most of what is found is only counted: the
pages are those of a search that keeps all.
"""

from random import Random

import pytest

from builders import SellerBuilder, a_csv, a_row
from cards_builder import search
from cardsync.cards.filters import CardPage
from cardsync.cards.order import page_order
from cardsync.cards.paging import looked_at

pytestmark = pytest.mark.slow

CARDS = 9_000
FIRST = ["Ember", "Frost", "Gloom", "Élan", "Zeal", "ピカ"]


def a_shop(chance: Random) -> bytes:
    return a_csv(
        *(
            a_row(
                number,
                name=f"{chance.choice(FIRST)} {chance.randrange(3_000)}",
                set=f"Set {chance.randrange(40)}",
                number=chance.choice([f"{chance.randrange(400)}", f"TG{chance.randrange(30)}", ""]),
                condition=chance.choice(["Near Mint", "Lightly Played", "Damaged Foil"]),
                price=chance.choice(["", "0.25", f"{chance.randrange(1, 9_999) / 100:.2f}"]),
                quantity=chance.choice([0, 1, 1, 1, 4]),
            )
            for number in range(1, CARDS + 1)
        )
    )


@pytest.fixture(scope="module")
async def seller(service):
    chance = Random(11)
    seller = await SellerBuilder(service)(lines=["magic"])
    await seller.import_csv(a_shop(chance))
    neighbour = await SellerBuilder(service)(lines=["magic"])
    await neighbour.import_csv(a_shop(chance))
    # Some are of a later upload, whose ids are far from the others'.
    await service.sql(
        seller.id,
        "UPDATE card SET id = id + 40000000 WHERE seller_id = :s AND id % 10 = 0",
        s=seller.id,
    )
    return seller


PAGES = [
    (asked, page)
    for page in (1, 2, 4, 40)
    for asked in ("", "cond:NM|LP", "-price>50", "ember", "zeal price>60", "nothing")
]


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize(
    "sort", ["name", "set", "number", "price", "target", "quantity", "updated"]
)
@pytest.mark.parametrize("part", [3, pytest.param(1, marks=pytest.mark.soak)])
async def test_a_page_is_that_of_a_search_which_keeps_all_it_finds(seller, sort, direction, part):
    """Each order sees another third of the pages every day, and all of them in the soak."""
    first = sum(map(ord, sort + direction)) % part
    for asked, page in PAGES[first::part]:
        # Looking up shelves, of which there are none, it keeps what it finds.
        expected = await search(
            seller, f"{asked} -has:location", sort=sort, direction=direction, page=page
        )
        got = await search(seller, asked, sort=sort, direction=direction, page=page)
        assert (got["cards"], got["total"]) == (expected["cards"], expected["total"]), (asked, page)


async def test_all_statuses_and_one_game_are_told_the_same(seller):
    for given in (
        {"status": "all"},
        {"status": "gone"},
        {"game": "magic"},
        {"per_page": 200, "page": 3},
    ):
        expected = await search(seller, "-has:location", **given)
        got = await search(seller, "", **given)
        assert (got["cards"], got["total"]) == (expected["cards"], expected["total"]), given


@pytest.mark.parametrize(
    ("where", "order", "is_told"),
    [
        ("NOT c.gone", CardPage(), True),
        ("NOT c.gone", CardPage(sort="price", direction="desc"), True),
        ("NOT c.gone", CardPage(sort="number"), True),
        # Most have the same quantity.
        ("NOT c.gone", CardPage(sort="quantity"), False),
        ("c.search_text LIKE '% ember 7%'", CardPage(), False),
        ("c.price IS NULL", CardPage(sort="price"), False),
    ],
)
async def test_the_key_of_a_page_is_told_where_most_cards_come_after_it(
    seller, where, order, is_told
):
    statement = looked_at(f"c.seller_id = :seller AND {where}", page_order(order))
    rows = await seller.service.sql(seller.id, statement, seller=seller.id, last=49)
    assert bool(rows) is is_told
    if rows:
        [before] = await seller.service.sql(
            seller.id,
            "SELECT count(*) AS cards,"
            f" count(*) FILTER (WHERE {page_order(order).keys[0]} {page_order(order).not_after}"
            " :cut) AS kept"
            f" FROM card c WHERE c.seller_id = :seller AND {where}",
            seller=seller.id,
            cut=rows[0]["k0"],
        )
        assert 50 <= before["kept"] < before["cards"] / 2


async def test_a_few_cards_are_found_without_a_look(service):
    seller = await SellerBuilder(service)(lines=["magic"])
    await seller.import_csv(a_csv(*(a_row(number) for number in range(1, 400))))
    statement = looked_at("c.seller_id = :seller", page_order(CardPage()))
    assert await seller.service.sql(seller.id, statement, seller=seller.id, last=0) == []
