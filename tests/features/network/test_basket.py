"""`POST /api/discovery/basket`: the cheapest split of wanted cards over the network's sellers, their
postage included, and what cannot be had and why.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from itertools import product
from random import Random
from time import perf_counter

import pytest

from cardsync.network import basket as operation
from cardsync.network.buyer_links import PRODUCT
from cardsync.network.split import postage_of
from discovery_builder import a_card, change
from discovery_builder import find as find_availability

PATH = "/api/discovery/basket"


async def split(seller, *cards, **body):
    answer = await seller.post(PATH, json={"cards": list(cards), **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def bought(found) -> dict[tuple[str, int], int]:
    return {
        (parcel["store_name"], item["index"]): item["quantity"]
        for parcel in found["parcels"]
        for item in parcel["items"]
    }


@pytest.mark.night
async def test_postage_decides_where_a_card_is_bought(a_seller, a_shop, catalog, tag):
    """Beta is cheaper for each card, but another parcel costs more than that saves."""
    base = f"Base {tag}"
    mew, abra = f"Mew {tag}", f"Abra {tag}"
    await catalog((mew, base, "8/64", "Holofoil", 41), (abra, base, "9/64", "Holofoil", 42))
    await a_shop(
        "Alpha",
        a_card(1, mew, base, "8/64", price="5.00", quantity=3),
        a_card(2, abra, base, "9/64", price="2.00", quantity=1),
        postage_steps="0:1.27,12:3.20",
        listing_url_template=f"https://alpha.example/{PRODUCT}",
    )
    await a_shop(
        "Beta", a_card(3, abra, base, "9/64", price="1.00", quantity=4), postage_steps="0:1.50"
    )
    buyer = await a_seller()
    found = await split(buyer, {"name": mew, "quantity": 2}, {"name": abra})
    [mew_id, abra_id] = [one["product_id"] for one in await find_availability(
        buyer, {"name": mew}, {"name": abra})]  # fmt: skip
    # 10.00 and 1.00 with two parcels is 13.77; everything of Alpha would be 12.00 and 3.20.
    assert found == {
        "parcels": [
            {
                "store_name": "Alpha",
                "postage": 1.27,
                "items": [
                    {
                        "index": 0, "product_id": mew_id, "condition": "NM", "price": 5.0,
                        "quantity": 2, "buy_url": "https://alpha.example/41",
                    }
                ],
            },
            {
                "store_name": "Beta",
                "postage": 1.5,
                "items": [
                    {
                        "index": 1, "product_id": abra_id, "condition": "NM", "price": 1.0,
                        "quantity": 1, "buy_url": "https://www.tcgplayer.com/product/42",
                    }
                ],
            },
        ],
        "total": 13.77,
        "gap": 0,
        "greedy_total": 13.77,
        "steps": [{"sellers": 1, "total": 15.2}, {"sellers": 2, "total": 13.77}],
        "unavailable": [],
    }  # fmt: skip
    for wish in ({"max_sellers": 1}, {"fewest_parcels": True}):
        few = await split(buyer, {"name": mew, "quantity": 2}, {"name": abra}, **wish)
        assert bought(few) == {("Alpha", 0): 2, ("Alpha", 1): 1}
        assert (few["total"], few["gap"]) == (15.2, 0)
    # A cheaper parcel below the step.
    assert (await split(buyer, {"name": mew}))["total"] == 6.27


@pytest.mark.night
async def test_a_parcel_whose_postage_nobody_said_is_not_free(a_seller, a_shop, catalog, tag):
    """The shop that says nothing is 0.30 cheaper, and would have won with free postage."""
    base, name, dear = f"Base {tag}", f"Mew {tag}", f"Abra {tag}"
    await catalog((name, base, "8/64", "Holofoil", 41), (dear, base, "9/64", "Holofoil", 42))
    await a_shop("Says", a_card(1, name, base, "8/64", price="5.00"), postage_steps="0:1.10")
    await a_shop(
        "Silent",
        a_card(2, name, base, "8/64", price="4.70"),
        a_card(3, dear, base, "9/64", price="50.00"),
        postage_steps=None,
    )
    buyer = await a_seller()

    def parcels(found) -> dict[str, tuple[float, bool | None]]:
        return {
            parcel["store_name"]: (parcel["postage"], parcel.get("postage_estimated"))
            for parcel in found["parcels"]
        }

    cheap = await split(buyer, {"name": name})
    assert (parcels(cheap), cheap["total"]) == ({"Says": (1.1, None)}, 6.1)
    assert cheap["greedy_total"] == 6.19
    assert cheap["steps"] == [{"sellers": 1, "total": 6.1}]
    both = await split(buyer, {"name": name}, {"name": dear})
    assert (parcels(both), both["total"]) == ({"Silent": (4.99, True)}, 59.69)
    for answer in (cheap, both):
        told = sum(
            item["price"] * item["quantity"] for p in answer["parcels"] for item in p["items"]
        )
        told += sum(parcel["postage"] for parcel in answer["parcels"])
        assert round(told, 2) == answer["total"]


@pytest.mark.night
async def test_conditions_and_printings_that_will_do(a_seller, a_shop, catalog, tag):
    base, gym = f"Base {tag}", f"Gym {tag}"
    name = f"Abra {tag}"
    await catalog(
        (name, base, "9/64", "Holofoil", 42),
        (name, gym, "10/64", "Normal", 43),
        (f"{name} Lad", gym, "11/64", "Normal", 44),
    )
    await a_shop(
        "Alpha",
        a_card(1, name, base, "9/64", price="5.00"),
        a_card(2, name, base, "9/64", price="3.00", Condition="Damaged Holofoil"),
        a_card(3, name, gym, "10/64", price="4.00", Condition="Lightly Played"),
        a_card(4, f"{name} Lad", gym, "11/64", price="0.10", Condition="Near Mint"),
    )
    buyer = await a_seller()
    exactly = {"name": name, "set": base}
    cases = [
        (exactly, 3.0),
        (exactly | {"conditions": ["NM", "LP"]}, 5.0),
        (exactly | {"conditions": ["Near Mint"]}, 5.0),
        (exactly | {"conditions": ["lp"], "any_printing": True}, 4.0),
        ({"name": name, "any_printing": True}, 3.0),
        ({"name": name, "any_printing": True, "conditions": ["nm", "lp"]}, 4.0),
        ({"name": name, "any_printing": True, "quantity": 3}, 12.0),
    ]
    for card, total in cases:
        assert (await split(buyer, card))["total"] == total, card


@pytest.mark.night
async def test_what_cannot_be_had_and_why(a_seller, a_shop, catalog, tag):
    base, gym = f"Base {tag}", f"Gym {tag}"
    name, other = f"Abra {tag}", f"Mew {tag}"
    await catalog(
        (name, base, "9/64", "Holofoil", 42),
        (name, gym, "10/64", "Normal", 43),
        (other, base, "8/64", "Holofoil", 41),
    )
    await a_shop("Alpha", a_card(1, name, base, "9/64", price="5.00", quantity=2))
    buyer = await a_seller()
    found = await split(
        buyer,
        {"name": f"Nobody {tag}x"},
        {"name": name},
        {"name": other},
        {"name": name, "set": base, "quantity": 3},
        {"name": name, "set": base, "conditions": ["HP"]},
        {"name": name, "set": base},
    )
    assert found["unavailable"] == [
        {"index": 0, "reason": "no_match"},
        {"index": 1, "reason": "not_clear", "candidates": 2},
        {"index": 2, "reason": "no_offer"},
        {"index": 3, "reason": "not_enough_copies", "copies": 2},
        {"index": 4, "reason": "no_offer"},
    ]
    assert bought(found) == {("Alpha", 5): 1}
    nothing = await split(buyer, {"name": name}, game="chess")
    assert nothing == {
        "parcels": [], "total": 0.0, "gap": 0, "greedy_total": None, "steps": [],
        "unavailable": [{"index": 0, "reason": "no_match"}],
    }  # fmt: skip


@pytest.mark.night
async def test_two_lines_share_the_copies_of_one_listing(a_seller, a_shop, catalog, tag):
    base, name = f"Base {tag}", f"Abra {tag}"
    await catalog((name, base, "9/64", "Holofoil", 42))
    await a_shop(
        "Alpha",
        a_card(1, name, base, "9/64", price="1.00", quantity=1),
        a_card(2, name, base, "9/64", price="3.00", quantity=2, Condition="Damaged Holofoil"),
    )
    buyer = await a_seller()
    found = await split(buyer, {"name": name}, {"name": name, "conditions": ["NM"]})
    assert (found["total"], found["unavailable"]) == (4.0, [])
    assert found["greedy_total"] == 4.0


@pytest.mark.night
async def test_too_few_sellers_say_what_more_would_cost(a_seller, a_shop, catalog, tag):
    base = f"Base {tag}"
    names = [f"Abra {tag}", f"Mew {tag}"]
    await catalog(*((name, base, str(n), "Holofoil") for n, name in enumerate(names)))
    for n, name in enumerate(names):
        await a_shop(f"Shop {n}", a_card(1, name, base, str(n), price="2.00"))
    buyer = await a_seller()
    found = await split(buyer, *({"name": name} for name in names), max_sellers=1)
    assert (found["parcels"], found["steps"]) == ([], [{"sellers": 2, "total": 4.0}])
    assert {one["reason"] for one in found["unavailable"]} == {"max_sellers"}


REFUSED = [
    ({"name": "Mew"}, "invalid_payload", "cards is missing"),
    ({"cards": []}, "invalid_payload", "cards"),
    ({"cards": [{"name": "M"}]}, "name_too_short", "cards[0].name"),
    ({"cards": [{"name": "Mew"}] * 201}, "too_many_references", "at most 200"),
    ({"cards": [{"name": "Mew", "quantity": 0}]}, "invalid_payload", "cards[0].quantity"),
    ({"cards": [{"name": "Mew", "quantity": True}]}, "invalid_payload", "cards[0].quantity"),
    ({"cards": [{"name": "Mew", "quantity": 1.5}]}, "invalid_payload", "cards[0].quantity"),
    ({"cards": [{"name": "Mew", "conditions": "NM"}]}, "invalid_payload", "cards[0].conditions"),
    ({"cards": [{"name": "Mew", "conditions": ["?"]}]}, "invalid_payload", "conditions[0]"),
    ({"cards": [{"name": "Mew", "any_printing": 1}]}, "invalid_payload", "cards[0].any_printing"),
    ({"cards": [{"name": "Mew"}], "max_sellers": 0}, "invalid_payload", "max_sellers"),
    ({"cards": [{"name": "Mew"}], "fewest_parcels": "no"}, "invalid_payload", "fewest_parcels"),
]


@pytest.mark.parametrize(("body", "code", "told"), REFUSED, ids=lambda part: str(part)[:40])
async def test_a_body_that_cannot_be_read(a_seller, body, code, told):
    answer = await (await a_seller()).post(PATH, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert told in answer.json()["error"]


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "hidden",
    [{"network_consent": False}, {"network_published": False}, {"suspended": True},
     {"plan": "lapsed"}],
    ids=str,
)  # fmt: skip
async def test_a_hidden_seller_changes_no_basket(a_seller, a_shop, catalog, tag, service, hidden):
    base = f"Base {tag}"
    name, other = f"Mew {tag}", f"Abra {tag}"
    await catalog((name, base, "8/64", "Holofoil", 5), (other, base, "9/64", "Holofoil", 6))
    await a_shop("Open", a_card(1, name, base, "8/64", price="5.00"), postage_steps="0:1")
    buyer = await a_seller()
    asked = [
        {"name": name},
        {"name": name, "any_printing": True, "quantity": 2},
        {"name": other},
        {"name": f"Own {tag}"},
        {"name": tag, "any_printing": True},
    ]
    before = await split(buyer, *asked)
    secret = await a_shop(
        "Secret",
        a_card(1, name, base, "8/64", price="0.50", quantity=40),
        a_card(2, other, base, "9/64", price="1.00"),
        a_card(3, f"Own {tag}", f"Hidden {tag}", "1/9", price="1.00"),
        a_card(4, name, f"Hidden {tag}", "10/64", price="0.10", quantity=9),
    )
    assert await split(buyer, *asked) != before, "an exposed shop is seen"
    await change(service, secret, **hidden)
    assert await split(buyer, *asked) == before


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(3))
async def test_a_basket_equals_brute_force(a_seller, a_shop, catalog, tag, seed):
    """Three shops with random prices, stock and postage against every way to buy."""
    rng = Random(seed)
    base = f"Base {tag}"
    names = [f"Card {n} {tag}" for n in range(3)]
    await catalog(*((name, base, str(n), "Holofoil") for n, name in enumerate(names)))
    steps = ("0:1.27,5:3.20", "0:2.00,6:0", "0:0.50")
    stock = [[(rng.randint(50, 900), rng.randint(1, 3)) for _ in names] for _ in steps]
    for n, held in enumerate(stock):
        rows = [
            a_card(m + 1, names[m], base, str(m), price=str(Decimal(p) / 100), quantity=q)
            for m, (p, q) in enumerate(held)
        ]
        await a_shop(f"Shop {n}", *rows, postage_steps=steps[n])
    wanted = [rng.randint(1, 2) for _ in names]
    read = operation.read_steps
    least = None
    # For each card, how many copies each shop sends.
    ways = [
        [way for way in product(range(3), repeat=3)
         if sum(way) == wanted[m] and all(way[n] <= stock[n][m][1] for n in range(3))]
        for m in range(3)
    ]  # fmt: skip
    for chosen in product(*ways):
        total = 0
        for n in range(3):
            value = sum(chosen[m][n] * stock[n][m][0] * 100 for m in range(3))
            total += value + (postage_of(read(steps[n]), value) if value else 0)
        least = total if least is None else min(least, total)
    buyer = await a_seller()
    found = await split(
        buyer, *({"name": name, "quantity": n} for name, n in zip(names, wanted, strict=True))
    )
    assert least is not None
    assert (found["total"], found["gap"]) == (least / 10_000, 0)


@pytest.mark.night
async def test_the_solver_does_not_hold_up_other_requests(a_seller, a_shop, catalog, tag):
    base = f"Base {tag}"
    names = [f"Card {n} {tag}" for n in range(8)]
    await catalog(*((name, base, str(n), "Holofoil") for n, name in enumerate(names)))
    for shop in range(3):
        rows = [
            a_card(n + 1, name, base, str(n), price=f"{1 + (n * 7 + shop * 5) % 9}.25", quantity=2)
            for n, name in enumerate(names)
        ]
        await a_shop(f"Shop {shop}", *rows, postage_steps="0:1.27,12:3.20")
    buyer = await a_seller()
    cards = [{"name": name, "quantity": 2} for name in names]
    baskets = [asyncio.create_task(split(buyer, *cards)) for _ in range(3)]
    waits = []
    while not all(task.done() for task in baskets):
        began = perf_counter()
        await find_availability(buyer, {"name": names[0]})
        waits.append(perf_counter() - began)
    first, *others = [task.result() for task in baskets]
    assert all(other["total"] == first["total"] for other in others)
    assert sorted(waits)[len(waits) // 2] < 0.25


@pytest.mark.night
async def test_many_baskets_of_one_buyer_let_another_have_a_turn(a_seller, a_shop, catalog, tag):
    """Each takes a whole core, so few are solved at a time."""
    name, base = f"Mew {tag}", f"Base {tag}"
    await catalog((name, base, "8/64", "Holofoil", 41))
    await a_shop("Alpha", a_card(1, name, base, "8/64", price="5.00", quantity=3))
    greedy, other = await a_seller(), await a_seller()
    asked = [asyncio.create_task(split(greedy, {"name": name})) for _ in range(8)]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    await split(other, {"name": name})
    assert sum(task.done() for task in asked) < 5
    await asyncio.gather(*asked)
