"""Offers: drafts and their prices, the steps of an offer's life, and what staff may do of it."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest

from browsers import joined
from builders import undo_newest
from buying_builder import a_catalog
from cardsync.buying.offers import expired_offers, into_stock
from cardsync.platform import clock
from offers_builder import a_customer, done, drafted, step, want
from world import refusal


@pytest.mark.night
async def test_a_draft_is_priced_with_an_explanation_of_each_line(seller):
    offer = await drafted(seller, note=" shoebox ")
    assert (offer["state"], offer["note"], offer["totals"]["copies"]) == ("draft", "shoebox", 3)
    first = offer["lines"][0]
    assert first["cash_each"]
    assert Decimal(first["cash_each"]) < Decimal(first["credit_each"]) < 20
    assert len(first["explanation"]) > 1
    by_hand = await want(seller, cash_each="7.25", credit_each="9.00")
    path = f"/api/buying/offers/{offer['id']}"
    body = {"revision": offer["revision"], "lines": [by_hand]}
    changed = (await seller.http.patch(path, json=body)).json()
    assert changed["totals"] == {"copies": 2, "cash": "14.50", "credit": "18.00", "not_counted": 0}
    assert changed["lines"][0]["by_hand"]
    assert refusal(await seller.http.patch(path, json=body)) == (409, "revision_conflict")


@pytest.mark.night
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"condition": "Mint"}, "lines[0].condition"),
        ({"product_id": 10**12}, "no product"),
        ({"condition": "U"}, "sealed"),
        ({"cash_each": "1.234"}, "two decimals"),
        ({"cash_each": "-1"}, "negative"),
    ],
)
async def test_a_line_that_makes_no_sense_is_refused(seller, fields, said):
    line = await want(seller) | fields
    answer = await seller.post("/api/buying/offers", json={"lines": [line]})
    assert refusal(answer) == (422, "invalid_payload")
    assert said in answer.json()["error"]


async def test_a_printing_that_is_not_said_is_the_products_own(seller, service, tmp_path):
    known = await a_catalog(
        service,
        tmp_path,
        {"product_name": "Bolt", "number": "1", "finish": "Foil"},
        {"product_name": "Bolt", "number": "2"},
    )
    line = {"condition": "NM", "copies": 1}
    lines = [
        line | {"product_id": known.ids["Bolt 1"]},
        line | {"product_id": known.ids["Bolt 1"], "printing": "Normal"},
        line | {"product_id": known.ids["Bolt 2"]},
    ]
    offer = await drafted(seller, *lines)
    assert [one["printing"] for one in offer["lines"]] == ["Foil", "Normal", "Normal"]


async def test_an_offer_of_more_than_can_be_paid_is_not_drafted(seller):
    """Each price is allowed by itself, and the offer was accepted, received and never paid."""
    dear = await want(seller, copies=10_000, cash_each="1000000", credit_each="1.00")
    answer = await seller.post("/api/buying/offers", json={"lines": [dear]})
    assert refusal(answer) == (422, "invalid_payload")
    assert "at most 1,000,000" in answer.json()["error"]
    most = await want(seller, copies=10_000, cash_each="100.00")
    offer = await done(seller, await drafted(seller, most), "offer")
    offer = await done(seller, offer, "accept", way="cash")
    came = [{"id": offer["lines"][0]["id"], "cash_each": "100.01"}]
    assert refusal(await step(seller, offer, "receive", lines=came)) == (422, "invalid_payload")
    offer = await done(seller, await done(seller, offer, "receive"), "pay")
    assert offer["paid_cash"] == "1000000.00"


async def test_a_deleted_draft_comes_back(seller):
    offer = await drafted(seller)
    path = f"/api/buying/offers/{offer['id']}"
    assert (await seller.http.delete(path)).json() == {"deleted": True}
    assert refusal(await seller.get(path)) == (404, "not_found")
    assert (await undo_newest(seller, "offer.deleted")).status_code == 200
    back = (await seller.get(path)).json()
    assert [line["cash_each"] for line in back["lines"]] == [
        line["cash_each"] for line in offer["lines"]
    ]


async def test_an_offer_is_led_through_its_life(seller):
    mia = await a_customer(seller)
    offer = await drafted(seller, customer_id=mia["id"])
    offer = await done(seller, offer, "offer", days=3)
    assert (offer["state"], offer["customer_name"]) == ("offered", "Mia Moss")
    frozen = [(line["cash_each"], line["credit_each"]) for line in offer["lines"]]
    bolts, _ = offer["lines"]
    offer = await done(seller, offer, "accept", way="credit", lines=[bolts["id"]])
    assert [line["accepted"] for line in offer["lines"]] == [True, False]
    came = [{"id": bolts["id"], "copies": 1, "condition": "LP"}]
    offer = await done(seller, offer, "receive", lines=came)
    received = offer["lines"][0]["received"]
    assert (received["copies"], received["condition"]) == (1, "LP")
    assert received["changed"][0] == "1 of 2 copies were received."
    assert Decimal(received["credit_each"]) < Decimal(bolts["credit_each"])
    assert [(line["cash_each"], line["credit_each"]) for line in offer["lines"]] == frozen
    offer = await done(seller, offer, "pay")
    assert (offer["paid_cash"], offer["paid_credit"]) == ("0.00", received["credit_each"])
    credit = (await seller.get(f"/api/buying/customers/{mia['id']}/credit")).json()
    assert (credit["balance"], credit["entries"][0]["offer_id"]) == (
        received["credit_each"],
        offer["id"],
    )
    offer = await done(seller, offer, "stock")
    assert offer["state"] == "in_stock"
    [entry] = (await seller.get("/api/quick_add")).json()["entries"]
    assert entry["id"] == offer["lines"][0]["quick_add_id"]
    assert (entry["status"], entry["quantity"], entry["condition"]) == ("draft", 1, "LP")
    assert (entry["cost"], entry["source"]) == (received["credit_each"], f"offer {offer['id']}")
    assert refusal(await step(seller, offer, "stock")) == (409, "offer_state_wrong")


@pytest.mark.night
async def test_a_second_count_keeps_what_it_does_not_name(seller):
    """A long offer is counted page by page."""
    offer = await done(seller, await drafted(seller), "offer")
    offer = await done(seller, offer, "accept", way="cash")
    first, second = (line["id"] for line in offer["lines"])
    offer = await done(seller, offer, "receive", lines=[{"id": first, "copies": 1}])
    assert [line["received"]["copies"] for line in offer["lines"]] == [1, 1]
    offer = await done(seller, offer, "receive", lines=[{"id": second, "copies": 0}])
    assert [line["received"]["copies"] for line in offer["lines"]] == [1, 0]


async def test_cards_that_are_listed_become_lots_at_once_and_others_when_they_are(seller):
    known = await want(seller, "Bolt 10", 2)
    new = await want(seller, "Bolt 20", 1, "LP", cash_each="5.00")
    offer = await done(seller, await drafted(seller, known, new), "offer")
    for name, body in (("accept", {"way": "cash"}), ("receive", {}), ("pay", {})):
        offer = await done(seller, offer, name, **body)
    # The cards came in the shop's evening, when it was tomorrow in UTC already.
    evening = "UPDATE buying_offer SET received_at = '2026-03-06T03:00Z' WHERE seller_id = :id"
    await seller.service.sql(seller.id, evening, id=seller.id)
    offer = await done(seller, offer, "stock")
    lots = (
        "SELECT marketplace_id, quantity, cost, source_id, bought_on::text AS day FROM lot"
        " WHERE seller_id = :id"
    )
    [lot] = await seller.service.sql(seller.id, lots, id=seller.id)
    assert (lot["marketplace_id"], lot["quantity"], lot["source_id"]) == (10, 2, offer["id"])
    assert str(lot["cost"]) == offer["lines"][0]["cash_each"]
    entry = offer["lines"][1]["quick_add_id"]
    listed = (
        "UPDATE quick_add SET status = 'listed', card_id = :card"
        " WHERE seller_id = :id AND id = :entry"
    )
    card = (await seller.cards())[0]
    await seller.service.sql(seller.id, listed, id=seller.id, card=card["id"], entry=entry)
    database = seller.service.database
    given = await asyncio.gather(
        *(into_stock.give_late_lots(database, clock.now()) for _ in range(3))
    )
    assert sum(given) == 1
    both = await seller.service.sql(seller.id, lots, id=seller.id)
    assert [lot["day"] for lot in both] == 2 * ["2026-03-05"]


async def test_a_split_is_paid_in_both_ways(seller):
    line = await want(seller, copies=4, cash_each="10.00", credit_each="12.00")
    mia = await a_customer(seller)
    offer = await done(seller, await drafted(seller, line), "offer")
    too_much = await step(seller, offer, "accept", way="split", cash_part="40.01")
    assert refusal(too_much) == (422, "invalid_payload")
    offer = await done(seller, offer, "accept", way="split", cash_part="10.00")
    offer = await done(seller, offer, "receive")
    assert refusal(await step(seller, offer, "pay")) == (422, "invalid_payload")
    path = f"/api/buying/offers/{offer['id']}"
    body = {"revision": offer["revision"], "customer_id": mia["id"]}
    offer = (await seller.http.patch(path, json=body)).json()
    assert refusal(await step(seller, offer, "pay", cash_part="5.00")) == (422, "invalid_payload")
    offer = await done(seller, offer, "pay")
    assert (offer["paid_cash"], offer["paid_credit"]) == ("10.00", "36.00")
    offer = await done(seller, offer, "stock")
    [entry] = (await seller.get("/api/quick_add")).json()["entries"]
    assert entry["cost"] == "11.50"


async def test_of_many_who_pay_at_once_one_does(seller):
    mia = await a_customer(seller)
    offer = await done(seller, await drafted(seller, customer_id=mia["id"]), "offer")
    offer = await done(seller, offer, "accept", way="credit")
    offer = await done(seller, offer, "receive")
    # An entry by hand takes no key of an offer.
    path = f"/api/buying/customers/{mia['id']}/credit"
    gift = {"amount": "1.00", "key": f"offer-{offer['id']}", "reason": "gift"}
    assert (await seller.post(path, json=gift)).status_code == 201
    taken = gift | {"key": f"offer {offer['id']}"}
    assert refusal(await seller.post(path, json=taken)) == (422, "invalid_payload")
    answers = await asyncio.gather(*(step(seller, offer, "pay") for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + 7 * [409]
    [paid] = [answer.json() for answer in answers if answer.status_code == 200]
    credit = (await seller.get(path)).json()
    assert len(credit["entries"]) == 2
    assert Decimal(credit["balance"]) == Decimal(paid["paid_credit"]) + 1
    answers = await asyncio.gather(*(step(seller, paid, "stock") for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + 7 * [409]
    assert (await seller.get("/api/quick_add")).json()["total"] == 2


async def test_an_offer_expires_with_or_without_the_sweep(seller):
    offer = await done(seller, await drafted(seller), "offer", days=1)
    later = clock.now() + timedelta(days=1, minutes=1)
    clock.shift(timedelta(days=1, minutes=1))
    assert refusal(await step(seller, offer, "accept", way="cash")) == (409, "offer_state_wrong")
    assert await expired_offers.expire(seller.service.database, later) >= 1
    told = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()
    assert told["state"] == "expired"
    assert (await seller.get("/api/buying/offers?status=expired")).json()["offers"][0]["id"] == (
        offer["id"]
    )


async def test_staff_price_and_save_and_do_no_more(seller):
    staff = await joined(seller, "bea@example.invalid")
    body = {"lines": [await want(seller)]}
    offer = (await staff.post("/api/buying/offers", json=body)).json()
    path = f"/api/buying/offers/{offer['id']}"
    changed = await staff.send(
        "PATCH", path, json={"revision": offer["revision"], "note": "counter"}
    )
    offer = changed.json()
    assert offer["note"] == "counter"
    for name, body in (
        ("offer", {}),
        ("accept", {"way": "cash"}),
        ("decline", {}),
        ("receive", {}),
        ("pay", {}),
        ("stock", {}),
        ("link", {}),
    ):
        assert refusal(await step(staff, offer, name, **body)) == (403, "owner_required")
    assert (await staff.send("DELETE", path)).json() == {"deleted": True}
    offer = await done(seller, await drafted(seller), "offer")
    body = {"revision": offer["revision"], "note": "mine"}
    path = f"/api/buying/offers/{offer['id']}"
    assert refusal(await staff.send("PATCH", path, json=body)) == (403, "owner_required")


async def test_today_names_offers_that_wait_or_end(seller):
    async def told():
        lines = (await seller.get("/api/today")).json()["conditions"]
        return {line["kind"] for line in lines} & {"offers_waiting", "offers_expiring"}

    offer = await done(seller, await drafted(seller), "offer", days=1)
    assert await told() == {"offers_expiring"}
    await done(seller, offer, "accept", way="cash")
    assert await told() == {"offers_waiting"}


async def test_another_shop_finds_no_offer(seller, a_seller):
    offer, other = await drafted(seller), await a_seller()
    assert refusal(await other.get(f"/api/buying/offers/{offer['id']}")) == (404, "not_found")
    assert refusal(await step(other, offer, "offer")) == (404, "not_found")
    assert (await other.get("/api/buying/offers")).json() == {"offers": [], "next": None}
