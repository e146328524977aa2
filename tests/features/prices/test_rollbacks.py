"""Rollbacks: the diff first, then prepared, served by the export in place of updates, and over;
what each scope brings back.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import update

from builders import a_csv, a_row, read_csv
from cards_builder import a_list, card_ids
from cardsync.agents.agentwork.models import AgentTask
from cardsync.agents.agentwork.tasks import note_due
from cardsync.agents.seller_state.state import locked
from cardsync.platform import clock
from cardsync.prices.rollback.prepare import work_off_one
from rollbacks_builder import (  # fmt: skip
    ROLLBACKS,
    RULES,
    a_pushed_run,
    a_rule,
    ask,
    cancel,
    newest_run,
    read,
    ready,
    repriced,
    rows,
    tasks,
)
from world import exported, targets

pytestmark = pytest.mark.day

REASON = "X-Price-Export-Empty-Reason"


async def test_a_run_is_rolled_back_to_the_prices_before_it(a_seller):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ask(seller, run_id=run)
    assert (rollback["state"], rollback["cards"], rollback["run_id"]) == ("requested", 3, run)
    [card] = (await seller.get("/api/cards?search=sku:1")).json()["cards"]
    assert rollback["diff"][0] == {
        "marketplace_id": 1, "card_id": card["id"], "product_name": "Card 1",
        "set_name": "Dominaria United", "condition_label": "Near Mint", "current_price": "1.98",
        "target_price": "1.98", "asked_price": "1.98", "price": "1.00",
    }  # fmt: skip
    assert await exported(seller) == {}
    await seller.service.run_jobs()
    told = await read(seller, rollback["id"])
    assert (told["state"], told["cards"], told["diff"]) == ("ready", 3, rollback["diff"])
    assert await tasks(seller) == [("pending", {"rollback_id": rollback["id"]})]
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "1.0000")
    assert (await read(seller, rollback["id"]))["state"] == "served"


@pytest.mark.night
async def test_a_dry_run_shows_the_diff_and_keeps_nothing(a_seller):
    seller, run = await a_pushed_run(a_seller)
    answer = await seller.post(ROLLBACKS, json={"run_id": run, "dry_run": True})
    told = answer.json()
    assert (answer.status_code, told["id"], told["state"], told["cards"], len(told["diff"])) == (
        200,
        None,
        None,
        3,
        3,
    )
    await seller.service.run_jobs()
    assert (await seller.get(ROLLBACKS)).json() == {"rollbacks": []}
    assert await exported(seller) == {}


@pytest.mark.night
async def test_the_diff_shows_the_first_fifty_and_counts_all(a_seller):
    seller, run = await a_pushed_run(a_seller, cards=120)
    rollback = await ready(seller, run_id=run)
    assert (rollback["cards"], [row["marketplace_id"] for row in rollback["diff"]]) == (
        120,
        list(range(1, 51)),
    )
    assert len(await exported(seller)) == 120


@pytest.mark.night
async def test_what_was_asked_and_perhaps_pushed_is_brought_back_too(a_seller):
    """Whether the agent imported the last targets is not known before the next upload: the file
    names the old price either way.
    """
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00", 2: "1.00"}))
    rollback = await ready(seller, run_id=await newest_run(seller))
    assert [
        (row["current_price"], row["target_price"], row["asked_price"], row["price"])
        for row in rollback["diff"]
    ] == [("1.00", "1.98", "1.98", "1.00")] * 2
    assert await exported(seller) == {1: "1.0000", 2: "1.0000"}


@pytest.mark.night
async def test_a_rules_effect_is_its_unbroken_last_changes(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "2.00", 2: "2.00", 3: "2.00"}))
    rule = await a_rule(
        seller, name="raised", priority=1, query='"Card 1" or "Card 2"', adjust_bp=1000
    )
    await repriced(seller)
    await seller.import_csv(rows({1: "2.20", 2: "2.20", 3: "1.98"}))
    await a_rule(seller, name="later", priority=2, query='"Card 2"', adjust_bp=3000)
    patched = {"query": '"Card 1"', "adjust_bp": 2000}
    assert (await seller.http.patch(f"{RULES}/{rule['id']}", json=patched)).status_code == 200
    await repriced(seller)
    await seller.import_csv(rows({1: "2.40", 2: "2.60", 3: "1.98"}))
    await ready(seller, rule_id=rule["id"])
    assert await exported(seller) == {1: "2.0000"}


@pytest.mark.night
async def test_a_deleted_rules_effect_can_still_be_brought_back(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.98"}))
    rule = await a_rule(seller, priority=1, adjust_bp=1000)
    await repriced(seller)
    await seller.import_csv(rows({1: "2.20"}))
    assert (await seller.http.delete(f"{RULES}/{rule['id']}")).status_code == 200
    await ready(seller, rule_id=rule["id"])
    assert await exported(seller) == {1: "1.9800"}


@pytest.mark.first(1)
@pytest.mark.parametrize("named", ["id", "slug"])
async def test_a_lists_cards_go_back_before_their_last_change(a_seller, named):
    seller = await a_seller()
    await seller.import_csv(rows(dict.fromkeys((1, 2, 3), "1.00")))
    await seller.import_csv(rows(dict.fromkeys((1, 2, 3), "1.98"), market="3.00"))
    await seller.import_csv(rows(dict.fromkeys((1, 2, 3), "2.97"), market="3.00"))
    ids = await card_ids(seller)
    binder = await a_list(seller, "Red Binder", ids[1], ids[3])
    await ready(seller, list=binder if named == "id" else "red-binder")
    assert await exported(seller) == {1: "1.9800", 3: "1.9800"}


@pytest.mark.night
async def test_everything_since_a_time_goes_back_before_the_first_change_then(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00", 2: "1.98"}))
    clock.shift(timedelta(hours=1))
    since = clock.rfc3339(clock.now())
    await seller.import_csv(rows({1: "1.98", 2: "1.98"}, market="3.00"))
    clock.shift(timedelta(hours=1))
    await seller.import_csv(rows({1: "2.97", 2: "2.97"}, market="4.00"))
    assert await exported(seller) == {1: "3.9600", 2: "3.9600"}
    await ready(seller, since=since)
    assert await exported(seller) == {1: "1.9800", 2: "1.9800"}


@pytest.mark.night
async def test_cards_that_are_gone_or_had_no_price_are_left_out(a_seller):
    seller, run = await a_pushed_run(a_seller)
    await seller.import_csv(
        a_csv(
            a_row(1, market="2.00", price="1.98"),
            a_row(2, market="2.00", price="1.98"),
            a_row(4, market="2.00", price=""),
        )
    )
    first = await newest_run(seller)
    assert (await ready(seller, run_id=run))["cards"] == 2
    await seller.import_csv(
        a_csv(a_row(1, market="2.00", price="1.98"), a_row(4, market="2.00", price="1.98"))
    )
    assert await exported(seller) == {1: "1.0000"}
    assert (await seller.post(ROLLBACKS, json={"run_id": first, "dry_run": True})).json()[
        "cards"
    ] == 0


@pytest.mark.night
async def test_nothing_to_bring_back_is_over_at_once(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.98"}))
    rollback = await ask(seller, run_id=await newest_run(seller))
    assert (rollback["state"], rollback["cards"], rollback["diff"]) == ("applied", 0, [])
    await seller.service.run_jobs()
    assert await tasks(seller) == []


@pytest.mark.night
async def test_a_rollback_whose_cards_are_all_sold_is_over_when_it_is_served(a_seller):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ready(seller, run_id=run)
    await seller.import_csv(rows({9: "1.00"}))
    assert await exported(seller) == {9: "1.9800"}
    assert (await read(seller, rollback["id"]))["state"] == "applied"
    assert [status for status, _ in await tasks(seller)] == ["completed"]


@pytest.mark.parametrize(
    "body",
    [{}, {"run_id": 1, "rule_id": 1}, {"run_id": None}, {"since": "yesterday"}, {"since": 5},
     {"run_id": "x"}, {"list": True}, {"dry_run": True}],
    ids=str,
)  # fmt: skip
async def test_exactly_one_scope_is_needed(a_seller, body):
    seller = await a_seller()
    answer = await seller.post(ROLLBACKS, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), answer.text


async def test_what_is_not_the_callers_is_not_found(a_seller):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ask(seller, run_id=run)
    other, rule = await a_seller(), await a_rule(seller)
    binder = await a_list(seller, "Binder", 1)
    for scope in (
        {"run_id": run},
        {"rule_id": rule["id"]},
        {"list": binder},
        {"list": "binder"},
        {"run_id": 2**70},
    ):
        answer = await other.post(ROLLBACKS, json=scope)
        assert answer.json()["code"] in ("not_found", "invalid_payload"), scope
    assert (await other.get(f"{ROLLBACKS}/{rollback['id']}")).status_code == 404
    assert (await cancel(other, rollback["id"])).status_code == 404
    assert (await other.get(ROLLBACKS)).json() == {"rollbacks": []}


@pytest.mark.first(1)
@pytest.mark.parametrize("prepared", [False, True])
async def test_a_rollback_can_be_cancelled_before_it_is_served(a_seller, prepared):
    seller, run = await a_pushed_run(a_seller)
    await seller.import_csv(rows(dict.fromkeys((1, 2, 3), "1.98"), market="3.00"))
    rollback = await (ready if prepared else ask)(seller, run_id=run)
    for _ in range(2):
        answer = await cancel(seller, rollback["id"])
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    await seller.service.run_jobs()
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "2.9700")
    assert [status for status, _ in await tasks(seller)] == (["cancelled"] if prepared else [])


@pytest.mark.night
async def test_a_served_rollback_cannot_be_cancelled(a_seller):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ready(seller, run_id=run)
    await exported(seller)
    answer = await cancel(seller, rollback["id"])
    assert (answer.status_code, answer.json()["code"]) == (409, "not_cancellable")
    assert (await read(seller, rollback["id"]))["state"] == "served"


async def test_a_head_request_serves_nothing_and_takes_no_lock(a_seller):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ready(seller, run_id=run)
    looked = await seller.http.head("/api/v1/export/price-updates")
    assert (looked.status_code, looked.headers["X-Price-Export-Kind"]) == (200, "rollback")
    assert (await read(seller, rollback["id"]))["state"] == "ready"
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    for agent in ("first", "second"):
        pending = await seller.http.head(f"/api/v1/sync/pending?agent_id={agent}")
        assert pending.status_code == 200
    [row] = await seller.service.sql(seller.id, "SELECT lock_kind FROM sync_state")
    assert row["lock_kind"] is None
    assert (await seller.get("/api/v1/sync/pending")).json()["action"] == "sync"
    assert (await cancel(seller, rollback["id"])).status_code == 200


@pytest.mark.first(1)
@pytest.mark.parametrize("served", [False, True])
async def test_a_rollback_expires_after_a_day_and_loses_nothing(a_seller, served):
    seller, run = await a_pushed_run(a_seller)
    await seller.import_csv(rows(dict.fromkeys((1, 2, 3), "1.98"), market="3.00"))
    rollback = await ready(seller, run_id=run)
    if served:
        await exported(seller)
    before = await targets(seller)
    clock.shift(timedelta(hours=24, minutes=-5))
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "1.0000")
    clock.shift(timedelta(minutes=10))
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "2.9700")
    assert (await read(seller, rollback["id"]))["state"] == "expired"
    clock.shift(timedelta(minutes=1))
    await seller.sweep()
    await seller.service.run_jobs()
    [row] = await seller.service.sql(
        seller.id, "SELECT state, finished_at FROM price_rollback WHERE id = :id", id=rollback["id"]
    )
    assert (row["state"], row["finished_at"] is None) == ("expired", False)
    assert [status for status, _ in await tasks(seller)] == ["cancelled"]
    assert await targets(seller) == before
    again = await ready(seller, run_id=run)
    assert (again["state"], again["cards"]) == ("ready", 3)


@pytest.mark.night
async def test_asked_again_it_is_the_same_rollback(a_seller):
    seller, run = await a_pushed_run(a_seller)
    answers = await asyncio.gather(*(ask(seller, run_id=run) for _ in range(4)))
    assert len({answer["id"] for answer in answers}) == 1
    await seller.service.run_jobs()
    assert (await ask(seller, run_id=run))["state"] == "ready"
    assert len(await tasks(seller)) == 1


@pytest.mark.night
async def test_another_one_waits_until_the_first_is_over(a_seller):
    seller, run = await a_pushed_run(a_seller)
    since = clock.rfc3339(clock.now() - timedelta(days=1))
    answers = await asyncio.gather(
        *(seller.post(ROLLBACKS, json=scope) for scope in ({"run_id": run}, {"since": since}))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    [refused] = [answer.json() for answer in answers if answer.status_code == 409]
    [taken] = [answer.json() for answer in answers if answer.status_code == 201]
    assert refused["code"] == "rollback_open"
    assert (await cancel(seller, taken["id"])).status_code == 200
    assert (await ask(seller, since=since))["state"] == "requested"


async def test_two_workers_at_once_prepare_it_once(a_seller):
    seller, run = await a_pushed_run(a_seller, cards=120)
    rollback = await ask(seller, run_id=run)
    await asyncio.gather(*(work_off_one(seller.service.work, seller.id) for _ in range(3)))
    assert (await read(seller, rollback["id"]))["state"] == "ready"
    assert len(await tasks(seller)) == 1
    assert len(await exported(seller)) == 120


@pytest.mark.first(1)
@pytest.mark.parametrize("holder", ["sync", "reprice", "preview"])
async def test_while_another_writes_prices_none_is_begun(a_seller, holder):
    seller, run = await a_pushed_run(a_seller)
    await seller.hold_lease(holder)
    answer = await seller.post(ROLLBACKS, json={"run_id": run})
    assert (answer.status_code, answer.json()["status"]) == (409, "mutex_held")
    assert answer.headers["Retry-After"] == "30"
    assert (await seller.post(ROLLBACKS, json={"run_id": run, "dry_run": True})).status_code == 200


@pytest.mark.night
async def test_one_that_met_a_sync_is_prepared_when_the_sync_is_done(a_seller):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ask(seller, run_id=run)
    await seller.hold_lease("sync")
    await seller.service.run_jobs()
    assert (await read(seller, rollback["id"]))["state"] == "requested"
    clock.shift(timedelta(minutes=1))
    assert await seller.sweep() >= 1
    await seller.service.run_jobs()
    assert (await read(seller, rollback["id"]))["state"] == "ready"


@pytest.mark.night
async def test_beside_an_upload_both_come_to_their_end(a_seller):
    seller, run = await a_pushed_run(a_seller, cards=120)
    rollback = await ask(seller, run_id=run)
    await seller.import_csv(rows(dict.fromkeys(range(1, 121), "1.98"), market="2.50"))
    assert (await read(seller, rollback["id"]))["state"] == "ready"
    assert set((await exported(seller)).values()) == {"1.5000"}
    assert set((await targets(seller)).values()) == {"2.4800"}


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "change",
    [
        {"past_due": True},
        {"write_consent": False},
        {"automatic_pricing_paused": True},
        {"plan": "free"},
        {"sync_mode": "read_only"},
    ],
    ids=str,
)
async def test_a_rollback_is_served_whatever_the_account_may_push(a_seller, change):
    seller, run = await a_pushed_run(a_seller)
    await ready(seller, run_id=run)
    await seller.set(**change)
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "1.0000")


@pytest.mark.night
async def test_a_rollback_is_always_200_and_has_no_etag(a_seller):
    seller, run = await a_pushed_run(a_seller, sync_mode="read_only")
    tag = (await seller.export()).headers["ETag"]
    await ready(seller, run_id=run)
    for asked in (tag, "*"):
        answer = await seller.export(**{"If-None-Match": asked})
        assert answer.status_code == 200
        assert "ETag" not in answer.headers
        assert REASON not in answer.headers
    assert len(read_csv(answer.content)) == 3


@pytest.mark.night
async def test_served_again_it_is_the_same_file(a_seller):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ready(seller, run_id=run)
    answers = await asyncio.gather(*(seller.export() for _ in range(3)))
    assert len({answer.content for answer in answers}) == 1
    [row] = await seller.service.sql(
        seller.id, "SELECT files FROM price_rollback WHERE id = :id", id=rollback["id"]
    )
    assert len(row["files"]) == 1


async def test_who_cancels_while_it_is_served_hears_the_truth(a_seller):
    for _ in range(2):
        seller, run = await a_pushed_run(a_seller, cards=1)
        rollback = await ready(seller, run_id=run)
        file, answer = await asyncio.gather(exported(seller), cancel(seller, rollback["id"]))
        state = (await read(seller, rollback["id"]))["state"]
        assert (file, answer.status_code, state) in (
            ({1: "1.0000"}, 409, "served"),
            ({}, 200, "cancelled"),
        )


async def claimed(seller, seconds=600):
    """Write the columns that an agent's claim writes."""
    now = clock.now()
    async with seller.service.database.tenant(seller.id) as session:
        await locked(session, seller.id)
        statement = update(AgentTask).where(
            AgentTask.seller_id == seller.id, AgentTask.kind == "apply_rollback"
        )
        ends = now + timedelta(seconds=seconds)
        await session.execute(
            statement.values(status="claimed", claimed_at=now, claim_expires_at=ends)
        )
        await note_due(session, seller.id)


async def swept_in(seller, **later):
    clock.shift(timedelta(**later))
    await seller.sweep()
    await seller.service.run_jobs()


@pytest.mark.night
async def test_a_claim_on_a_rollback_that_is_over_runs_out_and_is_not_offered_again(a_seller):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ready(seller, run_id=run)
    await claimed(seller)
    assert (await cancel(seller, rollback["id"])).status_code == 200
    await swept_in(seller, minutes=1)
    assert [status for status, _ in await tasks(seller)] == ["claimed"]
    await swept_in(seller, minutes=10)
    assert [status for status, _ in await tasks(seller)] == ["cancelled"]
    assert not (await seller.post("/api/v1/heartbeat")).json()["has_pending_tasks"]


@pytest.mark.night
async def test_a_list_that_is_deleted_before_its_cards_are_looked_up_fails_its_rollback(a_seller):
    seller, _ = await a_pushed_run(a_seller)
    ids = await card_ids(seller)
    binder = await a_list(seller, "Binder", ids[1], ids[2])
    rollback = await ask(seller, list=binder)
    assert (rollback["state"], rollback["cards"]) == ("requested", 2)
    assert (await seller.http.delete(f"/api/lists/{binder}")).status_code == 200
    await seller.service.run_jobs()
    told = await read(seller, rollback["id"])
    assert (told["state"], told["error"]["code"]) == ("failed", "not_found")
    assert await exported(seller) == {}


@pytest.mark.first(1)
@pytest.mark.parametrize("mode", ["full", "read_only"])
async def test_while_it_is_prepared_nothing_pushes_the_prices_that_it_takes_back(a_seller, mode):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00", 2: "1.00"}))
    await seller.set(sync_mode=mode)
    before = await seller.export()
    assert (len(read_csv(before.content)), REASON in before.headers) == (2, False)
    rollback = await ask(seller, run_id=await newest_run(seller))
    assert (await read(seller, rollback["id"]))["state"] == "requested"
    # The file that the agent has already is no answer any more.
    held = await seller.export(**{"If-None-Match": before.headers.get("ETag", '"none"')})
    assert (held.status_code, held.headers[REASON], read_csv(held.content)) == (
        200,
        "rollback_preparing",
        [],
    )
    await seller.service.run_jobs()
    assert (await read(seller, rollback["id"]))["state"] == "ready"
    assert (await exported(seller), REASON in (await seller.export()).headers) == (
        {1: "1.0000", 2: "1.0000"},
        False,
    )


async def test_a_rollback_that_is_cancelled_while_it_is_prepared_lets_the_export_go(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00", 2: "1.00"}))
    rollback = await ask(seller, run_id=await newest_run(seller))
    await cancel(seller, rollback["id"])
    assert await exported(seller) == {1: "1.9800", 2: "1.9800"}


async def test_a_preparation_that_nobody_ends_holds_the_export_no_longer_than_it_lasts(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    await ask(seller, run_id=await newest_run(seller))
    assert (await seller.export()).headers[REASON] == "rollback_preparing"
    clock.shift(timedelta(days=1))
    assert await exported(seller) == {1: "1.9800"}


@pytest.mark.night
async def test_the_reasons_of_a_preparation_stand_in_their_order(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    await ask(seller, run_id=await newest_run(seller))
    await seller.set(automatic_pricing_paused=True, past_due=True)
    assert (await seller.export()).headers[
        REASON
    ] == "past_due,automatic_pricing_paused,rollback_preparing"
