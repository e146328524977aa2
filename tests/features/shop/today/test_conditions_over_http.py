"""Each condition of Today over HTTP: it comes with what causes it, and ends with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop
from cardsync.platform import clock
from plans_builder import a_plain_shop, allow, lowered, planned
from quick_add_builder import JAGUAR, published, rejected, served
from tasks_builder import claim, end, queue

DAY = timedelta(days=1)


async def told(who):
    answer = await who.get("/api/today")
    assert answer.status_code == 200, answer.text
    return {one["kind"]: one for one in answer.json()["conditions"]}


async def test_a_failed_task_is_told_until_one_of_its_kind_ends_well(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    [task] = await claim(seller)
    await end(seller, task, "failed", error={"code": "broken", "message": "it broke"})
    failed = (await told(seller))["task_failed"]
    assert failed["sentence"] == "The sync app's last attempt at fetching new orders failed."
    assert failed["since"] is not None
    await queue(seller, "refresh_orders")
    [task] = await claim(seller)
    await end(seller, task, "completed")
    assert "task_failed" not in await told(seller)


async def test_held_prices_are_told_with_what_they_are_worth(a_seller):
    seller = await a_shop(a_seller, a_row(1, price="2.00", market="2.00", quantity=4))
    [rule] = (await seller.get("/api/pricing/rules")).json()["rules"]
    cap = {"mode": "hold", "up_bp": 1_000, "down_bp": 1_000, "period": "day"}
    path = f"/api/pricing/rules/{rule['id']}"
    answer = await seller.http.patch(path, json={"cap": cap, "adjust_bp": 0})
    assert answer.status_code == 200, answer.text
    await seller.import_csv(a_csv(a_row(1, price="2.00", market="2.90", quantity=4)))
    held = (await told(seller))["prices_held"]
    assert (held["count"], held["money"]) == (1, "8.00")
    since = held["since"]
    clock.shift(DAY)
    await seller.import_csv(a_csv(a_row(1, price="2.00", market="2.80", quantity=4)))
    assert (await told(seller))["prices_held"]["since"] == since
    await seller.import_csv(a_csv(a_row(1, price="2.00", market="2.00", quantity=4)))
    assert "prices_held" not in await told(seller)


async def test_an_agent_that_is_silent_is_told_to_staff_too(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"bea-{seller.email}")
    await seller.post("/api/v1/heartbeat")
    assert "agent_silent" not in await told(seller)
    clock.shift(timedelta(hours=3))
    assert (await told(seller))["agent_silent"]["severity"] == "warn"
    assert "agent_silent" in await told(staff)
    await seller.post("/api/v1/heartbeat")
    assert "agent_silent" not in await told(seller)


async def beat(seller, **report):
    answer = await seller.post("/api/v1/heartbeat", json=report)
    assert answer.status_code == 200, answer.text


async def test_what_the_agent_waits_for_is_told_until_it_is_gone(a_seller, service):
    seller = await a_seller()
    staff = await joined(seller, f"bea-{seller.email}")
    owner = await signed_in(seller)
    await beat(seller, version="1.0")
    assert "your_turn" not in await told(seller)
    await beat(seller, your_turn="sign_in", your_turn_host="market.example")
    turn = (await told(seller))["your_turn"]
    assert turn["severity"] == "bad"
    assert turn["sentence"].startswith("Your turn: sign in to TCGplayer (market.example). ")
    assert "your_turn" in await told(staff)
    page = (await owner.get("/today")).text
    assert "Your turn: sign in to TCGplayer (market.example)" in page
    await beat(seller, your_turn="second_factor")
    assert "verification code." in (await told(seller))["your_turn"]["sentence"]
    await beat(seller, your_turn="human")
    assert "what TCGplayer's page asks" in (await told(seller))["your_turn"]["sentence"]
    await beat(seller, your_turn=None)
    assert "your_turn" not in await told(seller)
    assert "Your turn" not in (await owner.get("/today")).text


async def test_a_turn_began_when_its_kind_was_first_reported(a_seller, service):
    """This holds before and after the flush, and beside the reports of another agent."""
    seller = await a_seller()
    flush = service.app.state.last_seen.flush

    async def since() -> str:
        return (await told(seller))["your_turn"]["since"]

    await beat(seller, your_turn="captcha")
    first = await since()
    await flush()
    assert await since() == first
    for report in ({"your_turn": "captcha", "your_turn_host": "a.example"}, {"version": "1"}, {}):
        clock.shift(timedelta(seconds=30))
        await beat(seller, **report)
        assert await since() == first
        await flush()
        assert await since() == first
        assert "(a.example)" in (await told(seller))["your_turn"]["sentence"]
    clock.shift(timedelta(seconds=30))
    await beat(seller, your_turn="sign_in")
    later = await since()
    assert later > first
    await flush()
    turn = (await told(seller))["your_turn"]
    assert (turn["since"], "example" in turn["sentence"]) == (later, False)
    clock.shift(timedelta(seconds=30))
    await beat(seller, your_turn=None)
    await flush()
    assert "your_turn" not in await told(seller)
    clock.shift(timedelta(seconds=30))
    await beat(seller, your_turn="sign_in")
    assert await since() > later


async def test_a_turn_survives_an_agent_that_drives_no_browser_within_a_second(a_seller, service):
    seller = await a_seller()
    await beat(seller, your_turn="paused")
    clock.shift(timedelta(milliseconds=1))
    await beat(seller, version="2.0")
    await service.app.state.last_seen.flush()
    assert (await told(seller))["your_turn"]["severity"] == "info"


async def test_a_turn_of_a_newer_program_is_no_condition(a_seller, service):
    seller = await a_seller()
    await beat(seller, your_turn="paused")
    await service.app.state.last_seen.flush()
    change = "UPDATE agent_seen SET your_turn = 'dance' WHERE seller_id = :id RETURNING 1"
    assert await service.sql(seller.id, change, id=seller.id)
    assert "your_turn" not in await told(seller)


async def test_listings_are_told_when_rejected_and_when_unanswered(a_seller):
    seller = await a_seller(lines=["magic"])
    owner = await signed_in(seller)
    [entry_id] = await published(owner, JAGUAR | {"quantity": 2, "price": "3.00"})
    assert "listings_unanswered" not in await told(seller)
    await served(seller)
    clock.shift(timedelta(minutes=61))
    lost = (await told(seller))["listings_unanswered"]
    assert (lost["count"], lost["money"]) == (1, "6.00")
    await rejected(seller, {entry_id: "no"})
    found = await told(seller)
    assert "listings_unanswered" not in found
    assert found["listings_rejected"]["money"] == "6.00"
    answer = await owner.send("DELETE", f"/api/quick_add/{entry_id}")
    assert answer.status_code == 200, answer.text
    assert "listings_rejected" not in await told(seller)


async def test_a_plan_waits_for_a_click_until_its_day_is_over(a_seller):
    seller, rule = await a_plain_shop(a_seller)
    await allow(seller, "always_ask")
    plan = await planned(seller, lowered(rule, 100))
    waits = (await told(seller))["plans_waiting"]
    assert waits["next_step"]["path"] == f"/plans/{plan['plan_id']}"
    assert waits["deadline"] > waits["since"]
    clock.shift(DAY)
    assert "plans_waiting" not in await told(seller)


UPLOADED = """
    INSERT INTO price_run (seller_id, trigger, state, started_at, finished_at)
    SELECT :seller, 'sync', 'completed', now(), now() FROM generate_series(1, :runs)
"""


async def test_rules_that_are_broken_or_govern_nothing_are_named(a_seller):
    seller = await a_shop(a_seller, a_row(1), a_row(2))
    made = await seller.post("/api/lists", json={"name": "Gone away"})
    list_id = made.json()["id"]
    body = {"name": "Old list", "query": "list:gone-away", "adjust_bp": 0}
    made = await seller.post("/api/pricing/rules", json=body)
    assert made.status_code == 201, made.text
    rule = made.json()["id"]
    assert "rules_broken" not in await told(seller)
    assert (await seller.post(f"/api/pricing/rules/{rule}/publish")).status_code == 200
    assert "rules_broken" not in await told(seller)
    assert (await seller.http.delete(f"/api/lists/{list_id}")).status_code == 200
    broken = (await told(seller))["rules_broken"]
    assert "“Old list”" in broken["sentence"]
    change = {"query": "set:nowhere"}
    path = f"/api/pricing/rules/{rule}"
    assert (await seller.http.patch(path, json=change)).status_code == 200
    clock.shift(timedelta(seconds=5))
    await seller.post("/api/pricing/reprice")
    await seller.service.run_jobs()
    found = await told(seller)
    assert "“Old list”" in found["rules_never_match"]["sentence"]
    # The runs of uploads name no rules.
    await seller.service.sql(seller.id, UPLOADED, seller=seller.id, runs=400)
    assert "rules_never_match" in await told(seller)
    await seller.service.sql(seller.id, UPLOADED, seller=seller.id, runs=100)
    assert "rules_never_match" not in await told(seller)
    await seller.post("/api/pricing/reprice")
    await seller.service.run_jobs()
    assert "rules_never_match" in await told(seller)
    assert (await seller.post(f"{path}/disable")).status_code == 200
    assert not {"rules_broken", "rules_never_match"} & set(await told(seller))


async def test_prices_that_only_wait_in_a_file_are_told_in_review_mode(a_seller):
    seller = await a_seller(sync_mode="read_only")
    await seller.import_csv(a_csv(a_row(1, price="1.00", market="2.00"), a_row(2)))
    file = (await told(seller))["price_file_to_approve"]
    assert file["count"] >= 1
    await seller.set(upload_approved=True)
    assert "price_file_to_approve" not in await told(seller)


async def test_the_account_is_told_while_it_is_unpaid_past_due_or_paused(a_seller):
    seller = await a_seller()
    assert set(await told(seller)) == {"set_up_unfinished"}
    await seller.import_csv(a_csv(a_row(1)))
    await seller.set(past_due=True, auto_sync_paused=True, automatic_pricing_paused=True)
    assert set(await told(seller)) == {
        "payment_past_due",
        "auto_sync_paused",
        "automatic_pricing_paused",
    }
    today = (await seller.get("/api/today")).json()
    assert today["sync"]["next_sync_at"] is None
    await seller.set(past_due=False, auto_sync_paused=False, automatic_pricing_paused=False)
    assert await told(seller) == {}
    await seller.set(plan="free")
    assert set(await told(seller)) == {"plan_unpaid"}


async def test_cards_that_left_without_a_sale_are_told_for_a_week(a_seller):
    seller = await a_shop(a_seller, *(a_row(n, price="2.00", quantity=3) for n in range(1, 31)))
    await seller.orders([{"order_number": "A-1", "order_date": f"{clock.now():%m/%d/%y}"}])
    sold = [{"order_number": "A-1", "sku_id": 1, "quantity": 3}]
    await seller.items(sold)
    await seller.import_csv(
        a_csv(*(a_row(n, price="2.00", quantity=3) for n in range(3, 31))),
    )
    dropped = (await told(seller))["cards_dropped"]
    assert (dropped["count"], dropped["money"]) == (1, "6.00")
    clock.shift(8 * DAY)
    await seller.import_csv(a_csv(*(a_row(n, price="2.00", quantity=3) for n in range(3, 31))))
    assert "cards_dropped" not in await told(seller)


@pytest.mark.night
async def test_a_row_that_never_had_copies_did_not_leave(a_seller):
    seller = await a_shop(a_seller, *(a_row(n) for n in range(1, 31)))
    await seller.orders([{"order_number": "A-1", "order_date": f"{clock.now():%m/%d/%y}"}])
    rows = [a_row(n) for n in range(1, 31)]
    await seller.import_csv(a_csv(*rows, a_row(31, quantity=0, market="1.00")))
    await seller.import_csv(a_csv(*rows, a_row(31, quantity=0, market="2.00")))
    assert "cards_dropped" not in await told(seller)


async def test_a_shop_sees_its_own_conditions_alone(a_seller):
    one, other = await a_seller(), await a_seller()
    await queue(one, "refresh_orders")
    [task] = await claim(one)
    await end(one, task, "failed", error={"code": "broken", "message": "it broke"})
    await one.import_csv(a_csv(a_row(1)))
    assert set(await told(other)) == {"set_up_unfinished"}
    assert (await other.get("/api/today")).json()["listed"] is None
    assert (await other.get("/api/listed_value")).json() == {"days": []}
