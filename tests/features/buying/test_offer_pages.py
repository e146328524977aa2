"""The pages of buying without a script: one offer by its forms from draft to stock, store credit, and
the public buylist's settings.
"""

import re

from browsers import signed_in
from cards_builder import a_place
from cardsync.dashboard.pages import offer_desk
from offers_builder import a_customer, done, drafted, step, want


async def form(owner, path, **fields):
    page = await owner.get(
        re.sub(r"/(offer|customer|accept|receive|pay|stock|link|save)$", "", path)
    )
    seen = re.search(r'name="revision" value="(\d+)"', page.text)
    fields = {"revision": seen[1] if seen else "", **fields}
    answer = await owner.form(path, **fields)
    assert answer.status_code in (200, 303), answer.text
    return answer


async def test_an_offer_goes_its_way_by_forms(seller):
    owner = await signed_in(seller)
    line = await want(seller, copies=2)
    offer = await drafted(seller, line)
    path = f"/buying/offers/{offer['id']}"
    found = await owner.get(path)
    assert "The buy rule" in found.text
    assert "Send offer" in found.text
    more = await want(seller, "Bolt 10")
    card = more["product_id"]
    added = {f"copies:{card}": "1", f"cash_each:{card}": "2.50", f"condition:{card}": "LP"}
    customer = {"name": "Mia <b>Moss</b>", "contact": "mia@x", "note": "counter"}
    await form(owner, f"{path}/save", **added, **customer)
    seen = str((await seller.get(f"/api{path}")).json()["revision"])
    for days in ("0", "-3"):
        refused = await owner.form(f"{path}/offer", revision=seen, days=days)
        assert refused.status_code == 422, days
    await form(owner, f"{path}/offer", days="3")
    made = await form(owner, f"{path}/link")
    assert "/o/" in made.text
    assert "data:image/svg" in made.text
    page = await owner.get(path)
    lines = re.findall(r'name="line" value="(\d+)"', page.text)
    assert len(lines) == 2
    await form(owner, f"{path}/accept", shown=lines, way="cash", line=lines)
    await form(owner, f"{path}/receive", **{f"came:{lines[0]}": "1", f"condition:{lines[0]}": "HP"})
    page = await owner.get(path)
    assert "1 of 2 copies were received." in page.text
    assert "Mia &lt;b&gt;Moss&lt;/b&gt;" in page.text
    sheet = await owner.get(f"/print/offers/{offer['id']}")
    assert "All in cash" in sheet.text
    await form(owner, f"{path}/pay", way="cash")
    assert "Signature" in (await owner.get(f"/print/offers/{offer['id']}")).text
    await form(owner, f"{path}/stock")
    assert "Publish the drafts" in (await owner.get(path)).text
    entries = (await seller.get("/api/quick_add")).json()["entries"]
    assert sorted((entry["quantity"], entry["condition"]) for entry in entries) == [
        (1, "HP"),
        (1, "LP"),
    ]
    listed = await owner.get("/buying/offers", params={"status": "in_stock"})
    assert f"Offer {offer['id']}" in listed.text


async def test_lines_of_other_pages_stay_accepted(seller, monkeypatch):
    """A long offer shows a part of its lines: nobody leaves out what they have not seen."""
    monkeypatch.setattr(offer_desk, "LINES_SHOWN", 1)
    owner = await signed_in(seller)
    lines = [await want(seller, name, cash_each="2.00") for name in ("Bolt 10", "Bolt 20")]
    made = await drafted(seller, *lines, await want(seller, copies=1, cash_each="3.00"))
    offer = await done(seller, made, "offer")
    path = f"/buying/offers/{offer['id']}"
    page = await owner.get(path)
    shown = re.findall(r'name="shown"\s+value="(\d+)"', page.text)
    assert shown == [str(offer["lines"][0]["id"])]
    assert "cards on other pages are accepted" in page.text.replace("\n ", "")
    await form(owner, f"{path}/accept", shown=shown, way="cash")
    offer = (await seller.get(f"/api{path}")).json()
    assert [line["accepted"] for line in offer["lines"]] == [False, True, True]


async def test_the_customer_stays_unless_another_is_chosen(seller, limited):
    limited("BUYING_CUSTOMERS_SHOWN", 1)
    mia, ada, _ = [await a_customer(seller, name) for name in ("Mia", "Ada", "Bo")]
    offer = await drafted(seller, customer_id=mia["id"])
    owner, path = await signed_in(seller), f"/buying/offers/{offer['id']}"
    page = await owner.get(path)
    chosen = re.search(r'value="(\d+)"\s+selected>Mia', page.text)
    for sent in (chosen[1], ""):
        await form(owner, f"{path}/save", customer_id=sent, note="counter")
        told = (await seller.get(f"/api{path}")).json()
        assert (told["customer_name"], told["note"]) == ("Mia", "counter")
    found = await owner.get(path, params={"customer": "ada"})
    assert f'value="{ada["id"]}"' in found.text
    await form(owner, f"{path}/save", customer_id=str(ada["id"]))
    assert (await seller.get(f"/api{path}")).json()["customer_name"] == "Ada"


async def test_a_new_offer_is_found_and_drafted(seller):
    owner = await signed_in(seller)
    assert "New offer" in (await owner.get("/buying/offers/new", params={"q": "zz"})).text
    line = await want(seller)
    copies = {f"copies:{line['product_id']}": "2", f"condition:{line['product_id']}": "NM"}
    made = await owner.form("/buying/offers/new", **copies)
    assert made.status_code == 303
    path = made.headers["Location"].partition("?")[0]
    offer = (await seller.get(path.replace("/buying", "/api/buying"))).json()
    only = offer["lines"][0]["id"]
    await form(owner, path + "/save", **{f"line-copies:{only}": "5"})
    offer = (await seller.get(path.replace("/buying", "/api/buying"))).json()
    assert offer["totals"]["copies"] == 5
    gone = await owner.form(f"{path}/delete")
    assert gone.headers["Location"].startswith("/buying/offers?done=offer_deleted")
    assert "undo=" in gone.headers["Location"]


async def test_store_credit_and_the_buylist_by_forms(seller):
    owner = await signed_in(seller)
    made = await owner.form("/buying/customers", name="Mia", contact="mia@x")
    path = made.headers["Location"].partition("?")[0]
    page = await owner.get(path)
    key = re.search(r'name="key" value="([^"]+)"', page.text)[1]
    entry = {"amount": "20.00", "reason": "gift", "key": key, "change": "add"}
    for _ in range(2):
        assert (await owner.form(f"{path}/credit", **entry)).status_code == 303
    assert "$20.00" in (await owner.get(path)).text
    assert (await owner.form(path, name="Mia Reed", contact="")).status_code == 303
    assert "Mia Reed" in (await owner.get("/buying/customers", params={"q": "reed"})).text
    saved = await owner.form("/buying/buylist", is_open="true", terms="We buy Magic.")
    assert saved.status_code == 303
    page = (await owner.get("/buying/buylist")).text
    assert ("<bdi>Live</bdi>" in page, f"/buylist/{seller.id}" in page) == (True, True)


async def test_a_draft_is_one_form_that_keeps_its_order_and_all_that_was_typed(seller):
    owner = await signed_in(seller)
    names = ("Bolt 10", "Bolt 20")
    offer = await drafted(seller, *[await want(seller, name, 3) for name in names])
    path = f"/buying/offers/{offer['id']}"
    ten, twenty = (line["id"] for line in offer["lines"])
    typed = {
        f"line-copies:{ten}": "2",
        f"line-cash_each:{ten}": "1.50",
        f"line-copies:{twenty}": "3",
        f"line-condition:{twenty}": "LP",
        "note": "at the counter",
    }
    seen = owner.form
    # The totals of the form as it stands; nothing is written.
    shown = await seen(f"{path}/preview", revision=str(offer["revision"]), **typed)
    assert shown.status_code == 200, shown.text
    assert (await seller.get(f"/api{path}")).json() == offer
    wrong = await seen(f"{path}/preview", **typed | {f"line-cash_each:{ten}": "a lot"})
    assert (wrong.status_code, "Bolt 10" in wrong.text) == (200, True)
    # A search in the same form loses nothing, and the rows stay where they are.
    answer = await form(owner, f"{path}/save", **typed, q="Bolt")
    assert "q=Bolt" in answer.headers["Location"]
    kept = (await seller.get(f"/api{path}")).json()
    rows = [(one["product_name"], one["copies"], one["condition"]) for one in kept["lines"]]
    assert rows == [("Bolt 10", 2, "NM"), ("Bolt 20", 3, "LP")]
    first = kept["lines"][0]
    # The credit that nobody typed stays what the rule pays.
    assert (first["by_hand"], first["cash_each"]) == (True, "1.50")
    assert first["credit_each"] == offer["lines"][0]["credit_each"]
    assert kept["note"] == "at the counter"
    assert f"${kept['totals']['cash']}" in shown.text
    # What is typed when the offer is sent is what is offered.
    first_id = first["id"]
    last = {f"line-copies:{first_id}": "1", f"line-cash_each:{first_id}": "2.00", "note": ""}
    await form(owner, f"{path}/offer", days="3", **last)
    sent = (await seller.get(f"/api{path}")).json()
    assert (sent["state"], sent["lines"][0]["cash_each"]) == ("offered", "2.00")
    assert sent["lines"][0]["copies"] == 1


async def test_the_desk_looks_for_the_customers_answer_and_gets_nothing_before_it(seller):
    """What is typed beside it stays: the page changes only once the offer has."""
    owner = await signed_in(seller)
    offer = await done(seller, await drafted(seller), "offer")
    path = f"/buying/offers/{offer['id']}"
    page = (await owner.get(path)).text
    [asked] = re.findall(r'id="desk"[^>]*\s+data-hx-get="([^"]+)"', page)
    quiet = await owner.get(asked)
    assert (quiet.status_code, quiet.text) == (204, "")
    link = (await step(seller, offer, "link")).json()["url"]
    form = {"revision": offer["revision"], "answer": "yes", "way": "credit"}
    lines = [str(line["id"]) for line in offer["lines"]]
    async with seller.service.client() as phone:
        answer = await phone.post(
            link.removeprefix(seller.service.settings.origin), data=form | {"line": lines}
        )
    assert answer.status_code == 303, answer.text
    told = await owner.get(asked)
    assert told.status_code == 200
    assert f"accepted for ${offer['totals']['credit']} in store credit" in " ".join(
        told.text.split()
    )
    assert "data-hx-get" not in re.search(r'<div id="desk"[^>]*>', told.text)[0]


async def test_drafts_of_an_offer_have_the_place_of_their_card_or_the_next_free_ones(seller):
    """A shop without shelves has none; each can be changed or left for later on Add cards."""
    owner = await signed_in(seller)
    offer = await drafted(seller, await want(seller, copies=1))
    for name, body in {"offer": {}, "accept": {"way": "cash"}, "receive": {}, "pay": {}}.items():
        offer = await done(seller, offer, name, **body)
    await done(seller, offer, "stock")
    [none] = (await seller.get("/api/quick_add")).json()["entries"]
    assert (none["box"], none["slot"]) == (None, None)
    [ten, _] = sorted(await seller.cards(), key=lambda card: card["product_name"])
    await a_place(seller, ten["id"], 3, 7, 2)
    other = {"condition": "HP", "copies": 1}
    offer = await drafted(
        seller,
        await want(seller, "Bolt 10", 1),
        await want(seller, "Bolt 20", **other),
        await want(seller, "Bolt 10", **other),
    )
    for name, body in {"offer": {}, "accept": {"way": "cash"}, "receive": {}, "pay": {}}.items():
        offer = await done(seller, offer, name, **body)
    await done(seller, offer, "stock")
    entries = (await seller.get("/api/quick_add")).json()["entries"]
    places = {
        (one["product_name"], one["condition"]): f"{one['box']}-{one['slot']}"
        for one in entries
        if one["id"] != none["id"]
    }
    assert places == {
        ("Bolt 10", "NM"): "3-7",
        ("Bolt 20", "HP"): "3-8",
        ("Bolt 10", "HP"): "3-9",
    }
    rows = {f"quantity:{one['id']}": "1" for one in entries}
    rows |= {f"price:{one['id']}": one["price"] or "" for one in entries}
    rows |= {f"cost:{one['id']}": one["cost"] or "" for one in entries}
    typed = {f"place:{one['id']}": "" for one in entries} | {f"place:{none['id']}": "4-2"}
    saved = await owner.form("/add-cards/drafts", **rows, **typed)
    assert saved.status_code == 303, saved.text
    again = (await seller.get("/api/quick_add")).json()["entries"]
    assert [(one["box"], one["slot"]) for one in again if one["box"]] == [(4, 2)]
    page = (await owner.get("/add-cards", params={"status": "draft"})).text
    assert f'name="place:{none["id"]}"' in page
    assert 'value="4-2"' in page
