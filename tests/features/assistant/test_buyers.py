"""A grant without buyer data: no answer of any route that its token reaches tells who a buyer is,
and none tells it by what it finds.
"""

import pytest

from builders import a_csv, a_row
from buying_builder import brought
from callers import READS, WRITES
from oauth_builder import connected
from offers_builder import a_customer, drafted, products
from orders_builder import an_item
from requests_of_routes import answer_of

NAME = "Xanthippe Quuxworth"
CITY, POSTAL_CODE = "Zyzzyxville", "98765-4321"
NOTE, WORDS, REFUND = "prefers purple sleeves", "thanks from Xanthippe", "she moved to Zyzzyxville"
TOLD = ("xanthippe", "quuxworth", "zyzzyxville", "98765-", "purple sleeves")
# Where one who may see buyers does; without these, the test below would find nothing to hide.
SHOWN = {
    "GET /api/orders",
    "GET /api/orders/export.csv",
    "GET /api/orders/{order_id}",
    "GET /api/customers",
    "GET /api/customers/export.csv",
    "GET /api/customers/{key}",
    "GET /api/returns/customers",
    "GET /api/cards/{card_id}/orders",
    "GET /api/pull_sessions/{session_id}",
    "GET /api/v1/uploads/{upload_id}",
    "GET /api/v1/agent/activity",
    "GET /api/v1/agent/activity/export.csv",
    "GET /api/buying/offers",
    "GET /api/buying/offers/{offer_id}",
    "GET /api/buying/customers",
    "GET /api/buying/customers/{customer_id}",
    "GET /api/buying/customers/{customer_id}/credit",
    "GET /api/buying/collections",
    "GET /api/buying/collections/{collection_id}",
}


async def a_shop_with_a_buyer(a_seller):
    """A seller with all that a buyer leaves behind, and the ids of it."""
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    numbers = ("A-1", "A-2")
    rows = [
        {"order_number": number, "buyer_name": NAME, "status": "Ready to Ship"}
        for number in (*numbers, "A-3")
    ]
    # The upload's report tells of a date that does not read, in the same row.
    # The upload's report quotes a cell of columns that have shifted.
    upload = (await seller.orders([{**row, "order_date": NAME} for row in rows]))["id"]
    await seller.shipping(
        [
            {"order_number": number, "city": CITY, "state": "ZZ", "postal_code": POSTAL_CODE}
            for number in numbers
        ]
    )
    await seller.refunds(
        [
            {"order_number": number, "buyer_name": NAME, "amount": "1.00", "note": REFUND}
            for number in numbers
        ]
    )
    for number in numbers:
        await seller.feedback([{"order_number": number, "rating": 5, "comment": WORDS}])
    await seller.service.sql(
        seller.id,
        "UPDATE orders SET refund_amt = 1, refund_note = :note"
        " WHERE seller_id = :id AND order_number <> 'A-3'",
        id=seller.id,
        note=REFUND,
    )
    order_id = (await seller.stored_order("A-1"))["id"]
    [card] = await seller.cards()
    await an_item(seller, order_id, sku_id=card["marketplace_id"])
    [customer] = (await seller.get("/api/customers")).json()["customers"]
    session = (await seller.post("/api/pull_sessions")).json()
    written = await seller.http.put(f"/api/customers/{customer['key']}/note", json={"note": NOTE})
    assert written.status_code == 200, written.text
    mia = await a_customer(seller, NAME)
    credit = {"amount": "5.00", "key": "k", "reason": NOTE}
    entered = await seller.post(f"/api/buying/customers/{mia['id']}/credit", json=credit)
    assert entered.status_code == 201, entered.text
    [product] = (await products(seller)).values()
    line = {"product_id": product, "condition": "NM", "copies": 1, "cash_each": "1.00"}
    offer = await drafted(seller, line, customer_id=mia["id"], note=f"{NAME} comes on Friday")
    # No format has this header, so that the file's own rows are samples; nor can one be read.
    file = f"Card,Owner\nBolt,{NAME}\n".encode()
    box = await brought(seller, file, f"{NAME}.csv")
    assert (box["state"], box["samples"]) == ("needs_columns", [["Bolt", NAME]])
    entries = (await seller.get("/api/v1/agent/activity?action=customer.noted")).json()["activity"]
    ids = {
        "order_id": order_id,
        "card_id": card["id"],
        "key": customer["key"],
        "session_id": session["id"],
        "upload_id": upload,
        "activity_id": entries[0]["id"],
        "marketplace_id": card["marketplace_id"],
        "customer_id": mia["id"],
        "offer_id": offer["id"],
        "collection_id": box["id"],
    }
    return seller, ids


def tells(answer):
    said = answer.text.lower() + str(answer.headers).lower()
    return any(word in said for word in TOLD)


# It alone sends a token with no right to see buyers to every route that takes tokens.
@pytest.mark.parametrize("buyers", ["", "yes"])
async def test_no_route_tells_a_grant_without_buyer_data_who_bought(a_seller, buyers):
    seller, ids = await a_shop_with_a_buyer(a_seller)
    assistant, tokens = await connected(seller, access="write", buyers=buyers)
    telling, failed = set(), {}
    async with assistant.bearer(tokens) as http:
        # First all that reads, and then once more after all that writes.
        for route in [*sorted(READS), *sorted(WRITES), *sorted(READS)]:
            answer = await answer_of(http.request, route, ids)
            if tells(answer):
                telling.add(route)
            if answer.status_code >= 500:
                failed[route] = answer.text
    assert failed == {}
    shown = {route for route in telling if route.startswith("GET")}
    assert shown == (SHOWN if buyers else set())
    if not buyers:
        assert telling == set()


async def test_nobody_is_found_by_a_name_that_is_hidden(a_seller):
    seller, _ = await a_shop_with_a_buyer(a_seller)
    hidden, tokens = await connected(seller, access="write")
    allowed, more = await connected(seller, access="write", buyers="yes")
    async with hidden.bearer(tokens) as without, allowed.bearer(more) as with_buyers:
        for searched, found, hits in (("quux", 3, 0), ("a-1", 1, 1), ("a-", 3, 3)):
            for http, expected in ((with_buyers, found), (without, hits)):
                page = (await http.get("/api/orders", params={"search": searched})).json()
                assert (searched, page["total"]) == (searched, expected)
                file = (await http.get("/api/orders/export.csv", params={"search": searched})).text
                assert len(file.splitlines()) == 1 + expected
        # Nor by their order.
        by_buyer = await without.get("/api/orders", params={"sort": "buyer", "direction": "asc"})
        by_date = await without.get("/api/orders", params={"sort": "date", "direction": "asc"})
        assert by_buyer.json() == by_date.json()


async def test_a_note_that_it_cannot_read_is_not_written_over(a_seller):
    seller, ids = await a_shop_with_a_buyer(a_seller)
    assistant, tokens = await connected(seller, access="write")
    path = f"/api/customers/{ids['key']}"
    async with assistant.bearer(tokens) as http:
        answer = await http.put(f"{path}/note", json={"note": ""})
        assert (answer.status_code, answer.json()["code"]) == (403, "buyers_hidden")
        shown = (await http.get(path)).json()
    assert (shown["buyer_name"], shown["note"], shown["note_updated_at"]) == ("", "", None)
    assert shown["order_count"] == 3
    assert (await seller.get(path)).json()["note"] == NOTE


async def test_an_offers_note_that_it_cannot_read_is_not_written_over(a_seller):
    seller, ids = await a_shop_with_a_buyer(a_seller)
    assistant, tokens = await connected(seller, access="write")
    path = f"/api/buying/offers/{ids['offer_id']}"
    async with assistant.bearer(tokens) as http:
        answer = await http.patch(path, json={"revision": 1, "note": ""})
        assert (answer.status_code, answer.json()["code"]) == (403, "buyers_hidden")
        [entry] = (await http.get("/api/v1/agent/activity?action=buying")).json()["activity"]
        assert entry["summary"] == f"collection {ids['collection_id']} uploaded"
    assert NAME in (await seller.get(path)).json()["note"]
