"""What waited for a catalog is matched again once it is loaded: cards without another upload, rows of
collections, and what the network asked for in vain; by a job that survives a kill and a second one
beside it, and says so in the activity.
"""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import suppress

import pytest
from sqlalchemy import text

from builders import a_csv, a_row
from buying_builder import brought
from cardsync.buying.collections import drain_collections, rematch_collections
from cardsync.imports import rematch_cards
from cardsync.network import misses
from cardsync.network.limits import MISS_CALLERS
from cardsync.platform import clock
from cardsync.platform.work import runner
from stopped_workers import WAITING

HEAD = "Name,Set code,Set name,Collector number,Foil,Quantity,ManaBox ID,Scryfall ID,Condition"


async def entries(seller, action):
    found = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    return [entry["summary"] for entry in found if entry["action"] == action]


async def again(seller):
    """Let the sweep find the marks of the load, and the jobs work them off."""
    earlier = "UPDATE work_due SET due_at = due_at - interval '1 hour' WHERE seller_id = :id"
    await seller.service.sql(seller.id, earlier, id=seller.id)
    await seller.sweep()
    await seller.service.run_jobs()


async def bindings(seller):
    return {
        card["marketplace_id"]: (card["match"], card["product_id"]) for card in await seller.cards()
    }


@pytest.fixture
async def shop(a_seller, a_set):
    """A shop with three cards of a set that no catalog knows."""
    seller = await a_seller()
    rows = [a_row(n, name=f"Card {n}", set=a_set, number=str(n)) for n in (1, 2, 3)]
    report = await seller.import_csv(a_csv(*rows))
    assert (report["provisional"], report["matched"]) == (3, 0)
    return seller


def product(n):
    return {"product_name": f"Card {n}", "number": str(n)}


async def test_cards_are_matched_without_another_upload(shop, load):
    before = await bindings(shop)
    await load(product(1), product(2))
    await again(shop)
    after = await bindings(shop)
    assert {n: match for n, (match, _) in after.items()} == {
        1: "matched", 2: "matched", 3: "provisional"
    }  # fmt: skip
    # Lists, places and history belong to the card; the product kept its id.
    assert [after[n][1] for n in (1, 2, 3)] == [before[n][1] for n in (1, 2, 3)]
    assert await entries(shop, rematch_cards.ACTION) == ["2 cards matched by a catalog"]
    await load(product(1), product(2))
    await again(shop)
    assert len(await entries(shop, rematch_cards.ACTION)) == 1


async def test_cards_of_a_second_shop_follow_the_product_that_took_theirs_over(
    shop, a_seller, load, a_set
):
    other = await a_seller()
    # The marketplace names another treatment, so there are two provisional products.
    await other.import_csv(a_csv(a_row(9, name="Card 1 (Borderless)", set=a_set, number="1")))
    await load(product(1))
    await again(other)
    [(match, product_id)] = (await bindings(other)).values()
    assert (match, product_id) == ("matched", (await bindings(shop))[1][1])


async def test_two_jobs_at_once_match_each_card_once(shop, load):
    await load(product(1), product(2), product(3))
    turns = (runner.work_off_one(rematch_cards.STREAM, shop.service.work, shop.id) for _ in "12")
    await asyncio.gather(*turns)
    assert await entries(shop, rematch_cards.ACTION) == ["3 cards matched by a catalog"]


async def test_a_killed_job_is_gone_on_with(shop, load):
    await load(product(1), product(2), product(3))
    work = shop.service.work
    slabs = dataclasses.replace(work, settings=work.settings.model_copy(update={"slab_rows": 1}))
    database = shop.service.database
    async with database.sessions() as blocker, blocker.begin():
        await blocker.execute(text(f"SET LOCAL app.seller_id = '{shop.id}'"))
        second = "SELECT id FROM card WHERE seller_id = :id AND marketplace_id = 2 FOR UPDATE"
        await blocker.execute(text(second), {"id": shop.id})
        killed = asyncio.create_task(runner.work_off_one(rematch_cards.STREAM, slabs, shop.id))
        async with asyncio.timeout(60):
            while not await shop.service.sql(shop.id, WAITING):
                assert not killed.done()
        killed.cancel()
        with suppress(asyncio.CancelledError):
            await killed
    matched = [n for n, (match, _) in (await bindings(shop)).items() if match == "matched"]
    assert matched == [1]
    await again(shop)
    assert {match for match, _ in (await bindings(shop)).values()} == {"matched"}
    assert await entries(shop, rematch_cards.ACTION) == [
        "2 cards matched by a catalog", "1 card matched by a catalog"
    ]  # fmt: skip


async def test_waiting_rows_of_a_collection_are_found_and_a_persons_word_stays(shop, load, a_set):
    lines = "".join(f"Card {n},,{a_set},{n},normal,1,5,,near_mint\n" for n in (1, 2, 3, 4))
    found = await brought(shop, f"{HEAD}\n{lines}".encode())
    path = f"/api/buying/collections/{found['id']}"
    choices = {"choices": [{"row": 4}]}
    assert (await shop.post(f"{path}/choices", json=choices)).json()["settled"] == 1
    await load(*(product(n) for n in (1, 3, 4)))
    await again(shop)
    rows = (await shop.get(f"{path}/rows")).json()["rows"]
    assert [(row["name"], row["certainty"], row["how"]) for row in rows if row["product_id"]] == [
        ("Card 1", "certain", "set_and_number"), ("Card 4", "certain", "set_and_number")
    ]  # fmt: skip
    # The third was left out by a person, and the second is of no catalog.
    assert [row["name"] for row in rows if not row["product_id"]] == ["Card 2", "Card 3"]
    assert await entries(shop, "catalog.rows_matched") == [
        "2 cards of the collection “box.csv” found in a catalog"
    ]
    await load(*(product(n) for n in (1, 3, 4)))
    await again(shop)
    assert len(await entries(shop, "catalog.rows_matched")) == 1


async def test_a_row_found_by_its_sku_loses_the_word_that_kept_it(shop, load, a_set):
    head = "Quantity,Name,Simple Name,Set,Card Number,Set Code,Printing,Condition,Language,SKU"
    lines = f"1,Card 1,Card 1,{a_set},1,,Normal,Near Mint,Klingon,1\n"
    found = await brought(shop, f"{head}\n{lines}".encode())
    path = f"/api/buying/collections/{found['id']}/rows"
    [waiting] = (await shop.get(path)).json()["rows"]
    assert waiting["reason"] == "Language: 'Klingon' is not a known language"
    await load(product(1))
    await again(shop)
    [row] = (await shop.get(path)).json()["rows"]
    assert (row["how"], row["language"]) == ("sku", "English")
    assert (row["reason"], row["text"]) == ("", "")


async def a_box(shop, a_set):
    """A collection of three cards of the set, none of which a catalog knows."""
    lines = "".join(f"Card {n},,{a_set},{n},normal,1,5,,near_mint\n" for n in (1, 2, 3))
    found = await brought(shop, f"{HEAD}\n{lines}".encode())
    return f"/api/buying/collections/{found['id']}"


async def found_rows(shop, path):
    rows = (await shop.get(f"{path}/rows")).json()["rows"]
    return [row["name"] for row in rows if row["product_id"]]


async def test_two_jobs_at_once_match_each_row_of_a_collection_once(shop, load, a_set):
    path = await a_box(shop, a_set)
    await load(product(1), product(2), product(3))
    stream, work = rematch_collections.STREAM, shop.service.work
    await asyncio.gather(*(runner.work_off_one(stream, work, shop.id) for _ in "12"))
    assert await found_rows(shop, path) == ["Card 1", "Card 2", "Card 3"]
    assert await entries(shop, rematch_collections.ACTION) == [
        "3 cards of the collection “box.csv” found in a catalog"
    ]


async def test_a_killed_job_goes_on_with_the_rows_that_still_wait(shop, load, a_set):
    path = await a_box(shop, a_set)
    await load(product(1), product(2), product(3))
    work = shop.service.work
    slabs = dataclasses.replace(work, settings=work.settings.model_copy(update={"slab_rows": 1}))
    async with shop.service.database.sessions() as blocker, blocker.begin():
        await blocker.execute(text(f"SET LOCAL app.seller_id = '{shop.id}'"))
        second = (
            "SELECT row FROM collection_row WHERE seller_id = :id AND name = 'Card 2' FOR UPDATE"
        )
        await blocker.execute(text(second), {"id": shop.id})
        turn = runner.work_off_one(rematch_collections.STREAM, slabs, shop.id)
        killed = asyncio.create_task(turn)
        async with asyncio.timeout(60):
            while not await shop.service.sql(shop.id, WAITING):
                assert not killed.done()
        killed.cancel()
        with suppress(asyncio.CancelledError):
            await killed
    assert await found_rows(shop, path) == ["Card 1"]
    await again(shop)
    assert await found_rows(shop, path) == ["Card 1", "Card 2", "Card 3"]
    assert await entries(shop, rematch_collections.ACTION) == [
        "2 cards of the collection “box.csv” found in a catalog",
        "1 card of the collection “box.csv” found in a catalog",
    ]


async def test_a_tie_that_a_catalog_brings_is_no_card_that_it_found(shop, load, a_set):
    name = f"Card of {a_set}"
    row = f"{name},,{a_set},,normal,1,5,,near_mint"
    found = await brought(shop, f"{HEAD}\n{row}\n".encode())
    path = f"/api/buying/collections/{found['id']}"
    await load({"product_name": name, "number": "8"}, {"product_name": name, "number": "9"})
    await again(shop)
    waiting = (await shop.get(f"{path}/waiting")).json()["rows"]
    assert [len(row["candidates"]) for row in waiting] == [2]
    assert await entries(shop, rematch_collections.ACTION) == []


async def test_a_collection_that_was_being_read_when_a_catalog_came_is_matched_again(
    shop, load, a_set
):
    """The mark of the load is worked off before the collection's last rows are stored."""
    lines = "".join(f"Card {n},,{a_set},{n},normal,1,5,,near_mint\n" for n in (1, 2, 3))
    sent = await shop.post("/api/buying/collections", content=f"{HEAD}\n{lines}".encode())
    path = f"/api/buying/collections/{sent.json()['id']}"
    work = shop.service.work
    slabs = dataclasses.replace(work, settings=work.settings.model_copy(update={"slab_rows": 1}))
    async with shop.service.database.sessions() as blocker, blocker.begin():
        await blocker.execute(text(f"SET LOCAL app.seller_id = '{shop.id}'"))
        await blocker.execute(text("LOCK TABLE collection_row IN SHARE MODE"))
        turn = runner.work_off_one(drain_collections.STREAM, slabs, shop.id)
        reading = asyncio.create_task(turn)
        async with asyncio.timeout(60):
            while not await shop.service.sql(shop.id, WAITING):
                assert not reading.done()
        await load(product(1), product(2), product(3))
        await runner.work_off_one(rematch_collections.STREAM, work, shop.id)
    await reading
    assert await found_rows(shop, path) == ["Card 2", "Card 3"]
    await again(shop)
    assert await found_rows(shop, path) == ["Card 1", "Card 2", "Card 3"]


async def test_a_finish_that_was_not_said_is_decided_by_each_catalog_until_a_card_is_found(
    a_seller, load, a_set
):
    # Names that no other test has, as a set that no catalog knows does not part cards.
    one, two = ({"product_name": f"{word} {a_set[4:]}", "number": "1"} for word in ("One", "Two"))
    foils = [one | {"finish": finish} for finish in ("Cold Foil", "Galaxy Foil")]
    await load(*foils)
    shop = await a_seller(lines=["magic"])
    names = one["product_name"], f"{one['product_name']} (nonfoil)", two["product_name"]
    found = await brought(shop, "".join(f"1 {name}\n" for name in names).encode())
    path = f"/api/buying/collections/{found['id']}/rows"

    async def said():
        rows = (await shop.get(path)).json()["rows"]
        return [(one["finish"], one["finish_said"], one["certainty"]) for one in rows]

    assert await said() == [
        ("", False, "possible"), ("Normal", True, None), ("", False, None)
    ]  # fmt: skip
    await load(*foils, two | {"finish": "Foil"})
    await again(shop)
    assert await said() == [
        ("", False, "possible"), ("Normal", True, None), ("Foil", False, "probable")
    ]  # fmt: skip
    await load(*foils, *(card | {"finish": "Normal"} for card in (one, two)))
    await again(shop)
    assert await said() == [
        ("Normal", False, "probable"), ("Normal", True, "probable"), ("Foil", False, "probable")
    ]  # fmt: skip


async def test_what_was_asked_for_in_vain_counts_for_the_catalogs_product(
    shop, load, a_seller, a_set, service
):
    asked = (await bindings(shop))[1][1]
    other = await a_seller()
    await other.import_csv(a_csv(a_row(9, name="Card 1 (Borderless)", set=a_set, number="1")))
    provisional = (await bindings(other))[9][1]
    noted = misses.Misses(service.database, lambda: b"key")
    for caller in range(MISS_CALLERS):
        noted.note([asked if caller % 2 else provisional], caller, clock.now())
    await noted.flush()
    await load(product(1))
    async with service.database.shared() as session:
        unmet = await misses.unmet(session, other.id, clock.now())
    assert asked in [one.product_id for one in unmet]
    assert provisional not in [one.product_id for one in unmet]
