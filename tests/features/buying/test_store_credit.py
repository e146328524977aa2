"""Store credit: entries never change, the balance is their sum, and two counters at once never
overspend.
"""

import asyncio
from decimal import Decimal

import pytest

from browsers import joined, signed_in
from builders import undo_newest
from world import refusal


async def a_customer(seller, name="Mia Moss", contact="mia@example.invalid"):
    answer = await seller.post("/api/buying/customers", json={"name": name, "contact": contact})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def credit(seller, customer, amount, key, reason="a gift"):
    return await seller.post(
        f"/api/buying/customers/{customer['id']}/credit",
        json={"amount": amount, "key": key, "reason": reason},
    )


async def sheet(seller, customer):
    """A customer's credit; its sum and every running balance agree with the customer's row."""
    told = (await seller.get(f"/api/buying/customers/{customer['id']}/credit")).json()
    total = Decimal(0)
    for entry in reversed(told["entries"]):
        total += Decimal(entry["amount"])
        assert Decimal(entry["balance_after"]) == total >= 0
    assert Decimal(told["balance"]) == total
    kept = (await seller.get(f"/api/buying/customers/{customer['id']}")).json()
    assert kept["credit"] == told["balance"]
    return told


async def test_credit_is_added_spent_and_taken_back(a_seller):
    seller = await a_seller()
    mia = await a_customer(seller)
    assert (await credit(seller, mia, "20.00", "a")).status_code == 201
    assert (await credit(seller, mia, "-7.50", "b", "")).json()["balance_after"] == "12.50"
    assert refusal(await credit(seller, mia, "-12.51", "c")) == (409, "store_credit_too_low")
    assert refusal(await credit(seller, mia, "1.005", "d")) == (422, "invalid_payload")
    assert refusal(await credit(seller, mia, "1.00", "e", " ")) == (422, "invalid_payload")
    assert refusal(await credit(seller, mia, "0", "f")) == (422, "invalid_payload")
    assert refusal(await credit(seller, {"id": 10**9}, "1.00", "g")) == (404, "not_found")
    assert (await undo_newest(seller, "store_credit.spent")).status_code == 200
    told = await sheet(seller, mia)
    assert told["balance"] == "20.00"
    assert [entry["kind"] for entry in told["entries"]] == ["taken_back", "spent", "added"]
    await credit(seller, mia, "-20.00", "h")
    assert refusal(await undo_newest(seller, "store_credit.added")) == (409, "changed_since")


async def test_a_key_makes_one_entry(a_seller):
    seller = await a_seller()
    mia, bo = await a_customer(seller), await a_customer(seller, "Bo")
    answers = await asyncio.gather(*(credit(seller, mia, "5.00", "once") for _ in range(8)))
    assert {answer.json()["id"] for answer in answers} == {answers[0].json()["id"]}
    assert (await sheet(seller, mia))["balance"] == "5.00"
    assert refusal(await credit(seller, bo, "5.00", "once")) == (422, "invalid_payload")


async def test_32_counters_at_once_never_overspend(a_seller):
    """Of 32 callers that each spend 3.00 of 50.00, sixteen do, whoever is first."""
    seller = await a_seller()
    mia = await a_customer(seller)
    await credit(seller, mia, "50.00", "gift")
    answers = await asyncio.gather(*(credit(seller, mia, "-3.00", f"k{n}") for n in range(32)))
    done = [answer for answer in answers if answer.status_code == 201]
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len(done) == 16
    assert {refusal(answer) for answer in refused} == {(409, "store_credit_too_low")}
    assert (await sheet(seller, mia))["balance"] == "2.00"


async def test_no_entry_ever_changes(a_seller):
    seller = await a_seller()
    mia = await a_customer(seller)
    await credit(seller, mia, "5.00", "a")
    for statement in (
        "UPDATE store_credit_entry SET amount = 6 WHERE seller_id = :id",
        "UPDATE buying_customer SET credit_balance = -1 WHERE seller_id = :id",
    ):
        with pytest.raises(Exception, match=r"permission denied|credit_balance"):
            await seller.service.sql(seller.id, statement, id=seller.id)


async def test_customers_are_found_changed_and_put_back(a_seller):
    seller = await a_seller()
    mia, bo = await a_customer(seller), await a_customer(seller, "Bo 100%", "+49 1")

    async def found(typed):
        told = (await seller.get("/api/buying/customers", params={"q": typed})).json()
        return [each["id"] for each in told["customers"]]

    assert await found("") == [bo["id"], mia["id"]]
    assert await found("moss") == await found("MIA@") == [mia["id"]]
    assert await found("0%") == [bo["id"]]
    path = f"/api/buying/customers/{mia['id']}"
    changed = await seller.http.patch(path, json={"name": "Mia Reed"})
    assert (changed.json()["name"], changed.json()["contact"]) == ("Mia Reed", mia["contact"])
    assert (await undo_newest(seller, "buying_customer.changed")).status_code == 200
    assert (await seller.get(path)).json()["name"] == "Mia Moss"
    assert refusal(await seller.http.patch(path, json={"name": " "})) == (422, "invalid_payload")


async def test_staff_read_credit_and_another_shop_finds_nothing(a_seller):
    seller, other = await a_seller(), await a_seller()
    mia = await a_customer(seller)
    staff = await joined(seller, "bea@example.invalid")
    path = f"/api/buying/customers/{mia['id']}/credit"
    assert (await staff.get(path)).json()["balance"] == "0.00"
    body = {"amount": "1.00", "key": "a", "reason": "gift"}
    assert refusal(await staff.post(path, json=body)) == (403, "owner_required")
    owner = await signed_in(seller)
    assert (await owner.post(path, json=body)).status_code == 201
    assert refusal(await other.get(path)) == (404, "not_found")
    assert refusal(await credit(other, mia, "1.00", "b")) == (404, "not_found")
