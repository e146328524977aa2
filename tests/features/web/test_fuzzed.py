"""No request makes the service fail, whatever it holds: odd bodies and queries of every route of
openapi.json, odd fields of every form that a page shows, odd addresses of pages, and odd files.

It alone would find a value that some door passes on unread.
"""

from __future__ import annotations

import random

import pytest

import schedule
from browsers import joined, signed_in
from builders import SellerBuilder
from dashboard_builder import filled_shop
from fuzzed import LEFT_OUT, Asked, Forms, Fuzz
from oauth_builder import connected
from offers_builder import buys, done, drafted
from pages import built

DAILY = 100
# A page leads to forms of other pages, and what was sent changes them.
FORMS_READ_EVERY = 400
MOST_SHOWN = 5


def counted():
    """The requests of the day, and the share of 100,000 that a night makes of each kind."""
    whole = schedule.count("FUZZED", 33_400, 1_000)
    return [DAILY, pytest.param(whole, marks=pytest.mark.night)]


def seed():
    return random.random() if schedule.DEEP else schedule.DAY


@pytest.fixture
async def shop(service):
    """A shop with something behind every address, whoever asks of it, and what is open to all."""
    seller, ids = await filled_shop(SellerBuilder(service))
    owner = await signed_in(seller)
    staff = await joined(seller, f"staff-{seller.email}")
    await buys(seller)
    opened = await seller.http.patch("/api/buying/buylist", json={"is_open": True})
    assert opened.status_code == 200, opened.text
    card = (await seller.cards())[0]
    line = {"product_id": card["product_id"], "condition": "NM", "copies": 2, "cash_each": "1.00"}
    offer = await done(seller, await drafted(seller, line), "offer")
    link = await seller.post(f"/api/buying/offers/{offer['id']}/link")
    pulled = await owner.post("/api/pull_links", json={"session_id": ids["session_id"]})
    ids |= {"marketplace_id": card["marketplace_id"], "product_id": card["product_id"]}
    public = [
        f"{opened.json()['path']}?cart={card['product_id']}-NM-0-1",
        f"{opened.json()['path']}?q=lotus",
        link.json()["url"].removeprefix(service.settings.origin),
        pulled.json()["links"][0]["url"].removeprefix(service.settings.origin),
        "/sign-in", "/sign-in?next=/cards",
    ]  # fmt: skip
    return seller, ids, owner, staff, public


async def failures(requests, send, service):
    """Send them; return those that the service failed at. What was accepted is worked off."""
    failed = []
    for number, asked in enumerate(requests, 1):
        answer = await send(asked)
        if answer.status_code >= 500:
            failed.append(f"{answer.status_code} {asked}: {answer.text[:200]}")
        if number % 100 == 0:
            await service.run_jobs()
        if len(failed) == MOST_SHOWN:
            break
    await service.run_jobs()
    return failed


@pytest.mark.parametrize("count", counted())
async def test_no_route_fails_at_an_odd_request(shop, count):
    seller, ids, owner, staff, _ = shop
    assistant, tokens = await connected(seller, access="write")
    fuzz = Fuzz(seed(), ids)
    async with assistant.bearer(tokens) as http, seller.service.client() as stranger:
        callers = [seller.http.request] * 3 + [owner.send] * 4
        callers += [staff.send, http.request, stranger.request]

        async def send(asked: Asked):
            ask = fuzz.dice.choice(callers)
            return await ask(asked.method, asked.path, content=asked.body, headers=asked.headers)

        requests = (fuzz.of_routes() for _ in range(count))
        assert await failures(requests, send, seller.service) == []


@pytest.mark.night
@pytest.mark.parametrize("count", counted()[1:])
async def test_no_page_fails_at_an_odd_form_or_address(shop, count):
    seller, ids, owner, staff, _ = shop
    fuzz = Fuzz(seed(), ids)
    addresses = [page.address(ids) for page in built("page")]
    assert (
        await sent_forms(fuzz, addresses, [owner.http, owner.http, staff.http], count, seller) == []
    )


@pytest.mark.parametrize("count", counted())
async def test_no_public_page_fails_at_an_odd_form_or_address(shop, count):
    seller, ids, _, _, public = shop
    fuzz = Fuzz(seed(), ids)
    async with seller.service.client() as stranger:
        assert await sent_forms(fuzz, public, [stranger], count, seller) == []


async def sent_forms(fuzz, addresses, clients, count, seller):
    forms = []

    async def send(asked: Asked):
        client = fuzz.dice.choice(clients)
        return await client.request(
            asked.method, asked.path, content=asked.body, headers=asked.headers
        )

    async def read():
        forms.clear()
        for address in addresses:
            page = await clients[0].get(address)
            assert page.status_code < 500, address
            forms.extend(
                form
                for form in Forms(page.text, address).found
                if form.action.startswith("/") and not LEFT_OUT.search(form.action)
            )
        assert forms

    failed = []
    for begun in range(0, count, FORMS_READ_EVERY):
        await read()
        requests = (
            fuzz.of_form(fuzz.dice.choice(forms))
            for _ in range(min(FORMS_READ_EVERY, count - begun))
        )
        failed += await failures(requests, send, seller.service)
        if failed:
            break
    return failed
