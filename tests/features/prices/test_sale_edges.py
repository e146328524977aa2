"""Sales start and end by themselves: a run at both edges, no export of a sale that is over."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text

from builders import a_csv, a_row, read_csv
from cardsync.platform import clock
from cardsync.prices.runs import run_pricing
from cardsync.prices.runs.reprice import work_off_one
from cardsync.prices.runs.sale_runs import work_off
from stopped_workers import killed, stopped
from world import exported

SALES = "/api/pricing/sales"
REASON = "X-Price-Export-Empty-Reason"
HOUR = timedelta(hours=1)
FULL, HALF = "5.0000", "2.5000"


async def a_shop(a_seller, cards=3, **options):
    """Cards that are at their market price: only a sale asks for another."""
    seller = await a_seller(**options)
    rule = {"name": "At market", "state": "published", "priority": 1}
    assert (await seller.post("/api/pricing/rules", json=rule)).status_code == 201
    await seller.import_csv(
        a_csv(*(a_row(n, market="5.00", price="4.00") for n in range(1, cards + 1)))
    )
    return seller


async def a_sale(seller, starts=-HOUR, ends=HOUR, **fields):
    now = clock.now()
    times = {"starts_at": clock.rfc3339(now + starts), "ends_at": clock.rfc3339(now + ends)}
    answer = await seller.post(
        SALES, json={"name": "Half off", "adjust_bp": -5000} | times | fields
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def minutes_pass(seller, time=timedelta(minutes=1)):
    """A worker sweeps and works off what is due."""
    clock.shift(time)
    await seller.sweep()
    await seller.service.run_jobs()


async def runs(seller):
    return (await seller.get("/api/pricing/runs")).json()["runs"]


async def triggers(seller):
    """The triggers of the runs that no upload made, the oldest first."""
    return [run["trigger"] for run in reversed(await runs(seller)) if run["trigger"] != "sync"]


@pytest.mark.first(1)
@pytest.mark.parametrize("mode", ["full", "read_only"])
async def test_a_run_starts_within_a_minute_of_a_sales_start_and_end(a_seller, mode):
    seller = await a_shop(a_seller, sync_mode=mode)
    await a_sale(seller, starts=HOUR, ends=2 * HOUR)
    await minutes_pass(seller)
    assert (await triggers(seller), await exported(seller)) == ([], dict.fromkeys((1, 2, 3), FULL))
    clock.shift(HOUR)
    await minutes_pass(seller)
    assert (await triggers(seller), await exported(seller)) == (
        ["sale_started"],
        dict.fromkeys((1, 2, 3), HALF),
    )
    clock.shift(HOUR)
    await minutes_pass(seller)
    assert await triggers(seller) == ["sale_started", "sale_ended"]
    assert await exported(seller) == dict.fromkeys((1, 2, 3), FULL)
    assert {run["state"] for run in await runs(seller)} == {"completed"}
    await minutes_pass(seller, HOUR)
    assert len(await triggers(seller)) == 2
    await seller.fingerprint_is_right()


@pytest.mark.night
async def test_a_sale_made_while_it_is_on_and_one_ended_now_count_as_edges(a_seller):
    seller = await a_shop(a_seller)
    sale = await a_sale(seller)
    await minutes_pass(seller)
    assert (await triggers(seller), (await exported(seller))[1]) == (["sale_started"], HALF)
    ended = await seller.http.patch(f"{SALES}/{sale}", json={"ends_at": clock.rfc3339(clock.now())})
    assert ended.status_code == 200
    assert await exported(seller) == {}
    await minutes_pass(seller)
    assert (await triggers(seller), (await exported(seller))[1]) == (
        ["sale_started", "sale_ended"],
        FULL,
    )


@pytest.mark.first(1)
@pytest.mark.parametrize("how", ["deleted", "switched off", "put off"])
async def test_a_sale_that_is_taken_away_is_exported_no_more_at_once(a_seller, how):
    seller = await a_shop(a_seller, sync_mode="read_only")
    sale = await a_sale(seller, query='"card 1"')
    await minutes_pass(seller)
    known = await seller.export()
    assert await exported(seller) == {1: HALF, 2: FULL, 3: FULL}
    if how == "deleted":
        answer = await seller.http.delete(f"{SALES}/{sale}")
    else:
        later = {"starts_at": clock.rfc3339(clock.now() + HOUR / 2)}
        answer = await seller.http.patch(
            f"{SALES}/{sale}", json={"enabled": False} if how == "switched off" else later
        )
    assert answer.status_code == 200
    assert (await seller.export(**{"If-None-Match": known.headers["ETag"]})).status_code == 200
    assert await exported(seller) == {2: FULL, 3: FULL}
    await minutes_pass(seller)
    assert await exported(seller) == dict.fromkeys((1, 2, 3), FULL)


async def test_an_ended_sale_is_left_out_before_any_run_and_its_etag_is_worth_nothing(a_seller):
    seller = await a_shop(a_seller, sync_mode="read_only")
    await a_sale(seller, query='"card 1"')
    await minutes_pass(seller)
    on = await seller.export()
    assert (await seller.export(**{"If-None-Match": on.headers["ETag"]})).status_code == 304
    clock.shift(HOUR)
    over = await seller.export(**{"If-None-Match": on.headers["ETag"]})
    assert (over.status_code, sorted(row["TCGplayer Id"] for row in read_csv(over.content))) == (
        200,
        ["2", "3"],
    )
    assert over.headers["ETag"] != on.headers["ETag"]
    assert (await seller.export(**{"If-None-Match": over.headers["ETag"]})).status_code == 304
    await minutes_pass(seller)
    after = await seller.export(**{"If-None-Match": over.headers["ETag"]})
    assert (after.status_code, len(read_csv(after.content))) == (200, 3)
    assert (await seller.export(**{"If-None-Match": after.headers["ETag"]})).status_code == 304


@pytest.mark.night
async def test_a_full_account_is_not_sent_an_ended_sale_either(a_seller):
    seller = await a_shop(a_seller)
    await a_sale(seller)
    await minutes_pass(seller)
    clock.shift(HOUR)
    answer = await seller.export()
    assert (answer.headers[REASON], read_csv(answer.content)) == ("no_updates", [])


@pytest.mark.night
@pytest.mark.day
async def test_an_import_prices_with_a_sale_and_its_targets_are_left_out_when_it_is_over(a_seller):
    seller = await a_shop(a_seller)
    await a_sale(seller, ends=timedelta(minutes=10))
    await seller.import_csv(a_csv(*(a_row(n, market="5.00", price="4.00") for n in (1, 2))))
    assert await exported(seller) == {1: HALF, 2: HALF}
    clock.shift(timedelta(minutes=10))
    assert await exported(seller) == {}
    # The next upload prices one of them anew, and the run the rest.
    await seller.import_csv(
        a_csv(a_row(1, market="6.00", price="4.00"), a_row(2, market="5.00", price="4.00"))
    )
    assert await exported(seller) == {1: "6.0000", 2: FULL}
    noted = "SELECT 1 FROM price_decision WHERE seller_id = :id AND kind = 'sale'"
    left = await seller.service.sql(seller.id, noted, id=seller.id)
    until = await seller.service.sql(
        seller.id, "SELECT export_until FROM sync_state WHERE seller_id = :id", id=seller.id
    )
    assert (left, until) == ([], [{"export_until": None}])


@pytest.mark.night
@pytest.mark.day
async def test_a_card_that_an_upload_does_not_price_is_left_out_when_its_sale_is_over(a_seller):
    seller = await a_shop(a_seller)
    await a_sale(seller)
    await minutes_pass(seller)
    await seller.import_csv(a_csv(a_row(9, line="Pokemon", market="5.00", price="4.00")))
    assert await exported(seller) == dict.fromkeys((1, 2, 3, 9), HALF)
    clock.shift(HOUR)
    assert await exported(seller) == {}


@pytest.mark.night
@pytest.mark.day
async def test_many_edges_at_once_are_one_run(a_seller):
    seller = await a_shop(a_seller)
    for n in range(5):
        await a_sale(
            seller, starts=HOUR + n * timedelta(seconds=1), ends=3 * HOUR, name=f"Sale {n}"
        )
    clock.shift(HOUR)
    await minutes_pass(seller)
    assert await triggers(seller) == ["sale_started"]
    clock.shift(2 * HOUR)
    await minutes_pass(seller)
    assert await triggers(seller) == ["sale_started", "sale_ended"]


@pytest.mark.night
async def test_a_run_that_waits_already_is_taken(a_seller):
    seller = await a_shop(a_seller)
    await a_sale(seller)
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    clock.shift(timedelta(minutes=1))
    await work_off(seller.service.work, seller.id)
    await seller.service.run_jobs()
    assert (await triggers(seller), (await exported(seller))[1]) == (["manual"], HALF)


@pytest.mark.night
async def test_while_the_account_is_paused_no_run_begins_and_one_does_when_it_goes_on(a_seller):
    seller = await a_shop(a_seller)
    await a_sale(seller, starts=HOUR, ends=9 * HOUR)
    await seller.set(automatic_pricing_paused=True)
    clock.shift(HOUR)
    await minutes_pass(seller)
    await minutes_pass(seller)
    assert await triggers(seller) == []
    await seller.set(automatic_pricing_paused=False)
    await minutes_pass(seller)
    assert (await triggers(seller), (await exported(seller))[1]) == (["sale_started"], HALF)


@pytest.mark.night
async def test_a_sale_that_came_and_went_during_a_pause_brings_no_run(a_seller):
    seller = await a_shop(a_seller)
    await a_sale(seller, starts=HOUR, ends=2 * HOUR)
    await seller.set(automatic_pricing_paused=True)
    await minutes_pass(seller, 3 * HOUR)
    await seller.set(automatic_pricing_paused=False)
    await minutes_pass(seller)
    assert await triggers(seller) == []


async def test_two_workers_at_the_same_edge_begin_one_run(a_seller):
    seller = await a_shop(a_seller)
    await a_sale(seller, starts=HOUR, ends=2 * HOUR)
    clock.shift(HOUR)
    await asyncio.gather(*(work_off(seller.service.work, seller.id) for _ in range(4)))
    await seller.service.run_jobs()
    assert await triggers(seller) == ["sale_started"]


@pytest.mark.night
async def test_a_worker_that_is_killed_at_the_edge_leaves_it_to_the_next_one(a_seller):
    seller = await a_shop(a_seller)
    await a_sale(seller, starts=HOUR, ends=2 * HOUR)
    clock.shift(HOUR)
    database = seller.service.database
    async with database.tenant(seller.id) as session:
        # It waits for the row that we hold, and is killed there.
        await session.execute(
            text("SELECT 1 FROM sync_state WHERE seller_id = :id FOR UPDATE"), {"id": seller.id}
        )
        worker = asyncio.create_task(work_off(seller.service.work, seller.id))
        await asyncio.sleep(0.2)
        await killed(worker)
    assert await triggers(seller) == []
    await minutes_pass(seller)
    assert await triggers(seller) == ["sale_started"]


@pytest.mark.night
@pytest.mark.day
async def test_a_run_that_is_killed_half_way_leaves_no_sale_behind_that_is_served_too_long(
    a_seller,
):
    """Two of four slabs ask for the sale's price when its worker dies, and the sale ends
    meanwhile.
    """
    seller = await a_shop(a_seller, cards=200)
    await a_sale(seller)
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    work = work_off_one(seller.service.work, seller.id)
    async with stopped(seller, work, firsts=(101, 151), done=100) as worker:
        await killed(worker)
    assert sorted(set((await exported(seller)).values())) == [HALF, FULL]
    clock.shift(HOUR)
    assert HALF not in (await exported(seller)).values()
    await minutes_pass(seller)
    await minutes_pass(seller)
    assert await exported(seller) == dict.fromkeys(range(1, 201), FULL)
    await seller.fingerprint_is_right()


async def test_an_import_that_began_before_a_sale_does_not_undo_its_start(a_seller, monkeypatch):
    """Put back, it prices for its first moment, over what the sale's own run has written."""
    seller = await a_shop(a_seller)
    await a_sale(seller, starts=HOUR, ends=9 * HOUR)

    async def away(*_):
        raise ConnectionError("the store is away")

    with monkeypatch.context() as patched:
        patched.setattr(type(seller.service.work.store), "read", away)
        rows = (a_row(n, market="5.00", price="4.50") for n in (1, 2, 3))
        assert (await seller.upload(a_csv(*rows))).status_code == 202
        await seller.service.run_jobs()
        clock.shift(HOUR)
        await minutes_pass(seller)
        assert await exported(seller) == dict.fromkeys((1, 2, 3), HALF)
    for _ in range(3):
        await minutes_pass(seller, HOUR)
    assert await triggers(seller) == ["sale_started", "sale_started"]
    assert (await runs(seller))[0]["state"] == "completed"
    assert await exported(seller) == dict.fromkeys((1, 2, 3), HALF)


async def test_an_edge_of_one_seller_is_no_other_sellers(a_seller):
    seller, other = await a_shop(a_seller), await a_shop(a_seller)
    await a_sale(seller)
    await minutes_pass(seller)
    assert (await triggers(seller), await triggers(other)) == (["sale_started"], [])
    assert (await exported(seller))[1] == HALF
    assert (await exported(other))[1] == FULL


def broken(*_arguments, **_named):
    raise RuntimeError("the cards cannot be read")


async def states(seller):
    """The states of the runs that no upload made, the oldest first."""
    return [run["state"] for run in reversed(await runs(seller)) if run["trigger"] != "sync"]


@pytest.mark.night
@pytest.mark.parametrize("edge", ["start", "end", "a run that waits already"])
async def test_a_run_that_fails_is_begun_again(a_seller, monkeypatch, edge):
    """Nothing else happens in this shop: no upload, no request."""
    seller = await a_shop(a_seller, sync_mode="read_only")
    await a_sale(seller, starts=HOUR, ends=2 * HOUR if edge == "end" else 9 * HOUR)
    clock.shift(HOUR)
    if edge == "end":
        await minutes_pass(seller)
        clock.shift(HOUR)
    with monkeypatch.context() as patched:
        patched.setattr(run_pricing, "read_stock", broken)
        if edge == "a run that waits already":
            assert (await seller.post("/api/pricing/reprice")).status_code == 202
            await work_off(seller.service.work, seller.id)
            await seller.service.run_jobs()
        else:
            await minutes_pass(seller)
        assert (await states(seller))[-1] == "failed"
    first = "manual" if edge == "a run that waits already" else f"sale_{edge}ed"
    await minutes_pass(seller)
    again = "sale_ended" if edge == "end" else "sale_started"
    assert (await triggers(seller))[-2:] == [first, again]
    assert (await states(seller))[-1] == "completed"
    assert await exported(seller) == dict.fromkeys((1, 2, 3), FULL if edge == "end" else HALF)
    count = len(await runs(seller))
    for _ in range(3):
        await minutes_pass(seller, 10 * timedelta(minutes=1))
    assert len(await runs(seller)) == count
    await seller.fingerprint_is_right()


@pytest.mark.night
async def test_a_run_that_fails_again_and_again_rests_longer_each_time(a_seller, monkeypatch):
    seller = await a_shop(a_seller)
    await a_sale(seller, starts=HOUR, ends=9 * HOUR)
    clock.shift(HOUR)
    clock.stop()
    due = "SELECT due_at FROM work_due WHERE seller_id = :s AND stream = 'sales'"
    pauses = []
    with monkeypatch.context() as patched:
        patched.setattr(run_pricing, "read_stock", broken)
        for _ in range(4):
            await minutes_pass(seller)
            [row] = await seller.service.sql(seller.id, due, s=seller.id)
            pauses.append((row["due_at"] - clock.now()).total_seconds())
    assert (pauses, await states(seller)) == ([2, 4, 8, 16], ["failed"] * 4)
    await minutes_pass(seller)
    assert (await states(seller))[-1] == "completed"
    assert (await exported(seller))[1] == HALF


@pytest.mark.night
async def test_a_manual_run_that_fails_is_its_sellers_to_begin_again(a_seller, monkeypatch):
    seller = await a_shop(a_seller)
    await a_sale(seller)
    await minutes_pass(seller)
    with monkeypatch.context() as patched:
        patched.setattr(run_pricing, "read_stock", broken)
        assert (await seller.post("/api/pricing/reprice")).status_code == 202
        await seller.service.run_jobs()
    await minutes_pass(seller)
    assert await triggers(seller) == ["sale_started", "manual"]


@pytest.mark.night
@pytest.mark.day
async def test_a_sales_run_whose_worker_is_killed_is_finished_by_the_next_one(a_seller):
    seller = await a_shop(a_seller, cards=200)
    await a_sale(seller, starts=HOUR, ends=9 * HOUR)
    clock.shift(HOUR)
    await work_off(seller.service.work, seller.id)
    work = work_off_one(seller.service.work, seller.id)
    async with stopped(seller, work, firsts=(101, 151), done=100) as worker:
        await killed(worker)
    await minutes_pass(seller)
    assert (await triggers(seller), await states(seller)) == (["sale_started"], ["completed"])
    assert await exported(seller) == dict.fromkeys(range(1, 201), HALF)
