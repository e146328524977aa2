"""All that waits for the owner's word, of every kind in one list and by one decision, over HTTP."""

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.recommendations.generate import RECOMMENDATIONS
from plans_builder import PLANS, a_plain_shop, allow, lowered, planned, rule_of

WAITING = "/api/waiting"


async def waits(caller, **query):
    answer = await caller.get(WAITING, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def decided(caller, one, answer, **body):
    path = f"{WAITING}/{one['kind']}/{one['id']}"
    return await caller.post(path, json={"answer": answer, "revision": one["revision"]} | body)


async def an_upload(a_seller):
    seller = await a_seller(lines=["magic"])
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 41))))
    await seller.import_csv(a_csv(a_row(1, quantity=3)))
    return seller


async def a_run(a_seller):
    seller = await a_seller(lines=["magic"])
    rows = [a_row(n, market="1.00", price="1.00") for n in range(1, 61)]
    await seller.import_csv(a_csv(*rows))
    body = {"name": "Mine", "state": "published", "adjust_bp": 9000, "query": "price>0"}
    answer = await seller.post("/api/pricing/rules", json=body | {"price_source": "market"})
    assert answer.status_code == 201, answer.text
    assert (await seller.post("/api/pricing/reprice", json={})).status_code == 202
    await seller.service.run_jobs()
    return seller


async def a_plan(a_seller):
    seller, rule = await a_plain_shop(a_seller)
    await allow(seller, "always_ask")
    await planned(seller, lowered(rule, 100))
    return seller


async def a_price(a_seller):
    seller = await a_seller(lines=["magic"])
    await seller.http.patch("/api/pricing/settings", json={"review_up_bp": 1_000})
    body = {"name": "Mine", "state": "published", "price_source": "market", "cap": None}
    answer = await seller.post("/api/pricing/rules", json=body)
    assert answer.status_code == 201, answer.text
    await seller.import_csv(a_csv(a_row(1, quantity=3, price="10.00", market="14.00")))
    return seller


async def a_suggestion(a_seller):
    seller = await a_seller(lines=["magic"])
    body = {"name": "Mine", "state": "published", "price_source": "current"}
    assert (await seller.post("/api/pricing/rules", json=body)).status_code == 201
    await seller.import_csv(a_csv(a_row(1, quantity=3, price="10.00", market="14.00")))
    await seller.service.run_jobs()
    await RECOMMENDATIONS.work_off(seller.service.work, seller.id)
    return seller


SHOPS = {
    "upload": an_upload,
    "run": a_run,
    "plan": a_plan,
    "price": a_price,
    "suggestion": a_suggestion,
}
# Each kind's cards, its change of the listed value if the test knows it, and its page.
SAID = {
    "upload": (1, None, "/sync/uploads/"),
    "run": (60, None, "/pricing/runs/"),
    "plan": (10, "-1.00", "/plans/"),
    "price": (1, "12.00", "/pricing/reviews"),
    "suggestion": (1, None, "/recommendations"),
}


@pytest.mark.parametrize("kind", SHOPS)
async def test_each_kind_waits_in_one_list_and_of_two_callers_one_decides(a_seller, kind):
    """Over one second: it alone decides each kind by the one route, twice at once."""
    seller = await SHOPS[kind](a_seller)
    found = await waits(seller)
    [one] = found["waiting"]
    assert (one["kind"], found["total"]) == (kind, 1)
    assert found["counts"] == dict.fromkeys(SHOPS, 0) | {kind: 1}
    assert (await waits(seller, kind=kind))["waiting"] == [one]
    other = next(another for another in SHOPS if another != kind)
    assert (await waits(seller, kind=other))["total"] == 0
    cards, change, page = SAID[kind]
    assert one["cards"] == cards
    assert change is None or one["listed_value_change"] == change
    assert page in one["confirm_url"]
    assert one["answers"][:2] == ["approve", "decline"]
    owners = [await signed_in(seller), await signed_in(seller)]
    stale = await decided(owners[0], one, "approve", revision="0")
    assert (stale.status_code, stale.json()["code"]) == (409, "revision_conflict")
    both = await asyncio.gather(
        decided(owners[0], one, "approve"), decided(owners[1], one, "decline")
    )
    codes = sorted(answer.status_code for answer in both)
    assert codes == [200, 409], [answer.text for answer in both]
    lost = next(answer for answer in both if answer.status_code == 409)
    assert lost.json()["code"] == "revision_conflict"
    assert (await waits(seller, kind=kind))["total"] == 0


@pytest.mark.parametrize("kind", ["upload", "run", "plan"])
async def test_what_holds_the_shop_is_not_put_off(a_seller, kind):
    seller = await SHOPS[kind](a_seller)
    [one] = (await waits(seller))["waiting"]
    owner = await signed_in(seller)
    refused = await decided(owner, one, "snooze")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_payload")
    assert "approve or decline" in refused.json()["error"]
    assert (await waits(seller))["waiting"] == [one]


@pytest.mark.parametrize("kind", ["price", "suggestion"])
async def test_a_price_is_put_off_and_waits_no_more(a_seller, kind):
    seller = await SHOPS[kind](a_seller)
    [one] = (await waits(seller))["waiting"]
    done = await decided(seller, one, "snooze")
    assert done.json() == {"answer": "snooze", "run_id": None, "waits": None}, done.text
    assert (await waits(seller))["total"] == 0


async def test_an_approved_price_is_made_and_an_approved_upload_runs_again(a_seller):
    seller = await a_price(a_seller)
    [one] = (await waits(seller))["waiting"]
    done = await decided(seller, one, "approve")
    assert done.json()["run_id"] is not None, done.text
    assert (await seller.cards())[0]["target_price"] == 14
    seller = await an_upload(a_seller)
    [one] = (await waits(seller))["waiting"]
    assert (await decided(seller, one, "approve")).status_code == 200
    await seller.service.run_jobs()
    report = (await seller.get(f"/api/v1/uploads/{one['id']}")).json()
    assert report["state"] == "done"


async def test_a_plan_that_drifted_waits_on_with_what_changed(a_seller):
    seller, rule = await a_plain_shop(a_seller)
    await allow(seller, "always_ask")
    plan = await planned(seller, lowered(rule, 100))
    [one] = (await waits(seller))["waiting"]
    owner = await signed_in(seller)
    path = f"/api/pricing/rules/{rule}"
    assert (await owner.send("PATCH", path, json={"adjust_bp": -300})).status_code == 200
    done = (await decided(owner, one, "approve")).json()
    assert done["waits"]["revision"] == "2"
    assert (await seller.get(f"{PLANS}/{plan['plan_id']}")).json()["status"] == "drifted"
    assert (await decided(owner, one, "approve")).json()["code"] == "revision_conflict"
    assert (await decided(owner, done["waits"], "approve")).json()["waits"] is None
    assert (await rule_of(seller, rule))["adjust_bp"] == -100


async def test_only_those_decide_who_could_before(a_seller):
    seller = await a_plan(a_seller)
    [one] = (await waits(seller))["waiting"]
    refused = await decided(seller, one, "approve")
    assert (refused.status_code, refused.json()["code"]) == (403, "session_required")
    staff = await joined(seller, f"staff-{seller.email}")
    assert (await staff.get(WAITING)).json()["code"] == "owner_required"
    assert (await decided(staff, one, "decline")).json()["code"] == "owner_required"
    missing = await decided(seller, one | {"id": 99_999}, "approve")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    unknown = await decided(seller, one | {"kind": "order"}, "approve")
    assert (unknown.status_code, unknown.json()["code"]) == (422, "invalid_payload")
    clock.shift(timedelta(days=1))
    assert (await waits(seller))["total"] == 0
    owner = await signed_in(seller)
    late = await decided(owner, one, "approve")
    assert (late.status_code, late.json()["code"]) == (409, "revision_conflict")
