"""The public buylist: closed until the owner opens it, both prices in each condition, and a cart that
becomes a draft offer. Nothing of the shop's or of another visitor's is to be seen there.
"""

import asyncio
import re
import uuid
from datetime import timedelta

import psycopg
import pytest

from browsers import joined
from builders import a_csv, a_row, a_shop, undo_newest
from buying_builder import a_catalog
from cardsync.buying.limits import BUYLIST_DRAFT_DAYS
from cardsync.buying.offers import expired_offers
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from offers_builder import buys, done
from world import refusal


@pytest.fixture
async def word():
    return f"z{uuid.uuid4().hex[:10]}"


@pytest.fixture
async def seller(a_seller, owner_url, word):
    """A shop whose two cards are in the catalog, under a word that no other card has."""
    rows = [a_row(id, name=f"{word} Bolt {id}", market=f"{id}.00") for id in (10, 20)]
    seller = await a_shop(a_seller, *rows)
    await buys(seller)
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as connection:
        connection.execute(
            "UPDATE product SET provisional = false WHERE product_name LIKE %s", (f"{word}%",)
        )
    return seller


async def opened(seller, **fields):
    body = {"is_open": True, **fields}
    answer = await seller.http.patch("/api/buying/buylist", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["path"]


async def test_it_is_closed_until_the_owner_opens_it(seller, a_seller):
    path = (await seller.get("/api/buying/buylist")).json()["path"]
    async with seller.service.client() as visitor:
        closed = await visitor.get(path)
        unknown = await visitor.get("/buylist/999999999")
        assert (closed.status_code, unknown.status_code) == (404, 404)
        assert closed.text == unknown.text
        assert (await visitor.get(f"/buylist/{2**70}")).status_code == 404
        await opened(seller, terms="We buy <b>Magic</b>.")
        page = await visitor.get(path)
        assert page.status_code == 200
        assert "We buy &lt;b&gt;Magic&lt;/b&gt;." in page.text
        assert "set-cookie" not in page.headers
        assert (await undo_newest(seller, "buylist.changed")).status_code == 200
        assert (await visitor.get(path)).status_code == 404
    staff = await joined(seller, "bea@example.invalid")
    answer = await staff.send("PATCH", "/api/buying/buylist", json={"is_open": True})
    assert refusal(answer) == (403, "owner_required")


async def test_a_visitor_searches_fills_a_cart_and_sends_it(seller, word, capfd):
    path = await opened(seller)
    async with seller.service.client() as visitor:
        found = await visitor.get(path, params={"q": f"{word} bolt"})
        assert "Bolt 10" in found.text
        assert "Bolt 20" in found.text
        assert found.text.count('<option value="LP">LP,') == 2
        assert all(f'id="card-{at}"' in found.text for at in (1, 2))
        [first, *_] = re.findall(r'name="(copies:\d+:\d+)"', found.text)
        chosen = {first: "3", first.replace("copies", "condition"): "LP", "q": word}
        filled = await visitor.get(path, params=chosen)
        cart = re.findall(r'name="cart" value="([^"]+)"', filled.text)
        assert re.fullmatch(r"\d+-LP-0-3", cart[0])
        form = {"cart": cart[0], "name": "Zed Zimmer", "contact": "zed@example.invalid"}
        missing = await visitor.post(path, data=form | {"contact": " "})
        assert missing.status_code == 422
        assert 'value="Zed Zimmer"' in missing.text
        sent = await visitor.post(path, data=form | {"note": "on Friday"})
        assert sent.status_code == 303
        assert "Your cart is sent" in (await visitor.get(sent.headers["Location"])).text
        for leak in ("Zed", "zed@"):
            assert leak not in (await visitor.get(path, params={"q": word})).text
    [offer] = (await seller.get("/api/buying/offers")).json()["offers"]
    assert (offer["state"], offer["source"], offer["customer_name"]) == (
        "draft",
        "buylist",
        "Zed Zimmer",
    )
    assert offer["note"] == "on Friday"
    offer = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()
    assert [(x["copies"], x["condition"]) for x in offer["lines"]] == [(3, "LP")]
    assert (await done(seller, offer, "offer"))["state"] == "offered"
    assert "Zed" not in capfd.readouterr().err


async def test_it_shows_the_dearest_cards_before_anything_is_typed(seller, word):
    """With their pictures, and what each brings; a card that only this shop knows is nobody's."""
    bolts = [a_row(id, name=f"{word} Bolt {id}", market=f"{id}.00") for id in (10, 20)]
    await seller.import_csv(a_csv(*bolts, a_row(99, name=f"{word} Own", market="500.00")))
    path = await opened(seller, terms="Cash on Fridays.")
    async with seller.service.client() as visitor:
        page = (await visitor.get(path)).text
        assert page.index(f"{word} Bolt 20") < page.index(f"{word} Bolt 10")
        assert f"{word} Own" not in page
        assert '<section class="sheet" id="terms">' in page
        [picture, *_] = re.findall(rf'src="({path}/img/[0-9]+/medium)"', page)
        drawn = await visitor.get(picture)
        assert (drawn.status_code, drawn.headers["Content-Type"]) == (200, "image/svg+xml")
        assert (await visitor.get(f"{path}/img/1/huge")).status_code == 404
        assert (await visitor.get("/buylist/999999999/img/1/small")).status_code == 404
        games = (await visitor.get(path, params={"game": "pokemon"})).text
        assert f"{word} Bolt" not in games


async def test_a_line_of_several_prices_leaves_the_cart_at_once(seller, word):
    """A rule with room for some copies makes two lines of them; one cross takes both away."""
    [rule] = (await seller.get("/api/buying/rules")).json()["rules"]
    limit = await seller.http.patch(f"/api/buying/rules/{rule['id']}", json={"most_copies": 4})
    assert limit.status_code == 200, limit.text
    path = await opened(seller)
    [card, other] = await seller.cards()
    carts = [f"{card['product_id']}-NM-0-9", f"{other['product_id']}-NM-0-1"]
    async with seller.service.client() as visitor:
        page = (await visitor.get(path, params={"cart": carts})).text
        assert page.count('class="cart-lines"') == 1
        crosses = re.findall(r'class="button plain square" href="([^"]+)"', page)
        assert len(crosses) == 2
        left = (await visitor.get(crosses[0].replace("&amp;", "&"))).text
        assert set(re.findall(r'name="cart" value="([^"]+)"', left)) == {carts[1]}


async def test_no_page_of_strangers_lacks_an_icon(seller):
    """A browser asks for one by itself where the page names none."""
    path = await opened(seller)
    async with seller.service.client() as visitor:
        for page in (path, "/o/1-1-x", "/p/1-1-x", "/sign-in"):
            named = re.search(r'<link rel="icon" href="([^"]+)"', (await visitor.get(page)).text)
            assert named, page
            assert (await visitor.get(named[1])).status_code == 200
        led = await visitor.get("/favicon.ico")
        assert led.status_code == 301
        assert (await visitor.get(led.headers["Location"])).status_code == 200


async def test_foils_of_a_product_without_a_finish_are_sold_as_well(
    a_seller, service, tmp_path, word
):
    """The catalog names the card once; the shop knows a price of it in two printings."""
    name = f"{word} Jaguar"
    products = await a_catalog(service, tmp_path, {"product_name": name, "number": "152"})
    seller = await a_seller(lines=["magic"])
    usual = {"name": name, "number": "152", "set": products.set_name}
    rows = [
        a_row(77, market="10.00", **usual),
        a_row(78, market="30.00", condition="Near Mint Foil", **usual),
    ]
    await seller.import_csv(a_csv(*rows))
    await buys(seller)
    path = await opened(seller)
    async with seller.service.client() as visitor:
        page = (await visitor.get(path, params={"q": name})).text
        keys = re.findall(r'name="copies:(\d+:\d+)"', page)
        assert [key.split(":")[1] for key in keys] == ["0", "1"]
        assert f'aria-label="Copies of {name}, Foil"' in page
        chosen = {f"copies:{keys[1]}": "2", f"condition:{keys[1]}": "NM", "q": name}
        filled = await visitor.get(path, params=chosen)
        [cart] = set(re.findall(r'name="cart" value="([^"]+)"', filled.text))
        form = {"cart": cart, "name": "Zed Zimmer", "contact": "zed@example.invalid"}
        assert (await visitor.post(path, data=form)).status_code == 303
    [offer] = (await seller.get("/api/buying/offers")).json()["offers"]
    [line] = (await seller.get(f"/api/buying/offers/{offer['id']}")).json()["lines"]
    assert (line["printing"], line["copies"]) == ("Foil", 2)
    assert float(line["cash_each"]) > 10


async def test_a_cart_of_anybodys_making_breaks_nothing(seller):
    path = await opened(seller)
    async with seller.service.client() as visitor:
        for cart in ("", "x", "1-NM-0-0", "1-XX-0-1", "1-NM-99-1", f"{10**17}-NM-0-1", "%00"):
            page = await visitor.get(path, params={"cart": cart})
            assert page.status_code in (200, 422), cart
            sent = await visitor.post(path, data={"cart": cart, "name": "A", "contact": "b"})
            assert sent.status_code == 422, cart
    assert (await seller.get("/api/buying/offers")).json()["offers"] == []


async def test_a_cart_of_cards_that_the_shop_does_not_buy_is_shown_and_sent(seller, word):
    for rule in (await seller.get("/api/buying/rules")).json()["rules"]:
        assert (await seller.http.delete(f"/api/buying/rules/{rule['id']}")).status_code == 200
    path = await opened(seller)
    [card, _] = await seller.cards()
    cart = f"{card['product_id']}-NM-0-1"
    async with seller.service.client() as visitor:
        page = await visitor.get(path, params={"cart": cart})
        assert (page.status_code, "not buying" in page.text) == (200, True)
        form = {"cart": cart, "name": "A", "contact": "b"}
        assert (await visitor.post(path, data=form)).status_code == 303


async def test_a_shop_takes_only_so_many_carts_whoever_races(seller, word, limited):
    limited("BUYLIST_DRAFTS", 3)
    path = await opened(seller)
    [card, _] = await seller.cards()
    form = {"cart": f"{card['product_id']}-NM-0-1", "name": "A", "contact": "b"}
    async with seller.service.client() as visitor:
        answers = await asyncio.gather(*(visitor.post(path, data=form) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [303] * 3 + [422] * 3
    assert len((await seller.get("/api/buying/offers")).json()["offers"]) == 3
    # A cart that nobody has looked at for a month makes room.
    month = clock.now() + timedelta(days=BUYLIST_DRAFT_DAYS, minutes=1)
    assert await expired_offers.expire(seller.service.database, month) >= 3
    async with seller.service.client() as visitor:
        assert (await visitor.post(path, data=form)).status_code == 303
    told = (await seller.get("/api/buying/offers?status=expired")).json()["offers"]
    assert len(told) == 3


STATES = {
    "as set up": {},
    "no terms": {"terms": ""},
    "terms of lines": {"terms": "One\n\nTwo\n"},
}


@pytest.mark.parametrize("state", STATES)
async def test_the_page_opens_in_each_state(seller, word, state):
    """A template that names what a state does not have ends the test, and would be a 500."""
    path = await opened(seller, **STATES[state])
    for what in ("bought", "no rule buys", "no stock is left"):
        if what == "no rule buys":
            for rule in (await seller.get("/api/buying/rules")).json()["rules"]:
                await seller.http.delete(f"/api/buying/rules/{rule['id']}")
        if what == "no stock is left":
            await seller.import_csv(a_csv(a_row(30, name="Another", quantity=0)))
        async with seller.service.client() as visitor:
            found = (await visitor.get(path, params={"q": word})).text
            named = re.findall(r'name="copies:(\d+):(\d+)"', found) or [("1", "0")]
            product, finish = named[0]
            for query in (
                {},
                {"q": ""},
                {"q": word},
                {"q": "no such card"},
                {"q": "x" * 500},
                {"q": word, "page": "2"},
                {"q": word, "page": "x"},
                {"cart": f"{product}-NM-{finish}-1"},
                {"cart": f"{product}-NM-{finish}-9999", "q": word},
                {"cart": f"{2**62}-NM-0-1"},
                {"cart": "x"},
                {f"copies:{product}:{finish}": "0"},
                {"sent": "1"},
                {"full": "1"},
            ):
                page = await visitor.get(path, params=query)
                assert page.status_code in (200, 422), (state, what, query, page.text)
                assert "<main" in page.text or page.status_code == 422
            sent = await visitor.post(path, data={"cart": f"{product}-NM-{finish}-1"})
            assert sent.status_code < 500, sent.text
