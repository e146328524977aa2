"""Every write leaves an entry: each unsafe route of openapi.json is asked once, with success, and
the feed must have an entry of that very request; or the table says why the route leaves none.
"""

from dataclasses import dataclass

import httpx
import pytest
from sqlalchemy import text

from browsers import Browser, accept, invited, joined, operates, signed_in
from builders import Seller, a_csv, a_row, an_order
from cardsync.platform import clock
from cardsync.platform.backups import requested_backup
from cardsync.prices.recommendations.generate import RECOMMENDATIONS
from cardsync.shop.activity.entry_words import ACTIONS
from oauth_builder import connected
from passkeys_builder import Device
from requests_of_routes import ROUTES

UNSAFE = {route for route in ROUTES if route.split(" ")[0] not in ("GET", "HEAD")}
CATALOGS = "a catalog is the installation's; a matched card leaves the entry"
READS_ONLY = "it changes nothing"
# The writes that leave no entry, and the reason.
EXEMPT = {
    "POST /api/v1/heartbeat": "the agent is alive, every 30 seconds",
    "POST /api/v1/sync/log": "the cycle's log is a row of its own",
    "POST /api/v1/sync/debug": "a screenshot belongs to the cycle's log",
    "POST /api/v1/sync/upload-request": "it hands out an address, nothing is stored",
    "PUT /objects/{key}": "its address is the credential; POST /api/v1/sync accepts the bytes",
    "POST /api/session": "a session begins; it is a row of its own",
    "DELETE /api/session": "a session ends",
    "POST /api/session/passkey": "a session begins; it is a row of its own",
    "POST /api/session/passkey/options": "it hands out a challenge",
    "POST /api/passkeys/options": "it hands out a challenge",
    "DELETE /api/sessions/{member_session_id}": "signing out changes nothing of the shop",
    "POST /api/v1/tasks/claim": "a claim lasts ten minutes; its end leaves the entry",
    "POST /api/recommendations/shown": "an event of the recommendation is a row of its own",
    "POST /api/discovery/availability": READS_ONLY,
    "POST /api/discovery/basket": READS_ONLY,
    "POST /api/pricing/preview": READS_ONLY,
    "POST /api/v1/pricing/explain/{marketplace_id}/changed": READS_ONLY,
    "POST /api/pricing/backtest": READS_ONLY,
    "POST /api/pricing/preview/draft": READS_ONLY,
    "POST /api/pricing/preview/sale": READS_ONLY,
    "POST /api/pricing/test": READS_ONLY,
    "POST /api/pricing/rule_tests/check": READS_ONLY,
    "POST /api/buying/preview": READS_ONLY,
    "POST /api/buying/rule_tests/check": READS_ONLY,
    "POST /api/operator/catalogs": CATALOGS,
    "PATCH /api/operator/catalogs": CATALOGS,
    "POST /api/operator/catalogs/back": CATALOGS,
    "POST /api/operator/catalogs/files": CATALOGS,
}


@dataclass
class Shop:
    seller: Seller
    owner: Browser

    async def send(self, method: str, path: str, **body) -> httpx.Response:
        """A request with the key."""
        options = {"json": body} if body or method in ("POST", "PATCH") else {}
        return await self.seller.http.request(method, path, **options)

    async def made(self, path: str, **body) -> int:
        answer = await self.send("POST", path, **body)
        assert answer.status_code in (200, 201, 202), answer.text
        return answer.json().get("id") or answer.json()["run_id"]

    async def card(self, **cells) -> int:
        await self.seller.import_csv(a_csv(a_row(1, quantity=3, **cells)))
        return (await self.seller.cards())[0]["id"]

    async def list(self) -> int:
        return await self.made("/api/lists", name="Binder")

    async def rule(self, **fields) -> int:
        body = {"name": "Mine", "price_source": "market", "state": "published"} | fields
        return await self.made("/api/pricing/rules", **body)

    async def sale(self) -> int:
        return await self.made("/api/pricing/sales", **A_SALE)

    async def order(self) -> int:
        await self.seller.orders([an_order(status="Ready to Ship")])
        return (await self.seller.get("/api/orders")).json()["orders"][0]["id"]

    async def pulling(self) -> tuple[int, int]:
        order = await self.order()
        return await self.made("/api/pull_sessions"), order

    async def contribution(self) -> int:
        body = {"name": "Alacrian Jaguar", "set": "Aetherdrift", "number": "152", "game": "magic"}
        answer = await self.owner.post(
            "/api/contributions", json={**body, "condition": "NM", "quantity": 2}
        )
        assert answer.status_code == 201, answer.text
        self.last = answer
        return answer.json()["id"]

    async def run_in_review(self) -> int:
        rows = [a_row(n, market="1.00", price="1.00") for n in range(1, 61)]
        await self.seller.import_csv(a_csv(*rows))
        await self.rule(adjust_bp=9000, query="price>0")
        run = await self.made("/api/pricing/reprice")
        await self.seller.service.run_jobs()
        return run

    async def upload_in_review(self) -> int:
        await self.seller.import_csv(a_csv(*(a_row(n) for n in range(1, 41))))
        return (await self.seller.import_csv(a_csv(a_row(1, quantity=3))))["id"]

    async def rollback(self) -> httpx.Response:
        await self.card(market="2.00")
        run = (await self.seller.get("/api/pricing/runs")).json()["runs"][0]["id"]
        return await self.send("POST", "/api/pricing/rollbacks", run_id=run)

    async def shelved(self) -> int:
        card = await self.card()
        await self.shelf("put", card_id=card, box=1, slot=1, quantity=1)
        return card

    async def shelf(self, what: str, **body) -> httpx.Response:
        return await self.owner.post(f"/api/shelves/{what}", json=body)

    async def report(self, path: str, **body) -> httpx.Response:
        await self.card()
        moment = clock.rfc3339(clock.now())
        return await self.send("POST", path, imported_at=moment, row_count=1, **body)


A_LOT = {"lots": [{"marketplace_id": 1, "quantity": 2, "cost": "1.50"}]}
A_SALE = {
    "name": "Sale",
    "adjust_bp": -1000,
    "starts_at": "2020-01-01T00:00:00Z",
    "ends_at": "2099-01-01T00:00:00Z",
}


async def skip_wait(shop):
    await shop.card()
    await shop.seller.applied()
    await shop.seller.set(credits_metering_enabled=True)
    await shop.seller.grant(1)
    headers = {"X-Idempotency-Key": "once"}
    return await shop.seller.post("/api/v1/sync/skip_wait", headers=headers)


async def cancel(shop):
    await shop.send("POST", "/api/v1/sync/request")
    await shop.seller.get("/api/v1/sync/pending")
    return await shop.send("POST", "/api/v1/sync/cancel")


async def approve_upload(shop):
    await shop.seller.set(upload_approved=True)
    return await shop.send("DELETE", "/api/v1/sync/approve_upload")


async def set_past_due(shop):
    await operates(shop.seller)
    path = f"/api/operator/sellers/{shop.seller.id}"
    return await shop.owner.send("PATCH", path, json={"past_due": True})


async def ask_for_backup(shop):
    await operates(shop.seller)
    requested_backup.write(shop.seller.service.settings.data_dir, "offered")
    return await shop.owner.post("/api/operator/backups")


async def invitation(shop):
    _, token = await invited(shop.seller, f"bea-{shop.seller.email}")
    answer, _ = await accept(shop.seller.service, token, name="Bea", password="a long password")
    return answer


async def contribute(shop):
    await shop.contribution()
    return shop.last


async def undo(shop):
    await shop.list()
    [entry] = (await shop.seller.get("/api/v1/agent/activity")).json()["activity"]
    return await shop.send("POST", f"/api/v1/agent/activity/{entry['id']}/undo")


async def reorder(shop):
    await shop.rule()
    ids = [rule["id"] for rule in (await shop.seller.get("/api/pricing/rules")).json()["rules"]]
    return await shop.send("POST", "/api/pricing/rules/reorder", ids=ids[::-1])


async def on_list(shop, method):
    card, number = await shop.card(), await shop.list()
    if method == "DELETE":
        await shop.send("POST", f"/api/lists/{number}/cards", card_ids=[card])
    return await shop.send(method, f"/api/lists/{number}/cards", card_ids=[card])


async def of_rule(shop, method, suffix="", state="published", **body):
    rule = await shop.rule(state=state)
    if suffix == "/enable":
        await shop.send("POST", f"/api/pricing/rules/{rule}/disable")
    return await shop.send(method, f"/api/pricing/rules/{rule}{suffix}", **body)


async def of_pin(shop, method):
    await shop.card()
    answer = await shop.send("PUT", "/api/pricing/pins/1", price="2.00")
    return answer if method == "PUT" else await shop.send(method, "/api/pricing/pins/1")


async def of_pull(shop, what):
    session, order = await shop.pulling()
    path = f"/orders/{order}/{what}" if what in ("pulled", "defer", "unassign") else f"/{what}"
    return await shop.send("POST", f"/api/pull_sessions/{session}{path}")


async def linked(shop):
    session, _ = await shop.pulling()
    return await shop.owner.post("/api/pull_links", json={"session_id": session})


async def unlinked(shop):
    order = await shop.order()
    session = await shop.made("/api/pull_sessions", order_ids=[order])
    async with shop.seller.service.database.tenant(shop.seller.id) as open_one:
        values = {"seller": shop.seller.id, "session": session}
        link = await open_one.scalar(text(A_LINK), values)
    return await shop.owner.send("DELETE", f"/api/pull_links/{link}")


A_LINK = """
    INSERT INTO pull_link (seller_id, session_id, product_line, secret_hash, made_by, created_at)
    VALUES (:seller, :session, '', 'x', 'member 1', now()) RETURNING id
"""


async def open_pull(shop):
    await shop.order()
    return await shop.send("POST", "/api/pull_sessions")


async def of_order(shop, what):
    order = await shop.order()
    if what.startswith("un"):
        await shop.send("POST", f"/api/orders/{order}/{what.removeprefix('un')}")
    return await shop.send("POST", f"/api/orders/{order}/{what}")


async def unpulled(shop):
    session, order = await shop.pulling()
    await shop.send("POST", f"/api/pull_sessions/{session}/orders/{order}/pulled")
    return await shop.send("POST", f"/api/orders/{order}/unmark_pulled")


async def ship_many(shop):
    return await shop.send("POST", "/api/orders/mark_shipped", order_ids=[await shop.order()])


A_MISSING_CARD = """
    UPDATE pull_session_item SET missing_at = now()
     WHERE seller_id = :seller AND session_id = :session RETURNING item_id
"""


async def found_after_all(shop):
    order = await shop.order()
    await shop.seller.items([{"order_number": an_order()["order_number"], "quantity": 1}])
    session = await shop.made("/api/pull_sessions", order_ids=[order])
    async with shop.seller.service.database.tenant(shop.seller.id) as open_one:
        values = {"seller": shop.seller.id, "session": session}
        item = await open_one.scalar(text(A_MISSING_CARD), values)
    return await shop.send("POST", f"/api/orders/{order}/missing/{item}", outcome="found")


async def renamed_box(shop):
    await shop.shelf("put", card_id=await shop.shelved(), box=9, slot=1, quantity=1)
    return await shop.shelf("rename", box=9, to="Binder 9")


async def of_shelf(shop, what, **body):
    card = await shop.shelved()
    named = {"card_ids": [card]} if what == "put_many" else {"card_id": card}
    return await shop.shelf(what, **named, **body)


async def publish(shop):
    return await shop.owner.post(f"/api/contributions/{await shop.contribution()}/publish")


async def of_list(shop, method, **body):
    return await shop.send(method, f"/api/lists/{await shop.list()}", **body)


async def of_lot(shop, method: str, **body):
    [lot] = (await shop.send("POST", "/api/buying/lots", **A_LOT)).json()["ids"]
    return await shop.send(method, f"/api/buying/lots/{lot}", **body)


async def of_sale(shop, method, **body):
    return await shop.send(method, f"/api/pricing/sales/{await shop.sale()}", **body)


async def of_review(shop, kind, what):
    if kind == "runs":
        path = f"/api/pricing/runs/{await shop.run_in_review()}"
    else:
        path = f"/api/v1/uploads/{await shop.upload_in_review()}"
    return await shop.send("POST", f"{path}/{what}")


async def mend_rows(shop):
    id = (await shop.seller.import_csv(a_csv(a_row(1), a_row(2, quantity="many"))))["id"]
    rows = (await shop.seller.get(f"/api/v1/uploads/{id}/rejected.csv")).content
    path = f"/api/v1/uploads/{id}/mend"
    return await shop.seller.post(path, content=rows.replace(b"many", b"1"))


async def cancel_rollback(shop):
    rollback = (await shop.rollback()).json()["id"]
    return await shop.send("POST", f"/api/pricing/rollbacks/{rollback}/cancel")


A_LISTING = {
    "name": "Alacrian Jaguar",
    "set": "Aetherdrift",
    "number": "152",
    "game": "magic",
    "condition": "NM",
    "quantity": 2,
    "price": "1.25",
}


async def drafted(shop):
    answer = await shop.send("POST", "/api/quick_add", entries=[A_LISTING])
    assert answer.status_code == 201, answer.text
    return answer.json()["entries"][0]["id"]


async def of_draft(shop, method, **body):
    return await shop.send(method, f"/api/quick_add/{await drafted(shop)}", **body)


async def an_offer(shop, *steps):
    """A draft that these steps have led on, with the revision that it has then."""
    await shop.card()
    product = (await shop.seller.cards())[0]["product_id"]
    line = {"product_id": product, "condition": "NM", "copies": 1, "cash_each": "1.00"}
    offer = (await shop.send("POST", "/api/buying/offers", lines=[line])).json()
    for step in steps:
        offer = (await of_offer(shop, step, offer=offer)).json()
    return offer


async def of_offer(shop, step, *before, offer=None):
    offer = offer or await an_offer(shop, *before)
    way = {"way": "cash"} if step == "accept" else {}
    path = f"/api/buying/offers/{offer['id']}/{step}"
    return await shop.send("POST", path, revision=offer["revision"], **way)


async def change_offer(shop):
    offer = await an_offer(shop)
    path = f"/api/buying/offers/{offer['id']}"
    return await shop.send("PATCH", path, revision=offer["revision"], note="counter")


async def delete_offer(shop):
    return await shop.send("DELETE", f"/api/buying/offers/{(await an_offer(shop))['id']}")


async def a_buying_customer(shop):
    return await shop.made("/api/buying/customers", name="Mia")


async def of_buying_customer(shop, method, what="", **body):
    path = f"/api/buying/customers/{await a_buying_customer(shop)}{what}"
    return await shop.send(method, path, **body)


async def new_offer(shop):
    await shop.card()
    product = (await shop.seller.cards())[0]["product_id"]
    line = {"product_id": product, "condition": "NM", "copies": 1, "cash_each": "1.00"}
    return await shop.send("POST", "/api/buying/offers", lines=[line])


async def publish_listing(shop):
    return await shop.send("POST", "/api/quick_add/publish", ids=[await drafted(shop)])


async def settle_listing(shop):
    entry = await drafted(shop)
    await shop.send("POST", "/api/quick_add/publish", ids=[entry])
    await shop.seller.export()
    return await shop.owner.post(f"/api/quick_add/{entry}/settle", json={"listed": True})


async def planned(shop, **more):
    actions = [{"type": "lists.change_set", "create": ["Binder"]}]
    return await shop.send("POST", "/api/v1/agent/plans", actions=actions, **more)


async def allow(shop, mode):
    body = {"key": {"lists.change_set": mode}}
    return await shop.owner.send("PATCH", "/api/v1/agent/plans/permissions", json=body)


async def of_plan(shop, what):
    assert (await allow(shop, "always_ask")).status_code == 200
    plan = (await planned(shop)).json()["plan_id"]
    return await shop.owner.post(f"/api/v1/agent/plans/{plan}/{what}", json={})


async def healed(shop):
    page = '<main><button data-testid="export-pricing">Export CSV</button></main>'
    return await shop.send(
        "POST",
        "/api/v1/workflow/heal",
        workflow="pricing",
        step_name="export_inventory",
        selector='button:has-text("Export CSV")',
        page_url="https://marketplace.invalid/pricing",
        dom_snippet=page,
    )


async def corrected(shop):
    body = {"heal_id": (await healed(shop)).json()["id"], "verified": True}
    selector = 'button[data-testid="export-pricing"]'
    return await shop.send("POST", "/api/v1/workflow/corrections", selector=selector, **body)


async def failed_correction(shop):
    correction = (await corrected(shop)).json()["id"]
    return await shop.send("POST", f"/api/v1/workflow/corrections/{correction}/failure")


async def of_member(shop, method, suffix="", **body):
    member = await joined(shop.seller, f"bea-{shop.seller.email}")
    options = {"json": body} if body else {}
    return await shop.owner.send(method, f"/api/members/{member.member_id}{suffix}", **options)


async def ask_for_deletion(shop):
    return await shop.owner.post("/api/account/deletion", json={"confirm": shop.seller.email})


async def take_deletion_back(shop):
    await ask_for_deletion(shop)
    return await (await signed_in(shop.seller)).send("DELETE", "/api/account/deletion")


async def add_passkey(shop):
    return await Device().register(shop.owner)


async def remove_passkey(shop):
    made = (await add_passkey(shop)).json()["id"]
    return await shop.owner.send("DELETE", f"/api/passkeys/{made}")


async def replace_key(shop):
    key = (await shop.owner.post("/api/keys", json={"name": "Laptop"})).json()["id"]
    return await shop.owner.post(f"/api/keys/{key}/replace")


async def mark_key(shop):
    key = (await shop.owner.post("/api/keys", json={"name": "Laptop"})).json()["id"]
    body = {"own_script": True, "confirm": True}
    return await shop.owner.send("PATCH", f"/api/keys/{key}", json=body)


async def revoke_key(shop):
    key = (await shop.owner.post("/api/keys", json={"name": "Laptop"})).json()["id"]
    return await shop.owner.send("DELETE", f"/api/keys/{key}")


async def hooked(shop, method, suffix="", **body):
    made = await shop.owner.post("/api/webhooks", json={"url": "https://localhost/hook"})
    path = f"/api/webhooks/{made.json()['webhook']['id']}"
    if suffix == "replay":
        test = (await shop.owner.post(f"{path}/test")).json()["id"]
        suffix = f"/deliveries/{test}/replay"
    return await shop.owner.send(method, path + suffix, **({"json": body} if body else {}))


async def of_assistant(shop, method, **body):
    await connected(shop.seller)
    [one] = (await shop.owner.get("/api/assistants")).json()["assistants"]
    return await shop.owner.send(method, f"/api/assistants/{one['id']}", json=body or None)


A_LIST_OF_CARDS = b"4 Card 1\n"
A_TABLE = b"Titel;Menge\nCard 1;4\n"


async def a_collection(shop, data=A_LIST_OF_CARDS):
    made = await shop.seller.post("/api/buying/collections", content=data)
    await shop.seller.service.run_jobs()
    return f"/api/buying/collections/{made.json()['id']}"


async def choosing(shop):
    path = await a_collection(shop)
    return await shop.send("POST", f"{path}/choices", choices=[{"row": 1}])


async def naming(shop):
    path = await a_collection(shop, A_TABLE)
    return await shop.send("PUT", f"{path}/columns", columns={"name": "Titel"})


async def bringing(shop):
    return await shop.seller.post("/api/buying/collections", content=A_LIST_OF_CARDS)


async def forgetting(shop):
    return await shop.send("DELETE", await a_collection(shop))


A_BUY_TEST = {"name": "Staples", "expectation": "never over 20.00"}


async def of_buy_test(shop):
    test = await shop.made("/api/buying/rule_tests", **A_BUY_TEST)
    return await shop.send("DELETE", f"/api/buying/rule_tests/{test}")


async def of_buy_rule(shop, method, **body):
    rule = await shop.made("/api/buying/rules", name="Rares")
    return await shop.send(method, f"/api/buying/rules/{rule}", **body)


A_TEST = {"name": "Staples", "search": "price>20", "expectation": "never under 20.00"}


async def of_test(shop, method, **body):
    test = await shop.made("/api/pricing/rule_tests", **A_TEST)
    return await shop.send(method, f"/api/pricing/rule_tests/{test}", **body)


async def counting(shop, what, **body):
    card = await shop.shelved()
    count = (await shop.owner.post("/api/counts", json={"box": 1})).json()["id"]
    told = {"cards": [{"card_id": card, "slot": 1, "quantity": 0}]} if what == "seen" else body
    return await shop.owner.post(f"/api/counts/{count}/{what}", json=told)


async def noted(shop):
    await shop.seller.orders([an_order(buyer_name="Some Buyer")])
    [customer] = (await shop.seller.get("/api/customers")).json()["customers"]
    return await shop.send("PUT", f"/api/customers/{customer['key']}/note", note="Pays late.")


async def restocked(shop):
    await shop.seller.orders([an_order("A-1", buyer_name="Some Buyer")])
    await shop.seller.refunds([{"order_number": "A-1", "type": "Full"}])
    order = (await shop.seller.get("/api/orders")).json()["orders"][0]["id"]
    return await shop.send("POST", f"/api/returns/{order}/restocked")


async def of_recommendation(shop, what):
    await shop.rule(price_source="current")
    await shop.card(price="10.00", market="14.00")
    await shop.seller.service.run_jobs()
    await RECOMMENDATIONS.work_off(shop.seller.service.work, shop.seller.id)
    [one] = (await shop.seller.get("/api/recommendations")).json()["recommendations"]
    path = f"/api/recommendations/{one['id']}/{what}"
    return await shop.send("POST", path, revision=one["revision"])


async def of_price_review(shop, what):
    await shop.seller.http.patch("/api/pricing/settings", json={"review_up_bp": 1_000})
    await shop.rule(cap=None)
    await shop.card(price="10.00", market="14.00")
    [one] = (await shop.seller.get("/api/pricing/reviews")).json()["reviews"]
    asked = [{"marketplace_id": one["marketplace_id"], "revision": one["revision"]}]
    return await shop.send("POST", f"/api/pricing/reviews/{what}", reviews=asked)


async def of_waiting(shop):
    await shop.upload_in_review()
    [one] = (await shop.seller.get("/api/waiting")).json()["waiting"]
    path = f"/api/waiting/{one['kind']}/{one['id']}"
    return await shop.send("POST", path, answer="decline", revision=one["revision"])


async def many_pins(shop, what):
    card = await shop.card()
    if what == "unpin_many":
        await shop.send("POST", "/api/pricing/pins/pin_many", card_ids=[card])
    return await shop.send("POST", f"/api/pricing/pins/{what}", card_ids=[card])


async def saved(shop):
    return await shop.send("POST", "/api/saved_searches", name="Dear", query="price>5")


async def of_search(shop, method, **body):
    search = (await saved(shop)).json()["id"]
    return await shop.send(method, f"/api/saved_searches/{search}", **body)


async def settled(shop):
    card = await shop.card()
    async with shop.seller.service.database.shared() as session:
        product = await session.scalar(text(A_PRODUCT))
    return await shop.send("POST", f"/api/cards/{card}/match", product_id=product)


async def ended_task(shop):
    await shop.send("POST", "/api/v1/tasks", kind="refresh_orders")
    [task] = (await shop.send("POST", "/api/v1/tasks/claim")).json()["tasks"]
    told = {"status": "completed", "claim_token": task["claim_token"]}
    return await shop.send("PATCH", f"/api/v1/tasks/{task['id']}", **told)


async def uploaded(shop, kind, rows):
    return await shop.seller.post(f"/api/v1/{kind}", json=rows)


async def feedback_told(shop):
    await shop.seller.orders([an_order("A-1")])
    rows = [{"order_number": "A-1", "rating": 5, "comment": "Some Buyer was pleased"}]
    return await uploaded(shop, "order_feedbacks", rows)


async def month_reported(shop):
    month = {"date_from": "2026-07-01", "date_to": "2026-07-31", "report": {}}
    return await uploaded(shop, "sales_report", month)


A_PRODUCT = """
    INSERT INTO product (identity, game, set_name, product_name, language)
    VALUES (md5(random()::text), 'magic', 'Alpha', 'Mox', 'en') RETURNING id
"""
FAILURE = {"step": "import_prices", "error": {"code": "gone", "message": "no button"}}
SCENES = {
    "POST /api/v1/sync": lambda shop: shop.seller.post(
        "/api/v1/sync",
        content=a_csv(a_row(1)),
        headers={"Content-Type": "application/octet-stream"},
    ),
    "POST /api/v1/orders": lambda shop: uploaded(
        shop, "orders", [an_order(buyer_name="Some Buyer")]
    ),
    "POST /api/v1/order_refunds": lambda shop: uploaded(
        shop, "order_refunds", [{"order_number": "A-1", "type": "Full"}]
    ),
    "POST /api/v1/order_items": lambda shop: uploaded(
        shop, "order_items", [{"order_number": "A-1", "name": "Mox", "quantity": 1}]
    ),
    "POST /api/v1/orders/shipping": lambda shop: uploaded(
        shop, "orders/shipping", [{"order_number": "A-1", "tracking_number": "1"}]
    ),
    "POST /api/v1/order_feedbacks": feedback_told,
    "POST /api/v1/sales_report": month_reported,
    "PATCH /api/v1/tasks/{task_id}": ended_task,
    "POST /api/pricing/pins/pin_many": lambda shop: many_pins(shop, "pin_many"),
    "POST /api/pricing/pins/unpin_many": lambda shop: many_pins(shop, "unpin_many"),
    "POST /api/saved_searches": saved,
    "PATCH /api/saved_searches/{search_id}": lambda shop: of_search(shop, "PATCH", name="Dearer"),
    "DELETE /api/saved_searches/{search_id}": lambda shop: of_search(shop, "DELETE"),
    "PUT /api/card_columns": lambda shop: shop.send("PUT", "/api/card_columns", columns=["price"]),
    "PUT /api/card_columns/shop": lambda shop: shop.send(
        "PUT", "/api/card_columns/shop", columns=["price"]
    ),
    "POST /api/cards/{card_id}/match": settled,
    "POST /api/buying/lots": lambda shop: shop.send("POST", "/api/buying/lots", **A_LOT),
    "POST /api/buying/lots/file": lambda shop: shop.send(
        "POST", "/api/buying/lots/file", csv="TCGplayer Id,Quantity,Cost\n1,2,1.50\n"
    ),
    "PATCH /api/buying/lots/{lot_id}": lambda shop: of_lot(shop, "PATCH", cost="2.00"),
    "DELETE /api/buying/lots/{lot_id}": lambda shop: of_lot(shop, "DELETE"),
    "POST /api/buying/payments": lambda shop: shop.send(
        "POST", "/api/buying/payments", csv="Order,Fees\nA-1,1.50\n"
    ),
    "POST /api/lists": lambda shop: shop.send("POST", "/api/lists", name="Binder"),
    "PATCH /api/lists/{list_id}": lambda shop: of_list(shop, "PATCH", name="Folder"),
    "DELETE /api/lists/{list_id}": lambda shop: of_list(shop, "DELETE"),
    "POST /api/lists/{list_id}/cards": lambda shop: on_list(shop, "POST"),
    "DELETE /api/lists/{list_id}/cards": lambda shop: on_list(shop, "DELETE"),
    "POST /api/pricing/rules": lambda shop: shop.send("POST", "/api/pricing/rules", name="Mine"),
    "PATCH /api/pricing/rules/{rule_id}": lambda shop: of_rule(shop, "PATCH", adjust_bp=-7),
    "DELETE /api/pricing/rules/{rule_id}": lambda shop: of_rule(shop, "DELETE"),
    "POST /api/pricing/rules/{rule_id}/publish": lambda shop: of_rule(
        shop, "POST", "/publish", state="draft"
    ),
    "POST /api/pricing/rules/{rule_id}/enable": lambda shop: of_rule(shop, "POST", "/enable"),
    "POST /api/pricing/rules/{rule_id}/disable": lambda shop: of_rule(shop, "POST", "/disable"),
    "POST /api/pricing/rules/reorder": reorder,
    "POST /api/pricing/presets/{preset}": lambda shop: shop.send(
        "POST", "/api/pricing/presets/premium"
    ),
    "POST /api/pricing/sales": lambda shop: shop.send("POST", "/api/pricing/sales", **A_SALE),
    "PATCH /api/pricing/sales/{sale_id}": lambda shop: of_sale(shop, "PATCH", adjust_bp=-7),
    "DELETE /api/pricing/sales/{sale_id}": lambda shop: of_sale(shop, "DELETE"),
    "PATCH /api/pricing/settings": lambda shop: shop.send(
        "PATCH", "/api/pricing/settings", minimum_move="0.05"
    ),
    "PUT /api/pricing/pins/{marketplace_id}": lambda shop: of_pin(shop, "PUT"),
    "DELETE /api/pricing/pins/{marketplace_id}": lambda shop: of_pin(shop, "DELETE"),
    "POST /api/buying/collections": bringing,
    "POST /api/buying/collections/{collection_id}/choices": choosing,
    "PUT /api/buying/collections/{collection_id}/columns": naming,
    "DELETE /api/buying/collections/{collection_id}": forgetting,
    "POST /api/buying/rules": lambda shop: shop.send("POST", "/api/buying/rules", name="Rares"),
    "PATCH /api/buying/rules/{rule_id}": lambda shop: of_buy_rule(shop, "PATCH", name="Other"),
    "DELETE /api/buying/rules/{rule_id}": lambda shop: of_buy_rule(shop, "DELETE"),
    "POST /api/buying/presets/{preset}": lambda shop: shop.send(
        "POST", "/api/buying/presets/hungry"
    ),
    "POST /api/buying/rule_tests": lambda shop: shop.send(
        "POST", "/api/buying/rule_tests", **A_BUY_TEST
    ),
    "DELETE /api/buying/rule_tests/{test_id}": of_buy_test,
    "POST /api/pricing/rule_tests": lambda shop: shop.send(
        "POST", "/api/pricing/rule_tests", **A_TEST
    ),
    "PATCH /api/pricing/rule_tests/{test_id}": lambda shop: of_test(shop, "PATCH", name="Other"),
    "DELETE /api/pricing/rule_tests/{test_id}": lambda shop: of_test(shop, "DELETE"),
    "POST /api/counts": lambda shop: shop.owner.post("/api/counts", json={"box": 1}),
    "POST /api/counts/{count_id}/seen": lambda shop: counting(shop, "seen"),
    "POST /api/counts/{count_id}/settle": lambda shop: counting(shop, "settle", unseen="missing"),
    "POST /api/counts/{count_id}/cancel": lambda shop: counting(shop, "cancel"),
    "PUT /api/customers/{key}/note": noted,
    "POST /api/returns/{order_id}/restocked": restocked,
    **{
        f"POST /api/recommendations/{{recommendation_id}}/{what}": (
            lambda shop, what=what: of_recommendation(shop, what)
        )
        for what in ("accept", "dismiss", "snooze")
    },
    **{
        f"POST /api/pricing/reviews/{what}": (lambda shop, what=what: of_price_review(shop, what))
        for what in ("accept", "dismiss", "snooze")
    },
    "POST /api/waiting/{kind}/{waiting_id}": of_waiting,
    "POST /api/pricing/reprice": lambda shop: shop.send("POST", "/api/pricing/reprice"),
    "POST /api/pricing/runs/{run_id}/confirm": lambda shop: of_review(shop, "runs", "confirm"),
    "POST /api/pricing/runs/{run_id}/discard": lambda shop: of_review(shop, "runs", "discard"),
    "POST /api/pricing/rollbacks": lambda shop: shop.rollback(),
    "POST /api/pricing/rollbacks/{rollback_id}/cancel": cancel_rollback,
    "POST /api/pull_sessions": open_pull,
    "POST /api/pull_sessions/{session_id}/orders/{order_id}/pulled": lambda shop: of_pull(
        shop, "pulled"
    ),
    "POST /api/pull_sessions/{session_id}/orders/{order_id}/defer": lambda shop: of_pull(
        shop, "defer"
    ),
    "POST /api/pull_sessions/{session_id}/orders/{order_id}/unassign": lambda shop: of_pull(
        shop, "unassign"
    ),
    "POST /api/pull_sessions/{session_id}/complete": lambda shop: of_pull(shop, "complete"),
    "POST /api/pull_sessions/{session_id}/cancel": lambda shop: of_pull(shop, "cancel"),
    "POST /api/orders/{order_id}/dismiss": lambda shop: of_order(shop, "dismiss"),
    "POST /api/orders/{order_id}/undismiss": lambda shop: of_order(shop, "undismiss"),
    "POST /api/orders/{order_id}/mark_shipped": lambda shop: of_order(shop, "mark_shipped"),
    "POST /api/orders/{order_id}/unmark_pulled": unpulled,
    "POST /api/orders/mark_shipped": ship_many,
    "POST /api/orders/{order_id}/missing/{item_id}": found_after_all,
    "POST /api/orders/{order_id}/unmark_shipped": lambda shop: of_order(shop, "unmark_shipped"),
    "POST /api/pull_links": linked,
    "DELETE /api/pull_links/{link_id}": unlinked,
    "POST /api/shelves/put": lambda shop: of_shelf(shop, "put", box=2, slot=1, quantity=1),
    "POST /api/shelves/rename": lambda shop: renamed_box(shop),
    "POST /api/shelves/put_many": lambda shop: of_shelf(
        shop, "put_many", box=2, start_slot=1, per_slot=4
    ),
    "POST /api/shelves/move": lambda shop: of_shelf(
        shop, "move", **{"from": {"box": 1, "slot": 1}, "to": {"box": 3, "slot": 1}}
    ),
    "POST /api/shelves/remove": lambda shop: of_shelf(shop, "remove", box=1, slot=1),
    "POST /api/contributions": contribute,
    "POST /api/contributions/{card_id}/publish": publish,
    "PATCH /api/account": lambda shop: shop.owner.send(
        "PATCH", "/api/account", json={"auto_sync_paused": True}
    ),
    "POST /api/members/invitations": lambda shop: shop.owner.post(
        "/api/members/invitations", json={"email": f"bea-{shop.seller.email}", "role": "staff"}
    ),
    "PATCH /api/members/{member_id}": lambda shop: of_member(shop, "PATCH", role="owner"),
    "PATCH /api/members/me": lambda shop: shop.owner.send(
        "PATCH", "/api/members/me", json={"name": "Sam"}
    ),
    "DELETE /api/members/{member_id}": lambda shop: of_member(shop, "DELETE"),
    "DELETE /api/members/{member_id}/sessions": lambda shop: of_member(shop, "DELETE", "/sessions"),
    "POST /api/members/{member_id}/link": lambda shop: of_member(shop, "POST", "/link"),
    "PATCH /api/operator/sellers/{seller_id}": set_past_due,
    "POST /api/operator/backups": ask_for_backup,
    "POST /api/keys": lambda shop: shop.owner.post("/api/keys", json={"name": "Laptop"}),
    "POST /api/keys/{key_id}/replace": replace_key,
    "PATCH /api/keys/{key_id}": mark_key,
    "DELETE /api/keys/{key_id}": revoke_key,
    "PATCH /api/notices/choices": lambda shop: shop.owner.send(
        "PATCH", "/api/notices/choices", json={"ways": {"sync_done": "daily"}}
    ),
    "POST /api/webhooks": lambda shop: shop.owner.post(
        "/api/webhooks", json={"url": "https://localhost/hook"}
    ),
    "PATCH /api/webhooks/{webhook_id}": lambda shop: hooked(shop, "PATCH", on=False),
    "DELETE /api/webhooks/{webhook_id}": lambda shop: hooked(shop, "DELETE"),
    "POST /api/webhooks/{webhook_id}/secret": lambda shop: hooked(shop, "POST", "/secret"),
    "POST /api/webhooks/{webhook_id}/test": lambda shop: hooked(shop, "POST", "/test"),
    "POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/replay": lambda shop: hooked(
        shop, "POST", "replay"
    ),
    "PATCH /api/assistants/{assistant_id}": lambda shop: of_assistant(
        shop, "PATCH", modes={"pricing.pins": "deny"}
    ),
    "DELETE /api/assistants/{assistant_id}": lambda shop: of_assistant(shop, "DELETE"),
    "POST /api/passkeys": add_passkey,
    "DELETE /api/passkeys/{passkey_id}": remove_passkey,
    "POST /api/account/deletion": ask_for_deletion,
    "DELETE /api/account/deletion": take_deletion_back,
    "POST /api/invitations/{token}": invitation,
    "POST /api/v1/sync/request": lambda shop: shop.send("POST", "/api/v1/sync/request"),
    "POST /api/v1/sync/cancel": cancel,
    "POST /api/v1/sync/skip_wait": skip_wait,
    "DELETE /api/v1/sync/approve_upload": approve_upload,
    "POST /api/v1/uploads/{upload_id}/confirm": lambda shop: of_review(shop, "uploads", "confirm"),
    "POST /api/v1/uploads/{upload_id}/discard": lambda shop: of_review(shop, "uploads", "discard"),
    "POST /api/v1/uploads/{upload_id}/mend": mend_rows,
    "POST /api/v1/repricing_events": lambda shop: shop.report("/api/v1/repricing_events"),
    "POST /api/v1/repricing_events/failure": lambda shop: shop.report(
        "/api/v1/repricing_events/failure", **FAILURE
    ),
    "POST /api/v1/tasks": lambda shop: shop.send("POST", "/api/v1/tasks", kind="refresh_orders"),
    "POST /api/v1/agent/activity/{activity_id}/undo": undo,
    "POST /api/quick_add": lambda shop: shop.send("POST", "/api/quick_add", entries=[A_LISTING]),
    "PATCH /api/quick_add/{entry_id}": lambda shop: of_draft(shop, "PATCH", quantity=3),
    "DELETE /api/quick_add/{entry_id}": lambda shop: of_draft(shop, "DELETE"),
    "POST /api/quick_add/publish": publish_listing,
    "POST /api/buying/offers": new_offer,
    "PATCH /api/buying/offers/{offer_id}": change_offer,
    "DELETE /api/buying/offers/{offer_id}": delete_offer,
    "POST /api/buying/offers/{offer_id}/offer": lambda shop: of_offer(shop, "offer"),
    "POST /api/buying/offers/{offer_id}/link": lambda shop: of_offer(shop, "link", "offer"),
    "POST /api/buying/offers/{offer_id}/accept": lambda shop: of_offer(shop, "accept", "offer"),
    "POST /api/buying/offers/{offer_id}/decline": lambda shop: of_offer(shop, "decline", "offer"),
    "POST /api/buying/offers/{offer_id}/receive": lambda shop: of_offer(
        shop, "receive", "offer", "accept"
    ),
    "POST /api/buying/offers/{offer_id}/pay": lambda shop: of_offer(
        shop, "pay", "offer", "accept", "receive"
    ),
    "POST /api/buying/offers/{offer_id}/stock": lambda shop: of_offer(
        shop, "stock", "offer", "accept", "receive", "pay"
    ),
    "POST /api/buying/customers": lambda shop: shop.send(
        "POST", "/api/buying/customers", name="Mia"
    ),
    "PATCH /api/buying/customers/{customer_id}": lambda shop: of_buying_customer(
        shop, "PATCH", name="Bo"
    ),
    "POST /api/buying/customers/{customer_id}/credit": lambda shop: of_buying_customer(
        shop, "POST", "/credit", amount="1.00", key="k", reason="gift"
    ),
    "PATCH /api/buying/buylist": lambda shop: shop.send(
        "PATCH", "/api/buying/buylist", is_open=True
    ),
    "POST /api/quick_add/{entry_id}/settle": settle_listing,
    "POST /api/v1/agent/plans": planned,
    "POST /api/v1/agent/plans/{plan_id}/confirm": lambda shop: of_plan(shop, "confirm"),
    "POST /api/v1/agent/plans/{plan_id}/decline": lambda shop: of_plan(shop, "decline"),
    "PATCH /api/v1/agent/plans/permissions": lambda shop: allow(shop, "deny"),
    "POST /api/v1/workflow/heal": healed,
    "POST /api/v1/workflow/corrections": corrected,
    "POST /api/v1/workflow/corrections/{correction_id}/failure": failed_correction,
}


def test_every_unsafe_route_leaves_an_entry_or_says_why_it_does_not():
    assert SCENES.keys() | EXEMPT.keys() == UNSAFE
    assert not SCENES.keys() & EXEMPT.keys()


@pytest.mark.day
@pytest.mark.parametrize("route", sorted(SCENES))
async def test_a_write_leaves_an_entry_of_its_request(a_seller, route):
    seller = await a_seller()
    answer = await SCENES[route](Shop(seller, await signed_in(seller)))
    assert answer.status_code in (200, 201, 202), answer.text
    rows = await seller.service.sql(
        seller.id,
        "SELECT actor, action, summary FROM activity WHERE seller_id = :id AND request_id = :request",
        id=seller.id,
        request=answer.headers["X-Request-Id"],
    )
    assert any(row["actor"].startswith(("key ", "member ")) for row in rows)
    assert not any("Some Buyer" in row["summary"] for row in rows)
    assert {row["action"] for row in rows} <= ACTIONS.keys()


async def test_a_write_that_fails_leaves_no_entry(a_seller):
    seller = await a_seller()
    staff = await joined(seller, f"staff-{seller.email}")
    assert (await staff.send("PATCH", "/api/lists/1", json={"name": "x"})).status_code == 403
    assert (await seller.post("/api/lists", json={"name": ""})).status_code == 422
    found = await seller.get("/api/v1/agent/activity", params={"action": "list"})
    assert found.json()["total"] == 0
