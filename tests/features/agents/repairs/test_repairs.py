"Agent repairs's workflows: what is asked, proposed, verified, shared and given up."

import asyncio
import base64
from datetime import timedelta

import pytest

from builders import a_png
from cardsync.agents.limits import SNIPPET_BYTES
from cardsync.platform import clock

PAGE = """
<main><section class="pricing-tools"><h2>Pricing</h2><div class="toolbar">
  <button class="btn" data-testid="export-pricing">Export CSV</button>
  <button class="btn" data-testid="import-pricing">Import CSV</button>
</div></section></main>
"""
OLD = 'button:has-text("Export CSV")'
NEW = 'button[data-testid="export-pricing"]'
ASKED = {
    "workflow": "pricing",
    "step_name": "export_inventory",
    "selector": OLD,
    "page_url": "https://marketplace.invalid/pricing",
    "dom_snippet": PAGE,
}


async def ask(seller, **fields):
    return await seller.post("/api/v1/workflow/heal", json=ASKED | fields)


async def healed(seller, **fields):
    answer = await ask(seller, **fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def confirm(seller, **fields):
    body = {"selector": NEW, "verified": True} | fields
    return await seller.post("/api/v1/workflow/corrections", json=body)


async def confirmed(seller, **fields):
    answer = await confirm(seller, **fields)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def fail(seller, correction_id, **fields):
    return await seller.post(f"/api/v1/workflow/corrections/{correction_id}/failure", json=fields)


async def rows(seller, table):
    return await seller.service.sql(
        seller.id, f"SELECT * FROM {table} WHERE seller_id = :id ORDER BY id", id=seller.id
    )


async def verifies(seller, **fields):
    told = await healed(seller, **fields)
    return await confirmed(seller, heal_id=told["id"])


@pytest.fixture
def step(request):
    """A workflow that no other test has asked for: what three sellers verify holds for all."""
    return {"workflow": request.node.name}


async def test_a_proposal_is_served_as_cached_once_it_was_verified(a_seller, step):
    seller = await a_seller()
    told = await healed(seller, **step)
    assert (told["status"], told["correction"]["selector"]) == ("proposed", NEW)
    assert 0.6 < told["correction"]["confidence"] < 1
    assert (await healed(seller, **step))["status"] == "proposed"
    assert await confirmed(seller, heal_id=told["id"]) == told["correction"]["id"]
    assert await healed(seller, **step) == {"status": "cached", "correction": told["correction"]}
    # A cached repair needs no page, and holds for this selector of this step alone.
    assert (await healed(seller, **step, dom_snippet=""))["status"] == "cached"
    assert (await healed(seller, **step, selector="#export-csv"))["status"] == "proposed"
    assert (await healed(seller, **step, step_name="export_csv"))["status"] == "proposed"
    outcomes = [row["outcome"] for row in await rows(seller, "workflow_heal")]
    assert outcomes == ["proposed", "proposed", "cached", "cached", "proposed", "proposed"]


async def test_a_correction_is_verified_by_its_own_id_and_with_another_selector(a_seller, step):
    seller = await a_seller()
    told = await healed(seller, **step)
    first = await confirmed(seller, correction_id=told["correction"]["id"])
    clock.shift(timedelta(minutes=1))
    other = await confirmed(seller, correction_id=first, selector="#export")
    assert other != first
    assert (await healed(seller, **step))["correction"]["selector"] == "#export"
    again = await confirmed(seller, correction_id=told["correction"]["id"], selector="#export")
    assert again == other


async def test_what_is_not_there_any_more_is_told_as_gone(a_seller, step):
    seller = await a_seller()
    page = PAGE.replace("Export CSV", "Reports").replace("export-pricing", "reports")
    told = await healed(seller, **step, dom_snippet=page)
    assert told["status"] == "gone"
    assert "close enough" in told["reason"]
    twice = await healed(seller, **step, dom_snippet=PAGE + PAGE)
    assert twice["status"] == "gone"
    assert "equally close" in twice["reason"]
    # The agent's owner found it by hand.
    assert await confirmed(seller, heal_id=told["id"], selector="#reports")
    assert (await healed(seller, **step))["correction"]["selector"] == "#reports"


async def test_a_renamed_button_is_found_by_the_words_of_its_old_id(a_seller, step):
    seller = await a_seller()
    lost = step | {"selector": "#import-button-old", "step_name": "upload_prices"}
    told = await healed(
        seller, **lost, dom_snippet='<main><button id="import-new">Import</button></main>'
    )
    assert (told["status"], told["correction"]["selector"]) == ("proposed", "#import-new")
    for left in (
        '<button id="import-new">Delete</button>',
        '<button id="import-1">Import</button><button id="import-2">Import</button>',
    ):
        assert (await healed(seller, **lost, dom_snippet=left))["status"] == "gone"


async def test_the_workflows_name_says_which_of_two_is_meant(a_seller):
    seller = await a_seller()
    page = '<button id="a">Import prices</button><button id="b">Import orders</button>'
    lost = {"selector": "#import-button", "step_name": "import", "dom_snippet": page}
    assert (await healed(seller, **lost, workflow="shop"))["status"] == "gone"
    told = await healed(seller, **lost, workflow="orders")
    assert told["correction"]["selector"] == "#b"


async def test_a_link_to_the_page_itself_is_left_out(a_seller, step):
    seller = await a_seller()
    page = (
        '<nav><a href="/pricing/import">Import prices</a></nav>'
        '<form><button id="b1">Import your prices</button></form>'
    )
    lost = step | {"selector": "#import-prices-button", "step_name": "import_prices",
                   "dom_snippet": page}  # fmt: skip
    here = "https://marketplace.invalid/pricing/import"
    told = await healed(seller, **lost, page_url=here)
    assert told["correction"]["selector"] == "#b1"
    elsewhere = "https://marketplace.invalid/pricing"
    assert (await healed(await a_seller(), **lost, page_url=elsewhere))["status"] == "gone"


@pytest.mark.night
async def test_after_the_third_failure_a_selector_is_never_proposed_again(a_seller, step):
    seller = await a_seller()
    told = await healed(seller, **step)
    number = await confirmed(seller, heal_id=told["id"])
    for count, status in ((1, "verified"), (2, "verified"), (3, "disabled"), (4, "disabled")):
        failed = await fail(seller, number, error={"code": "timeout", "message": "no click"})
        assert failed.json() == {"id": number, "status": status, "failures": count}
        served = (await healed(seller, **step))["status"]
        assert served == ("cached" if count < 3 else "gone")
    # The element itself is left out, however another selector would name it.
    renamed = PAGE.replace('class="btn" data', 'class="btn" id="export" data', 1)
    assert (await healed(seller, **step, dom_snippet=renamed))["status"] == "gone"
    refused = await confirm(seller, correction_id=number)
    assert (refused.status_code, refused.json()["code"]) == (409, "correction_disabled")
    [row] = await rows(seller, "workflow_correction")
    assert row["last_error"] == "timeout: no click"


async def test_a_proposal_that_fails_three_times_is_not_made_a_fourth_time(a_seller, step):
    seller = await a_seller()
    number = (await healed(seller, **step))["correction"]["id"]
    answers = await asyncio.gather(*(fail(seller, number) for _ in range(3)))
    assert sorted(answer.json()["failures"] for answer in answers) == [1, 2, 3]
    assert (await healed(seller, **step))["status"] == "gone"


@pytest.mark.night
async def test_what_three_sellers_verified_holds_for_all(a_seller, step):
    one, two, three, fourth = [await a_seller() for _ in range(4)]
    for seller in (one, one, two):
        told = await healed(seller, **step)
        await confirmed(seller, correction_id=told["correction"]["id"])
    assert (await healed(fourth, **step))["status"] == "proposed"
    await verifies(three, **step)
    told = await healed(fourth, **step, dom_snippet="")
    assert (told["status"], told["correction"]["selector"]) == ("cached", NEW)
    [row] = await shared(fourth)
    assert (row["selector"], row["disabled_at"]) == (NEW, None)


async def shared(seller):
    query = """
        SELECT s.* FROM shared_repair s JOIN workflow_correction c USING (digest)
         WHERE c.seller_id = :id
    """
    return await seller.service.sql(seller.id, query, id=seller.id)


async def test_until_then_what_is_shared_holds_no_text(a_seller, step):
    seller = await a_seller()
    await verifies(seller, **step)
    [row] = await shared(seller)
    assert (row["selector"], row["shared_at"]) == (None, None)


async def test_three_sellers_at_once_are_all_counted(a_seller, step):
    several = [await a_seller() for _ in range(3)]
    told = await asyncio.gather(*(healed(seller, **step) for seller in several))
    await asyncio.gather(
        *(confirmed(seller, heal_id=t["id"]) for seller, t in zip(several, told, strict=True))
    )
    assert (await healed(await a_seller(), **step))["status"] == "cached"


async def test_what_failed_for_three_sellers_is_served_to_nobody_new(a_seller, step):
    several = [await a_seller() for _ in range(4)]
    for seller in several[:3]:
        await verifies(seller, **step)
    for turn, seller in enumerate(several[1:]):
        number = (await healed(seller, **step))["correction"]["id"]
        assert (await healed(await a_seller(), **step))["status"] == "cached", turn
        for _ in range(3):
            await fail(seller, number)
        assert (await healed(seller, **step))["status"] == "gone"
    assert (await healed(await a_seller(), **step))["status"] == "gone"
    # It goes on for the one for whom it works.
    assert (await healed(several[0], **step))["status"] == "cached"


async def test_the_same_question_twice_at_once_is_one_correction(a_seller, step):
    seller = await a_seller()
    told = await asyncio.gather(*(healed(seller, **step) for _ in range(4)))
    assert len({answer["correction"]["id"] for answer in told}) == 1
    numbers = await asyncio.gather(*(confirmed(seller, heal_id=t["id"]) for t in told))
    assert set(numbers) == {told[0]["correction"]["id"]}


async def test_a_repaired_selector_that_is_lost_again_is_known_by_what_was_seen(a_seller, step):
    seller = await a_seller()
    await verifies(seller, **step)
    page = PAGE.replace("<button", "<a href='#'").replace("</button", "</a")
    page = page.replace('data-testid="export-pricing"', "")
    told = await healed(seller, **step, selector=NEW, dom_snippet=page)
    assert told["status"] == "proposed"
    assert told["correction"]["selector"].endswith("a:nth-of-type(1)")


async def test_a_screenshot_is_kept_as_long_as_its_request(a_seller, service, step):
    seller = await a_seller()
    picture = a_png(20, 20)
    told = await healed(seller, **step, screenshot=base64.b64encode(picture).decode())
    [row] = await rows(seller, "workflow_heal")
    assert await service.work.store.read(row["screenshot_key"]) == picture
    assert row["screenshot_bytes"] == len(picture)
    clock.shift(timedelta(days=service.settings.screenshot_retention_days - 1))
    await healed(seller, **step)
    clock.shift(timedelta(days=1, minutes=1))
    await seller.sweep()
    await service.run_jobs()
    assert [row["screenshot_key"] for row in await rows(seller, "workflow_heal")] == [None]
    assert (await confirm(seller, heal_id=told["id"])).status_code == 404
    assert await confirmed(seller, correction_id=told["correction"]["id"])


@pytest.mark.parametrize(
    ("fields", "status", "names"),
    [
        ({"dom_snippet": "x" * (SNIPPET_BYTES + 1)}, 413, "dom_snippet"),
        ({"dom_snippet": "é" * (SNIPPET_BYTES // 2 + 1)}, 413, "dom_snippet"),
        ({"dom_snippet": None}, 422, "dom_snippet"),
        ({"selector": ""}, 422, "selector"),
        ({"selector": "x" * 1_001}, 422, "selector"),
        ({"workflow": 7}, 422, "workflow"),
        ({"step_name": "x" * 201}, 422, "step_name"),
        ({"screenshot": "aGFsbG8="}, 422, "screenshot"),
        ({"screenshot": "A" * 3_000_000}, 413, "screenshot"),
    ],
)
async def test_a_request_that_cannot_be_right_is_refused(a_seller, fields, status, names):
    seller = await a_seller()
    answer = await ask(seller, **fields)
    assert answer.status_code == status, answer.text
    assert names in answer.json()["error"]
    assert await rows(seller, "workflow_heal") == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 422),
        ({"heal_id": 1, "correction_id": 1}, 422),
        ({"heal_id": 1, "verified": False}, 422),
        ({"heal_id": 1, "selector": None}, 422),
        ({"heal_id": 2**63}, 422),
        ({"heal_id": 2**62}, 404),
        ({"correction_id": 2**62}, 404),
    ],
)
async def test_a_verdict_that_names_nothing_is_refused(a_seller, fields, status):
    answer = await confirm(await a_seller(), **fields)
    assert answer.status_code == status, answer.text


async def test_the_lost_selector_is_no_repair_of_itself(a_seller, step):
    seller = await a_seller()
    told = await healed(seller, **step)
    answer = await confirm(seller, heal_id=told["id"], selector=OLD)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


async def test_another_sellers_corrections_are_not_found(a_seller, step):
    seller, other = await a_seller(), await a_seller()
    told = await healed(seller, **step)
    number = told["correction"]["id"]
    assert (await confirm(other, heal_id=told["id"])).status_code == 404
    assert (await confirm(other, correction_id=number)).status_code == 404
    assert (await fail(other, number)).status_code == 404
    assert (await fail(other, 2**63)).status_code == 404
    [row] = await rows(seller, "workflow_correction")
    assert (row["state"], row["failures"]) == ("proposed", 0)


@pytest.mark.night
async def test_every_step_of_a_repair_stands_in_the_feed(a_seller, step):
    seller = await a_seller()
    number = await verifies(seller, **step)
    for _ in range(3):
        await fail(seller, number)
    query = (
        "SELECT action FROM activity WHERE seller_id = :id AND action LIKE 'repair%' ORDER BY id"
    )
    feed = await seller.service.sql(seller.id, query, id=seller.id)
    assert [row["action"] for row in feed] == [
        "repair.asked", "repair.verified", "repair.failed", "repair.failed", "repair.disabled",
    ]  # fmt: skip
