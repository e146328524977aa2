"""GET /api/orders/{order_id}: every item with its card and places, and the pull sessions."""

from __future__ import annotations

from builders import a_csv, a_row
from cards_builder import a_place, card_ids
from orders_builder import an_item, an_order


async def test_an_order_in_full_has_what_the_list_has_and_places(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, name="Bolt", price="5.00")))
    card = (await card_ids(seller))[1]
    await a_place(seller, card, 2, 7, 3)
    order = await an_order(seller, buyer_name="Ada", total_amt=7)
    for number in range(12):
        sku = {"sku_id": 1} if number == 0 else {}
        await an_item(seller, order, product_name=f"Card {number}", unit_price=1, **sku)
    answer = await seller.get(f"/api/orders/{order}")
    assert answer.status_code == 200
    told = answer.json()
    [listed] = (await seller.get("/api/orders", params={"items": "full"})).json()["orders"]
    assert {n: v for n, v in told.items() if n not in ("items", "pulls", "settled_cards")} == {
        n: v for n, v in listed.items() if n != "items"
    }
    shared = listed["items"][0].keys()
    assert [{n: item[n] for n in shared} for item in told["items"]] == listed["items"]
    first, second = told["items"][:2]
    assert (first["card_id"], first["card_price"]) == (card, "5.00")
    assert first["locations"] == [{"code": "2-7", "quantity": 3}]
    assert (second["card_id"], second["card_price"], second["locations"]) == (None, None, [])
    assert told["pulls"] == []
    session = (await seller.post("/api/pull_sessions")).json()
    [pull] = (await seller.get(f"/api/orders/{order}")).json()["pulls"]
    assert (pull["session_id"], pull["status"], pull["pulled_at"]) == (session["id"], "open", None)


async def test_an_item_without_a_price_has_its_share_of_what_the_others_leave(a_seller):
    seller = await a_seller()
    order = await an_order(seller, product_amt="10.00", total_amt="11.50")
    await an_item(seller, order, unit_price="4.00")
    await an_item(seller, order, quantity=2)
    await an_item(seller, order)
    told = (await seller.get(f"/api/orders/{order}")).json()["items"]
    assert [(item["line_total"], item["estimated_total"]) for item in told] == [
        ("4.00", None),
        (None, "4.00"),
        (None, "2.00"),
    ]


async def test_an_order_of_another_seller_is_not_there(a_seller):
    seller, other = await a_seller(), await a_seller()
    order = await an_order(other)
    answer = await seller.get(f"/api/orders/{order}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
