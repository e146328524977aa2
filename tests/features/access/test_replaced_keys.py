"""A key is replaced without an agent that stops: the old one works until the new one is used, or until
its time is over.
"""

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from cardsync.platform import clock


async def status(seller, key):
    async with seller.service.client(Authorization=f"Bearer {key}") as http:
        return (await http.get("/api/v1/status")).status_code


async def keys_of(owner):
    return {key["id"]: key for key in (await owner.get("/api/keys")).json()["keys"]}


async def test_the_first_use_of_the_new_key_ends_the_old_one(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    [old] = await keys_of(owner)
    answer = await owner.post(f"/api/keys/{old}/replace")
    assert answer.status_code == 201, answer.text
    new = answer.json()
    assert await status(seller, seller.api_key) == 200
    listed = await keys_of(owner)
    assert listed[old]["ends_at"]
    assert not listed[old]["revoked_at"]
    assert listed[new["id"]]["name"] == listed[old]["name"]
    # However many agents use it at once, and on which process.
    used = await asyncio.gather(*(status(seller, new["api_key"]) for _ in range(8)))
    assert set(used) == {200}
    assert await status(seller, seller.api_key) == 401
    listed = await keys_of(owner)
    assert listed[old]["revoked_at"]
    assert (listed[new["id"]]["revoked_at"], listed[new["id"]]["ends_at"]) == (None, None)
    # The new one can be replaced in its turn.
    assert (await owner.post(f"/api/keys/{new['id']}/replace")).status_code == 201


async def test_an_old_key_ends_by_the_clock_where_the_new_one_is_never_used(a_seller, monkeypatch):
    seller = await a_seller()
    owner = await signed_in(seller)
    [old] = await keys_of(owner)
    await owner.post(f"/api/keys/{old}/replace")
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(hours=23, minutes=59))
    assert await status(seller, seller.api_key) == 200
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(hours=24, seconds=1))
    assert await status(seller, seller.api_key) == 401
    monkeypatch.undo()


async def test_of_two_who_replace_a_key_at_once_one_does(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    [old] = await keys_of(owner)
    tries = [owner.post(f"/api/keys/{old}/replace") for _ in range(6)]
    answers = sorted(answer.status_code for answer in await asyncio.gather(*tries))
    assert answers == [201, 422, 422, 422, 422, 422]
    assert len(await keys_of(owner)) == 2


async def test_only_an_owner_replaces_keys_that_work(a_seller):
    seller, other = await a_seller(), await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    [old] = await keys_of(owner)
    [foreign] = await keys_of(await signed_in(other))
    assert (await staff.post(f"/api/keys/{old}/replace")).status_code == 403
    assert (await owner.post(f"/api/keys/{foreign}/replace")).status_code == 404
    await owner.send("DELETE", f"/api/keys/{old}")
    assert (await owner.post(f"/api/keys/{old}/replace")).status_code == 422


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; like Mac OS X) Version/18.0 Safari/604.1", "Safari on iPhone"),
        ("<script>alert(1)</script>", "Another program"),
    ],
)
async def test_a_member_sees_each_browser_that_is_signed_in_and_ends_one(a_seller, agent, name):
    seller = await a_seller()
    here, there = await signed_in(seller), await signed_in(seller)
    there.http.headers["User-Agent"] = agent
    assert await there.is_in()
    sessions = (await here.get("/api/sessions")).json()["sessions"]
    assert sorted(one["current"] for one in sessions) == [False, True]
    [other] = [one for one in sessions if not one["current"]]
    assert other["browser"] == name
    page = await here.get("/settings/sign-in")
    assert name in page.text
    assert f"/settings/sign-in/sessions/{other['id']}/end" in page.text
    ended = await here.form(f"/settings/sign-in/sessions/{other['id']}/end")
    assert ended.status_code == 303
    assert not await there.is_in()
    assert await here.is_in()
    assert (await here.send("DELETE", f"/api/sessions/{other['id']}")).status_code == 404


async def test_nobody_sees_or_ends_the_sessions_of_another_member(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    [own] = (await owner.get("/api/sessions")).json()["sessions"]
    [theirs] = (await staff.get("/api/sessions")).json()["sessions"]
    assert own["id"] != theirs["id"]
    for browser, session in ((owner, theirs), (staff, own)):
        gone = await browser.send("DELETE", f"/api/sessions/{session['id']}")
        assert gone.status_code == 404
    assert await owner.is_in()
    assert await staff.is_in()
    assert (await owner.send("DELETE", f"/api/sessions/{own['id']}")).status_code == 200
    assert not await owner.is_in()
