"""A plan that is a rollback: its page and its answer say what it will do, and then what it did."""

from __future__ import annotations

import hashlib
import re

from cardsync.platform import clock
from plans_builder import PLANS, PRICING, a_shop_under_limits, needs_review


async def said_by(owner, plan):
    """The sentences under the page's heading of what the plan does, and that heading."""
    page = (await owner.get(f"/plans/{plan}")).text
    heading = re.search(r'<h2 id="changes">(.*?)</h2>', page)
    assert heading is not None, page
    sentences = re.findall(r"<li>(.*?)</li>", page.split('aria-labelledby="changes"')[1])
    [result] = (await owner.get(f"{PLANS}/{plan}")).json()["results"]
    assert sentences[0] == result["summary"]
    return heading[1], sentences[0]


async def test_a_rollback_says_what_it_will_do_and_then_what_it_did(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    path = f"{PRICING}/rules/{rule_id}"
    assert (await owner.send("PATCH", path, json={"adjust_bp": 5000})).status_code == 200
    run = (await owner.post(f"{PRICING}/reprice")).json()["run_id"]
    await seller.service.run_jobs()
    # A later run makes this one an older one.
    await owner.post(f"{PRICING}/reprice")
    await seller.service.run_jobs()
    asked = needs_review(await seller.post(f"{PRICING}/rollbacks", json={"run_id": run}))
    plan, before = asked["proposal_id"], f"what they were before pricing run {run}"
    will = f"10 prices will go back to {before}."
    assert await said_by(owner, plan) == ("What it will do", will)

    done = await owner.post(f"{PLANS}/{plan}/confirm")
    assert done.json()["status"] == "applied", done.text
    [rollback] = (await seller.get(f"{PRICING}/rollbacks")).json()["rollbacks"]
    id = rollback["id"]
    prepared = f"10 prices will go back to {before}; rollback {id} is being prepared."
    assert await said_by(owner, plan) == ("What it did", prepared)

    await seller.service.run_jobs()
    waits = f"10 prices will go back to {before}; rollback {id} waits for the agent."
    assert await said_by(owner, plan) == ("What it did", waits)

    file = (await seller.export()).content
    has = f"10 prices go back to {before}; the agent has the file of rollback {id}."
    assert await said_by(owner, plan) == ("What it did", has)

    report = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 10,
        "sync_cycle_id": "c1",
        "file_sha256": hashlib.sha256(file).hexdigest(),
    }
    assert (await seller.post("/api/v1/repricing_events", json=report)).status_code == 201
    await seller.service.run_jobs()
    did = f"10 prices went back to {before}, by rollback {id}."
    assert await said_by(owner, plan) == ("What it did", did)


async def test_a_rollback_that_was_declined_or_canceled_says_so(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    path = f"{PRICING}/rules/{rule_id}"
    assert (await owner.send("PATCH", path, json={"adjust_bp": 5000})).status_code == 200
    since = clock.rfc3339(clock.now())
    await owner.post(f"{PRICING}/reprice")
    await seller.service.run_jobs()
    body = {"since": since}
    will = f"10 prices will go back to what they were at {since}."
    declined = needs_review(await seller.post(f"{PRICING}/rollbacks", json=body))["proposal_id"]
    await owner.post(f"{PLANS}/{declined}/decline")
    assert await said_by(owner, declined) == ("What it would have done", will)

    plan = needs_review(await seller.post(f"{PRICING}/rollbacks", json=body))["proposal_id"]
    assert (await owner.post(f"{PLANS}/{plan}/confirm")).json()["status"] == "applied"
    [rollback] = (await seller.get(f"{PRICING}/rollbacks")).json()["rollbacks"]
    assert (await owner.post(f"{PRICING}/rollbacks/{rollback['id']}/cancel")).status_code == 200
    said = f"Rollback {rollback['id']} of 10 prices was canceled."
    assert await said_by(owner, plan) == ("What it did", said)
