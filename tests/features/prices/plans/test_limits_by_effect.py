"""Limits by what a write does to prices, whatever its words: a rule may ask for lists, costs, places
and products, and whoever writes those writes prices.
"""

import pytest
from sqlalchemy import text

from builders import a_csv, a_row
from lots_builder import settle
from plans_builder import PLANS, PRICING, a_sale, a_shop_under_limits, changes, needs_review

_PRODUCT = """
    INSERT INTO product (identity, game, set_name, set_code, product_name, number, language,
                         set_key, name_key, number_key)
    VALUES (md5(random()::text), :game, 'Limited', 'LTDQ', 'A card', '7', 'en', 'limited',
            'a card', '7') RETURNING id
"""
LISTS = "/api/lists"
LOTS = "/api/buying/lots"


async def published(by, status=201, **rule):
    body = {"name": "A rule", "state": "published", "priority": 10} | rule
    answer = await by.post(f"{PRICING}/rules", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def asked(seller):
    """What the rules ask for each card."""
    await settle(seller)
    answer = await seller.post(f"{PRICING}/preview?format=csv")
    rows = [line.split(",") for line in answer.text.splitlines()]
    at = rows[0].index("target_price")
    return {row[0]: row[at] for row in rows[1:]}


async def a_list(seller, name="Cheap"):
    answer = await seller.post(LISTS, json={"name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


@pytest.mark.parametrize(
    "query", ["list=cheap", "list:cheap", 'list="Cheap"', "LIST = cheap", "has:list", "has=list"]
)
async def test_a_rule_on_an_empty_list_is_measured_when_the_list_fills(a_limited_seller, query):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    list_id = await a_list(seller)
    before = await asked(seller)
    # It selects no card yet, so it moves no price.
    await published(seller, query=query.replace(" = ", "="), adjust_bp=-9000)
    path = f"{LISTS}/{list_id}/cards"
    waits = needs_review(await seller.post(path, json={"search": "id>0"}))
    assert waits["cards_affected"] == 10
    assert await asked(seller) == before
    done = await owner.post(f"{PLANS}/{waits['proposal_id']}/confirm")
    assert done.json()["status"] == "applied", done.text


async def test_a_list_of_the_name_that_a_rule_leaves_out_is_measured_when_it_is_made(
    a_limited_seller,
):
    """Without the list such a rule selects nothing, lest it select more than it says."""
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    list_id = await a_list(owner)
    deep = {"query": '-list:"Cheap"', "adjust_bp": -9000, "confirm": True}
    await published(owner, **deep)
    assert (await owner.send("DELETE", f"{LISTS}/{list_id}?confirm=true")).status_code == 200
    needs_review(await seller.post(LISTS, json={"name": "Cheap"}))
    assert (await seller.post(LISTS, json={"name": "Others"})).status_code == 201


async def added(seller, cost):
    body = {"lots": [{"marketplace_id": 1, "quantity": 1, "cost": cost}]}
    return await seller.post(LOTS, json=body)


LOT_WAYS = ("by hand", "by file", "corrected", "a dear one stays")


@pytest.mark.parametrize("way", LOT_WAYS)
async def test_what_cards_cost_is_measured_where_a_floor_asks_it(a_limited_seller, way):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    # Nothing is known to cost anything, so the floor moves no price.
    if way == "corrected":
        [lot] = (await added(owner, "5.00")).json()["ids"]
    if way == "a dear one stays":
        lots = [
            {"marketplace_id": 1, "quantity": 99, "cost": "0.10"},
            {"marketplace_id": 1, "quantity": 1, "cost": "900.00"},
        ]
        [lot, _] = (await owner.post(LOTS, json={"lots": lots})).json()["ids"]
    await settle(seller)
    await published(seller, floor_cost_bp=0)
    before = await asked(seller)
    file = "TCGplayer Id,Quantity,Cost\n1,1,90000.00\n"
    answer = {
        "by hand": lambda: added(seller, "90000.00"),
        "by file": lambda: seller.post(f"{LOTS}/file", json={"csv": file}),
        "corrected": lambda: seller.http.patch(f"{LOTS}/{lot}", json={"cost": "90000.00"}),
        "a dear one stays": lambda: seller.http.delete(f"{LOTS}/{lot}"),
    }[way]
    waits = needs_review(await answer())
    assert (waits["cards_affected"], waits["limit"]) == (1, "card_hour")
    assert await asked(seller) == before
    done = await owner.post(f"{PLANS}/{waits['proposal_id']}/confirm")
    assert done.json()["status"] == "applied", done.text
    await settle(seller)
    after = await asked(seller)
    assert {card for card in before if before[card] != after[card]} == {"1"}


async def test_lots_that_move_no_price_come_in_as_before(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    assert (await added(seller, "90000.00")).status_code == 201
    await settle(seller)
    await published(owner, floor_cost_bp=0, query="number:2", confirm=True)
    assert (await added(seller, "80000.00")).status_code == 201


async def test_a_query_of_costs_is_measured_as_a_floor_is(a_limited_seller):
    seller, _, _ = await a_shop_under_limits(a_limited_seller)
    await published(seller, query="cost>1000", adjust_bp=-9000)
    needs_review(await added(seller, "1001.00"))
    assert (await added(seller, "999.00")).status_code == 201


async def test_undo_of_such_a_write_is_measured_too(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    assert (await added(owner, "9.00")).status_code == 201
    [entry, *_] = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    await settle(seller)
    sure = {"floor_cost_bp": 50_000, "confirm": True}
    await published(owner, **sure)
    needs_review(await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo"))


async def test_a_product_that_a_query_asks_is_measured(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    card = (await seller.get("/api/cards")).json()["cards"][0]
    async with seller.service.database.shared() as session:
        product = await session.scalar(text(_PRODUCT), {"game": card["game"]})
    await published(owner, query="set:ltdq", adjust_bp=-9000)
    path, body = f"/api/cards/{card['id']}/match", {"product_id": product}
    waits = needs_review(await seller.post(path, json=body))
    assert waits["cards_affected"] == 1
    assert waits["confirm_url"].endswith(f"/cards/{card['id']}")
    assert (await owner.post(path, json=body)).status_code == 200
    [entry, *_] = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    needs_review(await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo"))


def shown(market):
    return a_csv(*(a_row(n, market=market, price="10.00", low="") for n in range(1, 11)))


async def newest_run(seller):
    return (await seller.get(f"{PRICING}/runs")).json()["runs"][0]


@pytest.mark.parametrize("query", ["market>11", ""])
async def test_a_run_that_a_keys_rule_takes_beyond_the_limits_waits(a_limited_seller, query):
    """Nothing that the key wrote moved a price: the next upload did, by the key's rule."""
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    # The second one asks the lowest listing, of which there is none yet.
    rule = {"adjust_bp": -9000} if query else {"price_source": "low", "adjust_bp": 0}
    await published(seller, query=query, **rule)
    rows = [a_row(n, market="12.00", price="10.00", low="1.20") for n in range(1, 11)]
    await seller.import_csv(a_csv(*rows))
    await seller.service.run_jobs()
    run = await newest_run(seller)
    assert run["state"] == "awaiting_review"
    cards = (await seller.get("/api/cards")).json()["cards"]
    assert all(card["target_price"] in (None, "10.00", "12.00") for card in cards)
    # The key's own word lifts nothing.
    needs_review(await seller.post(f"{PRICING}/runs/{run['id']}/confirm"))
    done = await owner.post(f"{PRICING}/runs/{run['id']}/confirm")
    assert done.status_code == 200, done.text
    await seller.service.run_jobs()
    cards = (await seller.get("/api/cards")).json()["cards"]
    assert {card["target_price"] for card in cards} == {"1.20"}
    # The member has seen these prices: the next run does not stop for them.
    assert (await seller.post(f"{PRICING}/reprice")).status_code == 202
    await seller.service.run_jobs()
    assert (await newest_run(seller))["state"] == "completed"


async def test_a_run_that_a_keys_promotion_takes_beyond_the_limits_waits(a_limited_seller):
    """The promotion selects no card when it is written."""
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    sale = a_sale(-9000, query="market>11")
    assert (await seller.post(f"{PRICING}/sales", json=sale)).status_code == 201
    await seller.import_csv(shown("12.00"))
    run = await newest_run(seller)
    assert run["state"] == "awaiting_review"
    # The agent's word takes the upload on, and lifts no limit.
    path = f"/api/v1/uploads/{run['upload_id']}/confirm"
    assert (await seller.post(path)).status_code == 200
    await seller.service.run_jobs()
    assert (await newest_run(seller))["state"] == "awaiting_review"
    assert (await owner.post(path)).status_code == 200
    await seller.service.run_jobs()
    assert (await newest_run(seller))["state"] == "completed"


async def test_a_rule_of_a_key_that_waits_for_its_cards_is_held_later_too(a_limited_seller):
    seller, _, _ = await a_shop_under_limits(a_limited_seller)
    await published(seller, query="market>11", adjust_bp=-9000)
    await seller.made_old("activity", "created_at", 20)
    await seller.import_csv(shown("12.00"))
    assert (await newest_run(seller))["state"] == "awaiting_review"


async def test_a_run_by_a_members_rule_does_not_wait(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    await published(owner, query="market>11", adjust_bp=-9000)
    await seller.import_csv(shown("12.00"))
    await seller.service.run_jobs()
    assert (await newest_run(seller))["state"] == "completed"


async def test_a_run_that_the_market_moves_does_not_wait(a_limited_seller):
    seller, _, rule_id = await a_shop_under_limits(a_limited_seller)
    lower = {"adjust_bp": -1000}
    assert (await seller.http.patch(f"{PRICING}/rules/{rule_id}", json=lower)).status_code == 200
    await seller.import_csv(shown("4.00"))
    await seller.service.run_jobs()
    assert (await newest_run(seller))["state"] == "completed"
    card = (await seller.get("/api/cards")).json()["cards"][0]
    assert card["target_price"] == "3.60"


@pytest.mark.parametrize("query", ["is:pinned", "age>3", "is:moved", "is:audit", "is:held"])
async def test_a_query_that_asks_the_time_is_measured(a_limited_seller, query):
    seller, _, _ = await a_shop_under_limits(a_limited_seller)
    await published(seller, query=f"-{query}", adjust_bp=-100)
    dry = await seller.post(
        PLANS,
        json=changes({"op": "create", "set": {"name": "B", "query": query}}, dry_run=True),
    )
    assert dry.status_code == 201, dry.text
    body = {"name": "Deep", "state": "published", "query": f"-{query}", "adjust_bp": -9000}
    needs_review(await seller.post(f"{PRICING}/rules", json=body | {"priority": 1}))
