"""Undo: an entry of the feed is taken back, once, and only while nothing has changed since."""

import asyncio
import json

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop


async def newest(seller, action):
    answer = await seller.get("/api/v1/agent/activity", params={"action": action})
    return answer.json()["activity"][0]


async def undo(sender, entry):
    return await sender.post(f"/api/v1/agent/activity/{entry['id']}/undo")


async def undone(seller, action):
    """The entry of the undo of the newest such action."""
    answer = await undo(seller, await newest(seller, action))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(seller, action):
    answer = await undo(seller, await newest(seller, action))
    assert answer.status_code == 409, answer.text
    assert answer.json()["code"] == "changed_since"
    return answer.json()["error"]


async def rules(seller):
    found = (await seller.get("/api/pricing/rules")).json()["rules"]
    return [{name: value for name, value in rule.items() if name != "updated_at"} for rule in found]


async def a_rule(seller, name="Mine", **fields):
    body = {"name": name, "price_source": "market", "state": "published", **fields}
    answer = await seller.post("/api/pricing/rules", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def change(seller, rule_id, **fields):
    answer = await seller.http.patch(f"/api/pricing/rules/{rule_id}", json=fields)
    assert answer.status_code == 200, answer.text


async def a_list(seller, *card_ids, name="Binder"):
    number = (await seller.post("/api/lists", json={"name": name})).json()["id"]
    if card_ids:
        await put(seller, number, *card_ids)
    return number


async def put(seller, number, *card_ids):
    answer = await seller.post(f"/api/lists/{number}/cards", json={"card_ids": list(card_ids)})
    assert answer.status_code == 200, answer.text


async def take(seller, number, *card_ids):
    body = {"card_ids": list(card_ids)}
    await seller.http.request("DELETE", f"/api/lists/{number}/cards", json=body)


async def cards_on(seller, slug="binder"):
    found = await seller.get("/api/cards", params={"search": f"list:{slug}"})
    return sorted(card["id"] for card in found.json()["cards"])


async def lists(seller):
    return (await seller.get("/api/lists")).json()["lists"]


async def stocked(a_seller):
    """A seller and the ids of its three cards."""
    seller = await a_shop(a_seller, a_row(1), a_row(2), a_row(3))
    return seller, [card["id"] for card in await seller.cards()]


RULE_EDITS = {
    "pricing.rule_created": lambda seller, id: a_rule(seller, "Another"),
    "pricing.rule_changed": lambda seller, id: change(
        seller, id, adjust_bp=-500, floor="0.50", name="Other", priority=777
    ),
    "pricing.rule_deleted": lambda seller, id: seller.http.delete(f"/api/pricing/rules/{id}"),
    "pricing.preset_applied": lambda seller, id: seller.post("/api/pricing/presets/premium"),
}


@pytest.mark.night
@pytest.mark.parametrize("action", RULE_EDITS)
async def test_a_rule_edit_is_taken_back(a_seller, action):
    seller = await a_seller()
    rule_id = await a_rule(seller, query="price>=5")
    before = await rules(seller)
    await RULE_EDITS[action](seller, rule_id)
    after = await rules(seller)
    assert after != before
    told = await undone(seller, action)
    assert (told["action"], told["actor_name"], told["undoable"]) == (
        "activity.undone",
        "first key",
        False,
    )
    assert await rules(seller) == before
    assert (await newest(seller, action))["undone_by"] == told["id"]


async def test_an_order_of_rules_is_taken_back(a_seller):
    seller = await a_seller()
    for name in "abc":
        await a_rule(seller, name)
    before = await rules(seller)
    ids = [rule["id"] for rule in before]
    await seller.post("/api/pricing/rules/reorder", json={"ids": [*reversed(ids[:3]), *ids[3:]]})
    assert await rules(seller) != before
    await undone(seller, "pricing.rules_reordered")
    assert await rules(seller) == before


async def test_a_rule_that_was_switched_off_is_switched_on_again(a_seller):
    seller = await a_seller()
    rule_id = await a_rule(seller)
    await seller.post(f"/api/pricing/rules/{rule_id}/disable")
    entry = await newest(seller, "pricing.rule_changed")
    assert (entry["before"], entry["after"]) == ({"enabled": True}, {"enabled": False})
    await undone(seller, "pricing.rule_changed")
    assert (await seller.get(f"/api/pricing/rules/{rule_id}")).json()["enabled"] is True


async def test_a_rule_that_was_changed_since_stays_and_the_refusal_says_what_was(a_seller):
    seller = await a_seller()
    rule_id = await a_rule(seller)
    await change(seller, rule_id, adjust_bp=-500)
    first = await newest(seller, "pricing.rule_changed")
    await change(seller, rule_id, adjust_bp=-700)
    after = await rules(seller)
    answer = await undo(seller, first)
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")
    assert answer.json()["error"] == f"rule {rule_id} “Mine”: adjust_bp changed in the meantime"
    assert await rules(seller) == after
    await undone(seller, "pricing.rule_changed")
    assert (await undo(seller, first)).status_code == 200, "it stands again as the entry left it"


async def test_a_rule_whose_priority_another_has_taken_does_not_come_back(a_seller):
    seller = await a_seller()
    rule_id = await a_rule(seller, priority=77)
    await seller.http.delete(f"/api/pricing/rules/{rule_id}")
    other = await a_rule(seller, "Other", priority=77)
    assert f"is now used by rule {other}" in await refused(seller, "pricing.rule_deleted")


async def test_a_rule_of_a_list_that_is_gone_does_not_come_back(a_seller):
    seller = await a_seller()
    number = await a_list(seller)
    rule_id = await a_rule(seller, query="list:binder")
    await seller.http.delete(f"/api/pricing/rules/{rule_id}")
    await seller.http.delete(f"/api/lists/{number}")
    assert "query" in await refused(seller, "pricing.rule_deleted")


async def test_a_deleted_rule_can_not_be_changed_back(a_seller):
    seller = await a_seller()
    rule_id = await a_rule(seller)
    await change(seller, rule_id, adjust_bp=-500)
    await seller.http.delete(f"/api/pricing/rules/{rule_id}")
    assert "was deleted in the meantime" in await refused(seller, "pricing.rule_changed")


async def pins(seller, price):
    answer = await seller.http.put("/api/pricing/pins/1", json={"price": price})
    assert answer.status_code == 200, answer.text


async def pinned(seller):
    query = "SELECT price FROM price_decision WHERE seller_id = :id AND kind = 'pin'"
    return [str(row["price"]) for row in await seller.service.sql(seller.id, query, id=seller.id)]


async def test_a_pin_is_taken_back_to_the_price_before_it_or_none(a_seller):
    seller, _ = await stocked(a_seller)
    await pins(seller, "2.00")
    first = await newest(seller, "pricing.pinned")
    await pins(seller, "3.00")
    entry = await newest(seller, "pricing.pinned")
    assert (entry["before"]["price"], entry["after"]["price"]) == ("2.00", "3.00")
    answer = await undo(seller, first)
    assert answer.json()["error"] == "card 1 is now pinned at 3.00"
    await undone(seller, "pricing.pinned")
    assert await pinned(seller) == ["2.0000"]
    assert (await undo(seller, first)).status_code == 200
    assert await pinned(seller) == []


@pytest.mark.night
async def test_a_pin_that_was_taken_off_comes_back(a_seller):
    seller, _ = await stocked(a_seller)
    await pins(seller, "2.00")
    await seller.http.delete("/api/pricing/pins/1")
    assert "is no longer pinned" in await refused(seller, "pricing.pinned")
    await undone(seller, "pricing.unpinned")
    assert await pinned(seller) == ["2.0000"]


@pytest.mark.night
async def test_a_list_that_was_made_goes_again_while_it_is_empty(a_seller):
    seller, [card, *_] = await stocked(a_seller)
    number = await a_list(seller)
    await put(seller, number, card)
    assert "now has 1 card" in await refused(seller, "list.created")
    await take(seller, number, card)
    await undone(seller, "list.created")
    assert await lists(seller) == []


@pytest.mark.night
async def test_a_list_gets_its_former_name_back(a_seller):
    seller, _ = await stocked(a_seller)
    number = await a_list(seller)
    await seller.http.patch(f"/api/lists/{number}", json={"name": "Folder"})
    await a_list(seller, name="binder")
    assert "another list 'Binder'" in await refused(seller, "list.renamed")
    await seller.http.delete(f"/api/lists/{(await lists(seller))[1]['id']}")
    await undone(seller, "list.renamed")
    assert [each["name"] for each in await lists(seller)] == ["Binder"]


@pytest.mark.night
async def test_a_deleted_list_comes_back_with_its_cards(a_seller):
    seller, cards = await stocked(a_seller)
    number = await a_list(seller, *cards[:2])
    before = await lists(seller)
    await seller.http.delete(f"/api/lists/{number}")
    assert (await newest(seller, "list.deleted"))["before"]["cards"] == 2
    await undone(seller, "list.deleted")
    assert (await lists(seller), await cards_on(seller)) == (before, sorted(cards[:2]))


@pytest.mark.night
async def test_cards_leave_a_list_that_they_were_put_on(a_seller):
    seller, cards = await stocked(a_seller)
    number = await a_list(seller, cards[0])
    await put(seller, number, *cards)
    await undone(seller, "list.cards_added")
    assert await cards_on(seller) == [cards[0]]


@pytest.mark.night
async def test_cards_return_to_a_list_that_they_were_taken_off(a_seller):
    seller, cards = await stocked(a_seller)
    number = await a_list(seller, *cards)
    await take(seller, number, *cards[:2])
    await undone(seller, "list.cards_removed")
    assert await cards_on(seller) == sorted(cards)


@pytest.mark.night
async def test_cards_that_moved_since_stay_as_they_are(a_seller):
    seller, cards = await stocked(a_seller)
    number = await a_list(seller, *cards)
    await take(seller, number, cards[0])
    assert "1 of the 3 cards are no longer on list" in await refused(seller, "list.cards_added")
    assert await cards_on(seller) == sorted(cards[1:])
    await put(seller, number, cards[0])
    assert "1 of the cards are on list" in await refused(seller, "list.cards_removed")
    await seller.http.delete(f"/api/lists/{number}")
    assert "was deleted in the meantime" in await refused(seller, "list.cards_removed")


async def test_undoing_twice_answers_the_same_and_changes_nothing_more(a_seller):
    seller = await a_seller()
    await a_list(seller)
    entry = await newest(seller, "list.created")
    first = await undo(seller, entry)
    await a_list(seller)
    again = await undo(seller, entry)
    assert (again.status_code, again.json()) == (200, first.json())
    assert len(await lists(seller)) == 1


async def test_of_two_undos_at_once_one_has_an_effect(a_seller):
    seller = await a_seller()
    rule_id = await a_rule(seller)
    await seller.http.delete(f"/api/pricing/rules/{rule_id}")
    entry = await newest(seller, "pricing.rule_deleted")
    answers = await asyncio.gather(*(undo(seller, entry) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1
    found = await seller.get("/api/v1/agent/activity", params={"action": "activity.undone"})
    assert found.json()["total"] == 1
    assert [rule["id"] for rule in await rules(seller)].count(rule_id) == 1


async def test_an_undo_and_an_edit_at_once_leave_one_of_both_orders(a_seller):
    seller = await a_seller()
    rule_id = await a_rule(seller)
    await change(seller, rule_id, adjust_bp=-500)
    entry = await newest(seller, "pricing.rule_changed")
    answer, _ = await asyncio.gather(undo(seller, entry), change(seller, rule_id, adjust_bp=-700))
    assert answer.status_code in (200, 409)
    told = (await seller.get(f"/api/pricing/rules/{rule_id}")).json()
    assert told["adjust_bp"] == -700


async def test_what_can_not_be_undone_says_so(a_seller):
    seller = await a_seller()
    await seller.post("/api/v1/tasks", json={"kind": "refresh_orders"})
    entry = await newest(seller, "task.requested")
    answer = await undo(seller, entry)
    assert (entry["undoable"], answer.status_code) == (False, 409)
    assert answer.json()["code"] == "not_undoable"
    await a_list(seller)
    told = await undone(seller, "list.created")
    assert (await undo(seller, told)).json()["code"] == "not_undoable"


async def test_an_unknown_and_another_sellers_entry_are_not_found(a_seller):
    one, other = await a_seller(), await a_seller()
    await a_list(one)
    entry = await newest(one, "list.created")
    for found in (await undo(other, entry), await undo(one, {"id": 2**40})):
        assert (found.status_code, found.json()["code"]) == (404, "not_found")
    assert len(await lists(one)) == 1


async def test_owners_keys_and_writing_tokens_undo_and_nobody_else(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    reader, writer = await seller.token("mcp:read"), await seller.token("mcp:write")
    await a_list(seller)
    entry = await newest(seller, "list.created")
    assert (await undo(staff, entry)).json()["code"] == "owner_required"
    assert (await undo(reader, entry)).json()["code"] == "insufficient_scope"
    told = (await undo(writer, entry)).json()
    assert told["actor"].startswith("token ")
    await a_list(seller)
    told = (await undo(owner, await newest(seller, "list.created"))).json()
    assert told["actor"] == f"member {owner.member_id}"


SALE = {
    "name": "Weekend",
    "adjust_bp": -1000,
    "starts_at": "2031-01-01T00:00:00Z",
    "ends_at": "2031-01-03T00:00:00Z",
    "query": "price>=5",
    "floor": "0.25",
}


async def sales(seller):
    found = (await seller.get("/api/pricing/sales")).json()["sales"]
    return [{name: value for name, value in sale.items() if name != "updated_at"} for sale in found]


async def a_sale(seller, **fields):
    answer = await seller.post("/api/pricing/sales", json=SALE | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


SALE_EDITS = {
    "pricing.sale_created": lambda seller, id: a_sale(seller, name="Another"),
    "pricing.sale_changed": lambda seller, id: seller.http.patch(
        f"/api/pricing/sales/{id}",
        json={"adjust_bp": -500, "floor": None, "ends_at": "2031-02-01T00:00:00Z", "query": ""},
    ),
    "pricing.sale_deleted": lambda seller, id: seller.http.delete(f"/api/pricing/sales/{id}"),
}


@pytest.mark.night
@pytest.mark.parametrize("action", SALE_EDITS)
async def test_an_edit_of_a_sale_is_taken_back(a_seller, action):
    seller = await a_seller()
    sale_id = await a_sale(seller)
    before = await sales(seller)
    await SALE_EDITS[action](seller, sale_id)
    assert await sales(seller) != before
    told = await undone(seller, action)
    assert await sales(seller) == before
    assert (await newest(seller, action))["undone_by"] == told["id"]
    again = await undo(seller, await newest(seller, action))
    assert (again.status_code, again.json()["id"]) == (200, told["id"])


@pytest.mark.night
async def test_a_sale_that_was_changed_since_stays(a_seller):
    seller = await a_seller()
    sale_id = await a_sale(seller)
    await seller.http.patch(f"/api/pricing/sales/{sale_id}", json={"adjust_bp": -500})
    first = await newest(seller, "pricing.sale_changed")
    await seller.http.patch(f"/api/pricing/sales/{sale_id}", json={"adjust_bp": -700})
    answer = await undo(seller, first)
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")
    assert answer.json()["error"] == f"sale {sale_id} “Weekend”: adjust_bp changed in the meantime"
    await seller.http.delete(f"/api/pricing/sales/{sale_id}")
    assert "was deleted in the meantime" in (await undo(seller, first)).json()["error"]


async def test_amounts_and_times_are_compared_as_values_however_an_entry_wrote_them(a_seller):
    seller = await a_seller()
    sale_id = await a_sale(seller)
    before = await sales(seller)
    await seller.http.delete(f"/api/pricing/sales/{sale_id}")
    entry = await newest(seller, "pricing.sale_deleted")
    assert (await undo(seller, entry)).status_code == 200
    await seller.http.patch(f"/api/pricing/sales/{sale_id}", json={"floor": "0.30"})
    entry = await newest(seller, "pricing.sale_changed")
    other = {"floor": "0.3", "starts_at": "2031-01-01T01:00:00+01:00"}
    await seller.service.sql(
        seller.id,
        "UPDATE activity SET undo = jsonb_set(undo, '{became}', (undo->'became') || CAST(:other AS jsonb))"
        " WHERE seller_id = :seller AND id = :id RETURNING id",
        seller=seller.id,
        id=entry["id"],
        other=json.dumps(other),
    )
    assert (await undo(seller, entry)).status_code == 200
    assert await sales(seller) == before


async def test_two_undoes_of_a_sale_at_once_are_one(a_seller):
    seller = await a_seller()
    await a_sale(seller)
    entry = await newest(seller, "pricing.sale_created")
    first, second = await asyncio.gather(undo(seller, entry), undo(seller, entry))
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json()["id"] == second.json()["id"]
    assert await sales(seller) == []


async def test_pricing_settings_are_taken_back(a_seller):
    seller = await a_seller()
    before = (await seller.get("/api/pricing/settings")).json()
    body = {"direct_minimum": "3.5", "minimum_move": "0.07", "max_age_hours": 5}
    answer = await seller.http.patch("/api/pricing/settings", json=body)
    assert answer.status_code == 200, answer.text
    assert (await seller.get("/api/pricing/settings")).json() != before
    first = await newest(seller, "pricing.settings_changed")
    await seller.http.patch("/api/pricing/settings", json={"max_age_hours": 6})
    answer = await undo(seller, first)
    assert answer.json()["error"] == "pricing settings: max_age_hours changed in the meantime"
    await undone(seller, "pricing.settings_changed")
    assert (await undo(seller, first)).status_code == 200
    assert (await seller.get("/api/pricing/settings")).json() == before


async def test_account_settings_are_taken_back_by_who_may_change_them(a_seller):
    seller = await a_seller()
    owner, bea = await signed_in(seller), await joined(seller, f"undo-{seller.email}")
    before = (await owner.get("/api/account")).json()
    body = {
        "tracking_threshold": "75", "store_name": "A <b>Shop</b>", "quiet_hours": "22:00-06:00",
        "auto_sync_paused": True, "product_lines": [{"name": "pokemon", "enabled": False}],
    }  # fmt: skip
    answer = await owner.send("PATCH", "/api/account", json=body)
    assert answer.status_code == 200, answer.text
    entry = await newest(owner, "account.changed")
    assert entry["undoable"]
    key = await undo(seller, entry)
    assert (key.status_code, key.json()["code"]) == (403, "session_required")
    assert (await undo(bea, entry)).json()["code"] == "owner_required"
    answer = await undo(owner, entry)
    assert answer.status_code == 200, answer.text
    after = (await owner.get("/api/account")).json()
    assert {**after, "product_lines": None} == {**before, "product_lines": None}
    enabled = [
        {line["name"] for line in account["product_lines"] if line["enabled"]}
        for account in (before, after)
    ]
    assert enabled[0] == enabled[1]
    assert [
        row["action"] for row in (await owner.get("/api/v1/agent/activity")).json()["activity"]
    ][:2] == ["activity.undone", "account.changed"]


async def test_what_the_operator_changed_is_not_the_owners_to_undo(a_seller):
    seller = await a_seller()
    await seller.set(plan="trial")
    assert not (await newest(seller, "account.changed"))["undoable"]
