"""No answer differs because of a seller who is not exposed, but for `in_network_unexposed`; and
offers equal a slow recomputation whatever happened to the stock.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from builders import Service, a_csv
from cardsync.network.offers import OFFERS, refresh
from discovery_builder import a_card, change, find

# Each of these hides a shop.
HIDDEN: list[dict[str, Any]] = [
    {"network_consent": False},
    {"network_published": False},
    {"network_consent": False, "network_published": False},
    {"suspended": True},
    {"plan": "lapsed"},
    {"network_consent": False, "suspended": True},
]


def without_the_hint(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for one in found:
        if "fallback" in one:
            del one["fallback"]["in_network_unexposed"]
        if one["availability"]:
            del one["availability"]["as_of"]
    return found


@contextmanager
def statements(service: Service) -> Iterator[list[str]]:
    """The statements that the application's sessions send meanwhile, with their parameters."""
    engine, sent = service.app.state.database.engine.sync_engine, list[str]()

    def note(_connection, _cursor, statement, parameters, *_):
        # What the process noted is written beside the requests.
        if "INSERT" in statement:
            return
        # The moment of the request is among them, and differs.
        sent.append(f"{statement} {[one for one in _values(parameters) if not _is_moment(one)]}")

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


def _values(parameters):
    return parameters.values() if isinstance(parameters, dict) else parameters


def _is_moment(value):
    return isinstance(value, datetime)


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
async def test_a_hidden_seller_changes_no_work_behind_an_answer(
    a_seller, a_shop, catalog, tag, service, hidden
):
    """The same statements with the same values are sent, so an answer takes no other time but for
    the rows of the hidden shop that one statement steps over.
    """
    name, base = f"Mew {tag}", f"Base {tag}"
    await catalog((name, base, "8/64", "Holofoil", 5))
    buyer = await a_seller()
    asked = [{"name": name}, {"name": f"Zorua {tag}"}, {"name": f"Mwe {tag}"}]
    for _ in range(2):
        with statements(service) as before:
            await find(buyer, *asked)
    secret = await a_shop(
        "Secret",
        a_card(1, name, base, "8/64", price="0.50"),
        a_card(3, f"Zorua {tag}", f"Hidden {tag}", "1/9", price="1.00"),
    )
    with statements(service) as seen:
        await find(buyer, *asked)
    assert len(before) > 1
    assert seen != before, "an exposed shop's own printing takes another path"
    await change(service, secret, **hidden)
    with statements(service) as after:
        await find(buyer, *asked)
    assert after == before


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
async def test_a_hidden_seller_changes_no_answer(a_seller, a_shop, catalog, tag, service, hidden):
    """The hidden shop is cheapest, holds what nobody else has, and has cards of its own making."""
    name, base = f"Mew {tag}", f"Base {tag}"
    await catalog(
        (name, base, "8/64", "Holofoil", 5),
        (f"{name} ex", base, "9/64", "Holofoil", 6),
        (f"{name} Star", base, "10/64", "Holofoil", 7),
    )
    await a_shop("Open", a_card(1, name, base, "8/64", price="5.00"))
    buyer = await a_seller()
    asked = [
        {"name": name},
        {"name": tag},
        {"name": name, "number": "8"},
        {"name": f"{name} ex"},
        {"name": f"{name} star", "finish": "holo"},
        {"name": f"Zorua {tag}"},
        {"name": f"Zoroa {tag}"},
        {"name": f"Mwe {tag}"},
        {"name": f"Star {tag}", "set": f"Hidden {tag}"},
    ]
    before = without_the_hint(await find(buyer, *asked))
    secret = await a_shop(
        "Secret",
        a_card(1, name, base, "8/64", price="0.50", quantity=40),
        a_card(2, f"{name} ex", base, "9/64", price="1.00"),
        a_card(3, f"Zorua {tag}", f"Hidden {tag}", "1/9", price="1.00"),
        a_card(4, f"{name} Star", f"Hidden {tag}", "10/64", price="1.00"),
    )
    shown = without_the_hint(await find(buyer, *asked))
    assert shown != before, "an exposed shop is seen"
    await change(service, secret, **hidden)
    assert without_the_hint(await find(buyer, *asked)) == before
    # Its own view of the network is that of anybody else, too.
    if not hidden.get("suspended") and "plan" not in hidden:
        assert without_the_hint(await find(secret, *asked)) == before


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(3))
async def test_offers_equal_a_slow_recomputation(a_shop, catalog, tag, service, seed):
    rng = random.Random(seed)
    base = f"Base {tag}"
    await catalog(*((f"Card {n} {tag}", base, str(n), "Holofoil") for n in range(6)))
    shop = await a_shop("Alpha", a_card(1, f"Card 0 {tag}", base, "0"))
    for _ in range(6):
        rows = [
            a_card(
                id + 1,
                f"Card {id // 2} {tag}",
                base,
                str(id // 2),
                quantity=rng.randrange(4),
                price=rng.choice(["", "0.50", "1.25", "9.99"]),
                Condition=("Near Mint Holofoil", "Lightly Played Holofoil")[id % 2],
            )
            for id in range(12)
            if rng.random() < 0.8
        ]
        if not rows:
            continue
        await shop.import_csv(a_csv(*rows))
        # Two workers at once write what one would.
        await asyncio.gather(*(OFFERS.work_off(service.work, shop.id) for _ in range(2)))
        assert await offers(service, shop) == await slowly(service, shop)


async def test_a_refresh_that_is_killed_in_the_middle_leaves_the_last_one(
    a_seller, a_shop, catalog, tag, service
):
    """The connection is cut after the first offers are gone: nothing of it is seen, and the next
    worker brings the offers up to date.
    """
    base = f"Base {tag}"
    names = [f"Card {n} {tag}" for n in range(4)]
    await catalog(*((name, base, str(n), "Holofoil") for n, name in enumerate(names)))
    shop = await a_shop(
        "Alpha", *(a_card(n + 1, name, base, str(n)) for n, name in enumerate(names[:3]))
    )
    stood = await offers(service, shop)
    sql = """
        UPDATE card SET quantity = quantity + 5, price = price + 1
         WHERE seller_id = :id AND listing_id > 1
    """
    await service.sql(shop.id, sql, id=shop.id)

    async def killed():
        async with service.database.tenant(shop.id) as session:
            assert await refresh(session, shop.id) == 2
            await session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(DBAPIError):
        await killed()
    assert await offers(service, shop) == stood
    [found] = await find(await a_seller(), {"name": names[2]})
    assert found["availability"] is not None
    async with service.database.tenant(shop.id) as session:
        await refresh(session, shop.id)
    assert await offers(service, shop) == await slowly(service, shop) != stood


Offers = dict[tuple[int, str], tuple[Decimal | None, int]]


async def offers(service, shop) -> Offers:
    sql = "SELECT product_id, condition, price, quantity FROM network_offer WHERE seller_id = :id"
    rows = await service.sql(shop.id, sql, id=shop.id)
    return {(row["product_id"], row["condition"]): (row["price"], row["quantity"]) for row in rows}


async def slowly(service, shop) -> Offers:
    sql = "SELECT * FROM card WHERE seller_id = :id AND NOT gone"
    held: dict[tuple[int, str], list[tuple[Decimal | None, int]]] = defaultdict(list)
    for row in await service.sql(shop.id, sql, id=shop.id):
        if row["quantity"]:
            held[row["product_id"], row["condition"]].append((row["price"], row["quantity"]))
    found = {}
    for key, some in held.items():
        priced = [(price, quantity) for price, quantity in some if price]
        least = min((price for price, _ in priced), default=None)
        found[key] = (least, sum(quantity for _, quantity in priced or some))
    return found
