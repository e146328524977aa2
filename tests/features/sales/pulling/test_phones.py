"""Phones that pull, over HTTP: links, marks in any order and any number of times, claims, and what
they do to the orders; and the pages at the desk and on the phone.
"""

import asyncio
import re

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop
from builders import an_order as uploaded_order
from cards_builder import a_place, card_ids
from cardsync.platform import errors
from cardsync.platform.database.notify import Notices
from cardsync.sales.limits import PULL_LINK_STREAMS
from cardsync.sales.orders.pull_sessions import PULLS
from cardsync.sales.pulling.event_streams import PullStreams
from orders_builder import an_item, an_order, change_order

HOSTILE = '<b onclick="x">A & B</b>'
ESCAPED = "&lt;b onclick=&#34;x&#34;&gt;A &amp; B&lt;/b&gt;"
BUYER = "Ada Buyer-Secret"


class Phone:
    def __init__(self, seller, url, device="device-1", person="Bea"):
        self.path = url[url.index("/p/") :]
        self.id = int(self.path.split("-")[1])
        self.http = seller.service.client()
        self.device, self.person = device, person

    async def queue(self):
        answer = await self.http.get(f"{self.path}/queue", params={"device": self.device})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def send(self, *marks):
        body = {"device": self.device, "person": self.person, "marks": list(marks)}
        return self.http.post(f"{self.path}/marks", json=body)

    async def sent(self, *marks):
        answer = await self.send(*marks)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def claim(self, item):
        body = {"device": self.device, "item_id": item}
        return (await self.http.post(f"{self.path}/claims", json=body)).json()["claimed"]


def mark(id, item, kind="pulled", **more):
    return {"id": f"mark-{id:04}", "kind": kind, "item_id": item, **more}


@pytest.fixture
async def shop(a_seller):
    rows = (a_row(n, name=f"Card {n}", quantity=5) for n in (1, 2))
    seller = await a_shop(a_seller, *rows)
    ids = await card_ids(seller)
    await a_place(seller, ids[2], 1, 4, 5)
    return seller


async def a_pull(shop, owner):
    """Two orders, three lines of two games."""
    first = await an_order(shop, buyer_name=BUYER, city="Secretville", postal_code="98765")
    one = await an_item(shop, first, sku_id=1, product_name="Card 1", quantity=2)
    two = await an_item(shop, first, sku_id=2, product_name=HOSTILE)
    second = await an_order(shop, buyer_name=BUYER, shipping_type="tracked")
    other = await an_item(shop, second, product_line="pokemon", product_name="Pikachu")
    session = (await shop.post("/api/pull_sessions", json={})).json()["id"]
    answer = await owner.post("/api/pull_links", json={"session_id": session})
    assert answer.status_code == 201, answer.text
    links = {link["product_line"]: link["url"] for link in answer.json()["links"]}
    return session, (first, second), (one, two, other), links


async def orders(shop, session):
    found = (await shop.get(f"/api/pull_sessions/{session}")).json()
    return {order["id"]: order for order in found["orders"]}


@pytest.mark.night
async def test_the_queue_is_in_shelf_order_and_of_one_game(shop):
    owner = await signed_in(shop)
    _session, _, (one, two, other), links = await a_pull(shop, owner)
    queue = await Phone(shop, links["magic"]).queue()
    assert [line["item_id"] for line in queue["lines"]] == [two, one]
    assert [(x["place"], x["wanted"], x["state"]) for x in queue["lines"]] == [
        ("1-4", 1, "waiting"),
        (None, 2, "waiting"),
    ]
    queue = await Phone(shop, links["pokemon"]).queue()
    assert [line["item_id"] for line in queue["lines"]] == [other]
    refused = await Phone(shop, links["pokemon"]).send(mark(1, one))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_payload")


async def test_a_phone_shows_the_cards_of_its_own_game(shop):
    owner = await signed_in(shop)
    _, _, _, links = await a_pull(shop, owner)
    phone, other = Phone(shop, links["magic"]), Phone(shop, links["pokemon"])
    line = (await phone.queue())["lines"][0]
    page = await phone.http.get(phone.path)
    address = f"{phone.path}/img/{line['item_id']}/large"
    assert f'src="{address}"' in page.text
    drawn = await phone.http.get(address)
    assert (drawn.status_code, drawn.headers["content-type"]) == (200, "image/svg+xml")
    assert "private" in drawn.headers["cache-control"]
    strange = await other.http.get(f"{other.path}/img/{line['item_id']}/large")
    assert strange.status_code == 404


async def test_marks_count_once_and_the_order_is_pulled(shop):
    owner = await signed_in(shop)
    session, (first, _), (one, two, _), links = await a_pull(shop, owner)
    a, b = (Phone(shop, links["magic"], f"device-{n}", f"P{n}") for n in (1, 2))
    await a.sent(mark(1, one), mark(1, one))
    await a.sent(mark(1, one))
    assert (await a.queue())["progress"]["pulled"] == 1
    told = await b.sent(mark(2, one, quantity=2), mark(3, two))
    assert [(x["outcome"], x["put_back"]) for x in told["outcomes"]] == [
        ("surplus", 1),
        ("counted", 0),
    ]
    assert told["progress"]["by_person"] == {"P1": 1, "P2": 2}
    assert (await orders(shop, session))[first]["pulled_at"]
    await a.sent(mark(4, two, "undo", undoes="mark-0003"))
    assert (await orders(shop, session))[first]["pulled_at"] is None


async def test_an_undo_that_comes_first_takes_back_all_the_same(shop):
    owner = await signed_in(shop)
    _session, _, (one, _, _), links = await a_pull(shop, owner)
    phone = Phone(shop, links["magic"])
    await phone.sent(mark(2, one, "undo", undoes="mark-0001"))
    told = await phone.sent(mark(1, one))
    assert told["outcomes"][0]["outcome"] == "undone"
    assert told["progress"]["pulled"] == 0


@pytest.mark.night
async def test_a_missing_card_is_for_audit_and_its_order_for_review(shop):
    owner = await signed_in(shop)
    session, (first, _), (one, _, _), links = await a_pull(shop, owner)
    phone = Phone(shop, links["magic"])
    await phone.sent(mark(1, one, "missing"))
    order = (await orders(shop, session))[first]
    assert order["missing_at"]
    assert order["needs_review"]
    assert (await shop.get(f"/api/pull_sessions/{session}")).json()["review_count"] == 1
    found = await shop.get("/api/cards", params={"search": "is:audit"})
    assert [card["product_name"] for card in found.json()["cards"]] == ["Card 1"]
    await phone.sent(mark(2, one, "undo", undoes="mark-0001"))
    assert (await orders(shop, session))[first]["missing_at"] is None
    assert (await shop.get("/api/cards", params={"search": "is:audit"})).json()["cards"] == []


@pytest.mark.night
async def test_an_order_cancelled_meanwhile_stops_its_lines(shop):
    owner = await signed_in(shop)
    session, (first, _), (one, _, _), links = await a_pull(shop, owner)
    phone = Phone(shop, links["magic"])
    await phone.sent(mark(1, one))
    await change_order(shop, first, status="Canceled")
    told = await phone.sent(mark(2, one))
    assert {line["state"] for line in told["lines"]} == {"stopped"}
    assert told["lines"][-1]["surplus"] == 2
    assert told["lines"][0]["changed"] == ["status"]
    assert told["outcomes"][0] == {"id": "mark-0002", "outcome": "surplus", "put_back": 1}
    await shop.post(f"/api/pull_sessions/{session}/orders/{first}/unassign")
    assert (await phone.sent(mark(3, one)))["outcomes"][0]["outcome"] == "gone"


async def test_a_card_is_claimed_by_one_phone(shop):
    owner = await signed_in(shop)
    _, _, (one, two, _), links = await a_pull(shop, owner)
    a, b = (Phone(shop, links["magic"], f"device-{n}") for n in (1, 2))
    assert sorted(await asyncio.gather(a.claim(one), b.claim(one))) == [False, True]
    holder, other = (a, b) if await a.claim(one) else (b, a)
    line = next(x for x in (await other.queue())["lines"] if x["item_id"] == one)
    assert line["claimed"]
    assert await holder.claim(two)
    assert await other.claim(one)


async def test_two_phones_pull_one_copy_at_once(shop):
    owner = await signed_in(shop)
    _, _, (_, two, _), links = await a_pull(shop, owner)
    a, b = (Phone(shop, links["magic"], f"device-{n}") for n in (1, 2))
    told = await asyncio.gather(a.sent(mark(1, two)), b.sent(mark(2, two)))
    assert sorted(one["outcomes"][0]["outcome"] for one in told) == ["counted", "surplus"]
    assert (await a.queue())["progress"]["pulled"] == 1


async def test_no_answer_behind_a_link_names_a_buyer(shop):
    owner = await signed_in(shop)
    _, _, (one, _, _), links = await a_pull(shop, owner)
    phone = Phone(shop, links["magic"])
    told = [
        await phone.http.get(phone.path),
        await phone.http.get(f"{phone.path}/queue"),
        await phone.send(mark(1, one)),
        await phone.http.get("/p/worker.js"),
    ]
    for answer in told:
        assert answer.status_code == 200
        assert not re.search("Buyer-Secret|Secretville|98765", answer.text)
        assert "set-cookie" not in answer.headers


@pytest.mark.night
@pytest.mark.parametrize("how", ["revoked", "completed", "cancelled"])
async def test_a_link_ends(shop, how):
    owner = await signed_in(shop)
    staff = await joined(shop, f"staff-{shop.email}")
    session, _, (one, _, _), links = await a_pull(shop, owner)
    phone = Phone(shop, links["magic"])
    listed = (await staff.get("/api/pull_links", params={"session_id": session})).json()["links"]
    assert len(listed) == 2
    assert "url" not in listed[0]
    if how == "revoked":
        for link in listed:
            answer = await staff.send("DELETE", f"/api/pull_links/{link['id']}")
            assert answer.json()["revoked_at"], answer.text
    else:
        await shop.post(f"/api/pull_sessions/{session}/{how[:6].removesuffix('t')}")
        await shop.post(f"/api/pull_sessions/{session}/complete")
    for answer in (
        await phone.http.get(f"{phone.path}/queue"),
        await phone.send(mark(1, one)),
    ):
        assert (answer.status_code, answer.json()["code"]) == (410, "pull_link_ended")
    page = await phone.http.get(phone.path)
    assert (page.status_code, "ask at the desk" in page.text) == (410, True)


async def test_a_guessed_or_foreign_token_opens_nothing(shop, a_seller):
    owner = await signed_in(shop)
    _, _, _, links = await a_pull(shop, owner)
    stranger = await a_seller()
    seller, link, secret = Phone(shop, links["magic"]).path.removeprefix("/p/").split("-", 2)
    for token in (
        f"{seller}-{link}-{'A' * 43}",
        f"{stranger.id}-{link}-{secret}",
        f"{seller}-{int(link) + 999}-{secret}",
        "nonsense",
    ):
        answer = await shop.service.client().get(f"/p/{token}/queue")
        assert (answer.status_code, answer.json()["code"]) == (410, "pull_link_ended")


async def test_a_stream_tells_of_a_mark(shop):
    owner = await signed_in(shop)
    _, _, (one, _, _), links = await a_pull(shop, owner)
    streams = shop.service.app.state.pull_streams

    async def still_open():
        return True

    events = streams.events(shop.id, 0, still_open)
    assert "event: changed" in await anext(events)
    waiting = asyncio.ensure_future(anext(events))
    await Phone(shop, links["magic"]).sent(mark(1, one))
    async with asyncio.timeout(5):
        assert "event: changed" in await waiting
    await events.aclose()


class Listening:
    """A page that listens on a process of its own making: what it heard, and when it ended."""

    def __init__(self, shop, streams, link):
        self.told = []
        parts = streams.events(shop.id, link.id, lambda: self._open(shop, link))
        self.task = asyncio.ensure_future(self._listen(parts))

    @staticmethod
    async def _open(shop, link):
        answer = await link.http.get(f"{link.path}/queue")
        return answer.status_code == 200

    async def _listen(self, parts):
        async for part in parts:
            self.told.append(part)


async def a_second_link(owner, session):
    body = {"session_id": session, "product_line": "magic"}
    return (await owner.post("/api/pull_links", json=body)).json()["links"][0]["url"]


async def test_a_leaked_link_leaves_streams_to_the_others_and_revoking_frees_its_own(shop):
    owner = await signed_in(shop)
    session, _, _, links = await a_pull(shop, owner)
    leaked = Phone(shop, links["magic"])
    other = Phone(shop, await a_second_link(owner, session))
    streams = [shop.service.app.state.pull_streams, PullStreams()]
    ear = Notices(shop.service.database.url)
    ear.on(PULLS, streams[1].changed)
    async with ear.listening():
        pages = [
            Listening(shop, process, leaked)
            for process in streams
            for _ in range(PULL_LINK_STREAMS)
        ]
        for process in streams:
            with pytest.raises(errors.RateLimited):
                Listening(shop, process, leaked)
        refused = await leaked.http.get(f"{leaked.path}/changes")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        for process in streams:
            for link in (other.id, 0):
                await process.events(shop.id, link, lambda: asyncio.sleep(0, True)).aclose()
        answer = await owner.send("DELETE", f"/api/pull_links/{leaked.id}")
        assert answer.json()["revoked_at"], answer.text
        async with asyncio.timeout(5):
            await asyncio.gather(*(page.task for page in pages))
    assert all("event: ended" in page.told[-1] for page in pages)
    for process in streams:
        await process.events(shop.id, leaked.id, lambda: asyncio.sleep(0, True)).aclose()


async def test_a_leaked_link_leaves_room_for_other_marks_and_revoking_frees_its_own(shop, limited):
    limited("PULL_LINK_MARKS", 4)
    limited("PULL_LINK_MARKS_A_COPY", 1)
    limited("PULL_MARKS", 9)
    owner = await signed_in(shop)
    session, (first, second), (one, two, _), links = await a_pull(shop, owner)
    leaked = Phone(shop, links["magic"])
    other = Phone(shop, await a_second_link(owner, session))
    # Three copies of the game: the link has seven marks.
    flood = [mark(n, two, "defer") for n in range(7)]
    await leaked.sent(*flood)
    await leaked.sent(*flood)
    refused = await leaked.send(mark(7, two, "defer"))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_payload")
    assert "this link" in refused.json()["error"]
    await other.sent(mark(11, one), mark(12, one))
    assert "at most 9 marks" in (await other.send(mark(13, two))).json()["error"]
    answer = await shop.post(f"/api/pull_sessions/{session}/orders/{second}/pulled")
    assert answer.status_code in (200, 201), answer.text
    await owner.send("DELETE", f"/api/pull_links/{leaked.id}")
    assert (await other.sent(mark(13, two)))["progress"]["pulled"] == 3
    assert (await orders(shop, session))[first]["pulled_at"]


async def test_the_desk_opens_a_pull_prints_its_cover_and_ends_it(shop):
    staff = await joined(shop, f"desk-{shop.email}")
    page = await staff.get("/pulls")
    assert "No orders can be pulled" in page.text
    first = await an_order(shop, buyer_name=HOSTILE)
    await an_item(shop, first, sku_id=1, product_name=HOSTILE)
    assert "1 order is ready" in (await staff.get("/pulls")).text
    assert (await staff.http.post("/pulls", data={})).status_code == 403
    answer = await staff.form("/pulls")
    assert answer.status_code == 303, answer.text
    path = answer.headers["location"].partition("?")[0]
    page = await staff.get(path)
    assert ESCAPED in page.text
    assert HOSTILE not in page.text
    told = (await shop.get(f"/api/pull_sessions/{path.split('/')[-1]}")).json()
    assert f"0 of {told['order_count']}" in page.text
    cover = await staff.form(f"{path}/cover")
    assert cover.status_code == 200
    assert "data:image/svg+xml" in cover.text
    assert HOSTILE not in cover.text
    assert ESCAPED not in cover.text
    url = re.search(r'href="(http[^"]*/p/[^"]+)"', cover.text)[1]
    page = (await staff.get(path)).text
    assert "Revoke this code" in page
    assert "1 other code" in page
    answer = await staff.form(f"{path}/orders/{first}/pulled")
    assert answer.status_code == 303
    assert (await shop.get(f"/api/pull_sessions/{told['id']}")).json()["pulled_count"] == 1
    assert (await staff.form(f"{path}/complete")).status_code == 303
    assert f"Pull {told['id']}" in (await staff.get("/pulls")).text
    assert (await shop.service.client().get(url[url.index("/p/") :])).status_code == 410


async def test_an_address_puts_no_words_into_our_mouth(shop):
    owner = await signed_in(shop)
    _, _, _, links = await a_pull(shop, owner)
    forged = {"done": "Your account is locked: call 555-0100"}
    for http, path in (
        (owner.http, "/today"),
        (owner.http, "/pulls"),
        (shop.service.client(), Phone(shop, links["magic"]).path),
    ):
        assert "555-0100" not in (await http.get(path, params=forged)).text
        page = (await http.get(path, params={"done": "phone_surplus.2"})).text
        assert "2 are no longer needed" in page


async def test_a_phone_without_scripts_pulls_by_forms(shop):
    owner = await signed_in(shop)
    session, (first, _), _, links = await a_pull(shop, owner)
    http = shop.service.client()
    path = Phone(shop, links["magic"]).path
    for _ in range(2):
        page = await http.get(path, params={"device": "form-device"})
        assert HOSTILE not in page.text
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text.split("</form>")[0]))
        assert fields["kind"] == "pulled"
        for _ in range(2):
            answer = await http.post(path, data=fields)
            assert answer.status_code == 303, answer.text
    assert (await orders(shop, session))[first]["pulled_at"]
    assert "All done here" in (await http.get(path)).text


async def test_a_phone_says_that_some_copies_are_there_and_the_rest_is_missing(shop):
    owner = await signed_in(shop)
    session, (first, *_), (one, two, _), links = await a_pull(shop, owner)
    phone = Phone(shop, links["magic"])
    await phone.sent(mark(1, two))
    http = shop.service.client()
    page = (await http.get(phone.path, params={"device": "form-device"})).text
    [line] = [line for line in (await phone.queue())["lines"] if line["item_id"] == one]
    assert line["wanted"] == 2
    forms = [
        dict(re.findall(r'name="(\w+)" value="([^"]*)"', form)) for form in page.split("</form>")
    ]
    ways = [form for form in forms if form.get("kind") == "missing"]
    assert [form.get("found", "") for form in ways] == ["", "1", "", ""]
    assert [form.get("reason", "") for form in ways] == ["", "", "damaged", "other_card"]
    assert "Only 1 of 2 here" in page
    for _ in range(2):
        answer = await http.post(phone.path, data=ways[1])
        assert answer.status_code == 303, answer.text
    [line] = [line for line in (await phone.queue())["lines"] if line["item_id"] == one]
    assert (line["state"], line["pulled"]) == ("missing", 1)
    assert (await orders(shop, session))[first]["missing_at"]
    bad = await http.post(phone.path, data=ways[1] | {"found": "-1"})
    assert bad.status_code == 422


@pytest.mark.night
async def test_what_the_desk_marks_stands_on_the_phones_and_can_be_taken_back_there(shop):
    owner = await signed_in(shop)
    session, (first, _), (one, two, _), links = await a_pull(shop, owner)
    phone = Phone(shop, links["magic"])
    await phone.sent(mark(1, one))
    told = []
    events = shop.service.app.state.pull_streams.events(shop.id, 0, lambda: asyncio.sleep(0, True))
    await anext(events)
    waiting = asyncio.ensure_future(anext(events))
    answer = await shop.post(f"/api/pull_sessions/{session}/orders/{first}/pulled")
    assert answer.status_code in (200, 201), answer.text
    async with asyncio.timeout(5):
        told.append(await waiting)
    await events.aclose()
    assert "event: changed" in told[0]
    queue = await phone.queue()
    assert {line["item_id"]: (line["state"], line["pulled"]) for line in queue["lines"]} == {
        one: ("pulled", 2),
        two: ("pulled", 1),
    }
    assert queue["progress"]["by_person"] == {"Bea": 1, "Desk": 2}
    # A mark that was made without a network meanwhile brings a copy too many.
    late = await phone.sent(mark(2, two))
    assert late["outcomes"][0] == {"id": "mark-0002", "outcome": "surplus", "put_back": 1}
    await phone.sent(mark(3, two, "undo", undoes="mark-0002"))
    desk = next(line for line in queue["lines"] if line["item_id"] == two)["last_mark"]
    await phone.sent(mark(4, two, "undo", undoes=desk))
    assert (await orders(shop, session))[first]["pulled_at"] is None


@pytest.mark.night
async def test_an_order_deferred_at_the_desk_comes_last_on_the_phones(shop):
    owner = await signed_in(shop)
    session, (first, _), (one, two, _), links = await a_pull(shop, owner)
    await shop.post(f"/api/pull_sessions/{session}/orders/{first}/defer")
    queue = await Phone(shop, links["magic"]).queue()
    assert {line["state"] for line in queue["lines"]} == {"deferred"}
    assert {line["item_id"] for line in queue["lines"]} == {one, two}


@pytest.mark.night
async def test_an_upload_of_orders_wakes_the_phones(shop):
    owner = await signed_in(shop)
    await a_pull(shop, owner)
    events = shop.service.app.state.pull_streams.events(shop.id, 0, lambda: asyncio.sleep(0, True))
    await anext(events)
    waiting = asyncio.ensure_future(anext(events))
    await shop.orders([uploaded_order("A-77")])
    async with asyncio.timeout(5):
        assert "event: changed" in await waiting
    await events.aclose()


async def test_a_missing_card_is_settled_by_the_count_of_its_box(shop):
    owner = await signed_in(shop)
    _, _, (_, two, _), links = await a_pull(shop, owner)
    await Phone(shop, links["magic"]).sent(mark(1, two, "missing"))

    async def audited():
        found = await shop.get("/api/cards", params={"search": "is:audit"})
        return [card["product_name"] for card in found.json()["cards"]]

    assert await audited() == ["Card 2"]
    count = (await owner.post("/api/counts", json={"box": 1})).json()["id"]
    card = (await card_ids(shop))[2]
    seen = {"cards": [{"card_id": card, "slot": 4, "quantity": 0}]}
    answer = await owner.post(f"/api/counts/{count}/seen", json=seen)
    assert answer.status_code in (200, 201), answer.text
    assert await audited() == ["Card 2"]
    settled = await owner.post(f"/api/counts/{count}/settle", json={})
    assert settled.status_code in (200, 201), settled.text
    assert await audited() == []
    await Phone(shop, links["magic"]).sent(mark(2, two, "missing"))
    assert await audited() == ["Card 2"]


@pytest.mark.night
async def test_a_second_cover_says_that_the_first_one_works_on(shop):
    owner = await signed_in(shop)
    session, _, _, links = await a_pull(shop, owner)
    cover = await owner.form(f"/pulls/{session}/cover")
    assert "Earlier codes still work" in cover.text
    assert (await Phone(shop, links["magic"]).queue())["lines"]


@pytest.mark.night
async def test_a_link_that_ended_still_opens_the_marks_that_the_phone_kept(shop):
    owner = await signed_in(shop)
    session, _, _, links = await a_pull(shop, owner)
    await shop.post(f"/api/pull_sessions/{session}/cancel")
    phone = Phone(shop, links["magic"])
    page = await phone.http.get(phone.path)
    assert page.status_code == 410
    assert 'id="kept"' in page.text
    assert f'data-token="{phone.path.removeprefix("/p/")}"' in page.text
