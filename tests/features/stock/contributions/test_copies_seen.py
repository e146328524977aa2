"""A contributed copy becomes live stock when an upload shows it: a copy that was listed before
counts for no contribution, and none is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import schedule
from browsers import Browser, joined, signed_in
from builders import Seller, a_csv, a_row
from cards_builder import a_list, card_ids
from cardsync.imports.drain import work_off_one
from cardsync.platform import clock
from stopped_workers import killed, stopped

CARDS = (1, 2)
Step = tuple[str, int] | tuple[str, int, int]


@pytest.fixture
async def shop(a_seller) -> tuple[Seller, Browser]:
    seller = await a_seller(lines=["magic"])
    return seller, await joined(seller, f"bea-{seller.email}")


async def contributed(bea: Browser, quantity: int, card: int = 1, **changes: Any) -> int:
    described = {
        "name": f"Card {card}", "set": "Dominaria United", "number": str(card),
        "condition": "NM", "quantity": quantity, "shared": True,
    }  # fmt: skip
    answer = await bea.post("/api/contributions", json=described | changes)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


async def uploaded(seller: Seller, listed: dict[int, int], **headers: str) -> None:
    """An upload in which a card without copies is missing; card 99 is always there."""
    rows = [a_row(card, quantity=copies) for card, copies in listed.items() if copies]
    await seller.import_csv(a_csv(*rows, a_row(99)), **headers)


async def published(seller: Seller) -> dict[int, int]:
    """The copies that are published still, by contribution."""
    rows = await seller.cards()
    retired = [row["quantity"] for row in rows if row["contribution"] == "retired"]
    assert not any(retired)
    return {row["id"]: row["quantity"] for row in rows if row["contribution"] == "published"}


CASES: dict[str, tuple[list[Step], list[int]]] = {
    "the old quantity": ([("list", 3), ("publish", 1), ("list", 3)], [1]),
    "a card that is new": ([("publish", 2), ("list", 2)], []),
    "a part of a card that is new": ([("publish", 2), ("list", 1)], [1]),
    "all of them": ([("list", 3), ("publish", 2), ("list", 5)], []),
    "more than all": ([("list", 3), ("publish", 2), ("list", 9)], []),
    "a part": ([("list", 3), ("publish", 2), ("list", 4)], [1]),
    "a part, the same upload twice": ([("list", 3), ("publish", 2), ("list", 4), ("list", 4)], [1]),
    "a part, and then the rest": ([("list", 3), ("publish", 2), ("list", 4), ("list", 5)], []),
    "one sold and one listed between": (
        [("list", 3), ("publish", 1), ("list", 3), ("list", 4)],
        [],
    ),
    "one sold, and come back": ([("list", 3), ("publish", 1), ("list", 2), ("list", 3)], [1]),
    "all sold, and come back": ([("list", 3), ("publish", 1), ("list", 0), ("list", 3)], [1]),
    "all sold, and one more": ([("list", 3), ("publish", 1), ("list", 0), ("list", 4)], []),
    "gone when it was published": ([("list", 3), ("list", 0), ("publish", 1), ("list", 1)], []),
    "two contributions, one copy": (
        [("list", 3), ("publish", 1), ("publish", 1), ("list", 4)],
        [1],
    ),
    "two contributions, both": ([("list", 3), ("publish", 1), ("publish", 1), ("list", 5)], []),
    "two contributions, one after the other": (
        [("list", 3), ("publish", 1), ("list", 2), ("publish", 1), ("list", 3), ("list", 4)],
        [],
    ),
    "another card rises": ([("list", 3), ("publish", 1), ("list", 5, 2)], [1]),
}


@pytest.mark.parametrize("name", CASES)
async def test_only_copies_that_are_new_promote(shop, name):
    seller, bea = shop
    steps, left = CASES[name]
    await uploaded(seller, {})
    listed = dict.fromkeys(CARDS, 0)
    for word, count, *card in steps:
        if word == "publish":
            await contributed(bea, count)
        else:
            listed[card[0] if card else 1] = count
            await uploaded(seller, listed)
    assert list((await published(seller)).values()) == left


async def test_the_rest_stays_on_its_lists_and_places_and_the_live_card_has_its_part(shop):
    seller, bea = shop
    await uploaded(seller, {1: 3})
    card, live = await contributed(bea, 3), (await card_ids(seller))[1]
    binder = await a_list(seller, "Binder", card)
    for box, quantity in ((1, 1), (2, 2)):
        put = {"card_id": card, "box": box, "slot": 4, "quantity": quantity}
        assert (await bea.post("/api/shelves/put", json=put)).status_code == 200

    async def lying() -> set[tuple[int, int, int]]:
        rows = await seller.service.sql(
            seller.id, "SELECT * FROM card_location WHERE seller_id = :s", s=seller.id
        )
        return {(row["card_id"], row["box"], row["quantity"]) for row in rows}

    async def on_list() -> set[int]:
        query = "SELECT card_id FROM card_list_entry WHERE seller_id = :s AND list_id = :l"
        rows = await seller.service.sql(seller.id, query, s=seller.id, l=binder)
        return {row["card_id"] for row in rows}

    await uploaded(seller, {1: 5})
    assert await published(seller) == {card: 1}
    assert (await bea.get(f"/api/cards/{card}")).json()["quantity"] == 1
    assert await lying() == {(live, 1, 1), (live, 2, 1), (card, 2, 1)}
    assert await on_list() == {live, card}
    await uploaded(seller, {1: 6})
    assert (await published(seller), await on_list()) == ({}, {live})
    assert await lying() == {(live, 1, 1), (live, 2, 2)}


async def test_a_file_from_before_the_publication_shows_no_contributed_copy(shop):
    seller, bea = shop
    await uploaded(seller, {1: 3})
    clock.shift(timedelta(hours=2))
    card = await contributed(bea, 1)
    before = {"X-Exported-At": clock.rfc3339(clock.now() - timedelta(hours=1))}
    await uploaded(seller, {1: 4}, **before)
    await uploaded(seller, {1: 4})
    assert await published(seller) == {card: 1}
    await uploaded(seller, {1: 5})
    assert await published(seller) == {}


async def test_a_private_one_counts_from_its_publication(shop):
    seller, bea = shop
    card = await contributed(bea, 1, shared=False)
    await uploaded(seller, {1: 3})
    assert (await bea.post(f"/api/contributions/{card}/publish")).status_code == 200
    await uploaded(seller, {1: 3})
    assert await published(seller) == {card: 1}


async def test_a_listed_card_that_turns_out_to_be_the_same_takes_nothing_over(shop):
    seller, bea = shop
    await uploaded(seller, {2: 3})
    card = await contributed(bea, 1)
    [product] = [row["product_id"] for row in await seller.cards() if row["id"] == card]
    live = (await card_ids(seller))[2]
    corrected = "UPDATE card SET product_id = :p WHERE seller_id = :s AND id = :c"
    await seller.service.sql(seller.id, corrected, p=product, s=seller.id, c=live)
    await uploaded(seller, {2: 3})
    assert await published(seller) == {card: 1}
    await uploaded(seller, {2: 4})
    assert await published(seller) == {}


@pytest.mark.day
async def test_a_worker_that_died_between_slabs_loses_no_copy(shop):
    """The card's slab is committed, its new quantity stands there; the next worker finds nothing
    to write, and promotes.
    """
    seller, bea = shop
    await uploaded(seller, {1: 3, 2: 1})
    first, second = await contributed(bea, 1), await contributed(bea, 1)
    answer = await seller.upload(a_csv(a_row(1, quantity=4), a_row(99)))
    assert answer.status_code == 202
    work = work_off_one(seller.service.work, seller.id)
    async with stopped(seller, work, [2], 1) as worker:
        await killed(worker)
    assert await published(seller) == {first: 1, second: 1}
    clock.shift(timedelta(minutes=1))
    await seller.service.run_jobs()
    assert (await seller.report(answer.json()["upload_id"]))["state"] == "done"
    assert await published(seller) == {second: 1}


@dataclass
class Model:
    """Each contributed copy is a copy of its own. A listed copy promotes one if no upload since its
    publication showed so many.
    """

    listed: dict[int, int] = field(default_factory=lambda: dict.fromkeys(CARDS, 0))
    # For each waiting copy: contribution, card, the most that was listed since.
    waiting: list[list[int]] = field(default_factory=list)

    def publish(self, contribution: int, card: int, quantity: int) -> None:
        self.waiting += [[contribution, card, self.listed[card]] for _ in range(quantity)]

    def upload(self, listed: dict[int, int]) -> None:
        self.listed = listed
        for card in CARDS:
            for copy in range(1, listed[card] + 1):
                may = [one for one in self.waiting if one[1] == card and one[2] < copy]
                if may:
                    self.waiting.remove(min(may, key=lambda one: (one[2], one[0])))
        for one in self.waiting:
            one[2] = max(one[2], listed[one[1]])

    def published(self) -> dict[int, int]:
        ids = [one[0] for one in self.waiting]
        return {id: ids.count(id) for id in ids}


uploads = st.tuples(st.just("list"), st.integers(0, 4), st.integers(0, 4))
publications = st.tuples(st.just("publish"), st.sampled_from(CARDS), st.integers(1, 3))


@schedule.deeper
@settings(
    max_examples=schedule.examples(2, 5),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.one_of(uploads, publications), min_size=5, max_size=8))
async def test_any_sequence_ends_in_what_a_plain_model_says(a_seller, steps):
    seller, model = await a_seller(lines=["magic"]), Model()
    owner = await signed_in(seller)
    for word, one, two in steps:
        if word == "publish":
            model.publish(await contributed(owner, two, one), one, two)
        else:
            listed = dict(zip(CARDS, (one, two), strict=True))
            model.upload(listed)
            await uploaded(seller, listed)
        assert await published(seller) == model.published()
