"""Builds offers over HTTP: drafts, their steps and customers."""

from __future__ import annotations


async def products(seller):
    return {card["product_name"]: card["product_id"] for card in await seller.cards()}


async def want(seller, name="Bolt 20", copies=2, condition="NM", **fields):
    known = await products(seller)
    row = {"product_id": known[name], "condition": condition, "copies": copies}
    return row | fields


async def drafted(seller, *lines, **fields):
    lines = lines or (await want(seller), await want(seller, "Bolt 10", 1))
    answer = await seller.post("/api/buying/offers", json={"lines": lines, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def step(who, offer, name, **body):
    path = f"/api/buying/offers/{offer['id']}/{name}"
    return await who.post(path, json={"revision": offer["revision"], **body})


async def done(who, offer, name, **body):
    answer = await step(who, offer, name, **body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def a_customer(seller, name="Mia Moss"):
    return (await seller.post("/api/buying/customers", json={"name": name})).json()


async def buys(seller):
    """The shop buys by the standard preset."""
    assert (await seller.post("/api/buying/presets/standard")).status_code == 200
