"""Boxes with labels: put away, found, counted, pulled, drafted, printed and exported in the order
in which people sort; boxes with numbers stay as they are.
"""

import asyncio
import csv
import io
import re
import string
import zipfile
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from browsers import Browser, joined, signed_in
from builders import Seller, a_csv, a_row, a_shop, undo_newest
from cards_builder import a_place, card_ids, found, on_shelf, search
from cardsync.dashboard.shell import box_page
from cardsync.platform import limits
from cardsync.platform.shelf_place import BOX, NAMED, WAY, Place, box_in
from cardsync.stock.shelving.box_numbers import kept_box, made_box
from orders_builder import an_item, an_order
from quick_add_builder import JAGUAR, drafted, served


@pytest.fixture
async def shop(a_seller) -> tuple[Seller, Browser, dict[int, int]]:
    """A seller with six cards, three of each on hand; its owner's browser; row ids by marketplace
    id.
    """
    seller = await a_shop(a_seller, *(a_row(n, name=f"Card {n}", quantity=3) for n in range(1, 7)))
    return seller, await signed_in(seller), await card_ids(seller)


async def put(browser: Browser, card_id: int, box: int | str, slot: int = 1, quantity: int = 1):
    body = {"card_id": card_id, "box": box, "slot": slot, "quantity": quantity}
    return await browser.post("/api/shelves/put", json=body)


async def boxes(browser: Browser) -> list[int | str]:
    return [box["box"] for box in (await browser.get("/api/shelves")).json()["boxes"]]


async def test_a_label_is_put_away_found_and_walked_as_people_sort(shop):
    seller, browser, ids = shop
    given = ["Binder 10", 10, "  a1 ", "Binder 2", 3, "3A"]
    for number, box in enumerate(given, 1):
        answer = await put(browser, ids[number], box, 7)
        assert answer.status_code == 200, answer.text
    assert await boxes(browser) == [3, "3A", 10, "a1", "Binder 2", "Binder 10"]
    answer = await put(browser, ids[1], "A01", 12, 2)
    assert answer.json()["locations"] == [
        {"box": "a1", "slot": 12, "code": "a1-12", "quantity": 2},
        {"box": "Binder 10", "slot": 7, "code": "Binder 10-7", "quantity": 1},
    ]
    for direction, walked in (("asc", [5, 6, 2, 3, 1, 4]), ("desc", [4, 1, 3, 2, 6, 5])):
        cards = (await search(seller, "", sort="location", direction=direction))["cards"]
        assert [card["marketplace_id"] for card in cards] == walked
    for searched, cards in (
        ("box:A1", [1, 3]), ('box:"binder 2"|3', [4, 5]), ("box!=a1", [2, 4, 5, 6]),
        ("loc:a1-012", [1]), ('loc:"Binder 10-7"', [1]), ("box:1..9", [5]), ("box:2..", [2, 5]),
        ("box:nowhere", []), ("-has:location", []), ("box:1000001", []),
    ):  # fmt: skip
        assert await found(seller, searched) == cards, searched
    page = (await browser.get("/api/shelves/BINDER 02")).json()
    assert (page["box"], [card["code"] for card in page["cards"]]) == ("Binder 2", ["Binder 2-7"])
    assert (await browser.get("/api/shelves/nowhere")).json()["cards"] == []
    [card] = (await seller.get("/api/cards", params={"search": "box:a1 card 1"})).json()["cards"]
    assert card["location_code"] == "a1-12"
    table = (await browser.get("/cards/export.csv", params={"search": "box:a1"})).text
    assert "a1-12:2 Binder 10-7:1" in table


async def test_a_shop_with_numbers_alone_keeps_nothing_else(shop):
    seller, browser, ids = shop
    for box in (7, "7", " 007 "):
        assert (await put(browser, ids[1], box)).json()["locations"][0]["box"] == 7
    assert await seller.service.sql(seller.id, "SELECT * FROM shelf_box") == []
    for refused in (0, -1, limits.SHELF_NUMBER + 1, 1.5, None, True, "", "ABCDEFGHIJKLM", "A/1",
                    "A\u200b1", "0", "..", "x" * 200):  # fmt: skip
        answer = await put(browser, ids[1], refused)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), refused
        assert "box" in answer.json()["error"]


async def test_cards_of_a_label_are_moved_taken_out_and_brought_back(shop):
    seller, browser, ids = shop
    await put(browser, ids[1], "Foils", 1, 3)
    moved = {"card_id": ids[1], "from": {"box": "FOILS", "slot": 1},
             "to": {"box": "Show case", "slot": 2}, "quantity": 2}  # fmt: skip
    answer = await browser.post("/api/shelves/move", json=moved)
    assert [place["code"] for place in answer.json()["locations"]] == ["Foils-1", "Show case-2"]
    nowhere = {"card_id": ids[1], "box": "Attic", "slot": 1}
    answer = await browser.post("/api/shelves/remove", json=nowhere)
    assert (answer.status_code, answer.json()["error"]) == (
        404, f"card {ids[1]} is not in Attic-1",
    )  # fmt: skip
    assert (await undo_newest(seller, "shelf.moved")).status_code == 200
    assert await on_shelf(browser, "foils") == {(ids[1], 1): 3}
    many = {"search": "card", "box": "show  CASE", "start_slot": 1, "per_slot": 5}
    answer = (await browser.post("/api/shelves/put_many", json=many)).json()
    assert (answer["first"], answer["last"]) == ("Show case-1", "Show case-3")


async def test_two_who_make_one_label_at_once_fill_one_box(shop):
    seller, browser, ids = shop
    other = await joined(seller, f"bea-{seller.email}")
    answers = await asyncio.gather(
        *(put((browser, other)[n % 2], ids[n], ("Binder 3", "binder 03")[n % 2]) for n in ids)
    )
    assert {answer.status_code for answer in answers} == {200}
    [box] = await boxes(browser)
    assert box in ("Binder 3", "binder 03")
    assert {answer.json()["location_code"] for answer in answers} == {f"{box}-1"}


async def test_a_shop_has_so_many_labels(shop, limited):
    _, browser, ids = shop
    limited("LABELED_BOXES", 2)
    for box, status in (("A", 200), ("B", 200), ("C", 422), ("a", 200), (3, 200)):
        assert (await put(browser, ids[1], box)).status_code == status, box


async def test_a_labeled_box_is_counted(shop):
    _, browser, ids = shop
    await put(browser, ids[1], "Binder 3", 1, 2)
    [suggested] = (await browser.get("/api/counts/suggested")).json()["boxes"]
    assert suggested["box"] == "Binder 3"
    count = (await browser.post("/api/counts", json={"box": "binder 3"})).json()
    assert (count["box"], count["lines"]) == ("Binder 3", 1)
    again = await browser.post("/api/counts", json={"box": "BINDER 3", "slot": 1})
    assert (again.status_code, again.json()["code"]) == (409, "count_open")
    seen = {"cards": [{"card_id": ids[2], "slot": 4, "quantity": 1},
                      {"card_id": ids[1], "slot": 1, "quantity": 1}]}  # fmt: skip
    await browser.post(f"/api/counts/{count['id']}/seen", json=seen)
    read = (await browser.get(f"/api/counts/{count['id']}")).json()
    assert [card["code"] for card in read["cards"]] == ["Binder 3-1", "Binder 3-4"]
    assert (await browser.post(f"/api/counts/{count['id']}/settle")).json()["wrong"] == 2
    assert await on_shelf(browser, "Binder 3") == {
        (ids[1], 1): 1, (ids[2], 4): 1,
    }  # fmt: skip
    for asked, counts in (("binder 3", 1), ("Attic", 0), ("3", 0)):
        found_counts = (await browser.get("/api/counts", params={"box": asked})).json()["counts"]
        assert len(found_counts) == counts, asked


async def test_a_pull_walks_from_label_to_label(shop):
    seller, browser, ids = shop
    shelved = {1: "Binder 10", 2: "Binder 2", 3: 12, 4: "a1"}
    for number, box in shelved.items():
        await put(browser, ids[number], box, number)
    order = await an_order(seller)
    for number in (1, 2, 3, 4, 5):
        await an_item(seller, order, sku_id=number, product_name=f"Card {number}")
    session = (await seller.post("/api/pull_sessions", json={})).json()["id"]
    way = ["12-3", "a1-4", "Binder 2-2", "Binder 10-1", None]
    [pulled] = (await seller.get(f"/api/pull_sessions/{session}")).json()["orders"]
    assert [item["location_code"] for item in pulled["items"]] == way
    body = {"session_id": session}
    [link] = (await browser.post("/api/pull_links", json=body)).json()["links"]
    path = link["url"][link["url"].index("/p/") :]
    queue = (
        await seller.service.client().get(f"{path}/queue", params={"device": "device-1"})
    ).json()
    assert [line["place"] for line in queue["lines"]] == way
    sheet = (await browser.get(f"/print/pulls/{session}")).text
    assert re.findall(r"<strong>([^<]*)</strong>", sheet)[-5:] == [*way[:4], "No location"]
    read = (await seller.get(f"/api/orders/{order}")).json()["items"]
    assert [item["locations"][0]["code"] for item in read[:4]] == [
        "Binder 10-1", "Binder 2-2", "12-3", "a1-4",
    ]  # fmt: skip


async def test_refunded_copies_go_back_to_a_label(shop):
    seller, browser, ids = shop
    await put(browser, ids[1], "Binder 2", 2)
    order = await an_order(seller, total_amt=5, refund_amt=5)
    await an_item(seller, order, sku_id=1, quantity=1)
    [returned] = (await browser.get("/api/returns")).json()["returns"]
    assert returned["items"][0]["location_code"] == "Binder 2-2"
    item = returned["items"][0]["item_id"]
    form = {"one": f"{order}.{item}.{ids[1]}.1", f"place-{order}-{item}": "binder 2 - 9"}
    assert (await browser.form("/returns", **form)).status_code == 303
    assert await on_shelf(browser, "Binder 2") == {
        (ids[1], 2): 1, (ids[1], 9): 1,
    }  # fmt: skip
    assert (await undo_newest(seller, "order.restocked")).status_code == 200
    assert await on_shelf(browser, "Binder 2") == {(ids[1], 2): 1}


async def test_a_drafts_label_is_its_place_once_the_card_is_live(a_seller):
    seller = await a_seller(lines=["magic"])
    owner = await signed_in(seller)
    [made] = await drafted(owner, JAGUAR | {"box": "Binder 3", "slot": 7})
    assert (made["box"], made["slot"]) == ("Binder 3", 7)
    for box, shown in ((4, 4), (None, None), ("BINDER 3", "Binder 3")):
        body = {"box": box, "slot": None if box is None else 7}
        changed = await owner.send("PATCH", f"/api/quick_add/{made['id']}", json=body)
        assert changed.json()["box"] == shown, changed.text
    refused = await owner.post("/api/quick_add", json={"entries": [JAGUAR | {"box": "A/1"}]})
    assert refused.json()["error"].startswith("entries[0].box: must have no slash")
    assert "Binder 3-7" in (await owner.get("/add-cards")).text
    await owner.post("/api/quick_add/publish", json={"ids": [made["id"]]})
    await served(seller)
    on_file = {"name": "Alacrian Jaguar", "set": "Aetherdrift", "number": "152"}
    await seller.import_csv(a_csv(a_row(77, quantity=2, **on_file)))
    [card] = (await search(seller))["cards"]
    assert card["location_code"] == "Binder 3-7"


async def test_the_pages_take_and_show_labels(shop):
    _, browser, ids = shop
    hostile = "<b>&'~."
    for box in ("Binder 3", hostile, "put"):
        form = {"card_id": ids[1], "box": box, "slot": 4, "quantity": 1}
        answer = await browser.form("/shelves/put", **form)
        assert answer.status_code == 303, answer.text
        page = (await browser.get(answer.headers["location"])).text
        assert "copy is now in" in page
        assert "<b>&" not in page
    page = (await browser.get("/shelves")).text
    for address in ("/shelves/Binder%203", "/shelves/%3Cb%3E%26%27~.", "/shelves/Put"):
        assert f'href="{address}"' in page, address
        shown = (await browser.get(address)).text
        assert "Take off the shelf" in shown
        assert f'action="{address}/move"' in shown
    move = {"card_id": ids[1], "from_slot": 4, "box": "Attic", "slot": 2}
    answer = await browser.form("/shelves/Binder%203/move", **move)
    assert answer.headers["location"].startswith("/shelves/Binder%203?done=")
    assert "The card is now in Attic-2." in (await browser.get(answer.headers["location"])).text
    form = {"from": "attic-2", "place": "Show case-001"}
    answer = await browser.form(f"/cards/{ids[1]}/place", **form)
    assert "is now in Show case-1" in (await browser.get(answer.headers["location"])).text
    begun = await browser.form("/counts", box="show case")
    assert "Count of box Show case" in (await browser.get(begun.headers["location"])).text
    assert "Box <bdi>Show case</bdi>" in (await browser.get("/counts")).text
    refused = await browser.form("/shelves/put", **form | {"card_id": ids[1], "box": "A/1"})
    assert refused.status_code == 422
    assert "slash" in refused.text
    page = (await browser.get("/shelves/put?box=A/1&slot=1&search=card")).text
    assert "Box must have no slash" in page
    assert "Put in box" not in page


async def test_labels_are_printed(shop):
    _, browser, _ = shop
    asked = {"kind": "boxes", "first": "Binder 9", "last": "Binder 11"}
    page = (await browser.get("/print/labels", params=asked)).text
    assert re.findall(r"<bdi>\s*(Box [^<]*)</bdi>", page) == [
        "Box Binder 9", "Box Binder 10", "Box Binder 11",
    ]  # fmt: skip
    refused = await browser.get("/print/labels", params=asked | {"last": "Shelf 3"})
    assert refused.status_code == 422


async def test_the_archive_of_all_data_has_the_labels(shop):
    _, browser, ids = shop
    await put(browser, ids[1], "=1+1", 4)
    await put(browser, ids[1], 12, 4)
    await browser.post("/api/counts", json={"box": "=1+1"})
    answer = await browser.get("/api/export/everything")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        rows = {
            name: [row["box"] for row in csv.DictReader(io.StringIO(file.read(name).decode()))]
            for name in ("places.csv", "counts.csv")
        }
    assert sorted(rows["places.csv"]) == ["'=1+1", "12"]
    assert rows["counts.csv"] == ["'=1+1"]


READABLE = st.text(st.sampled_from("aAbBzZ019 -.#_äÉß箱"), min_size=1, max_size=12)


async def test_the_database_sorts_as_the_program_does(a_seller):
    """Over any labels; a place is one place to both."""
    seller = await a_seller()
    database = seller.service.database
    loop = asyncio.get_running_loop()

    def read(label: str) -> int | str | None:
        try:
            return box_in(label)
        except ValueError:
            return None

    async def walked(places: list[Place]) -> tuple[list[str], set[int]]:
        async with database.tenant(seller.id) as session:
            await session.execute(text("DELETE FROM card_location WHERE seller_id = :seller"),
                                  {"seller": seller.id})  # fmt: skip
        numbers = set()
        for place in places:
            await a_place(seller, 1, place.box, place.slot)
            async with database.tenant(seller.id) as session:
                kept = await kept_box(session, seller.id, place.box)
                assert kept == await made_box(session, seller.id, place.box)
            assert kept is not None
            numbers.add(kept.number)
        async with database.tenant(seller.id) as session:
            rows = await session.execute(
                text(f"SELECT {BOX}, l.slot FROM card_location l {NAMED}"
                     f" WHERE l.seller_id = :seller ORDER BY {WAY}, l.slot"),
                {"seller": seller.id},
            )  # fmt: skip
            return [Place(*row).way for row in rows], numbers

    boxes = st.integers(1, 30) | READABLE.map(read).filter(lambda box: box is not None)
    places = st.builds(Place, boxes, st.integers(1, 12))
    distinct = st.lists(places, max_size=6, unique_by=lambda place: place.way)

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(distinct)
    def agree(drawn: list[Place]) -> None:
        ways, numbers = asyncio.run_coroutine_threadsafe(walked(drawn), loop).result(60)
        assert ways == sorted(place.way for place in drawn)
        assert len(numbers) == len({way for way, _ in ways})

    await asyncio.to_thread(agree)


async def test_a_box_is_renamed_with_all_that_is_in_it_and_back(shop):
    seller, browser, ids = shop
    await put(browser, ids[1], 7, 3, 2)
    await put(browser, ids[2], "Binder 2", 1)
    count = (await browser.post("/api/counts", json={"box": 7})).json()["id"]

    async def renamed(box, to, status=200):
        answer = await browser.post("/api/shelves/rename", json={"box": box, "to": to})
        assert answer.status_code == status, answer.text
        return answer.json()

    async def counted():
        return (await browser.get(f"/api/counts/{count}")).json()["box"]

    for box, to, at, named in (
        (7, " Foils  A ", {(ids[1], 3): 2}, "Foils A"),
        ("foils a", "FOILS A", {(ids[1], 3): 2}, "FOILS A"),
        ("Foils A", "Showcase", {(ids[1], 3): 2}, "Showcase"),
        ("Showcase", 12, {(ids[1], 3): 2}, 12),
        (12, "Foils A", {(ids[1], 3): 2}, "Foils A"),
    ):
        assert (await renamed(box, to))["box"] == named
        assert await on_shelf(browser, str(to).strip()) == at
        assert await counted() == named
        assert sorted(map(str, await boxes(browser))) == sorted([str(named), "Binder 2"])
    assert await renamed("Foils A", "Foils A") == {"was": "Foils A", "box": "Foils A"}
    # A name in use is refused, whatever its spelling, and so is a box that is not there.
    for box, to, status, said in (
        ("Foils A", "BINDER 02", 422, "to: box Binder 2 is in use"),
        (7, "New", 404, "there is no box 7"),
        ("Attic", "New", 404, "there is no box Attic"),
        ("Foils A", "a/b", 422, "to: must have no slash"),
    ):
        assert (await renamed(box, to, status))["error"].startswith(said)
    entries = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    renames = [entry["id"] for entry in entries if entry["action"] == "shelf.box_renamed"]
    assert len(renames) == 5
    for entry, named in zip(renames, (12, "Showcase", "FOILS A", "Foils A", 7), strict=True):
        answer = await seller.post(f"/api/v1/agent/activity/{entry}/undo")
        assert answer.status_code == 200, answer.text
        assert await counted() == named
    assert await on_shelf(browser, "7") == {(ids[1], 3): 2}


async def test_an_undo_waits_for_nobody_elses_box(shop):
    seller, browser, ids = shop
    await put(browser, ids[1], "A", 1)
    answer = await browser.post("/api/shelves/rename", json={"box": "A", "to": "B"})
    assert answer.status_code == 200
    await put(browser, ids[2], "A", 1)
    undone = await undo_newest(seller, "shelf.box_renamed")
    assert (undone.status_code, undone.json()["code"]) == (409, "changed_since")
    assert await on_shelf(browser, "B") == {(ids[1], 1): 1}


async def test_two_who_rename_at_once_rename_once(shop):
    _, browser, ids = shop
    await put(browser, ids[1], 7, 1)
    asked = [browser.post("/api/shelves/rename", json={"box": 7, "to": name}) for name in "ABCD"]
    codes = sorted(answer.status_code for answer in await asyncio.gather(*asked))
    assert codes == [200, 404, 404, 404]
    [box] = await boxes(browser)
    assert await on_shelf(browser, box) == {(ids[1], 1): 1}


async def test_a_box_is_renamed_on_its_page(shop):
    _, browser, ids = shop
    await put(browser, ids[1], "Binder 3", 1)
    page = (await browser.get("/shelves/Binder%203")).text
    assert 'action="/shelves/Binder%203/rename"' in page
    answer = await browser.form("/shelves/Binder%203/rename", to="Binder/4")
    assert answer.status_code == 422
    assert "slash" in answer.text
    answer = await browser.form("/shelves/Binder%203/rename", to="Binder 4")
    assert answer.headers["location"].startswith("/shelves/Binder%204?done=")
    assert "Box renamed." in (await browser.get(answer.headers["location"])).text


async def test_every_label_has_a_page_or_is_refused_when_it_is_made(shop):
    _, browser, ids = shop
    odd = [
        *string.punctuation,
        "é",
        "箱",
        "🂡",
        "\u2028",
        "\u202e",
        "\u00a0",
        "\t",
        "\x00",
        "\ufeff",
    ]
    for sign in odd:
        for label in (f"a{sign}b", f"{sign}a", f"a{sign}", sign):
            answer = await put(browser, ids[1], label)
            if answer.status_code == 422:
                assert answer.json()["error"].startswith(("box: ", "box must")), label
                continue
            assert answer.status_code == 200, (label, answer.text)
    for box in await boxes(browser):
        answer = await browser.get(box_page(box))
        assert answer.status_code == 200, box
        assert "Take off the shelf" in answer.text, box
        assert (await browser.get(f"/api{quote(box_page(box), safe='/%')}")).json()["cards"], box


async def test_the_address_of_a_place_leads_to_its_box(shop):
    _, browser, ids = shop
    await put(browser, ids[1], "A1", 4)
    for address in ("/shelves/A1/4", "/shelves/A1%2F4"):
        answer = await browser.get(address)
        assert (answer.status_code, answer.headers["location"]) == (303, "/shelves/A1"), address
    for address in ("/shelves/a%2Fb", "/shelves/a/b"):
        answer = await browser.get(address)
        assert answer.status_code == 422
        assert "a box and a slot, like 3-12 or A1-12" in answer.text


async def test_a_bad_label_is_told_the_true_limit(shop):
    _, browser, ids = shop
    for label in ("", "x" * 13, "x" * 101):
        answer = await put(browser, ids[1], label)
        assert answer.status_code == 422
        assert re.search(r"\b12 characters", answer.json()["error"]), answer.text
        assert "100" not in answer.text
    answer = await browser.get("/api/counts", params={"box": "x" * 101})
    assert answer.json()["error"] == "box: must have at most 12 characters"
