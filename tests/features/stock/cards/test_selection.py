"""A selection picks what it means and nothing else, for any caller and any request: the slow
evaluator checks it row by row.
"""

import random
from itertools import count

import pytest
from msgspec import UNSET, to_builtins
from sqlalchemy import text

from browsers import joined, signed_in
from builders import SellerBuilder, a_csv, a_row
from cards_builder import a_list, card_ids
from cardsync.platform import clock, errors
from cardsync.stock.cards.bulk_selection import Selection, pick_cards
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import asks_for_gone
from search_evaluator import holds, inventory_of

SEARCHES = [
    "bolt",
    "-bolt",
    "price>2",
    "is:gone",
    "-is:gone",
    "list:binder or bolt",
    "-(list:binder)",
    "sku:1..9",
    "id:1..",
    "shock or -shock",
    "",
    "  ",
    "(",
    "list:nobody",
    "has:list",
]
MINE = {"set": "Own", "number": "1", "game": "magic", "condition": "NM", "quantity": 2}


@pytest.fixture(scope="module")
async def sellers(service):
    """Two sellers with the same listings, each with two members who keep cards of their own,
    private and shared.
    """
    made = []
    for turn in range(2):
        seller = await SellerBuilder(service)(lines=["magic", "pokemon"])
        rows = [
            a_row(
                id,
                name=("Bolt", "Shock")[id % 2],
                price=f"{id}.00",
                quantity=id % 4,
                line=("Magic", "Pokemon")[id % 3 == 0],
            )
            for id in range(1, 13)
        ]
        rows += [a_row(7, title="Signed", photo="https://example.invalid/p.jpg")]
        await seller.import_csv(a_csv(*rows))
        members = [await signed_in(seller), await joined(seller, f"staff-{turn}-{seller.email}")]
        for number, member in enumerate(members):
            for shared in (False, True):
                own = {
                    **MINE,
                    "name": f"Bolt {number}",
                    "number": f"{number}{shared:d}",
                    "shared": shared,
                }
                assert (await member.post("/api/contributions", json=own)).status_code == 201
        ids = await card_ids(seller)
        inventory_ids = list(ids.values())
        list_id = await a_list(seller, "Binder", *inventory_ids[:3], inventory_ids[-1])
        made.append((seller, members, await inventory_of(seller, [], clock.now()), list_id))
    return made


def a_selection(dice: random.Random, own: list, others: list) -> Selection:
    """Any fields, with ids of both sellers and of nobody."""
    skus = [*(card["marketplace_id"] for card in own), -5, 0, 999, 2**70]
    rows = [*(card["id"] for card in [*own, *others]), 0, -1, 2**59]
    malformed = [["x"], [None], "1;2", "", [], [1.5], "x,1", None]

    def some(values):
        return dice.sample(values, dice.randrange(8))

    def maybe(value, odds=0.4):
        return value if dice.random() < odds else None

    well_formed = some([id for id in rows if id >= 0])
    narrowing = dice.choice(
        [some(rows), well_formed, ",".join(map(str, well_formed)), dice.choice(malformed)]
    )
    return Selection(
        marketplace_ids=maybe(some(skus), 0.2),
        card_ids=maybe(some(rows), 0.2),
        search=maybe(dice.choice(SEARCHES), 0.8),
        game=maybe(dice.choice(["magic", "Magic", "pokemon", "nothing", " "]), 0.3),
        product_line=maybe(dice.choice(["magic", "Pokemon", "", "\t"]), 0.3),
        status=maybe(dice.choice(["active", "gone", "all", "ALL"])),
        selected_ids=dice.choice([UNSET, UNSET, narrowing]),
    )


def meant(selection: Selection, inventory, member_id: int | None) -> set[int]:
    """The meaning of a selection, written a second time."""
    cards = [
        card
        for card in inventory.cards
        if card["contribution"] != "retired"
        and (
            card["contribution"] != "private"
            or (member_id is not None and card["contributed_by"] == member_id)
        )
    ]
    if selection.marketplace_ids is not None:
        cards = [card for card in cards if card["marketplace_id"] in selection.marketplace_ids]
    elif selection.card_ids is not None:
        cards = [card for card in cards if card["id"] in selection.card_ids]
    else:
        cards = [card for card in cards if searched(selection, inventory, card)]
    narrowed = {card["id"] for card in cards}
    if selection.selected_ids is not UNSET:
        given = selection.selected_ids or []
        texts = [str(part) for part in (given.split(",") if isinstance(given, str) else given)]
        narrowed &= (
            {int(text) for text in texts} if all(text.isdecimal() for text in texts) else set()
        )
    return narrowed


def searched(selection: Selection, inventory, card) -> bool:
    tree, status = parse(selection.search or ""), (selection.status or "active").lower()
    lines = {
        line.strip().lower() for line in (selection.game or "", selection.product_line or "")
    } - {""}
    there = (
        status == "all"
        or card["gone"] == (status == "gone")
        or (status == "active" and asks_for_gone(tree))
    )
    return there and lines <= {card["product_line"]} and holds(inventory, card, tree)


class Caller:
    """As much of one as a selection asks for."""

    sees_revenue = True

    def __init__(self, seller_id: int, member_id: int | None) -> None:
        self.seller_id = seller_id
        self.member_id = member_id


async def picked_ids(session, caller, selection: Selection) -> list[int]:
    async def rows(query, values):
        named = {name: value for name, value in values.items() if f":{name}" in query}
        return (await session.execute(text(query), named)).all()

    picked = await pick_cards(rows, caller, selection, clock.now())
    return [row.id for row in await rows(picked.query, picked.values)]


async def picks_what_it_means(service, sellers, cases: int, seed: int) -> None:
    """Refused ones are no cases."""
    dice = random.Random(seed)
    done = picked_something = 0
    for turn in count():
        (seller, members, inventory, _), (_, _, theirs, _) = sellers[:: 1 if turn % 2 else -1]
        async with service.database.tenant(seller.id) as session:
            for _ in range(20):
                selection = a_selection(dice, inventory.cards, theirs.cards)
                caller = Caller(
                    seller.id, dice.choice([None, *(member.member_id for member in members)])
                )
                try:
                    ids = await picked_ids(session, caller, selection)
                except errors.InvalidPayload:
                    continue
                assert sorted(ids) == sorted(meant(selection, inventory, caller.member_id)), (
                    selection
                )
                done += 1
                picked_something += bool(ids)
        if done >= cases:
            break
    assert picked_something > done / 5


@pytest.mark.day
async def test_a_selection_picks_what_it_means(service, sellers):
    await picks_what_it_means(service, sellers, 300, 1)


@pytest.mark.night
async def test_ten_thousand_selections_pick_what_they_mean(service, sellers):
    await picks_what_it_means(service, sellers, 10_000, 2)


async def test_over_http_a_list_gets_what_the_selection_means_and_loses_the_same(service, sellers):
    dice = random.Random(3)
    entries = (
        "SELECT card_id FROM card_list_entry WHERE seller_id = :s AND list_id = :l ORDER BY card_id"
    )
    done = 0
    while done < 30:
        (seller, members, inventory, _), (_, _, theirs, _) = sellers[:: dice.choice([1, -1])]
        list_id = await a_list(seller, f"Own {done}", slug=f"own-{clock.monotonic()}")
        selection = a_selection(dice, inventory.cards, theirs.cards)
        body = to_builtins(selection)
        path = f"/api/lists/{list_id}/cards"
        owner = members[0]
        answer = await owner.post(path, json=body)
        if answer.status_code == 422:
            await service.sql(
                seller.id,
                "DELETE FROM card_list WHERE seller_id = :s AND id = :l",
                s=seller.id,
                l=list_id,
            )
            continue
        expected = sorted(meant(selection, inventory, owner.member_id))
        found = [
            row["card_id"] for row in await service.sql(seller.id, entries, s=seller.id, l=list_id)
        ]
        assert (found, answer.json()["requested"]) == (expected, len(expected)), body
        removed = await owner.send("DELETE", path, json=body)
        assert removed.json()["removed"] == len(expected), body
        done += 1
        await service.sql(
            seller.id,
            "DELETE FROM card_list WHERE seller_id = :s AND id = :l",
            s=seller.id,
            l=list_id,
        )
