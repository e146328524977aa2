"""A shop with something on every page of the dashboard, for the tests of all pages."""

from __future__ import annotations

import csv
import io
from datetime import date
from typing import Any

from browsers import operates, signed_in
from builders import Seller, SellerBuilder, a_csv, a_row, log
from cards_builder import a_list, a_place, card_ids
from orders_builder import an_item, an_order


async def a_collection(seller: Seller, name: str) -> int:
    """A customer's file with `name` in each text, and a row that waits for a choice."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["Card", "Set ID", "Set Name", "Quantity", "Foil"])
    writer.writerow([name, "", name[:200], 4, ""])
    writer.writerow(["A lotus", name[:50], "", name[:50], ""])
    path = "/api/buying/collections"
    sent = await seller.post(path, params={"name": name[:200]}, content=out.getvalue().encode())
    assert sent.status_code == 202, sent.text
    await seller.service.run_jobs()
    return int(sent.json()["id"])


async def filled_shop(
    a_seller: SellerBuilder, name: str = "Black Lotus", **cells: str
) -> tuple[Seller, dict[str, Any]]:
    """A shop with something on every page, and `name` in every field that a page shows; `cells` are
    those of its cards instead of amounts.
    """
    seller = await a_seller()
    first = {"price": "1234.50", "market": "9.00"} | cells
    second = {"price": "5.00", "market": "4.00"} | cells
    rows = [a_row(1, name=name, set=name[:200], number=name[:60], **first)]
    await seller.import_csv(a_csv(*rows, a_row(2, name="A lotus", **second)))
    [upload] = await seller.service.sql(seller.id, "SELECT max(id) AS id FROM upload")
    cards = await card_ids(seller)
    await a_place(seller, cards[1], 3, 4, 2)
    list_id = await a_list(seller, name[:100], cards[1], slug="every-page")
    order = await an_order(
        seller,
        order_number=name[:30],
        buyer_name=name,
        order_date=date(2026, 7, 3),
        product_amt=1200,
        total_amt=1234,
        refund_amt=3,
        refund_reason=name,
        refund_note=name,
        feedback_rating=4,
        feedback_comment=name,
    )
    await an_item(
        seller,
        order,
        sku_id=1,
        product_name=name,
        set_name=name,
        condition=name[:60],
        unit_price=None if cells else 617,
        quantity=2,
    )
    lot = {"marketplace_id": 1, "quantity": 3, "cost": "400.00", "bought_on": "2026-07-01"}
    added = await seller.post("/api/buying/lots", json={"lots": [lot]})
    assert added.status_code == 201, added.text
    await log(seller, "failed", {"inventory": "failed"}, error={"code": "x", "message": name[:200]})
    [cycle] = (await seller.get("/api/v1/sync/cycles")).json()["cycles"]
    to_pull = await an_order(seller, order_number="Z-9", buyer_name=name, status="Ready to Ship")
    await an_item(seller, to_pull, sku_id=1, product_name=name, quantity=2)
    await an_item(seller, to_pull, product_name=name)
    opened = await seller.post("/api/pull_sessions", json={})
    assert opened.status_code == 201, opened.text
    counted = await (await signed_in(seller)).post("/api/counts", json={"box": 3})
    assert counted.status_code == 201, counted.text
    collection = await a_collection(seller, name)
    await operates(seller)
    owner = await signed_in(seller)
    bought = await owner.post("/api/buying/presets/standard")
    assert bought.status_code == 200, bought.text
    buy_rules = (await owner.get("/api/buying/rules")).json()["rules"]
    made = await owner.post("/api/webhooks", json={"url": "https://localhost/hook"})
    webhook = made.json()["webhook"]["id"]
    assert (await owner.post(f"/api/webhooks/{webhook}/test")).status_code == 201
    customer, offer = await an_offer(seller, name)
    ids = {
        "card_id": cards[1],
        "list_id": list_id,
        "order_id": order,
        "upload_id": upload["id"],
        "cycle_id": cycle["id"],
        "session_id": opened.json()["id"],
        "rule_id": (await seller.get("/api/pricing/rules")).json()["rules"][0]["id"],
        "buy_rule_id": buy_rules[0]["id"],
        "run_id": (await seller.get("/api/pricing/runs")).json()["runs"][0]["id"],
        "key": (await seller.get("/api/customers")).json()["customers"][0]["key"],
        "box": 3,
        "slot": 1,
        "seller_id": seller.id,
        "count_id": counted.json()["id"],
        "webhook_id": webhook,
        "collection_id": collection,
        "customer_id": customer,
        "offer_id": offer,
    }
    return seller, ids


async def an_offer(seller: Seller, name: str) -> tuple[int, int]:
    """A buying customer of this name, and a draft offer of one card."""
    body = {"name": name[:100], "contact": name[:100]}
    customer = (await seller.post("/api/buying/customers", json=body)).json()["id"]
    entry = {"amount": "20.00", "key": "first", "reason": name[:200]}
    await seller.post(f"/api/buying/customers/{customer}/credit", json=entry)
    product = (await seller.cards())[0]["product_id"]
    line = {"product_id": product, "condition": "NM", "copies": 2, "cash_each": "7.25"}
    body = {"lines": [line], "customer_id": customer, "note": name[:200]}
    answer = await seller.post("/api/buying/offers", json=body)
    assert answer.status_code == 201, answer.text
    return customer, answer.json()["id"]
