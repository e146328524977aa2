"""The page of the price file reads the cards that it shows from its kept figures, and all cards as
soon as one of them has changed.
"""

from __future__ import annotations

import asyncio
import re

import pytest

from browsers import signed_in
from builders import a_csv, a_row, cancel
from cardsync.imports.drain import work_off_one
from cardsync.platform import clock
from cardsync.prices.files import kept_file
from cardsync.prices.files.kept_file import PRICE_FILE
from cardsync.stock.cards import write
from kept_price_file import compared
from sent_statements import counting, prepared

PAGES = ("/sync/prices?count=all", "/sync/prices?page=2&count=all", "/sync/prices/count")
CARDS = 120


def the_rows(price="1.00", **of_first):
    return [
        a_row(n, price=price, market=f"{1 + n}.00", **(of_first if n == 1 else {}))
        for n in range(1, CARDS + 1)
    ]


async def refreshed(seller) -> None:
    await seller.service.run_jobs()
    await PRICE_FILE.work_off(seller.service.work, seller.id)
    assert await holds(seller)


async def holds(seller) -> bool:
    """Whether the figures are those of the cards now."""
    sql = kept_file._KEPT.replace(":seller", ":id")
    return bool(await seller.service.sql(seller.id, sql, id=seller.id))


async def shown(browser) -> list[str]:
    """Return the sums and the rows that the pages show."""
    pages = [(await browser.get(path)).text for path in PAGES]
    parts = [page.partition('id="sums"')[2] or page for page in pages]
    return [" ".join(re.sub(r"<[^>]*>", " ", part).split()) for part in parts]


async def without_figures(seller, browser) -> list[str]:
    sql = "UPDATE price_file_figure SET stamp = stamp || ' old' WHERE seller_id = :id"
    await seller.service.sql(seller.id, sql, id=seller.id)
    pages = await shown(browser)
    sql = "UPDATE price_file_figure SET stamp = replace(stamp, ' old', '') WHERE seller_id = :id"
    await seller.service.sql(seller.id, sql, id=seller.id)
    return pages


@prepared
async def test_a_page_reads_the_cards_that_it_shows(a_seller):
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(*the_rows()))
    browser = await signed_in(seller)
    assert "more than 50 prices" in (await browser.get("/sync/prices")).text
    await refreshed(seller)
    assert await shown(browser) == await without_figures(seller, browser)
    page = await browser.get("/sync/prices")
    assert f"{CARDS} prices to raise" in " ".join(page.text.split())
    async with counting(seller.service.app.state.database) as sent:
        for path in ("/sync/prices", *PAGES):
            await browser.get(path)
    assert sent.statements("FROM card c WHERE") == 0


async def pinned(seller, browser, number=5) -> None:
    [card] = (await seller.get(f"/api/cards?q=marketplace:{number}")).json()["cards"][:1]
    await browser.form("/cards/pin", card_ids=card["id"], back="/sync/prices")


async def sold(seller, browser) -> None:
    await seller.import_csv(a_csv(*the_rows(quantity=9)))


async def gone(seller, browser) -> None:
    await seller.import_csv(a_csv(*the_rows()[5:]))


async def only_seen_again(seller, browser) -> None:
    await seller.import_csv(a_csv(*the_rows()))


async def priced_at_the_marketplace(seller, browser) -> None:
    told = {"marketplace_id": 7, "old_price": "1.00", "new_price": "1.50"}
    report = {"imported_at": clock.rfc3339(clock.now()), "row_count": 1, "rows": [told]}
    answer = await seller.post("/api/v1/repricing_events", json=report)
    assert answer.status_code == 201, answer.text
    await seller.service.run_jobs()


async def switched_off(seller, browser) -> None:
    lines = {"product_lines": [{"name": "magic", "enabled": False}]}
    answer = await browser.send("PATCH", "/api/account", json=lines)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "change", [pinned, sold, gone, only_seen_again, priced_at_the_marketplace, switched_off]
)
async def test_a_page_is_exact_after_each_change(a_seller, change):
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(*the_rows()))
    browser = await signed_in(seller)
    await refreshed(seller)
    await change(seller, browser)
    assert not await holds(seller)
    fresh = await shown(browser)
    await seller.service.run_jobs()
    await PRICE_FILE.work_off(seller.service.work, seller.id)
    assert await shown(browser) == await without_figures(seller, browser)
    if change is not switched_off:
        assert await shown(browser) == fresh


async def test_figures_that_a_killed_import_outdated_are_not_shown(a_seller, monkeypatch):
    """A price that a person types while an import writes ends a pricing, and later parts follow."""
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(*the_rows()))
    browser = await signed_in(seller)
    commit, seen = write._commit_slab, []

    async def between(writer, slab):
        if len(seen) == 1:
            await pinned(seller, browser)
            await PRICE_FILE.work_off(seller.service.work, seller.id)
            seen.append(await holds(seller))
        await commit(writer, slab)
        if seen:
            seen.append(await holds(seller))
        else:
            seen.append("first")

    monkeypatch.setattr(write, "_commit_slab", between)
    monkeypatch.setattr(write, "WRITERS", 1)
    assert (await seller.upload(a_csv(*the_rows(price="1.25")))).status_code == 202
    await seller.service.run_jobs()
    assert seen[:3] == ["first", True, False], seen
    await refreshed(seller)
    assert await shown(browser) == await without_figures(seller, browser)


async def test_a_fingerprint_from_the_middle_of_a_cancelled_import_is_not_kept(
    a_seller, monkeypatch
):
    """A price that a person types ends a pricing, between parts of an import that go on."""
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(*the_rows()))
    browser = await signed_in(seller)
    commit, seen = write._commit_slab, []

    async def between(writer, slab):
        seen.append(slab)
        if len(seen) == 2:
            await pinned(seller, browser)
        if len(seen) == 3:
            assert await cancel(seller) == (202, {"status": "cancelling"})
        await commit(writer, slab)

    monkeypatch.setattr(write, "_commit_slab", between)
    monkeypatch.setattr(write, "WRITERS", 1)
    rows = [a_row(n, price="1.00", market=f"{3 + n}.00") for n in range(1, CARDS + 1)]
    answer = await seller.upload(a_csv(*rows))
    await seller.service.run_jobs()
    assert (await seller.report(answer.json()["upload_id"]))["state"] == "cancelled"
    assert len(seen) == 3
    assert await seller.fingerprint() is not None
    await seller.fingerprint_is_right()


async def test_the_stamp_has_the_definition_of_the_figures(a_seller):
    """Another release may count differently, over the same cards."""
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(*the_rows()))
    await refreshed(seller)
    sql = "UPDATE price_file_figure SET stamp = replace(stamp, :now, :then) WHERE seller_id = :id"
    values = {"id": seller.id, "now": kept_file._DEFINITION, "then": "0" * 24}
    await seller.service.sql(seller.id, sql, **values)
    assert not await holds(seller)


async def test_figures_hold_only_while_they_are_exact_whoever_writes(a_seller):
    """Two workers import and refresh at once, a person types prices, and a reader looks on."""
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(*the_rows()))
    browser = await signed_in(seller)
    await refreshed(seller)
    work, over, seen = seller.service.work, asyncio.Event(), set()

    async def reads() -> None:
        while not over.is_set():
            sql = compared(seller.id)
            [now] = await seller.service.sql(seller.id, sql, seller=seller.id)
            assert now["exact"] or not now["hold"]
            seen.add((now["hold"], now["exact"]))

    async def refreshes() -> None:
        while not over.is_set():
            await PRICE_FILE.work_off(work, seller.id)
            await asyncio.sleep(0)

    async def writes() -> None:
        for price in ("1.25", "1.50", "1.75"):
            assert (await seller.upload(a_csv(*the_rows(price=price)))).status_code == 202
            imports = [work_off_one(work, seller.id) for _ in range(2)]
            await asyncio.gather(*imports, pinned(seller, browser, 7))
            await pinned(seller, browser, 9)
            await PRICE_FILE.work_off(work, seller.id)
        over.set()

    await asyncio.gather(reads(), refreshes(), refreshes(), writes())
    assert seen >= {(True, True), (False, False)}
    await refreshed(seller)
    assert await shown(browser) == await without_figures(seller, browser)
