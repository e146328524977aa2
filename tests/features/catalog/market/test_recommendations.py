"""Recommendations over HTTP: generated after a sync, listed by money, accepted, dismissed, snoozed,
shown; and never without fresh evidence or past the seller's own limits.
"""

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.recommendations import generate
from cardsync.prices.recommendations.generate import RECOMMENDATIONS
from market_builder import ago, listing, sale

LIST = "/api/recommendations"
CELLS = {"market": "10.00", "low": "10.00", "price": "10.00"}


def listings(product, *prices, seen=None):
    at = seen or ago(hours=1)
    return [listing(product, price, at) for price in prices]


def sales(product, *prices, days=9):
    fetched = ago(hours=1)
    return [
        sale(product, price, ago(days=days, minutes=at), fetched) for at, price in enumerate(prices)
    ]


async def generated(seller):
    await seller.service.run_jobs()
    await RECOMMENDATIONS.work_off(seller.service.work, seller.id)


async def listed_now(seller, **query):
    answer = await seller.get(LIST, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def synced(seller, quantity=3, **cells):
    """Sync card 1 once more, and generate."""
    every = await seller.get("/api/cards", params={"status": "all"})
    [card] = every.json()["cards"]
    cells = CELLS | cells
    await seller.import_csv(a_csv(a_row(1, name=card["product_name"], quantity=quantity, **cells)))
    await generated(seller)
    return await listed_now(seller)


async def ruled(seller, **fields):
    """A rule before the preset's: it asks the current price, without a cap."""
    rule = {"name": "Mine", "state": "published", "price_source": "current", "query": ""} | fields
    answer = await seller.post("/api/pricing/rules", json=rule)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.fixture
def shop(listed):
    """A seller with card 1 and a rule without limits."""

    async def made(**fields):
        seller = await listed(**CELLS)
        await ruled(seller, **fields)
        return seller

    return made


def prices(answer):
    return [
        (one["kind"], one["current_price"], one["proposed_price"])
        for one in answer["recommendations"]
    ]


@pytest.mark.night
async def test_listings_above_the_price_recommend_a_raise(shop, observed, product):
    seller = await shop()
    seen = ago(hours=1)
    await observed(
        *listings(product, "15.00", "15.50", "16.00", seen=seen),
        *sales(product, "9.00", "9.00"),
    )
    answer = await synced(seller)
    assert prices(answer) == [("depth_raise", "10.00", "14.85")]
    [one] = answer["recommendations"]
    assert one["state"] == "pending"
    assert one["confidence"] == "low"
    assert one["evidence"]["lowest_listing"] == "15.00"
    assert one["evidence"]["condition_listings"] == 3
    assert one["evidence"]["listings_observed_at"] == seen
    assert one["evidence"]["competing_signals"] == []
    # Two sales in thirty days: two copies net (14.85 - 10.00) x (1 - 13.25 %) each.
    assert one["expected_value"] == answer["expected_value"] == "8.41"
    assert len(one["revision"]) == len("2026-11-21T08:00:00.000000Z")
    assert (answer["total"], answer["revision"]) == (1, one["revision"])
    until = clock.read_moment(seen) + timedelta(hours=24)
    assert clock.read_moment(one["expires_at"]) == until


@pytest.mark.night
async def test_a_card_has_one_review_and_at_most_three_rivals(shop, observed, product):
    seller = await shop()
    await observed(
        *listings(product, "15.00", "15.50", "16.00"),
        *sales(product, *["20.00"] * 5, days=2),
    )
    answer = await synced(seller, market="12.00")
    assert prices(answer) == [("sales_anchor", "10.00", "20.00")]
    rivals = answer["recommendations"][0]["evidence"]["competing_signals"]
    assert [rival["kind"] for rival in rivals] == ["depth_raise", "generic_raise", "demand_pulse"]
    assert [rival["proposed_price"] for rival in rivals] == ["14.85", "12.00", "10.50"]


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ({"hours": 23, "minutes": 59}, True),
        ({"hours": 24, "seconds": 1}, False),
        ({"hours": -1}, False),
    ],
)
async def test_nothing_is_recommended_without_fresh_evidence(shop, observed, product, seen, found):
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50", "16.00", seen=ago(**seen)))
    assert bool((await synced(seller))["total"]) is found


@pytest.mark.night
async def test_two_listings_and_a_buy_out_recommend_nothing(shop, observed, product):
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50"))
    assert (await synced(seller))["total"] == 0
    before, after = ago(minutes=50), ago(minutes=10)
    await observed(listing(product, "15.00", before, quantity=40))
    await observed(
        sale(product, "15.00", ago(minutes=30), after, quantity=37),
        *listings(product, "15.00", "15.50", "16.00", seen=after),
    )
    assert (await synced(seller))["total"] == 0


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("fields", "proposed"),
    [
        ({"ceiling": "12.00"}, "12.00"),
        ({"ceiling": "10.20"}, None),
        ({"cap": {"up_bp": 1000, "down_bp": None, "period": "sync", "mode": "clamp"}}, "11.00"),
        ({"cap": {"up_bp": 1000, "down_bp": None, "period": "sync", "mode": "hold"}}, None),
        ({"floor": "20.00"}, None),
        ({"rounding": "x99"}, "14.99"),
    ],
)
async def test_the_sellers_own_limits_hold(shop, observed, product, fields, proposed):
    seller = await shop(**fields)
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    answer = await synced(seller)
    expected = [] if proposed is None else [proposed]
    assert [one["proposed_price"] for one in answer["recommendations"]] == expected


@pytest.mark.night
async def test_a_pinned_or_blocked_card_is_left_alone(shop, observed, product):
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    assert (await synced(seller))["total"] == 1
    assert (await synced(seller, quantity=0))["total"] == 0
    assert (await synced(seller))["total"] == 1
    answer = await seller.http.put("/api/pricing/pins/1", json={"price": "10.00"})
    assert answer.status_code == 200, answer.text
    assert (await synced(seller))["total"] == 0


@pytest.mark.night
async def test_the_same_evidence_gives_the_same_recommendation(shop, observed, product):
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    first = await synced(seller)
    again = await synced(seller)
    assert again["recommendations"] == first["recommendations"]
    await observed(*listings(product, "17.00", "17.50", "18.00", seen=ago(minutes=5)))
    changed = await synced(seller)
    [was], [now] = first["recommendations"], changed["recommendations"]
    assert (now["id"], now["proposed_price"]) == (was["id"], "16.83")
    assert now["revision"] > was["revision"]


async def test_generating_twice_at_once_leaves_one(shop, observed, product):
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    await synced(seller)
    await seller.service.sql(seller.id, "DELETE FROM proposal WHERE seller_id = :id", id=seller.id)
    [card] = (await seller.get("/api/cards")).json()["cards"]
    await seller.import_csv(a_csv(a_row(1, name=card["product_name"], quantity=3, **CELLS)))
    await seller.service.run_jobs()
    await asyncio.gather(
        *(RECOMMENDATIONS.work_off(seller.service.work, seller.id) for _ in range(3))
    )
    assert (await listed_now(seller))["total"] == 1


@pytest.mark.night
async def test_expired_evidence_is_not_shown_and_expires_at_the_next_look(shop, observed, product):
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    [one] = (await synced(seller))["recommendations"]
    clock.shift(timedelta(hours=24))
    try:
        assert (await listed_now(seller))["total"] == 0
        answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
        assert (answer.status_code, answer.json()["code"]) == (409, "market_evidence_changed")
        assert (await synced(seller))["total"] == 0
    finally:
        clock.reset()
    assert await events(seller, one) == ["expired"]


def revision(one):
    return {"revision": one["revision"]}


async def events(seller, one):
    rows = await seller.service.sql(
        seller.id,
        "SELECT kind FROM recommendation_event WHERE recommendation_id = :id ORDER BY at, kind",
        id=one["id"],
    )
    return [row["kind"] for row in rows]


async def pending(shop, observed, product, **cells):
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    [one] = (await synced(seller, **cells))["recommendations"]
    return seller, one


async def targets(seller):
    [card] = (await seller.get("/api/cards")).json()["cards"]
    return card["price"], card["target_price"]


async def test_accepting_sets_the_target_once(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    answers = await asyncio.gather(
        *(seller.post(f"{LIST}/{one['id']}/accept", json=revision(one)) for _ in range(32))
    )
    won = [answer.json() for answer in answers if answer.status_code == 200]
    lost = {answer.json()["code"] for answer in answers if answer.status_code == 409}
    assert len(won) == 1
    assert lost == {"revision_conflict"}
    assert won[0]["status"] == "accepted"
    assert won[0]["revision"] == one["revision"]
    assert await targets(seller) == ("10.00", "14.85")
    changes = await seller.service.sql(
        seller.id, "SELECT * FROM price_change WHERE run_id = :run", run=won[0]["run_id"]
    )
    assert [str(row["new_price"]) for row in changes] == ["14.8500"]
    assert await events(seller, one) == ["accepted"]
    assert (await listed_now(seller))["total"] == 0
    run = (await seller.get(f"/api/pricing/runs/{won[0]['run_id']}")).json()
    assert (run["trigger"], run["changed"]) == ("recommendation", 1)


async def test_an_accepted_price_is_taken_back(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    before = await targets(seller)
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert answer.status_code == 200, answer.text
    [entry, *_] = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    assert entry["action"] == "recommendations.accepted"
    answer = await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    assert answer.status_code == 200, answer.text
    assert await targets(seller) == before


@pytest.mark.night
async def test_an_undone_acceptance_is_no_outcome(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert answer.status_code == 200, answer.text
    [entry, *_] = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    answer = await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    assert answer.status_code == 200, answer.text
    assert (await seller.get(f"{LIST}/outcomes")).json()["outcomes"] == []
    assert (await seller.get(LIST)).json()["total"] == 1


@pytest.mark.night
async def test_an_accepted_price_stays_until_its_evidence_expires(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert answer.status_code == 200, answer.text
    accepted = one["proposed_price"]
    # Syncs price the card again, before and after the marketplace has the price.
    for price in ("10.00", accepted):
        answer = await synced(seller, price=price)
        assert await targets(seller) == (price, accepted)
        assert answer["recommendations"] == []
    clock.shift(clock.read_moment(one["expires_at"]) - clock.now() + timedelta(seconds=1))
    # The rule asks the current price, which is the accepted one, until it asks the market's.
    rules = (await seller.get("/api/pricing/rules")).json()["rules"]
    [mine] = [rule["id"] for rule in rules if rule["name"] == "Mine"]
    changed = await seller.http.patch(f"/api/pricing/rules/{mine}", json={"price_source": "market"})
    assert changed.status_code == 200, changed.text
    await synced(seller, price=accepted)
    assert await targets(seller) == (accepted, "10.00")
    left = "SELECT 1 FROM price_decision WHERE seller_id = :id AND kind = 'pin'"
    assert await seller.service.sql(seller.id, left, id=seller.id) == []


@pytest.mark.night
async def test_an_owner_unpins_an_accepted_price(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (await seller.http.delete("/api/pricing/pins/1")).status_code == 200
    answer = await seller.http.put("/api/pricing/pins/1", json={"price": "12.00"})
    assert answer.status_code == 200, answer.text
    # A person's pin has no end.
    clock.shift(timedelta(days=60))
    await synced(seller)
    assert await targets(seller) == ("10.00", "12.00")


async def test_changed_evidence_is_a_conflict_and_stays_pending(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    await observed(*listings(product, "17.00", "17.50", "18.00", seen=ago(minutes=5)))
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (answer.status_code, answer.json()["code"]) == (409, "market_evidence_changed")
    assert await targets(seller) == ("10.00", "10.00")
    [now] = (await listed_now(seller))["recommendations"]
    assert (now["id"], now["proposed_price"], now["state"]) == (one["id"], "16.83", "pending")
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_conflict")
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(now))
    assert answer.json()["status"] == "accepted"
    assert await targets(seller) == ("10.00", "16.83")


@pytest.mark.night
async def test_a_generic_raise_is_previewed_anew(shop, service):
    seller = await shop()
    [one] = (await synced(seller, market="14.00"))["recommendations"]
    assert one["kind"] == "generic_raise"
    # The next upload has another price, and no generation has followed yet.
    [card] = (await seller.get("/api/cards")).json()["cards"]
    cells = CELLS | {"market": "13.00"}
    await seller.import_csv(a_csv(a_row(1, name=card["product_name"], quantity=3, **cells)))
    await service.run_jobs()
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (answer.status_code, answer.json()["status"]) == (202, "preview_queued")
    [now] = (await listed_now(seller))["recommendations"]
    assert (now["proposed_price"], now["revision"]) == ("13.00", answer.json()["revision"])
    assert await targets(seller) == ("10.00", "10.00")
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(now))
    assert answer.json()["status"] == "accepted"


@pytest.mark.night
async def test_a_card_that_was_pinned_since_is_not_eligible(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    await seller.http.put("/api/pricing/pins/1", json={"price": "10.00"})
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (answer.status_code, answer.json()["code"]) == (409, "not_eligible")
    assert (await listed_now(seller))["total"] == 1


@pytest.mark.night
async def test_snoozed_until_the_evidence_changes(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    answer = await seller.post(f"{LIST}/{one['id']}/snooze", json=revision(one))
    assert answer.json()["status"] == "snoozed"
    assert (await synced(seller))["total"] == 0
    await observed(*listings(product, "17.00", "17.50", "18.00", seen=ago(minutes=5)))
    [again] = (await synced(seller))["recommendations"]
    assert (again["id"], again["proposed_price"]) == (one["id"], "16.83")


@pytest.mark.night
async def test_dismissed_for_thirty_days_and_undone(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    answer = await seller.post(f"{LIST}/{one['id']}/dismiss", json=revision(one))
    assert answer.json()["status"] == "dismissed"
    await observed(*listings(product, "17.00", "17.50", "18.00", seen=ago(minutes=5)))
    assert (await synced(seller))["total"] == 0
    entries = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    entry = next(row for row in entries if row["action"] == "recommendations.dismissed")
    answer = await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    assert answer.status_code == 200, answer.text
    assert (await listed_now(seller))["total"] == 1


@pytest.mark.night
async def test_unknown_ids_and_bodies_are_refused(shop, observed, product, a_seller):
    seller, one = await pending(shop, observed, product)
    stranger = await a_seller()
    answer = await stranger.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert answer.status_code == 404
    assert (await listed_now(stranger))["total"] == 0
    for body in ({}, {"revision": 5}, {"revision": "yesterday"}):
        answer = await seller.post(f"{LIST}/{one['id']}/dismiss", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
        assert "revision" in answer.json()["error"]


@pytest.mark.night
async def test_rules_that_never_match_or_lack_a_floor_are_told(shop):
    seller = await shop(query="game:pokemon", name="Never <b>matches</b>")
    answer = await synced(seller, price="0.20", market="0.20", low="0.20")
    told = {one["kind"]: one for one in answer["account"]}
    assert set(told) == {"never_matching_rule", "missing_floor"}
    assert told["never_matching_rule"]["evidence"]["rule"] == "Never <b>matches</b>"
    assert told["missing_floor"]["evidence"]["cards_below"] == 1
    one = told["missing_floor"]
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (answer.status_code, answer.json()["code"]) == (409, "not_eligible")
    answer = await seller.post(f"{LIST}/{one['id']}/dismiss", json=revision(one))
    assert answer.status_code == 200


@pytest.mark.night
async def test_stale_stock_stands_apart(shop):
    seller = await shop()
    await synced(seller)
    await seller.service.sql(
        seller.id,
        "UPDATE card SET created_at = :at WHERE seller_id = :id",
        id=seller.id,
        at=clock.now() - timedelta(days=91),
    )
    answer = await synced(seller)
    assert answer["recommendations"] == []
    [one] = answer["liquidation"]
    assert (one["kind"], one["proposed_price"], one["expected_value"]) == (
        "stale_stock",
        "8.00",
        None,
    )


@pytest.mark.night
async def test_automatic_mode_applies_only_what_is_sure(shop, observed, product):
    seller = await shop()
    answer = await seller.http.patch("/api/pricing/settings", json={"recommendations": "automatic"})
    assert answer.json()["recommendations"] == "automatic"
    await observed(*listings(product, "12.00", "12.50", "13.00"))
    assert (await synced(seller))["total"] == 1
    assert await targets(seller) == ("10.00", "10.00")
    await observed(
        *listings(product, *(f"{price}.00" for price in range(12, 22)), seen=ago(minutes=5))
    )
    assert (await synced(seller))["total"] == 0
    assert await targets(seller) == ("10.00", "11.88")
    rows = await seller.service.sql(
        seller.id, "SELECT id, state, settled_by FROM proposal WHERE family = 'price'"
    )
    assert [(row["state"], row["settled_by"]) for row in rows] == [
        ("auto_applied", "recommendations")
    ]
    assert await events(seller, rows[0]) == ["auto_applied"]
    [entry, *_] = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    assert entry["action"] == "recommendations.auto_applied"


async def test_automatic_mode_stays_within_the_loss_limits(shop, observed, product):
    seller = await shop()
    await seller.http.patch("/api/pricing/settings", json={"recommendations": "automatic"})
    # A rise of 48.5 % waits for the seller, however sure it is.
    await observed(*listings(product, *(f"{price}.00" for price in range(15, 25))))
    assert (await synced(seller))["total"] == 1
    assert await targets(seller) == ("10.00", "10.00")
    moves = await seller.service.sql(seller.id, "SELECT * FROM automated_move")
    assert moves == []
    # A rise that is applied is counted with what keys and tokens do.
    await observed(
        *listings(product, *(f"{price}.00" for price in range(12, 22)), seen=ago(minutes=5))
    )
    assert (await synced(seller))["total"] == 0
    [move] = await seller.service.sql(seller.id, "SELECT * FROM automated_move")
    assert move["today_moved"] == 18_800


async def test_shown_is_recorded_once_a_revision(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    path = f"{LIST}/shown"
    body = {"observations": [{"id": one["id"], **revision(one)}]}
    assert (await seller.post(path, json=body)).json()["code"] == "session_required"
    owner = await signed_in(seller)
    await owner.get(LIST)
    assert await events(seller, one) == []
    answers = await asyncio.gather(*(owner.post(path, json=body) for _ in range(8)))
    assert sorted(answer.json()["recorded"] for answer in answers) == [0] * 7 + [1]
    assert await events(seller, one) == ["shown"]
    older = {"id": one["id"], "revision": "2026-01-01T00:00:00.000000Z"}
    for unknown in (older, {"id": 2**62, **revision(one)}):
        answer = await owner.post(path, json={"observations": [unknown]})
        assert answer.json() == {"recorded": 0}
    answer = await owner.post(path, json={"observations": body["observations"] * 20})
    assert answer.json() == {"recorded": 0}
    answer = await owner.post(path, json={"observations": body["observations"] * 21})
    assert (answer.status_code, answer.json()["code"]) == (422, "too_many_observations")
    for wrong in ({}, {"observations": [1]}, {"observations": [{"id": "1"}]}):
        answer = await owner.post(path, json=wrong)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


async def test_a_reading_token_reads_and_accepts_nothing(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    reads = await seller.token("mcp:read")
    assert (await reads.get(LIST)).json()["total"] == 1
    answer = await reads.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    staff = await joined(seller, f"staff-{seller.id}@example.invalid")
    assert (await staff.get(LIST)).json()["total"] == 1
    for what in ("accept", "dismiss", "snooze"):
        answer = await staff.post(f"{LIST}/{one['id']}/{what}", json=revision(one))
        assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
    owner = await signed_in(seller)
    answer = await owner.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert answer.json()["status"] == "accepted"


@pytest.mark.night
async def test_a_running_price_run_goes_first(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    await seller.service.sql(
        seller.id,
        "UPDATE sync_state SET lease_holder = 'reprice',"
        " lease_expires_at = now() + interval '20 seconds' WHERE seller_id = :id",
        id=seller.id,
    )
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (answer.status_code, answer.json()["status"]) == (409, "mutex_held")


@pytest.mark.night
async def test_a_worker_killed_in_the_middle_leaves_nothing(shop, observed, product, monkeypatch):
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    [card] = (await seller.get("/api/cards")).json()["cards"]
    await seller.import_csv(a_csv(a_row(1, name=card["product_name"], quantity=3, **CELLS)))
    await seller.service.run_jobs()
    real = generate.run

    async def killed(session, statement, values):
        await real(session, statement, values)
        if "INSERT INTO proposal AS r" in statement:
            raise KeyboardInterrupt

    monkeypatch.setattr(generate, "run", killed)
    with pytest.raises(KeyboardInterrupt):
        await RECOMMENDATIONS.work_off(seller.service.work, seller.id)
    monkeypatch.setattr(generate, "run", real)
    assert (await listed_now(seller))["total"] == 0
    await RECOMMENDATIONS.work_off(seller.service.work, seller.id)
    assert (await listed_now(seller))["total"] == 1
    # The mark is gone: a second worker finds nothing to do.
    await RECOMMENDATIONS.work_off(seller.service.work, seller.id)
    assert (await listed_now(seller))["total"] == 1


@pytest.mark.night
async def test_what_expired_long_ago_is_deleted_with_its_events(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    clock.shift(timedelta(hours=25))
    try:
        await synced(seller)
        assert await events(seller, one) == ["expired"]
        clock.shift(timedelta(days=399))
        await synced(seller)
        assert await events(seller, one) == ["expired"]
        clock.shift(timedelta(days=2))
        await synced(seller)
        assert await events(seller, one) == []
        known = "SELECT id FROM proposal WHERE id = :id"
        assert await seller.service.sql(seller.id, known, id=one["id"]) == []
    finally:
        clock.reset()


@pytest.mark.night
async def test_a_run_that_waits_for_the_seller_goes_first(shop, observed, product):
    seller, one = await pending(shop, observed, product)
    [run] = await seller.service.sql(
        seller.id,
        "INSERT INTO price_run (seller_id, trigger, state, started_at, finished_at)"
        " VALUES (:id, 'manual', 'awaiting_review', now(), now()) RETURNING id",
        id=seller.id,
    )
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert (answer.status_code, answer.json()["code"]) == (409, "not_eligible")
    assert "review" in answer.json()["error"]
    discarded = await seller.post(f"/api/pricing/runs/{run['id']}/discard")
    assert discarded.status_code == 200, discarded.text
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert answer.json()["status"] == "accepted"


async def uploads(seller, market, days):
    """One upload a day, so many days long, until today."""
    [card] = (await seller.get("/api/cards")).json()["cards"]
    for day in reversed(range(days)):
        row = a_row(1, name=card["product_name"], quantity=3, **(CELLS | {"market": market(day)}))
        await seller.import_csv(a_csv(row))
        clock.shift(timedelta(days=1 if day else 0))


@pytest.mark.night
async def test_a_market_price_that_lasts_is_recommended_with_its_history(shop):
    seller = await shop()
    await uploads(seller, lambda day: "14.00" if day < 4 else "10.00", 18)
    await generated(seller)
    answer = await listed_now(seller)
    assert prices(answer) == [("generic_raise", "10.00", "14.00")]
    [one] = answer["recommendations"]
    assert one["confidence"] == "medium"
    history = one["evidence"]["market_history"]
    assert (history["code"], history["median_60d"], history["days_missed"]) == ("spike", "10.00", 0)
    assert "above its median" in one["evidence"]["reason"]


@pytest.mark.night
async def test_a_market_price_that_leapt_today_waits_until_it_lasts(shop):
    seller = await shop()
    await uploads(seller, lambda day: "14.00" if day < 1 else "10.00", 16)
    await generated(seller)
    assert (await listed_now(seller))["recommendations"] == []


@pytest.mark.night
async def test_a_leap_leaves_the_card_to_other_evidence(shop, observed, product):
    seller = await shop()
    await uploads(seller, lambda day: "90.00" if day < 1 else "10.00", 16)
    await observed(*sales(product, "20.00", "20.00", "20.00"))
    await generated(seller)
    answer = await listed_now(seller)
    assert prices(answer) == [("sales_anchor", "10.00", "20.00")]
    assert answer["recommendations"][0]["evidence"]["source"] == "imported"


@pytest.mark.night
async def test_stale_stock_is_not_suggested_against_a_buy_out(shop, observed, product):
    """Also not while a suggestion that was made before the buy-out is still pending."""
    seller = await shop()
    await seller.service.sql(
        seller.id,
        "UPDATE card SET created_at = :at WHERE seller_id = :id",
        id=seller.id,
        at=clock.now() - timedelta(days=91),
    )
    assert len((await synced(seller))["liquidation"]) == 1
    browser = await signed_in(seller)
    page = (await browser.get("/recommendations")).text
    assert "/pricing/sales/new?query=id%3A" in page
    before, after = ago(hours=10), ago(hours=2)
    await observed(
        *(listing(product, "12.00", before, quantity=4) for _ in range(5)),
        listing(product, "30.00", after, quantity=1),
        sale(product, "12.00", ago(hours=3), after),
    )
    assert (await listed_now(seller))["liquidation"] == []
    page = (await browser.get("/recommendations")).text
    assert "/pricing/sales/new?query=id%3A" not in page
    assert (await synced(seller))["liquidation"] == []
