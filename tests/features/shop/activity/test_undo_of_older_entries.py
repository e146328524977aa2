"""An entry that an older version of the program wrote is undone: each kind's stored values are here
as that version wrote them.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import text

from browsers import Browser, signed_in
from builders import Seller, a_row, a_shop, an_order
from cardsync.access.undo_rows import UndoRows
from cardsync.shop.activity.undo_kinds import KINDS

# A scenario yields its tables when it has prepared the shop, and the older version's values when
# it has written the entry.
Steps = AsyncIterator[Any]


@dataclass
class Shop:
    seller: Seller
    owner: Browser
    card: int
    card_too: int

    async def send(self, method: str, path: str, **body: Any) -> Any:
        answer = await self.owner.send(method, path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    async def value(self, query: str) -> Any:
        [row] = await self.seller.service.sql(self.seller.id, query)
        return next(iter(row.values()))


@pytest.fixture
async def shop(a_seller):
    seller = await a_shop(a_seller, a_row(1, quantity=3), a_row(2, quantity=3))
    cards = {card["marketplace_id"]: card["id"] for card in await seller.cards()}
    return Shop(seller, await signed_in(seller), cards[1], cards[2])


async def search_saved(shop) -> Steps:
    yield ["saved_search"]
    told = await shop.send("POST", "/api/saved_searches", name="Dear", query="price>=5")
    became = {"name": told["name"], "query": told["query"]}
    yield {"kind": "search.saved", "id": told["id"], "became": became}


async def search_changed(shop) -> Steps:
    told = await shop.send("POST", "/api/saved_searches", name="Dear", query="price>=5")
    yield ["saved_search"]
    await shop.send("PATCH", f"/api/saved_searches/{told['id']}", name="Cheap")
    was = {"name": "Dear", "query": told["query"], "position": 1}
    became = was | {"name": "Cheap"}
    yield {"kind": "search.changed", "id": told["id"], "was": was, "became": became}


async def search_deleted(shop) -> Steps:
    told = await shop.send("POST", "/api/saved_searches", name="Dear", query="price>=5")
    yield ["saved_search - created_at"]
    await shop.send("DELETE", f"/api/saved_searches/{told['id']}")
    was = {"name": "Dear", "query": told["query"], "position": 1}
    yield {"kind": "search.deleted", "id": told["id"], "was": was}


async def rule_test_deleted(shop) -> Steps:
    body = {"name": "Test", "expectation": "never moves"}
    told = await shop.send("POST", "/api/pricing/rule_tests", **body)
    yield ["rule_test - created_at"]
    await shop.send("DELETE", f"/api/pricing/rule_tests/{told['id']}")
    was = {name: told[name] for name in ("name", "search", "expectation")}
    yield {"kind": "pricing.rule_test", "id": told["id"], "was": was, "became": None}


async def rule_changed(shop) -> Steps:
    body = {"name": "Mine", "price_source": "market", "state": "published", "priority": 77}
    rule = (await shop.send("POST", "/api/pricing/rules", **body))["id"]
    row = "SELECT to_jsonb(r) - 'seller_id' - 'updated_at' FROM pricing_rule r WHERE r.id = {}"
    was = await shop.value(row.format(rule))
    yield ["pricing_rule"]
    await shop.send("PATCH", f"/api/pricing/rules/{rule}", name="Other", adjust_bp=-100)
    became = await shop.value(row.format(rule))
    key = str(rule)
    yield {"kind": "pricing.rules", "before": {key: was}, "after": {key: became}}


async def buy_rule_made(shop) -> Steps:
    yield ["buy_rule"]
    rule = (await shop.send("POST", "/api/buying/rules", name="Bulk"))["id"]
    row = "SELECT to_jsonb(r) - 'seller_id' - 'updated_at' FROM buy_rule r WHERE r.id = {}"
    became = await shop.value(row.format(rule))
    yield {"kind": "buying.rules", "before": {str(rule): None}, "after": {str(rule): became}}


async def sale_deleted(shop) -> Steps:
    sale = {
        "name": "Weekend", "adjust_bp": -1000, "query": "price>=5", "priority": 10,
        "starts_at": "2031-01-01T00:00:00+00:00", "ends_at": "2031-01-03T00:00:00+00:00",
    }  # fmt: skip
    body = {
        name: value.replace("+00:00", "Z") if "_at" in name else value
        for name, value in sale.items()
    }
    told = await shop.send("POST", "/api/pricing/sales", **body)
    yield ["pricing_sale - created_at"]
    await shop.send("DELETE", f"/api/pricing/sales/{told['id']}")
    # It had neither a floor by cost, nor the time of its creation.
    was = sale | {"id": told["id"], "enabled": True, "query": told["query"], "floor": None}
    yield {"kind": "pricing.sale", "sale": told["id"], "was": was, "became": None}


async def settings_changed(shop) -> Steps:
    await shop.send("PATCH", "/api/pricing/settings", minimum_move="0.05", max_age_hours=7)
    yield ["account"]
    await shop.send("PATCH", "/api/pricing/settings", minimum_move="0.07", max_age_hours=5)
    was = {"minimum_move": "0.05", "max_age_hours": 7}
    became = {"minimum_move": "0.07", "max_age_hours": 5}
    yield {"kind": "pricing.settings", "was": was, "became": became}


async def account_changed(shop) -> Steps:
    await shop.send("PATCH", "/api/account", tracking_threshold="50", store_name="One")
    yield ["account"]
    await shop.send("PATCH", "/api/account", tracking_threshold="75", store_name="Two")
    was = {"tracking_threshold": "50.00", "store_name": "One"}
    became = {"tracking_threshold": "75.00", "store_name": "Two"}
    yield {"kind": "account.settings", "was": was, "became": became}


async def pin_changed(shop) -> Steps:
    await shop.send("PUT", "/api/pricing/pins/1", price="2.00")
    yield ["price_decision - since - decided_by"]
    await shop.send("PUT", "/api/pricing/pins/1", price="3.00")
    # It had no end.
    yield {"kind": "pricing.pin", "marketplace_id": 1, "was": "2.00", "became": "3.00"}


async def pin_removed(shop) -> Steps:
    await shop.send("PUT", "/api/pricing/pins/1", price="2.00")
    yield ["price_decision - since - decided_by"]
    await shop.send("DELETE", "/api/pricing/pins/1")
    yield {"kind": "pricing.pin", "marketplace_id": 1, "was": "2.00", "became": None, "until": None}


async def pins_removed(shop) -> Steps:
    await shop.send("PUT", "/api/pricing/pins/1", price="2.00")
    await shop.send("PUT", "/api/pricing/pins/2", price="3.00")
    yield ["price_decision - since - decided_by"]
    await shop.send("POST", "/api/pricing/pins/unpin_many", card_ids=[shop.card, shop.card_too])
    # It had no ends.
    values = {"cards": [1, 2], "was": ["2.0000", "3.0000"], "became": [None, None]}
    yield {"kind": "pricing.pins", **values}


async def match_settled(shop) -> Steps:
    async with shop.seller.service.database.shared() as session:
        product = await session.scalar(
            text(
                "INSERT INTO product (identity, game, set_name, product_name, number, language,"
                " set_key, name_key, number_key) VALUES (md5(random()::text), 'magic', 'Beta',"
                " 'Lotus', '7', 'en', 'beta', 'lotus', '7') RETURNING id"
            )
        )
    was = await shop.seller.service.sql(
        shop.seller.id, "SELECT product_id, match FROM card WHERE id = :id", id=shop.card
    )
    yield ["card", "settled_match"]
    await shop.send("POST", f"/api/cards/{shop.card}/match", product_id=product)
    yield {
        "kind": "card.match_settled", "card": shop.card, "became": product,
        "was": was[0]["product_id"], "match": was[0]["match"], "chosen": False,
    }  # fmt: skip


async def list_made(shop) -> Steps:
    yield ["card_list WHERE deleted_at IS NULL"]
    made = (await shop.send("POST", "/api/lists", name="Binder"))["id"]
    yield {"kind": "list.made", "list": made, "name": "Binder"}


async def list_renamed(shop) -> Steps:
    made = (await shop.send("POST", "/api/lists", name="Binder"))["id"]
    yield ["card_list"]
    await shop.send("PATCH", f"/api/lists/{made}", name="Folder")
    yield {"kind": "list.renamed", "list": made, "was": "Binder", "became": "Folder"}


async def a_list(shop) -> int:
    made = (await shop.send("POST", "/api/lists", name="Binder"))["id"]
    await shop.send("POST", f"/api/lists/{made}/cards", card_ids=[shop.card])
    return made


async def list_deleted(shop) -> Steps:
    made = await a_list(shop)
    yield ["card_list", "card_list_entry - added_at"]
    await shop.send("DELETE", f"/api/lists/{made}")
    yield {"kind": "list.deleted", "list": made, "name": "Binder", "cards": [shop.card]}


async def cards_added(shop) -> Steps:
    made = await a_list(shop)
    yield ["card_list_entry"]
    await shop.send("POST", f"/api/lists/{made}/cards", card_ids=[shop.card_too])
    yield {"kind": "list.cards_added", "list": made, "cards": [shop.card_too]}


async def cards_removed(shop) -> Steps:
    made = await a_list(shop)
    yield ["card_list_entry - added_at"]
    await shop.send("DELETE", f"/api/lists/{made}/cards", card_ids=[shop.card])
    yield {"kind": "list.cards_removed", "list": made, "cards": [shop.card]}


A_LOT = {"marketplace_id": 1, "quantity": 2, "cost": "1.50", "bought_on": "2026-01-02"}
LOT = A_LOT | {"source": "hand", "source_id": None, "rule_id": None}


async def lots_added(shop) -> Steps:
    yield ["lot"]
    [lot] = (await shop.send("POST", "/api/buying/lots", lots=[A_LOT]))["ids"]
    yield {"kind": "lots.changed", "was": {str(lot): None}, "became": {str(lot): LOT}}


async def lot_corrected(shop) -> Steps:
    [lot] = (await shop.send("POST", "/api/buying/lots", lots=[A_LOT]))["ids"]
    yield ["lot"]
    await shop.send("PATCH", f"/api/buying/lots/{lot}", quantity=5)
    became = LOT | {"quantity": 5}
    yield {"kind": "lots.changed", "was": {str(lot): LOT}, "became": {str(lot): became}}


async def lot_removed(shop) -> Steps:
    [lot] = (await shop.send("POST", "/api/buying/lots", lots=[A_LOT]))["ids"]
    yield ["lot - created_at"]
    await shop.send("DELETE", f"/api/buying/lots/{lot}")
    yield {"kind": "lots.changed", "was": {str(lot): LOT}, "became": {str(lot): None}}


async def lots_of_a_file(shop) -> Steps:
    yield ["lot", "lot_file"]
    file = "TCGplayer Id,Quantity,Cost\n1,2,1.50\n"
    await shop.send("POST", "/api/buying/lots/file", csv=file)
    yield {"kind": "lots.file", "file": await shop.value("SELECT id FROM lot_file")}


async def one_order(shop) -> int:
    await shop.seller.orders([an_order(status="Ready to Ship")])
    await shop.seller.items([{"order_number": "A-1", "quantity": 1}])
    return (await shop.seller.get("/api/orders")).json()["orders"][0]["id"]


async def order_dismissed(shop) -> Steps:
    order = await one_order(shop)
    yield ["orders"]
    await shop.send("POST", f"/api/orders/{order}/dismiss")
    yield {"kind": "order.dismissed", "order": order, "number": "A-1"}


async def order_shipped(shop) -> Steps:
    order = await one_order(shop)
    yield ["orders"]
    await shop.send("POST", f"/api/orders/{order}/mark_shipped")
    yield {"kind": "order.marked_shipped", "order": order, "number": "A-1"}


async def orders_shipped(shop) -> Steps:
    order = await one_order(shop)
    yield ["orders"]
    await shop.send("POST", "/api/orders/mark_shipped", order_ids=[order])
    yield {"kind": "order.many_marked_shipped", "orders": [order]}


async def pull_completed(shop) -> Steps:
    await one_order(shop)
    pull = (await shop.send("POST", "/api/pull_sessions"))["id"]
    yield ["pull_session", "pull_session_order"]
    await shop.send("POST", f"/api/pull_sessions/{pull}/complete")
    yield {"kind": "pull_session.completed", "session": pull}


async def missing_settled(shop) -> Steps:
    order = await one_order(shop)
    pull = (await shop.send("POST", "/api/pull_sessions"))["id"]
    item = await shop.value(
        "UPDATE pull_session_item SET missing_at = '2026-01-01' RETURNING item_id"
    )
    await shop.value("UPDATE pull_session_order SET missing_at = '2026-01-01' RETURNING 1")
    yield ["pull_session_item", "pull_session_order", "pull_mark WHERE NOT undone"]
    await shop.send("POST", f"/api/orders/{order}/missing/{item}", outcome="found")
    yield {
        "kind": "order.missing_settled", "order": order, "item": item, "session": pull,
        "outcome": "found", "pulled": True, "mark": await shop.value("SELECT id FROM pull_mark"),
    }  # fmt: skip


async def buylist_opened(shop) -> Steps:
    await shop.send("PATCH", "/api/buying/buylist", is_open=False, terms="Cash")
    yield ["public_buylist"]
    await shop.send("PATCH", "/api/buying/buylist", is_open=True)
    yield {"kind": "buylist.changed", "was": [False, "Cash"], "became": [True, "Cash"]}


async def customer_changed(shop) -> Steps:
    customer = (await shop.send("POST", "/api/buying/customers", name="Mia"))["id"]
    yield ["buying_customer"]
    await shop.send("PATCH", f"/api/buying/customers/{customer}", name="Ada", contact="a@b.c")
    values = {"was": ["Mia", ""], "became": ["Ada", "a@b.c"]}
    yield {"kind": "buying_customer.changed", "customer": customer, **values}


async def customer_noted(shop) -> Steps:
    await one_order(shop)
    [customer] = (await shop.seller.get("/api/customers")).json()["customers"]
    yield ["customer_note"]
    await shop.send("PUT", f"/api/customers/{customer['key']}/note", note="Kind")
    key = await shop.value("SELECT encode(key, 'hex') FROM customer_note")
    yield {"kind": "customer.note", "key": key, "was": "", "became": "Kind"}


async def offer_deleted(shop) -> Steps:
    product = await shop.value("SELECT product_id FROM card WHERE marketplace_id = 1")
    line = {"product_id": product, "condition": "NM", "copies": 1, "cash_each": "1.00"}
    offer = (await shop.send("POST", "/api/buying/offers", lines=[line]))["id"]
    image = await shop.value("SELECT to_jsonb(o) - 'seller_id' FROM buying_offer o")
    line = await shop.value("SELECT to_jsonb(l) - 'seller_id' - 'id' FROM buying_offer_line l")
    of_line = line | {"cash_each": "1.00"}
    yield ["buying_offer", "buying_offer_line - id"]
    await shop.send("DELETE", f"/api/buying/offers/{offer}")
    yield {"kind": "offer.deleted", "offer": image, "lines": [of_line]}


async def shelved(shop, quantity: int = 2) -> None:
    place = {"card_id": shop.card, "box": 1, "slot": 4}
    await shop.send("POST", "/api/shelves/put", **place, quantity=quantity)


async def copies_moved(shop) -> Steps:
    await shelved(shop)
    yield ["card_location"]
    ends = {"from": {"box": 1, "slot": 4}, "to": {"box": 2, "slot": 1}}
    await shop.send("POST", "/api/shelves/move", card_id=shop.card, **ends, quantity=1)
    values = {"cards": [shop.card, shop.card], "boxes": [1, 2], "slots": [4, 1], "more": [-1, 1]}
    yield {"kind": "shelf.places", **values}


async def count_settled(shop) -> Steps:
    await shelved(shop)
    count = (await shop.send("POST", "/api/counts", box=1))["id"]
    yield ["card_location"]
    await shop.send("POST", f"/api/counts/{count}/settle", unseen="missing")
    yield {"kind": "shelf.count", "count": count}


SCENARIOS = [
    search_saved, search_changed, search_deleted, rule_test_deleted, rule_changed, buy_rule_made,
    sale_deleted, settings_changed, account_changed, pin_changed, pin_removed, pins_removed,
    match_settled, list_made, list_renamed, list_deleted, cards_added, cards_removed, lots_added,
    lot_corrected, lot_removed, lots_of_a_file, order_dismissed, order_shipped, orders_shipped,
    pull_completed, missing_settled, buylist_opened, customer_changed, customer_noted,
    copies_moved, count_settled, offer_deleted,
]  # fmt: skip


def test_few_kinds_are_undone_by_a_function_of_their_own():
    own = {getattr(undo, "func", undo) for undo in KINDS.values() if not isinstance(undo, UndoRows)}
    assert sorted(undo.__name__ for undo in own) == [
        "undo_decisions",
        "undo_entry",
        "undo_marks",
        "undo_restock",
        "unrename",
    ]


async def rows_of(shop, tables: list[str]) -> list[list[str]]:
    """The rows of tables; a table may name columns that it leaves out, and a condition."""
    found = []
    for table in tables:
        named, _, where = table.partition(" WHERE ")
        name, *without = named.split(" - ")
        less = "".join(f" - '{column}'" for column in (*without, "updated_at"))
        query = f"SELECT to_jsonb(t){less} AS row FROM {name} t WHERE {where or 'true'}"
        rows = await shop.seller.service.sql(shop.seller.id, query)
        found.append(sorted(json.dumps(row["row"], sort_keys=True) for row in rows))
    return found


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_an_older_versions_entry_is_undone(shop, scenario):
    steps = scenario(shop)
    tables = await anext(steps)
    before = await rows_of(shop, tables)
    stored = await anext(steps)
    assert await rows_of(shop, tables) != before
    [entry] = await shop.seller.service.sql(
        shop.seller.id,
        "UPDATE activity SET undo = CAST(:undo AS jsonb) WHERE seller_id = :seller AND id ="
        " (SELECT max(id) FROM activity WHERE seller_id = :seller) RETURNING id, action",
        undo=json.dumps(stored),
        seller=shop.seller.id,
    )
    answer = await shop.owner.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    assert answer.status_code == 200, (entry["action"], answer.text)
    assert await rows_of(shop, tables) == before
