"""The activity feed as it is read: paged, filtered, each seller's own, and without buyers."""

from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync.access import activity
from cardsync.platform import clock


async def feed(seller, **asked):
    answer = await seller.get("/api/v1/agent/activity", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def made(seller, *names):
    for name in names:
        assert (await seller.post("/api/lists", json={"name": name})).status_code == 201


async def test_an_entry_tells_who_did_what_and_by_which_request(a_seller):
    seller = await a_seller()
    headers = {"X-Request-Id": "the-request-of-this"}
    await seller.post("/api/lists", json={"name": "Binder"}, headers=headers)
    told = await feed(seller)
    assert {name: told[name] for name in told if name != "activity"} == {
        "total": 1,
        "page": 1,
        "per_page": 50,
        "total_pages": 1,
    }
    [entry] = told["activity"]
    assert entry.pop("created_at").endswith("Z")
    number = entry["after"]["id"]
    kind, _, key_id = entry["actor"].partition(" ")
    assert (kind, key_id.isdigit()) == ("key", True)
    assert entry == {
        "id": entry["id"],
        "actor": f"key {key_id}",
        "actor_name": "first key",
        "action": "list.created",
        "risk": "low",
        "outcome": "applied",
        "summary": "list 'Binder'",
        "request_id": "the-request-of-this",
        "before": None,
        "after": {"id": number, "name": "Binder"},
        "undoable": True,
        "undone_by": None,
    }


async def test_the_newest_come_first_page_by_page(a_seller):
    seller = await a_seller()
    await made(seller, *"abcde")
    first, last = await feed(seller, per_page=2), await feed(seller, per_page=2, page=3)
    assert [entry["summary"] for entry in first["activity"]] == ["list 'e'", "list 'd'"]
    assert [entry["summary"] for entry in last["activity"]] == ["list 'a'"]
    assert (last["total"], last["total_pages"], last["page"]) == (5, 3, 3)
    assert (await feed(seller, page=9))["activity"] == []


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"page": "0", "per_page": "none"}, (1, 50)),
        ({"page": "-3", "per_page": "5000"}, (1, 200)),
        ({"page": "9" * 400, "per_page": "0"}, (1_000_000_000, 1)),
    ],
)
async def test_numbers_are_clamped(a_seller, asked, shown):
    told = await feed(await a_seller(), **asked)
    assert (told["page"], told["per_page"]) == shown


async def test_the_feed_is_filtered(a_seller):
    seller = await a_seller()
    token, owner = await seller.token("mcp:read", "mcp:write"), await signed_in(seller)
    await made(seller, "by key")
    await token.post("/api/lists", json={"name": "by token"})
    clock.shift(timedelta(hours=1))
    between = clock.rfc3339(clock.now())
    clock.shift(timedelta(hours=1))
    await owner.post("/api/lists", json={"name": "by owner"})
    await seller.post("/api/pricing/rules", json={"name": "Mine", "price_source": "market"})

    async def found(**asked):
        return [entry["action"] for entry in (await feed(seller, **asked))["activity"]]

    assert await found(actor="token") == ["list.created"]
    [entry] = (await feed(seller, actor="member"))["activity"]
    assert entry["actor"] == f"member {owner.member_id}"
    assert await found(actor=entry["actor"]) == ["list.created"]
    assert await found(actor="key") == ["pricing.rule_created", "list.created"]
    assert await found(action="list") == ["list.created"] * 3
    assert await found(action="pricing.rule_created") == ["pricing.rule_created"]
    assert await found(since=between) == ["pricing.rule_created", "list.created"]
    assert await found(outcome="applied", risk="low", actor="token") == ["list.created"]
    assert await found(outcome="declined") == []
    assert await found(actor="nobody") == []


@pytest.mark.parametrize(
    "asked", [{"outcome": "done"}, {"since": "yesterday"}, {"risk": "some"}], ids=str
)
async def test_a_filter_that_can_not_be_read_is_refused_by_its_name(a_seller, asked):
    answer = await (await a_seller()).get("/api/v1/agent/activity", params=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert answer.json()["error"].startswith(f"{next(iter(asked))}: ")


async def test_risk_outcome_before_and_after_are_told_as_they_were_noted(a_seller):
    seller = await a_seller()
    async with seller.service.database.tenant(seller.id) as session:
        row = activity.note_by(session, seller.id, "plan 3", "plan.refused", "a plan", clock.now())
        row.risk, row.outcome = "critical", "refused_by_limit"
    [entry] = (await feed(seller, outcome="refused_by_limit"))["activity"]
    assert (entry["actor"], entry["risk"], entry["undoable"]) == ("plan 3", "critical", False)


async def test_every_seller_reads_its_own_feed(a_seller):
    one, other = await a_seller(), await a_seller()
    await made(one, "Binder")
    assert (await feed(other))["total"] == 0


async def test_staff_read_the_feed_without_what_the_rules_say(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"staff-{seller.email}")
    await seller.post("/api/pricing/rules", json={"name": "Mine", "price_source": "market"})
    [entry] = (await feed(staff, action="pricing"))["activity"]
    assert entry["action"] == "pricing.rule_created"
    assert (entry["before"], entry["after"], entry["undoable"]) == (None, None, False)


async def test_no_buyer_stands_in_the_feed(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    await seller.orders([an_order("A-1", buyer_name="Bettina Buyer", status="Ready to Ship")])
    order = (await seller.get("/api/orders")).json()["orders"][0]["id"]
    for done in ("dismiss", "undismiss", "mark_shipped", "unmark_shipped"):
        assert (await seller.post(f"/api/orders/{order}/{done}")).status_code == 200
    await seller.post("/api/pull_sessions")
    told = await feed(seller)
    assert told["total"] >= 5
    assert "Bettina" not in str(told)
