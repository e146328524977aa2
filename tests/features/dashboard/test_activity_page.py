"""The activity feed as a page over HTTP, without a script."""

from __future__ import annotations

import html
import re

import pytest

from browsers import joined, signed_in

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'


@pytest.fixture
async def shop(a_seller):
    seller = await a_seller()
    await seller.post("/api/lists", json={"name": HOSTILE})
    await seller.post("/api/lists", json={"name": "Binder"})
    return seller


async def test_the_page_shows_what_the_api_answers(shop):
    browser = await signed_in(shop)
    page = await browser.get("/activity")
    answer = (await browser.get("/api/v1/agent/activity")).json()
    assert page.status_code == 200
    assert f"{answer['total']} entries" in page.text
    for entry in answer["activity"]:
        assert f'id="entry-{entry["id"]}"' in page.text
    assert "<b onclick" not in page.text


async def test_it_tells_who_by_name_and_what_in_words(shop):
    owner = await signed_in(shop)
    bea = await joined(shop, f"bea-{shop.email}", name="Bea <b>")
    switched = {"network_consent": True}
    assert (await owner.send("PATCH", "/api/account", json=switched)).status_code == 200
    assert (await bea.post("/api/lists", json={"name": "my_list"})).status_code == 201
    page = (await owner.get("/activity")).text
    text = re.sub(r"<[^>]*>", "", html.unescape(page).replace("<b>", "(b)"))
    for words in ("Account settings changed", "Network consent: on", "List created"):
        assert words in text, words
    assert "List 'my_list'" in text
    assert "Bea (b)" in text
    assert "API key “first key”" in text
    for word in ("network_consent", "account.changed", f"member {bea.member_id}", "key 1"):
        assert word not in text, word
    assert ">low<" not in page.split('id="results"')[1]
    hers = await owner.get(f"/activity?actor=member+{bea.member_id}&action=list.created")
    assert "1 entry" in hers.text
    assert '<option value="list.created" selected>List created</option>' in hers.text
    named = f'<option value="member {bea.member_id}" selected>Bea &lt;b&gt;</option>'
    assert named in hers.text


async def test_filters_stand_in_the_address_and_leave_what_they_say(shop):
    browser = await signed_in(shop)
    page = await browser.get("/activity", params={"action": "list", "actor": "key", "page": "1"})
    assert "2 entries" in page.text
    assert "matches these filters" in (await browser.get("/activity?risk=critical")).text
    assert "matches these filters" in (await browser.get("/activity?since=2999-01-01")).text
    assert "2 entries" in (await browser.get("/activity?action=list&since=2020-01-01")).text
    assert "No entries on this page" in (await browser.get("/activity?action=list&page=9")).text
    wrong = await browser.get("/activity", params={"outcome": "<b>"})
    assert wrong.status_code == 422
    assert "is not one of applied" in wrong.text


async def test_an_entry_is_undone_by_its_form(shop):
    browser = await signed_in(shop)
    page = await browser.get("/activity?action=list.created")
    path = re.findall(r'action="(/activity/\d+/undo)"', page.text)[0]
    answer = await browser.form(path, page="1", action="list.created")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/activity?action=list.created&done=undone")
    names = [each["name"] for each in (await browser.get("/api/lists")).json()["lists"]]
    assert "Binder" not in names
    after = await browser.get(answer.headers["location"])
    assert re.search(r'<a href="#entry-\d+">undone\s*<time', after.text)
    assert path not in after.text


async def test_staff_sees_no_undo_and_is_refused(shop):
    owner, staff = await signed_in(shop), await joined(shop, f"staff-{shop.email}")
    path = re.findall(r'action="(/activity/\d+/undo)"', (await owner.get("/activity")).text)[0]
    page = await staff.get("/activity")
    assert page.status_code == 200
    assert "/undo" not in page.text
    assert "Before and after" not in page.text
    assert (await staff.form(path)).status_code == 403
    assert (await owner.http.post(path)).status_code == 403


async def test_a_plan_that_waits_is_linked(shop):
    owner = await signed_in(shop)
    modes = {"key": {"lists.change_set": "always_ask"}}
    answer = await owner.send("PATCH", "/api/v1/agent/plans/permissions", json=modes)
    assert answer.status_code == 200, answer.text
    actions = [{"type": "lists.change_set", "create": ["New"]}]
    plan = await shop.post("/api/v1/agent/plans", json={"actions": actions})
    assert plan.json()["status"] == "pending_review"
    assert f'href="/plans/{plan.json()["plan_id"]}"' in (await owner.get("/pricing/reviews")).text
