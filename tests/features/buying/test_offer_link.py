"""The customer's link shows one offer and nothing else, takes one answer, and ends with the offer."""

import asyncio
import re
from datetime import timedelta

import pytest
from markupsafe import escape

from browsers import joined
from cardsync.dashboard.pages import customer_offer
from cardsync.platform import clock
from offers_builder import a_customer, done, drafted, step, want
from world import refusal


async def with_link(seller, *lines):
    mia = await a_customer(seller, "Mia Moss")
    offer = await done(seller, await drafted(seller, *lines, customer_id=mia["id"]), "offer")
    answer = await step(seller, offer, "link")
    assert answer.status_code == 201, answer.text
    path = answer.json()["url"].removeprefix(seller.service.settings.origin)
    return offer, path


def ids(offer):
    return [str(line["id"]) for line in offer["lines"]]


async def test_a_customer_accepts_on_a_phone(seller):
    offer, path = await with_link(seller)
    async with seller.service.client() as phone:
        page = await phone.get(path)
        assert page.status_code == 200
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert "noindex" in page.headers["X-Robots-Tag"]
        assert "Bolt 20" in page.text
        for secret in ("Mia Moss", "explanation", "buy rule", seller.email):
            assert secret not in page.text
        form = {"revision": offer["revision"], "answer": "yes", "way": "cash"}
        answered = await phone.post(path, data=form | {"line": ids(offer)[:1]})
        assert answered.status_code == 303
        assert "You accepted" in (await phone.get(answered.headers["Location"])).text
    told = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()
    assert (told["state"], told["answered_by"], told["way"]) == ("accepted", "customer", "cash")
    assert [line["accepted"] for line in told["lines"]] == [True, False]


async def test_a_customer_sees_pictures_and_what_each_way_of_paying_brings(seller):
    lines = (await want(seller), await want(seller, "Bolt 10", 2))
    offer, path = await with_link(seller, *lines)
    async with seller.service.client() as phone:
        page = (await phone.get(path)).text
        assert f">${offer['totals']['credit']} store credit<" in page
        assert f">${offer['totals']['cash']} cash<" in page
        ways = re.findall(r'name="way" value="(\w+)"( checked)?', page)
        assert [way for way, _ in ways] == ["credit", "cash", "split"]
        assert [way for way, chosen in ways if chosen] == ["credit"]
        pictures = re.findall(rf'src="({path}/img/[0-9]+/small)"', page)
        assert len(pictures) == len(offer["lines"])
        assert (await phone.get(pictures[0])).status_code == 200
        assert "Sell your cards" not in page
        opened = await seller.http.patch("/api/buying/buylist", json={"is_open": True})
        assert opened.status_code == 200
        assert f'href="/buylist/{seller.id}"' in (await phone.get(path)).text


async def test_an_offer_in_cash_alone_asks_for_no_credit(seller):
    _, path = await with_link(seller, await want(seller, cash_each="3.10"))
    async with seller.service.client() as phone:
        page = (await phone.get(path)).text
    assert re.findall(r'name="way" value="(\w+)"', page) == ["cash"]
    assert "cash only" in page


async def test_a_customer_answers_a_page_of_a_long_offer(seller, monkeypatch):
    monkeypatch.setattr(customer_offer, "LINES_SHOWN", 1)
    offer, path = await with_link(seller)
    async with seller.service.client() as phone:
        page = await phone.get(path, params={"lines": "2"})
        shown = re.findall(r'name="shown" value="(\d+)"', page.text)
        assert shown == ids(offer)[1:]
        assert "cards on other pages" in page.text
        form = {"revision": offer["revision"], "answer": "yes", "way": "cash", "shown": shown}
        assert (await phone.post(path, data=form)).status_code == 303
    told = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()
    assert [line["accepted"] for line in told["lines"]] == [True, False]


async def test_a_customer_reads_the_shops_terms(seller):
    """The public buylist stays closed; its terms are those of every offer."""
    terms = {"terms": "Cash on <b>Fridays</b>.\nBring an ID."}
    assert (await seller.http.patch("/api/buying/buylist", json=terms)).status_code == 200
    long = {"terms": "x" * 2_001}
    assert (await seller.http.patch("/api/buying/buylist", json=long)).status_code == 422
    offer, path = await with_link(seller)
    async with seller.service.client() as phone:
        page = (await phone.get(path)).text
    staff = await joined(seller, f"bea-{seller.email}")
    sheet = (await staff.get(f"/print/offers/{offer['id']}")).text
    [name] = await seller.service.sql(
        seller.id, "SELECT name FROM seller WHERE id = :i", i=seller.id
    )
    for shown in (page, sheet):
        assert "<p><bdi>Cash on &lt;b&gt;Fridays&lt;/b&gt;.</bdi></p>" in shown
        assert "<p><bdi>Bring an ID.</bdi></p>" in shown
        assert f"<bdi>{escape(name['name'])}</bdi>" in shown


async def test_a_customer_declines_and_the_link_ends(seller):
    offer, path = await with_link(seller)
    async with seller.service.client() as phone:
        form = {"revision": offer["revision"], "answer": "no"}
        assert "You declined" in (await phone.post(path, data=form)).text
        assert (await phone.get(path)).status_code == 410
    told = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()
    assert told["state"] == "declined"


async def test_a_customer_does_not_decline_what_the_shop_has_received(seller):
    offer, path = await with_link(seller)
    async with seller.service.client() as phone:
        offer = await done(seller, offer, "accept", way="cash")
        offer = await done(seller, offer, "receive")
        form = {"revision": offer["revision"], "answer": "no"}
        refused = await phone.post(path, data=form)
        assert (refused.status_code, "has the cards" in refused.text) == (409, True)
    told = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()
    assert (told["state"], told["revision"]) == ("received", offer["revision"])
    assert (await done(seller, offer, "decline"))["state"] == "declined"


async def test_an_answer_that_makes_no_sense_changes_nothing(seller):
    offer, path = await with_link(seller)
    other = (await drafted(seller))["lines"][0]["id"]
    good = {"revision": offer["revision"], "answer": "yes", "way": "cash", "line": ids(offer)}
    async with seller.service.client() as phone:
        for bad in (
            {"revision": 1},
            {"way": "gold"},
            {"line": []},
            {"line": [str(other)]},
            {"way": "split", "cash_part": "much"},
            {"way": "split", "cash_part": "100000"},
        ):
            answer = await phone.post(path, data=good | bad)
            assert answer.status_code in (409, 422), bad
    told = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()
    assert (told["state"], told["revision"]) == ("offered", offer["revision"])


async def test_of_many_answers_at_once_one_counts(seller):
    offer, path = await with_link(seller)
    form = {"revision": offer["revision"], "way": "credit", "line": ids(offer)}
    async with seller.service.client() as phone:
        answers = await asyncio.gather(
            *(phone.post(path, data=form | {"answer": (n % 2 and "yes") or "no"}) for n in range(8))
        )
    assert [answer.status_code in (200, 303) for answer in answers].count(True) == 1


async def test_a_link_opens_nothing_but_its_offer(seller, a_seller, capfd):
    """Foreign, cut, guessed, replaced and ended tokens all answer the same page."""
    offer, path = await with_link(seller)
    _, foreign = await with_link(seller)
    stranger = await a_seller()
    shop, number, secret = path.removeprefix("/o/").split("-", 2)
    other_offer = foreign.removeprefix("/o/").split("-")[1]
    async with seller.service.client() as phone:
        for token in (
            f"{shop}-{other_offer}-{secret}",
            f"{stranger.id}-{number}-{secret}",
            f"{shop}-{number}-{secret[:-1]}",
            f"{shop}-{number}-{'A' * 43}",
            f"{shop}-{number}-",
            "1-1-x",
            "%00",
        ):
            answer = await phone.get(f"/o/{token}")
            assert answer.status_code == 410, token
            assert "opens no offer" in answer.text
        # The token is no credential of anything else.
        token = path.removeprefix("/o/")
        for other in (f"/p/{token}", "/api/buying/offers", f"/api/buying/offers/{number}"):
            answer = await phone.get(other, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code in (401, 404, 410), other
        again = await step(seller, offer, "link")
        assert (await phone.get(path)).status_code == 410
        newest = again.json()["url"].removeprefix(seller.service.settings.origin)
        assert (await phone.get(newest)).status_code == 200
        clock.shift(timedelta(days=8))
        assert (await phone.get(newest)).status_code == 410
    assert secret not in capfd.readouterr().err


async def test_a_link_is_made_for_an_open_offer_alone(seller):
    offer = await drafted(seller, await want(seller))
    assert refusal(await step(seller, offer, "link")) == (409, "offer_state_wrong")


async def test_the_secret_is_not_stored(seller):
    offer, path = await with_link(seller)
    secret = path.rsplit("-", 1)[1] if path.count("-") == 2 else path.split("-", 2)[2]
    [row] = await seller.service.sql(
        seller.id,
        "SELECT to_jsonb(o)::text AS said FROM buying_offer o WHERE seller_id = :id AND o.id = :offer",
        id=seller.id,
        offer=offer["id"],
    )
    assert secret not in row["said"]


@pytest.mark.parametrize("way", ["cash", "credit"])
async def test_the_link_opens_in_each_state_of_its_offer(seller, way):
    """A template that names what a state does not have would be a 500 for the customer."""
    lines = (await want(seller, cash_each="0"), await want(seller, "Bolt 10", 1))
    offer, path = await with_link(seller, *lines)
    steps = {"": {}, "accept": {"way": way}, "receive": {}, "pay": {}, "stock": {}}
    seen = {}
    async with seller.service.client() as phone:
        for name, body in steps.items():
            if name == "receive":
                changed = {"id": offer["lines"][1]["id"], "condition": "LP"}
                body = {"lines": [changed]}
            if name:
                offer = await done(seller, offer, name, **body)
            for query in ({}, {"lines": "2"}, {"lines": "none"}, {"answered": "yes"}):
                page = await phone.get(path, params=query)
                seen.setdefault(offer["state"], set()).add(page.status_code)
                assert "<main" in page.text
    assert seen.pop("in_stock") == {410}
    assert seen == {state: {200} for state in ("offered", "accepted", "received", "paid")}
