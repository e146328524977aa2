"""The settings as pages over HTTP, without a script."""

from __future__ import annotations

import re
from html import unescape

import pytest

from browsers import A_PASSWORD, accept, joined, signed_in

HOSTILE = '<b onclick="x">A & B</b> \u202eright to left'
SECTIONS = ["shop", "sync", "people", "keys", "data"]


def fields_of(page):
    """The fields of the page's first big form, as a browser would send them."""
    [text] = re.findall(r'<form method="post" action="/settings/\w+".*?</form>', page.text, re.S)[
        :1
    ]
    fields = {}
    for tag in re.findall(r"<input[^>]*>", text):
        told = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if told.get("type") != "checkbox" or " checked" in tag:
            fields[told["name"]] = unescape(told.get("value", ""))
    for name, options in re.findall(r'<select[^>]*name="(\w+)"[^>]*>(.*?)</select>', text, re.S):
        fields[name] = re.findall(r'value="(\w+)" selected', options)[0]
    return fields


async def test_the_form_saves_what_was_changed_and_the_api_shows_it(a_seller):
    browser = await signed_in(await a_seller())
    page = await browser.get("/settings/shop")
    fields = fields_of(page) | {"store_name": HOSTILE, "tracking_threshold": "75"}
    del fields["line:pokemon"]
    answer = await browser.form("/settings/shop", **fields)
    assert answer.headers["location"].startswith("/settings/shop?done=saved&undo=")
    account = (await browser.get("/api/account")).json()
    assert (account["store_name"], account["tracking_threshold"]) == (HOSTILE, "75.00")
    lines = {line["name"]: line["enabled"] for line in account["product_lines"]}
    assert (lines["pokemon"], lines["magic"]) == (False, True)
    after = await browser.get("/settings/shop")
    assert "<b onclick" not in after.text
    assert fields_of(after)["store_name"] == HOSTILE
    same = await browser.form("/settings/shop", **fields_of(after))
    assert "done=same" in same.headers["location"]


async def test_a_field_that_cannot_be_read_is_named_and_nothing_is_saved(a_seller):
    browser = await signed_in(await a_seller())
    fields = fields_of(await browser.get("/settings/sync"))
    wrong = fields | {"quiet_hours": "late", "auto_sync_paused": "true"}
    answer = await browser.form("/settings/sync", **wrong)
    assert answer.status_code == 422
    assert "a span like 22:00-06:00" in answer.text
    assert fields_of(answer) | {"csrf_token": wrong["csrf_token"]} == wrong
    assert not (await browser.get("/api/account")).json()["auto_sync_paused"]
    fields = fields_of(await browser.get("/settings/shop")) | {"store_name": "x" * 101}
    answer = await browser.form("/settings/shop", **fields)
    assert answer.status_code == 422
    assert "more than 100 characters" in answer.text


async def test_of_two_tabs_the_later_one_is_told_and_nothing_is_lost(a_seller):
    browser = await signed_in(await a_seller())
    fields = fields_of(await browser.get("/settings/sync"))
    first = fields | {"quiet_hours": "22:00-06:00", "sync_interval_minutes": "60"}
    assert (await browser.form("/settings/sync", **first)).status_code == 303
    later = fields | {"quiet_hours": "23:00-05:00", "planner_opt_in": "true"}
    told = await browser.form("/settings/sync", **later)
    assert told.status_code == 409
    assert "22:00-06:00" in told.text
    assert "23:00-05:00" in told.text
    account = (await browser.get("/api/account")).json()
    assert (account["quiet_hours"], account["planner_opt_in"]) == ("22:00-06:00", False)
    # Sent again as it stands, it has its way, and what the first tab alone changed stays.
    assert (await browser.form("/settings/sync", **fields_of(told))).status_code == 303
    account = (await browser.get("/api/account")).json()
    assert (account["quiet_hours"], account["planner_opt_in"]) == ("23:00-05:00", True)
    assert account["sync_interval_minutes"] == 60


async def test_two_tabs_that_change_different_fields_undo_nothing(a_seller):
    browser = await signed_in(await a_seller())
    fields = fields_of(await browser.get("/settings/shop"))
    await browser.form("/settings/shop", **fields | {"store_name": "Mine"})
    await browser.form("/settings/shop", **fields | {"time_zone": "Europe/Berlin"})
    account = (await browser.get("/api/account")).json()
    assert (account["store_name"], account["time_zone"]) == ("Mine", "Europe/Berlin")


async def test_the_whole_history_is_asked_for_by_a_form(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    assert (await browser.form("/settings/sync/history")).status_code == 303
    page = await browser.get("/settings/sync")
    assert "Already requested." in page.text
    feed = (await browser.get("/api/v1/agent/activity")).json()["activity"]
    assert "full_history_requested=true" in [entry["summary"] for entry in feed]


async def test_a_person_is_invited_changed_and_removed(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    page = await browser.form("/settings/people", email=f"bea-{seller.email}", role="staff")
    token = re.findall(r"/invitations/([\w-]+)", page.text)[0]
    assert token not in (await browser.get("/settings/people")).text
    _, bea = await accept(seller.service, token, name=HOSTILE, password=A_PASSWORD)
    shown = await browser.get("/settings/people")
    assert "<b onclick" not in shown.text
    path = f"/settings/people/{bea.member_id}"
    assert (await browser.form(f"{path}/role", role="owner")).status_code == 303
    assert (await browser.form(f"{path}/sign-out")).status_code == 303
    assert not await bea.is_in()
    assert "/invitations/" in (await browser.form(f"{path}/link")).text
    assert (await browser.form(f"{path}/remove")).status_code == 303
    assert (await browser.form(f"{path}/remove")).status_code == 404
    last = await browser.form(f"/settings/people/{browser.member_id}/remove")
    assert (last.status_code, "only owner" in last.text) == (422, True)
    wrong = await browser.form("/settings/people", email="nobody", role="staff")
    assert (wrong.status_code, 'value="nobody"' in wrong.text) == (422, True)


async def test_a_key_is_shown_once_and_revoked(a_seller):
    browser = await signed_in(await a_seller())
    made = await browser.form("/settings/keys", name=HOSTILE)
    assert "<b onclick" not in made.text
    key = re.findall(r"csk_\w+", made.text)[0]
    listed = await browser.get("/settings/keys")
    assert key not in listed.text
    newest = (await browser.get("/api/keys")).json()["keys"][-1]
    answer = await browser.form(f"/settings/keys/{newest['id']}/revoke")
    assert answer.status_code == 303
    assert (await browser.get("/api/keys")).json()["keys"][-1]["revoked_at"]
    assert (await browser.form("/settings/keys", name="")).status_code == 422


async def test_an_unpaid_plan_says_why_no_key_can_be_made(a_seller):
    browser = await signed_in(await a_seller(plan="free"))
    page = await browser.get("/settings/keys")
    assert "A new key needs a paid plan" in page.text
    assert "Create a key" not in page.text
    assert (await browser.form("/settings/keys", name="x")).status_code == 403


@pytest.mark.parametrize("section", SECTIONS)
async def test_staff_has_the_appearance_alone(a_seller, section):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    assert (await owner.get(f"/settings/{section}")).status_code == 200
    refused = await staff.get(f"/settings/{section}")
    assert refused.status_code == 403
    assert "Only owners" in refused.text
    if section != "data":
        named = {"name": "x", "email": "x@example.invalid", "role": "staff"}
        assert (await staff.form(f"/settings/{section}", **named)).status_code == 403
        assert (await owner.http.post(f"/settings/{section}", data=named)).status_code == 403
    appearance = await staff.get("/settings/appearance")
    assert appearance.status_code == 200
    assert "/settings/people" not in appearance.text
    assert (await staff.get("/settings")).headers["location"] == "/settings/appearance"
    assert (await owner.get("/settings")).headers["location"] == "/settings/shop"
