"""A selection never widens: whatever is sent, only cards of the caller are picked, and none that it does not name."""

import random

import pytest
from msgspec import UNSET

from builders import SellerBuilder, a_csv, a_row
from cards_builder import a_list, card_ids
from cardsync import clock, errors
from cardsync.cards.picked import Selection, pick_cards

SEARCHES = ["bolt", "-bolt", "price>2", "is:gone", "-is:gone", "list:binder or bolt", "-(list:binder)", "sku:1..9", "id:1..", "shock or -shock", "", "  ", "(", "list:nobody", "has:list"]  # fmt: skip


@pytest.fixture(scope="module")
async def sellers(service):
    """Two sellers with the same listings."""
    made = []
    for _ in range(2):
        seller = await SellerBuilder(service)()
        rows = [a_row(id, name=("Bolt", "Shock")[id % 2], price=f"{id}.00", quantity=id % 4) for id in range(1, 13)]
        rows += [a_row(7, title="Signed", photo="https://example.invalid/p.jpg")]
        await seller.import_csv(a_csv(*rows))
        ids = await card_ids(seller)
        await a_list(seller, "Binder", ids[1], ids[8])
        made.append((seller, ids))
    return made


def a_selection(dice: random.Random, own: dict[int, int], others: dict[int, int]) -> Selection:
    """Any fields, with ids of both sellers and of nobody."""
    skus = [*own, -5, 0, 999, 2**70]
    rows = [*own.values(), *others.values(), 0, -1, 2**62]
    malformed = [["x"], [None], "1;2", "", [], [1.5], "x,1"]

    def some(values):
        return dice.sample(values, dice.randrange(5))

    def maybe(value, odds=0.4):
        return value if dice.random() < odds else None

    narrowing = dice.choice(
        [some(rows), ",".join(map(str, some([id for id in rows if id >= 0]))), dice.choice(malformed)]
    )
    return Selection(
        marketplace_ids=maybe(some(skus), 0.3),
        card_ids=maybe(some(rows), 0.3),
        search=maybe(dice.choice(SEARCHES), 0.7),
        game=maybe(dice.choice(["magic", "Magic", "pokemon", "nothing", " "])),
        status=maybe(dice.choice(["active", "gone", "all", "ALL"])),
        selected_ids=dice.choice([UNSET, UNSET, None, narrowing, narrowing]),
    )


def allowed(selection: Selection, own: dict[int, int]) -> set[int]:
    """The most that it can mean, whatever its search finds."""
    most = set(own.values())
    if selection.marketplace_ids is not None:
        most &= {own.get(sku, 0) for sku in selection.marketplace_ids}
    elif selection.card_ids is not None:
        most &= set(selection.card_ids)
    elif selection.game and selection.game.strip().lower() not in ("", "magic"):
        most = set()
    if selection.selected_ids is not UNSET:
        given = selection.selected_ids or []
        texts = [str(part) for part in (given.split(",") if isinstance(given, str) else given)]
        well_formed = all(text.strip().isdecimal() for text in texts)
        most &= {int(text) for text in texts} if texts and well_formed else set()
    return most


async def never_widens(service, sellers, cases: int, seed: int) -> None:
    dice = random.Random(seed)
    (seller, own), (_, others) = sellers
    picked_something = 0
    async with service.database.tenant(seller.id) as session:
        from sqlalchemy import text

        async def rows(query, values):
            named = {name: value for name, value in values.items() if f":{name}" in query}
            return (await session.execute(text(query), named)).all()

        for case in range(cases):
            selection = a_selection(dice, own, others)
            try:
                picked = await pick_cards(rows, Caller(seller.id), selection, clock.now())
            except errors.InvalidPayload:
                continue
            ids = [row.id for row in await rows(picked.query, picked.values)]
            assert len(ids) == len(set(ids))
            assert set(ids) <= allowed(selection, own), (case, selection)
            picked_something += bool(ids)
    assert picked_something > cases / 20


class Caller:
    """As much of one as a selection asks for."""

    def __init__(self, seller_id: int) -> None:
        self.seller_id = seller_id
        self.member_id = None


async def test_a_selection_never_widens(service, sellers):
    await never_widens(service, sellers, 300, 1)


@pytest.mark.soak
async def test_a_selection_never_widens_in_ten_thousand_cases(service, sellers):
    await never_widens(service, sellers, 10_000, 2)
