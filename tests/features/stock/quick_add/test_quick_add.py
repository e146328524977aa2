"""Quick-add: drafted, published, served once, and ended by the agent, an import or the owner."""

import asyncio
import hashlib
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cards_builder import a_list
from cardsync.platform import clock
from quick_add_builder import (
    JAGUAR,
    acknowledged,
    drafted,
    entry_of,
    file_served,
    not_sent,
    published,
    rejected,
    served,
    settled,
    waiting_tasks,
)

ON_FILE = {"name": "Alacrian Jaguar", "set": "Aetherdrift", "number": "152"}


@pytest.fixture
async def shop(a_seller):
    """A seller, its owner and a member of staff."""
    seller = await a_seller(lines=["magic"])
    return seller, await signed_in(seller), await joined(seller, f"bea-{seller.email}")


async def test_staff_draft_the_owner_publishes_and_the_agent_lists(shop):
    seller, owner, bea = shop
    [entry] = await drafted(
        bea, JAGUAR | {"printing": "foil", "cost": "0.40", "source": "buylist", "box": 3, "slot": 7}
    )
    assert (entry["status"], entry["cost"], entry["source"]) == ("draft", "0.40", "buylist")
    assert (entry["condition_label"], entry["custom"]) == ("Near Mint Foil", False)
    assert await served(seller) == {}
    answer = await bea.post("/api/quick_add/publish", json={"ids": [entry["id"]]})
    assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
    answer = await owner.post("/api/quick_add/publish", json={"ids": [entry["id"]]})
    [task] = await waiting_tasks(seller)
    assert answer.json()["task_id"] == task["id"]
    assert task["payload"] == {"quick_add_ids": [entry["id"]]}
    beat = (await seller.post("/api/v1/heartbeat", json={})).json()
    assert beat["has_pending_tasks"] is True

    row = (await served(seller))[entry["id"]]
    told = ("TCGplayer Id", "Product Name", "Number", "Condition", "Total Quantity",
            "Add to Quantity", "TCG Marketplace Price")  # fmt: skip
    assert [row[name] for name in told] == [
        "", "Alacrian Jaguar", "152", "Near Mint Foil", "0", "2", "1.2500",
    ]  # fmt: skip
    assert await served(seller) == {entry["id"]: row}
    assert (await entry_of(owner, entry["id"]))["status"] == "pending"
    assert await acknowledged(seller, entry["id"]) == [entry["id"]]
    assert await acknowledged(seller, entry["id"]) == []
    assert await served(seller) == {}
    assert (await entry_of(owner, entry["id"]))["status"] == "listed"

    await seller.import_csv(a_csv(a_row(77, quantity=2, condition="Near Mint Foil", **ON_FILE)))
    [card] = await seller.cards()
    assert (await entry_of(owner, entry["id"]))["card_id"] == card["id"]
    shelves = (await owner.get("/api/shelves/3")).json()
    assert [(lies["card_id"], lies["quantity"]) for lies in shelves["cards"]] == [(card["id"], 2)]
    await seller.import_csv(a_csv(a_row(77, quantity=2, condition="Near Mint Foil", **ON_FILE)))
    assert (await owner.get("/api/shelves/3")).json()["cards"] == shelves["cards"]


async def test_a_printing_that_no_table_knows_is_kept_as_its_text(shop):
    seller, owner, bea = shop
    entries = [JAGUAR, JAGUAR | {"printing": " Galaxy  Foil"}]
    made = (await bea.post("/api/quick_add", json={"entries": entries})).json()
    told = [(entry["printing"], entry["condition_label"]) for entry in made["entries"]]
    assert told == [("Normal", "Near Mint"), ("Galaxy Foil", "Near Mint Galaxy Foil")]
    assert made["new_printing"] == 1
    await owner.post("/api/quick_add/publish", json={"ids": [made["entries"][1]["id"]]})
    [row] = (await served(seller)).values()
    assert row["Condition"] == "Near Mint Galaxy Foil"
    listed = a_row(77, quantity=2, condition="Near Mint Galaxy Foil", **ON_FILE)
    assert (await seller.import_csv(a_csv(listed)))["new_printing"] == 1
    assert (await entry_of(owner, made["entries"][1]["id"]))["status"] == "listed"
    too_long = JAGUAR | {"printing": "x" * 61}
    answer = await bea.post("/api/quick_add", json={"entries": [too_long]})
    assert answer.json()["error"] == "entries[0].printing: has 1 to 60 characters"


@pytest.mark.night
async def test_the_import_that_shows_the_card_acknowledges(shop):
    seller, owner, _ = shop
    await seller.import_csv(a_csv(a_row(77, quantity=3, **ON_FILE)))
    await seller.applied()
    [entry] = await published(owner, JAGUAR)
    row = (await served(seller))[entry]
    assert (row["TCGplayer Id"], row["Total Quantity"], row["Add to Quantity"]) == ("77", "3", "2")
    await seller.import_csv(a_csv(a_row(77, quantity=4, **ON_FILE)))
    assert (await entry_of(owner, entry))["status"] == "pending"
    await seller.import_csv(a_csv(a_row(77, quantity=5, **ON_FILE)))
    told = await entry_of(owner, entry)
    assert (told["status"], told["settled_by"]) == ("listed", "import")


async def test_a_lost_answer_is_compared_and_settled_row_by_row(shop):
    seller, owner, bea = shop
    one, two, three = await published(
        owner, JAGUAR, JAGUAR | {"printing": "Foil"}, JAGUAR | {"condition": "LP", "quantity": 5}
    )
    assert set(await served(seller)) == {one, two, three}
    assert (await settled(bea, one, listed=True))[0] == 403
    assert (await settled(owner, one, listed=False))[1]["code"] == "listing_in_hand"
    assert (await settled(owner, one, listed=True))[1]["status"] == "listed"
    clock.shift(timedelta(minutes=31))
    assert await served(seller) == {}
    pending = (await owner.get("/api/quick_add/pending")).json()["pending"]
    told = [
        (row["entry"]["id"], row["sent"], row["listed_now"], row["retryable"]) for row in pending
    ]
    assert told == [
        (two, 2, None, True), (three, 5, None, True),
    ]  # fmt: skip
    status, told = await settled(owner, two, listed=False)
    assert (status, told["status"]) == (200, "published")
    assert (await settled(owner, two, listed=False))[0] == 200
    assert (await settled(owner, three, listed=True, quantity=6))[1]["code"] == "invalid_payload"
    assert (await settled(owner, three, listed=True, quantity=3))[1]["quantity"] == 3
    left = (await owner.get("/api/quick_add", params={"status": "draft"})).json()["entries"]
    assert [(entry["quantity"], entry["reason"]) for entry in left] == [
        (2, f"split off from entry {three}")
    ]
    assert set(await served(seller)) == {two}
    assert (await entry_of(owner, two))["served"] == 2
    assert (await settled(owner, one, listed=False))[1]["code"] == "not_pending"
    assert (await seller.get("/api/quick_add/pending")).status_code == 403


@pytest.mark.night
async def test_the_marketplace_rejects_with_a_reason_and_a_change_makes_a_draft(shop):
    seller, owner, _ = shop
    [entry] = await published(owner, JAGUAR)
    await served(seller)
    assert await rejected(seller, {entry: "the price is below the floor"}) == [entry]
    told = await entry_of(owner, entry)
    assert (told["status"], told["reason"]) == ("rejected", "the price is below the floor")
    again = await owner.post("/api/quick_add/publish", json={"ids": [entry]})
    assert (again.status_code, again.json()["code"]) == (409, "not_a_draft")
    changed = await owner.send("PATCH", f"/api/quick_add/{entry}", json={"price": "2.00"})
    assert (changed.json()["status"], changed.json()["price"]) == ("draft", "2.00")
    await owner.post("/api/quick_add/publish", json={"ids": [entry]})
    assert (await served(seller))[entry]["TCG Marketplace Price"] == "2.0000"


async def test_what_the_agent_never_sent_is_served_again_at_once(shop):
    seller, owner, _ = shop
    [entry] = await published(owner, JAGUAR)
    await served(seller)
    assert await not_sent(seller, entry) == [entry]
    assert set(await served(seller)) == {entry}


async def test_two_entries_of_one_card_are_served_one_after_the_other(shop):
    seller, owner, _ = shop
    one, two = await published(owner, JAGUAR, JAGUAR | {"quantity": 1})
    assert set(await served(seller)) == {one}
    assert set(await served(seller)) == {one}
    await acknowledged(seller, one)
    assert set(await served(seller)) == {two}


async def test_a_file_whose_answer_was_lost_is_given_again_until_it_is_answered(shop):
    seller, owner, _ = shop
    [one] = await published(owner, JAGUAR)
    first = await file_served(seller, "desk")
    assert first[1] == [one]
    # The row would say something else now, but the bytes are those of the first answer.
    await seller.import_csv(a_csv(a_row(77, quantity=1, **ON_FILE)))
    [two] = await published(owner, JAGUAR | {"condition": "LP"})
    clock.shift(timedelta(hours=2))
    assert await file_served(seller, "desk") == first
    assert (await settled(owner, one, listed=False))[1]["code"] == "listing_in_hand"
    event = {"imported_at": clock.rfc3339(clock.now()), "row_count": 1}
    event["file_sha256"] = hashlib.sha256(first[2]).hexdigest()
    assert (await seller.post("/api/v1/repricing_events", json=event)).status_code == 201
    assert (await entry_of(owner, one))["status"] == "listed"
    second = await file_served(seller, "desk")
    assert (second[1], second[0] != first[0]) == ([two], True)
    await acknowledged(seller, two)
    assert (await file_served(seller, "desk"))[1] == []


async def test_an_agent_that_has_the_file_gets_the_prices_again(shop):
    seller, owner, _ = shop
    await published(owner, JAGUAR)
    number, ids, _ = await file_served(seller, "desk")
    assert (await file_served(seller, "desk", 1 if number != 1 else 2))[0] == number
    assert (await file_served(seller, "desk", number))[1] == []
    assert (await file_served(seller, "desk"))[1] == [], "it has said so once"
    assert (await entry_of(owner, ids[0]))["status"] == "pending"
    assert await not_sent(seller, *ids) == ids
    again = await file_served(seller, "desk", number)
    assert (again[1], again[0] != number) == (ids, True)


async def test_another_agent_gets_no_file_that_one_may_have_imported(shop):
    seller, owner, _ = shop
    [one] = await published(owner, JAGUAR)
    files = await asyncio.gather(*(file_served(seller, name) for name in ("desk", "shop") * 2))
    assert sorted(file[1] for file in files) == [[], [], [one], [one]]
    assert (await file_served(seller))[1] == []


async def test_of_a_file_that_was_answered_in_part_nothing_is_given_again(shop):
    seller, owner, _ = shop
    one, two = await published(owner, JAGUAR, JAGUAR | {"condition": "LP"})
    assert (await file_served(seller, "desk"))[1] == [one, two]
    assert (await settled(owner, one, listed=True))[0] == 200
    assert (await file_served(seller, "desk"))[1] == []
    assert (await entry_of(owner, two))["status"] == "pending"


async def test_two_publishers_and_two_agents_at_once(shop):
    seller, owner, _ = shop
    made = await drafted(
        owner, *(JAGUAR | {"number": str(n), "name": f"Card {n}"} for n in range(5))
    )
    ids = [entry["id"] for entry in made]
    await asyncio.gather(
        *(owner.post("/api/quick_add/publish", json={"ids": order}) for order in (ids, ids[::-1]))
    )
    assert len(await waiting_tasks(seller)) == 1
    one, *others = await asyncio.gather(*(file_served(seller) for _ in range(3)))
    assert (one[1], others) == (ids, [one, one])
    assert {(await entry_of(owner, id))["served"] for id in ids} == {1}
    feed = await seller.service.sql(
        seller.id, "SELECT FROM activity WHERE action = 'quick_add.published'"
    )
    assert len(feed) == 1


async def test_a_contribution_is_retired_when_its_listing_is_live(shop):
    seller, owner, bea = shop
    card = await bea.post(
        "/api/contributions", json={k: v for k, v in JAGUAR.items() if k != "price"}
    )
    contributed = card.json()["id"]
    await a_list(seller, "Binder", contributed)
    await bea.post(
        "/api/shelves/put", json={"card_id": contributed, "box": 1, "slot": 2, "quantity": 2}
    )
    mine = {"contribution_id": contributed, "quantity": 2, "price": "1.25"}
    [entry] = await drafted(bea, mine)
    twice = await bea.post("/api/quick_add", json={"entries": [mine]})
    assert (twice.status_code, twice.json()["code"]) == (422, "invalid_payload")
    await owner.post("/api/quick_add/publish", json={"ids": [entry["id"]]})
    await served(seller)
    await seller.import_csv(a_csv(a_row(77, quantity=2, **ON_FILE)))
    assert (await entry_of(owner, entry["id"]))["status"] == "listed"
    [live] = [row for row in await seller.cards() if row["contribution"] is None]
    shown = (await owner.get(f"/api/cards/{live['id']}")).json()
    assert [on["name"] for on in shown["lists"]] == ["Binder"]
    assert [place["code"] for place in shown["locations"]] == ["1-2"]
    states = {row["contribution"] for row in await seller.cards()}
    assert states == {None, "retired"}


@pytest.mark.night
async def test_a_custom_listing_has_a_title_and_a_photo(shop):
    seller, owner, _ = shop
    photo = "https://example.invalid/photo/1.jpg"
    refused = await owner.post("/api/quick_add", json={"entries": [JAGUAR | {"title": "signed"}]})
    assert refused.json()["error"].startswith("entries[0].photo_url:")
    [entry] = await published(owner, JAGUAR | {"title": "signed", "photo_url": photo})
    row = (await served(seller))[entry]
    assert (row["Product Name"], row["Title"], row["Photo URL"], row["TCGplayer Id"]) == (
        "Alacrian Jaguar: signed", "signed", photo, "",
    )  # fmt: skip
    custom = a_row(
        5, name="Alacrian Jaguar: signed", title="signed", photo=photo, quantity=2,
        set="Aetherdrift", number="152",
    )  # fmt: skip
    await seller.import_csv(a_csv(custom))
    assert (await entry_of(owner, entry))["status"] == "listed"


async def test_bad_entries_are_named_and_nothing_of_the_batch_stays(shop):
    _, owner, _ = shop
    for bad, begins in (
        ({"condition": "shiny"}, "entries[1].condition:"),
        ({"price": "-1"}, "entries[1].price:"),
        ({"box": 1}, "entries[1].slot:"),
        ({"game": "pokemon"}, "entries[1].game:"),
        ({"product_id": 10**15}, "entries[1].product_id:"),
        ({"contribution_id": 12}, "entries[1].contribution_id:"),
    ):
        answer = await owner.post("/api/quick_add", json={"entries": [JAGUAR, JAGUAR | bad]})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), bad
        assert answer.json()["error"].startswith(begins), answer.text
    assert (await owner.get("/api/quick_add")).json()["total"] == 0
    [entry] = await drafted(owner, JAGUAR | {"price": None})
    answer = await owner.post("/api/quick_add/publish", json={"ids": [entry["id"]]})
    assert "needs a price before you publish" in answer.json()["error"]
    other = await owner.post("/api/quick_add/publish", json={"ids": [entry["id"] + 1]})
    assert other.status_code == 404


@pytest.mark.night
async def test_published_entries_may_be_taken_back_until_a_file_has_held_them(shop):
    seller, owner, bea = shop
    one, two = await published(owner, JAGUAR, JAGUAR | {"printing": "Foil"})
    assert (await bea.send("DELETE", f"/api/quick_add/{one}")).status_code == 409
    assert (await owner.send("DELETE", f"/api/quick_add/{one}")).json() == {"deleted": True}
    assert set(await served(seller)) == {two}
    assert (await owner.send("DELETE", f"/api/quick_add/{two}")).status_code == 409


@pytest.mark.night
async def test_who_may_not_push_prices_may_list_and_who_is_not_entitled_loses_nothing(shop):
    seller, owner, _ = shop
    await seller.import_csv(a_csv(a_row(1)))
    await seller.set(sync_mode="read_only")
    etag = (await seller.export()).headers["ETag"]
    [entry] = await published(owner, JAGUAR)
    await seller.set(plan="free")
    answer = await seller.export(**{"If-None-Match": etag})
    assert (answer.status_code, "ETag" in answer.headers) == (200, False)
    assert "not_entitled" in answer.headers["X-Price-Export-Empty-Reason"]
    await seller.set(plan="founder", past_due=True, write_consent=False)
    assert set(await served(seller)) == {entry}
    await acknowledged(seller, entry)
    await seller.set(past_due=False, write_consent=True)
    assert (await seller.export(**{"If-None-Match": etag})).status_code == 304


async def a_served_file(seller, owner, *entries):
    """The ids of the entries, and the SHA-256 of the file that holds them."""
    ids = await published(owner, *entries)
    answer = await seller.export()
    assert answer.headers["X-Price-Export-Kind"] == "quick_add"
    return ids, hashlib.sha256(answer.content).hexdigest()


async def imported(seller, sha256, path="repricing_events", **more):
    body = {"imported_at": clock.rfc3339(clock.now()), "row_count": 1, "file_sha256": sha256}
    answer = await seller.post(f"/api/v1/{path}", json=body | more)
    assert answer.status_code == 201, answer.text


@pytest.mark.night
async def test_an_import_of_the_file_lists_its_entries_and_ends_no_price_push(shop):
    seller, owner, _ = shop
    [entry_id], sha256 = await a_served_file(seller, owner, JAGUAR)
    await imported(seller, sha256)
    assert (await entry_of(owner, entry_id))["status"] == "listed"
    await imported(seller, sha256)
    [task] = await waiting_tasks(seller)
    feed = (await owner.get("/api/v1/agent/activity", params={"action": "pricing"})).json()
    assert feed["activity"][0]["summary"].startswith("listings: imported")
    assert task["payload"] == {"quick_add_ids": [entry_id]}


async def test_the_marketplaces_reason_stands_on_the_entry_that_it_refused(shop):
    seller, owner, _ = shop
    [entry_id], sha256 = await a_served_file(seller, owner, JAGUAR | {"marketplace_id": 77})
    refused = [{"marketplace_id": 77, "message": "price too low"}]
    await imported(seller, sha256, rejected=refused, paused=[77])
    entry = await entry_of(owner, entry_id)
    assert (entry["status"], entry["reason"]) == ("rejected", "price too low")
    [event] = await seller.service.sql(
        seller.id,
        "SELECT rejected, paused FROM repricing_event WHERE seller_id = :id",
        id=seller.id,
    )
    assert event == {"rejected": [{"id": 77, "message": "price too low"}], "paused": [77]}


@pytest.mark.night
async def test_a_new_listing_that_was_refused_is_named_by_its_entry(shop):
    seller, owner, _ = shop
    [listed, refused], sha256 = await a_served_file(
        seller, owner, JAGUAR, JAGUAR | {"condition": "LP"}
    )
    [elsewhere] = await published(owner, JAGUAR | {"condition": "MP"})
    told = [{"entry_id": id, "message": "no photo"} for id in (refused, elsewhere, 999_999)]
    await imported(seller, sha256, rejected=told)
    assert (await entry_of(owner, listed))["status"] == "listed"
    entry = await entry_of(owner, refused)
    assert (entry["status"], entry["reason"]) == ("rejected", "no photo")
    assert (await entry_of(owner, elsewhere))["status"] == "published"


@pytest.mark.night
@pytest.mark.parametrize("row", [{}, {"entry_id": 1, "marketplace_id": 1}], ids=str)
async def test_a_refused_row_is_named_in_one_way(shop, row):
    seller, owner, _ = shop
    [entry], sha256 = await a_served_file(seller, owner, JAGUAR)
    body = {"imported_at": clock.rfc3339(clock.now()), "row_count": 1, "file_sha256": sha256}
    answer = await seller.post("/api/v1/repricing_events", json=body | {"rejected": [row]})
    assert (answer.status_code, answer.json()["error"]) == (
        422,
        "rejected[0]: give marketplace_id or entry_id",
    )
    assert (await entry_of(owner, entry))["status"] == "pending"


async def test_a_file_that_the_marketplace_did_not_take_is_served_again(shop):
    seller, owner, _ = shop
    [entry_id], sha256 = await a_served_file(seller, owner, JAGUAR)
    error = {"code": "gone", "message": "no button"}
    path = "repricing_events/failure"
    await imported(seller, sha256, path, step="import_prices", error=error)
    assert list(await served(seller)) == [entry_id]


async def test_a_tasks_result_ends_entries_row_by_row(shop):
    seller, owner, _ = shop
    first, second = await published(owner, JAGUAR, JAGUAR | {"condition": "LP"})
    claim = (await seller.post("/api/v1/tasks/claim", json={})).json()["tasks"][0]
    assert list(await served(seller)) == [first, second]
    result = {"listed": [first], "rejected": [{"id": second, "message": "no such condition"}]}
    told = {"status": "completed", "claim_token": claim["claim_token"], "result": result}
    for _ in range(2):
        answer = await seller.http.patch(f"/api/v1/tasks/{claim['id']}", json=told)
        assert answer.status_code == 200, answer.text
    assert (await entry_of(owner, first))["status"] == "listed"
    entry = await entry_of(owner, second)
    assert (entry["status"], entry["reason"]) == ("rejected", "no such condition")


async def failed_for_good(seller):
    [task] = (await seller.post("/api/v1/tasks/claim", json={})).json()["tasks"]
    told = {
        "status": "failed",
        "claim_token": task["claim_token"],
        "error": {"code": "no_button", "message": "the page has no button"},
    }
    answer = await seller.http.patch(f"/api/v1/tasks/{task['id']}", json=told)
    assert (answer.status_code, answer.json()["status"]) == (200, "failed"), answer.text
    return task


async def waits(seller):
    return (await seller.post("/api/v1/heartbeat", json={})).json()["has_pending_tasks"]


@pytest.mark.night
async def test_a_listings_task_that_failed_for_good_is_offered_again_after_a_rest(shop):
    seller, owner, _ = shop
    [entry] = await published(owner, JAGUAR)
    await failed_for_good(seller)
    assert len(await waiting_tasks(seller)) == 1
    assert not await waits(seller)
    assert (await seller.post("/api/v1/tasks/claim", json={})).json()["tasks"] == []
    clock.shift(timedelta(minutes=29))
    assert not await waits(seller)
    clock.shift(timedelta(minutes=2))
    assert await waits(seller)
    again = await failed_for_good(seller)
    assert again["payload"] == {"quick_add_ids": [entry]}
    assert len(await waiting_tasks(seller)) == 1, "never twice at once"


@pytest.mark.night
async def test_what_a_person_publishes_ends_the_rest_of_a_failed_task(shop):
    seller, owner, _ = shop
    [first] = await published(owner, JAGUAR)
    await failed_for_good(seller)
    [second] = await published(owner, JAGUAR | {"condition": "LP"})
    assert await waits(seller)
    [task] = (await seller.post("/api/v1/tasks/claim", json={"limit": 10})).json()["tasks"]
    assert task["payload"] == {"quick_add_ids": [first, second]}


async def test_a_failed_listings_task_of_which_nothing_is_published_is_not_offered(shop):
    seller, owner, _ = shop
    await published(owner, JAGUAR)
    await served(seller)
    await failed_for_good(seller)
    assert await waiting_tasks(seller) == []


@pytest.mark.night
async def test_the_last_claim_that_runs_out_is_a_failure_for_good_too(shop):
    seller, owner, _ = shop
    await published(owner, JAGUAR)
    for _ in range(5):
        assert len((await seller.post("/api/v1/tasks/claim", json={})).json()["tasks"]) == 1
        clock.shift(timedelta(minutes=11))
    assert (await seller.post("/api/v1/tasks/claim", json={})).json()["tasks"] == []
    assert len(await waiting_tasks(seller)) == 1
    clock.shift(timedelta(minutes=31))
    assert len((await seller.post("/api/v1/tasks/claim", json={})).json()["tasks"]) == 1
