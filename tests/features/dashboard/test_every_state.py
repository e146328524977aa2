"""Every page opens in every state that a shop can be in.

The states are those that the types of the tables' columns name, and the kinds of Today's conditions:
a new one without a shop fails here. First each state is had once, then chance mixes them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from browsers import joined, signed_in
from builders import SellerBuilder
from cardsync import tables
from cardsync.access.activity import OUTCOMES, RISKS
from cardsync.access.entitlements import SYNC_MODES
from cardsync.agents.agentwork.task_kinds import Kind as TaskKind
from cardsync.agents.seller_state.sync_kinds import KINDS
from cardsync.agents.sync.persons_turn import KINDS as TURNS
from cardsync.platform import clock, limits
from cardsync.platform.backups import backup_reports
from cardsync.platform.database.columns import Base
from cardsync.prices.recommendations.generation import KINDS as RECOMMENDED
from cardsync.shop.today.shop_facts import Kind
from dashboard_builder import filled_shop
from orders_builder import an_item, an_order
from pages import Page, built
from plans_builder import allow, lowered, planned
from quick_add_builder import JAGUAR, drafted
from rollbacks_builder import ROLLBACKS, repriced
from tasks_builder import queue

# In these tables the column holds the marketplace's own words.
WORDS = {"orders", "pull_session_order"}
# No page shows these.
UNSEEN = {"notice_mail", "workflow_correction"}
# Pages of one thing that `pages.py` does not ask for, since it is there only now and then.
MORE = (Page("/pricing/rollback/{rollback_id}"), Page("/plans/{plan_id}"), Page("{phone}"))
FILES = [page for page in built("file") if "{" not in page.route]
# What a page shows only to those who ask for it.
VIEWS = [
    Page(route, query=query)
    for route, query in (
        ("/add-cards", "q=lotus"),
        ("/cards", "search=%28"),
        ("/cards", "edit=columns&status=all&sort=target"),
        ("/cards/{card_id}", "then=2026-07-03T12:00:00Z&adjust_bp=-100"),
        ("/cards/{card_id}/match", "typed=lotus"),
        ("/customers", "page=9"),
        ("/orders", "refund=true"),
        ("/returns", "state=restocked"),
        ("/sync", "tasks=failed"),
        ("/activity", "page=9"),
        ("/print/labels", "search=lotus"),
    )
]
REVENUE = [Page("/sales", query=f"by={by}") for by in ("day", "month", "game", "cards")]
EVERY = [*built("page", "redirect"), *FILES, *MORE, *VIEWS, *REVENUE]
# When something ended, and the states in which it has not.
ENDS = {
    "upload": ("finished_at", ("queued", "processing")),
    "price_run": ("finished_at", ("running",)),
    "price_rollback": ("finished_at", ("requested", "ready", "served")),
    "pull_session": ("completed_at", ("open",)),
    "agent_task": ("finished_at", ("pending", "claimed")),
    "shelf_count": ("ended_at", ("open",)),
}
NEVER = 10_000
# What else differs between shops, as `put` writes it.
FLAGS: dict[str, tuple[Any, ...]] = {
    "plan": limits.PLANS,
    "sync_mode": SYNC_MODES,
    "past_due": (False, True),
    "write_consent": (True, False),
    "upload_approved": (False, True, False),
    "paused": (False, True),
    "metered": (False, True),
    "agent hours": (0, 1, 5, 50, NEVER),
    "turn": (None, *TURNS),
    "order days": (0, 2, 4, 30),
    "requested_kind": (None, *KINDS),
    "lock_kind": (None, *KINDS),
    "work_phase": (None, "importing", "repricing"),
    "cancelling": (False, True),
    "failures": (0, 3),
    "figures": (0, 2),
    "deletion": (False, True),
    "task kind": get_args(TaskKind),
    "recommended": RECOMMENDED,
    "reason": ("rise", "drop", "first_price"),
    "outcome": OUTCOMES,
    "risk": RISKS,
}
Drawn = dict[str, Any]


def types_of_states() -> dict[str, Any]:
    """`table.column` → its type, of each column of a shop that holds a state."""
    tenants = {table.name for table in tables.tenant_tables()}
    return {
        f"{mapper.local_table.name}.{name}": get_args(get_type_hints(mapper.class_)[name])[0]
        for mapper in Base.registry.mappers
        for name in ("state", "status")
        if name in mapper.local_table.c and mapper.local_table.name in tenants - WORDS
    }


STATES = {name: get_args(kind) for name, kind in sorted(types_of_states().items())}
DRAWN: dict[str, tuple[Any, ...]] = STATES | FLAGS
# Each value of each thing is in one of these.
EACH_ONCE = [
    {name: values[turn % len(values)] for name, values in DRAWN.items()}
    for turn in range(max(map(len, DRAWN.values())))
]


def test_the_type_of_each_state_names_what_it_can_be():
    assert {n for n, kind in types_of_states().items() if get_origin(kind) is not Literal} == set()


@pytest.fixture(scope="module")
async def shop(service):
    """A shop with one of each thing, its owner and a member of its staff."""
    seller, ids = await filled_shop(SellerBuilder(service))
    owner = await allow(seller, "always_ask")
    body = {"name": "Old list", "query": "list:gone-away", "state": "published"}
    gone = (await seller.post("/api/lists", json={"name": "Gone away"})).json()["id"]
    assert (await seller.post("/api/pricing/rules", json=body)).status_code == 201
    assert (await seller.http.delete(f"/api/lists/{gone}")).status_code == 200
    ids["run_id"] = await repriced(seller)
    ids["plan_id"] = (await planned(seller, lowered(ids["rule_id"], 100)))["plan_id"]
    answer = await seller.post(ROLLBACKS, json={"rule_id": ids["rule_id"]})
    assert answer.status_code == 201, answer.text
    ids["rollback_id"] = answer.json()["id"]
    await seller.service.run_jobs()
    await drafted(owner, JAGUAR | {"set": "Dominaria United"})
    await queue(seller, "refresh_orders")
    await an_order(seller, order_number="W-1", total_amt=20)
    await _waiting_prices(seller, ids["card_id"])
    linked = await owner.post("/api/pull_links", json={"session_id": ids["session_id"]})
    ids["phone"] = linked.json()["links"][0]["url"]
    staff = await joined(seller, f"staff-{seller.email}")
    return seller, ids, owner, staff


async def _waiting_prices(seller, card_id):
    now = clock.now()
    values = {"seller": seller.id, "card": card_id, "now": now, "later": now + timedelta(days=7)}
    await seller.service.sql(
        seller.id,
        """
        INSERT INTO proposal (seller_id, slot, family, kind, state, card_id, current_price,
            proposed_price, expected_value, worth, confidence, evidence, evidence_key, revision,
            created_at, expires_at)
        VALUES (:seller, 'price:1', 'price', 'depth_raise', 'pending', :card, 10, 12, 2, 20000,
            'low', :told, 'x', :now, :now, :later)
        """,
        told='{"reason": "Two sold.", "would_change": "A sale.", "competing_signals": []}',
        **values,
    )
    await seller.service.sql(
        seller.id,
        """
        INSERT INTO proposal (seller_id, slot, family, kind, state, marketplace_id, proposed_price,
            worth, evidence, revision, created_at, expires_at)
        VALUES (:seller, 'review:1', 'review', 'rise', 'pending', 1, 12, 20000,
            '{"regular_price": 120000, "result": 120000}', :now, :now, :later)
        """,
        **values,
    )


async def put(seller, drawn: Drawn) -> None:
    """Write into the shop what was drawn."""
    now = clock.now()
    changes: list[tuple[str, dict[str, Any]]] = []
    for name in STATES:
        table, column = name.split(".")
        ended, going_on = ENDS.get(table, ("", ()))
        change = {column: drawn[name]}
        if ended:
            change[ended] = None if drawn[name] in going_on else now
        changes.append((table, change))
    in_review = drawn["upload.state"] == "awaiting_review"
    leased = drawn["work_phase"] is not None
    changes += [
        ("agent_task", {"kind": drawn["task kind"], "claim_expires_at": now + timedelta(hours=1)}),
        ("quick_add", {"served_at": now - timedelta(hours=3)}),
        ("buying_offer", {"offered_at": now, "expires_at": now + timedelta(hours=1)}),
        ("activity", {"outcome": drawn["outcome"], "risk": drawn["risk"]}),
        (
            "account",
            {name: drawn[name] for name in ("plan", "sync_mode", "past_due", "write_consent")}
            | {
                "upload_approved": drawn["upload_approved"],
                "auto_sync_paused": drawn["paused"],
                "automatic_pricing_paused": drawn["paused"],
                "credits_metering_enabled": drawn["metered"],
            },
        ),
        (
            "sync_state",
            {
                "requested_kind": drawn["requested_kind"],
                "lock_kind": drawn["lock_kind"],
                "lock_trigger": drawn["lock_kind"] and "manual",
                "lock_refreshed_at": now,
                "work_phase": drawn["work_phase"],
                "lease_holder": "sync" if leased else None,
                "lease_expires_at": now + timedelta(minutes=5) if leased else None,
                "work_done": 1,
                "work_total": 2 if leased else 0,
                "cancel_requested_at": now if drawn["cancelling"] else None,
                "scheduled_failures": drawn["failures"],
                "last_failure_at": now,
                "export_fingerprint": "some prices",
                "uploads_open": int(drawn["upload.state"] in ("queued", "processing")),
                "review_upload_id": await _newest_upload(seller) if in_review else None,
            },
        ),
        (
            "shop_figures",
            {
                name: drawn["figures"]
                for part in ("held", "dropped", "asked")
                for name in (part, f"{part}_value")
            },
        ),
    ]
    for table, values in changes:
        columns = ", ".join(f"{name} = :{name}" for name in values)
        found = await seller.service.sql(
            seller.id,
            f"UPDATE {table} SET {columns} WHERE seller_id = :seller RETURNING seller_id",
            seller=seller.id,
            **values,
        )
        assert found or table in UNSEEN, f"the shop has no {table}"
    for family, kind in (("price", drawn["recommended"]), ("review", drawn["reason"])):
        await seller.service.sql(
            seller.id,
            "UPDATE proposal SET kind = :kind WHERE seller_id = :seller AND family = :family",
            seller=seller.id,
            family=family,
            kind=kind,
        )
    await _beside(seller, drawn, now)


async def _newest_upload(seller) -> int:
    [newest] = await seller.service.sql(
        seller.id, "SELECT max(id) AS id FROM upload WHERE seller_id = :id", id=seller.id
    )
    return newest["id"]


async def _beside(seller, drawn: Drawn, now) -> None:
    """Write what the tables of other sellers hold, too: the order's day by its own trigger."""
    seen = now - timedelta(hours=drawn["agent hours"])
    statements = [
        (
            "UPDATE orders SET order_date = :day WHERE seller_id = :id AND order_number = 'W-1'",
            {"day": (now - timedelta(days=drawn["order days"])).date()},
        ),
        ("DELETE FROM account_deletion WHERE seller_id = :id", {}),
        ("DELETE FROM agent_seen WHERE seller_id = :id", {}),
    ]
    if drawn["deletion"]:
        statements.append(
            ("INSERT INTO account_deletion VALUES (:id, :now, :now)", {"now": now}),
        )
    if drawn["agent hours"] != NEVER:
        insert = (
            "INSERT INTO agent_seen (seller_id, last_seen_at, your_turn, your_turn_since)"
            " VALUES (:id, :seen, :turn, :seen)"
        )
        statements.append((insert, {"seen": seen, "turn": drawn["turn"]}))
    for statement, values in statements:
        await seller.service.sql(seller.id, statement, id=seller.id, **values)


OLD_CATALOG = """
    INSERT INTO catalog_install (game, source, installed_at, checked_at, failed_at, failure)
    VALUES ('gundam', 'tcgcsv', now() - interval '40 days', now() - interval '15 days', now(),
            'TCGCSV is away: its host does not answer')
"""


async def _pulled_and_missing(seller) -> int:
    """Pull one order, and miss the card of another. Returns the ended pull."""
    now = clock.now()
    ended = "UPDATE pull_session SET state = 'completed', completed_at = :now WHERE seller_id = :id"
    await seller.service.sql(seller.id, ended, id=seller.id, now=now)
    orders = [await an_order(seller, order_number=name, total_amt=20) for name in ("P-1", "P-2")]
    for order in orders:
        await an_item(seller, order, sku_id=1, unit_price=2, quantity=1)
    opened = await seller.post("/api/pull_sessions", json={"order_ids": orders})
    assert opened.status_code == 201, opened.text
    pull = opened.json()["id"]
    pulled = await seller.post(f"/api/pull_sessions/{pull}/orders/{orders[0]}/pulled")
    assert pulled.status_code == 200, pulled.text
    missing = """UPDATE pull_session_item SET missing_at = :now
                  WHERE seller_id = :id AND order_id = :order"""
    await seller.service.sql(seller.id, missing, id=seller.id, now=now, order=orders[1])
    await seller.service.sql(seller.id, ended, id=seller.id, now=now)
    return pull


async def unopened(browser, pages, ids) -> dict[str, int]:
    """The pages that answer neither with themselves nor with the way to another page. 410 is the
    page of a phone whose pull has ended.
    """
    answers = {page.address(ids): await browser.get(page.address(ids)) for page in pages}
    codes = {address: answer.status_code for address, answer in answers.items()}
    return {address: code for address, code in codes.items() if code not in (200, 303, 410)}


async def kinds_of_today(browser) -> set[str]:
    """The kinds of Today's conditions; the next step of each leads to a page."""
    conditions = (await browser.get("/api/today")).json()["conditions"]
    for one in conditions:
        path = one["next_step"]["path"]
        assert (await browser.get(path)).status_code == 200, path
    return {one["kind"] for one in conditions}


async def test_every_page_opens_in_every_state(shop, a_seller):
    seller, ids, owner, _ = shop
    empty = await signed_in(await a_seller())
    of_a_shop = (page for page in EVERY if not page.route.startswith("/operator"))
    assert await unopened(empty, [page for page in of_a_shop if "{" not in page.route], {}) == {}
    kinds = await kinds_of_today(empty)
    for drawn in EACH_ONCE:
        await put(seller, drawn)
        assert await unopened(owner, EVERY, ids) == {}, drawn
        kinds |= await kinds_of_today(owner)
    url = seller.service.settings.migration_database_url
    backup_reports.record(url, "backup", "", clock.now(), clock.now(), "the disk is full")
    kinds |= await kinds_of_today(owner)
    pull = await _pulled_and_missing(seller)
    async with seller.service.database.shared() as session:
        await session.execute(text(OLD_CATALOG))
    try:
        kinds |= await kinds_of_today(owner)
        assert await unopened(owner, EVERY, ids) == {}
    finally:
        async with seller.service.database.shared() as session:
            await session.execute(text("DELETE FROM catalog_install"))
        # The mixtures open one pull alone.
        for table, column in (
            ("pull_mark", "session_id"),
            ("pull_session_item", "session_id"),
            ("pull_session_order", "session_id"),
            ("pull_session", "id"),
        ):
            sql = f"DELETE FROM {table} WHERE seller_id = :id AND {column} = :pull"
            await seller.service.sql(seller.id, sql, id=seller.id, pull=pull)
    assert set(get_args(Kind)) - kinds == set(), "no shop has these conditions"


async def opens_every_page(shop, drawn):
    seller, ids, owner, staff = shop
    await put(seller, drawn)
    assert await unopened(owner, EVERY, ids) == {}
    refused = await unopened(staff, EVERY, ids)
    assert set(refused.values()) <= {403}
    assert not set(refused) & {page.address(ids) for page in built() if not page.owner_only}


mixed = given(drawn=st.fixed_dictionaries({n: st.sampled_from(all) for n, all in DRAWN.items()}))
test_every_page_opens_in_any_mixture_of_states = settings(max_examples=2)(mixed(opens_every_page))
test_every_page_opens_in_very_many_mixtures = pytest.mark.night(
    settings(max_examples=60)(mixed(opens_every_page))
)
