"""The settings of an account: the owner reads and changes them, the feed has an entry, lines are
switched.
"""

import asyncio

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.access.models import SETTINGS
from cardsync.catalog.product_lines import NAMES
from cardsync.shop.accounts.account_settings import switched

ACCOUNT = "/api/account"
# decisions.md, section 2.
FIELDS = {
    "sync_mode", "sync_interval_minutes", "quiet_hours", "time_zone", "ship_within_days", "auto_sync_paused",
    "automatic_pricing_paused", "planner_opt_in",
    "write_consent", "upload_approved", "tracking_threshold", "direct_program",
    "attribution_logging", "store_name", "network_consent",
    "network_published", "network_consented_at", "network_published_at",
    "listing_url_template", "postage_steps", "product_lines", "staff_see_revenue", "loss_budget",
    "costing", "supplies", "letter_postage", "parcel_postage",
}  # fmt: skip


async def change(browser, **fields):
    answer = await browser.send("PATCH", ACCOUNT, json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refusal(browser, **fields):
    answer = await browser.send("PATCH", ACCOUNT, json=fields)
    return answer.status_code, answer.json()["code"], answer.json()["error"]


async def feed(seller):
    query = (
        "SELECT actor, summary FROM activity WHERE seller_id = :id AND action = 'account.changed'"
        " ORDER BY id"
    )
    return [
        (row["actor"], row["summary"])
        for row in await seller.service.sql(seller.id, query, id=seller.id)
    ]


async def switch(browser, **lines):
    return await change(
        browser, product_lines=[{"name": name, "enabled": on} for name, on in lines.items()]
    )


async def explained(seller, marketplace_id):
    told = (await seller.get(f"/api/v1/pricing/explain/{marketplace_id}")).json()
    return [blocker["code"] for blocker in told["blockers"]], told["target_price"]


async def exported(seller):
    answer = await seller.export()
    return answer.headers.get("X-Price-Export-Empty-Reason"), answer.text.count("\r\n") - 1


async def test_a_new_account_as_its_owner_and_its_key_read_it(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    browser = await signed_in(seller)
    told = (await browser.get(ACCOUNT)).json()
    lines = told.pop("product_lines")
    assert told == {
        "sync_mode": "full", "sync_interval_minutes": None, "quiet_hours": None,
        "time_zone": "America/New_York", "auto_sync_paused": False,
        "automatic_pricing_paused": False, "planner_opt_in": False, "write_consent": True,
        "upload_approved": False, "ship_within_days": 3,
        "tracking_threshold": "50.00", "direct_program": False, "attribution_logging": True,
        "store_name": None, "network_consent": False,
        "network_published": False, "network_consented_at": None, "network_published_at": None,
        "listing_url_template": None, "postage_steps": None, "staff_see_revenue": False, "loss_budget": None,
        "costing": "fifo", "supplies": "0.00", "letter_postage": "0.00", "parcel_postage": "0.00",
    }  # fmt: skip
    assert lines[:3] == [
        {"name": "magic", "enabled": True}, {"name": "pokemon", "enabled": True},
        {"name": "yugioh", "enabled": False},
    ]  # fmt: skip
    assert {line["name"] for line in lines} == set(NAMES)
    assert (await seller.get(ACCOUNT)).json() == told | {"product_lines": lines}


@pytest.mark.parametrize(
    "fields",
    [
        {"sync_mode": "read_only"}, {"sync_interval_minutes": 45}, {"quiet_hours": "22:00-06:00"},
        {"time_zone": "Europe/Vienna"}, {"ship_within_days": 1},
        {"auto_sync_paused": True, "automatic_pricing_paused": True}, {"planner_opt_in": True},
        {"write_consent": False},
        {"upload_approved": True}, {"direct_program": True, "attribution_logging": False},
        {"store_name": "Bea's Cards"},
        {"listing_url_template": "https://shop.example/{marketplace_product_id}"},
        {"postage_steps": "0:1.27,12:3.20"}, {"staff_see_revenue": True},
        {"costing": "average"}, {"supplies": "0.15"}, {"letter_postage": "0.78", "parcel_postage": "4.50"},
        {"network_consent": True, "network_published": True}, {"tracking_threshold": "35.50"},
    ],
    ids=str,
)  # fmt: skip
async def test_each_field_is_set_kept_and_told_in_the_feed(a_seller, fields):
    seller, other = await a_seller(), await a_seller()
    browser = await signed_in(seller)
    before = (await browser.get(ACCOUNT)).json()
    after = await change(browser, **fields)
    # Each switch of the network has its date.
    dates = {name: value for name, value in after.items() if name.endswith("ed_at")}
    assert {name for name, value in dates.items() if value} == {
        f"network_{what}_at"
        for switch, what in (("consent", "consented"), ("published", "published"))
        if fields.get(f"network_{switch}")
    }
    assert after == before | fields | dates
    assert (await browser.get(ACCOUNT)).json() == after
    [(actor, summary)] = await feed(seller)
    assert actor == f"member {browser.member_id}"
    assert [part.partition("=")[0] for part in summary.split(", ")] == list(fields)
    await change(browser, **fields)
    assert len(await feed(seller)) == 1
    assert (await other.get(ACCOUNT)).json() == before


async def test_they_act_at_once(a_seller):
    seller = await a_seller(lines=["magic", "pokemon"])
    browser = await signed_in(seller)
    await change(
        browser,
        sync_mode="read_only",
        upload_approved=True,
        product_lines=[{"name": "magic", "enabled": False}],
    )
    beat = (await seller.post("/api/v1/heartbeat")).json()
    assert (beat["sync_mode"], beat["upload_approved"]) == ("read_only", True)
    assert [line["name"] for line in beat["product_lines"]] == ["pokemon"]
    assert (await seller.http.delete("/api/v1/sync/approve_upload")).status_code == 200
    actor, summary = (await feed(seller))[-1]
    assert (actor.split()[0], summary) == ("key", "upload_approved=false")
    await change(browser, planner_opt_in=True)
    asked = await seller.get("/api/v1/sync/pending", params={"capabilities": "fetch_orders"})
    assert asked.json()["plan"]["error"] == "capability_mismatch: export_inventory@1"


async def test_null_takes_the_default_and_an_amount_may_be_a_number(a_seller):
    browser = await signed_in(await a_seller())
    await change(
        browser,
        sync_interval_minutes=60,
        quiet_hours="01:00-02:00",
        store_name="X",
        tracking_threshold=20.5,
    )
    told = await change(browser, sync_interval_minutes=None, quiet_hours=None, store_name=" ")
    assert (told["sync_interval_minutes"], told["quiet_hours"], told["store_name"]) == (
        None,
        None,
        None,
    )
    assert told["tracking_threshold"] == "20.50"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"colour": "red"}, "colour"), ({"plan": "paid"}, "plan"),
        ({"sync_mode": "half"}, "sync_mode"), ({"sync_mode": None}, "sync_mode"),
        ({"sync_interval_minutes": 29}, "sync_interval_minutes"),
        ({"sync_interval_minutes": "60"}, "sync_interval_minutes"),
        ({"quiet_hours": "22-6"}, "quiet_hours"), ({"quiet_hours": 22}, "quiet_hours"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"ship_within_days": 0}, "ship_within_days"),
        ({"ship_within_days": 31}, "ship_within_days"),
        ({"ship_within_days": None}, "ship_within_days"),
        ({"planner_opt_in": "true"}, "planner_opt_in"), ({"write_consent": 1}, "write_consent"),
        ({"tracking_threshold": -1}, "tracking_threshold"),
        ({"tracking_threshold": "much"}, "tracking_threshold"),
        ({"tracking_threshold": True}, "tracking_threshold"),
        ({"store_name": "x" * 101}, "store_name"), ({"store_name": 7}, "store_name"),
        ({"listing_url_template": "https://shop.example/"}, "marketplace_product_id"),
        ({"listing_url_template": "javascript:{marketplace_product_id}"}, "address"),
        ({"postage_steps": "1:1.27"}, "0:1.27"),
        ({"postage_steps": "0:1.27,12"}, "0:1.27"),
        ({"postage_steps": "0:1,5:2,5:3"}, "0:1.27"),
        ({"product_lines": {"magic": False}}, "product_lines"),
        ({"product_lines": [{"name": "magic"}]}, "product_lines"),
        ({"product_lines": [{"name": "chess", "enabled": True}]}, "product_lines"),
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_unknown_or_of_another_type_is_named_and_nothing_changes(
    a_seller, fields, named
):
    seller = await a_seller()
    browser = await signed_in(seller)
    before = (await browser.get(ACCOUNT)).json()
    status, code, error = await refusal(browser, network_consent=True, **fields)
    assert (status, code) == (422, "invalid_payload")
    assert named in error
    assert (await browser.get(ACCOUNT)).json() == before
    assert await feed(seller) == []


async def test_a_key_reads_and_staff_does_neither(a_seller):
    seller = await a_seller()
    answer = await seller.http.patch(ACCOUNT, json={"planner_opt_in": True})
    assert (answer.status_code, answer.json()["code"]) == (403, "session_required")
    staff = await joined(seller, "staff-of-settings@example.invalid")
    assert (await refusal(staff, planner_opt_in=True))[:2] == (403, "owner_required")
    answer = await staff.get(ACCOUNT)
    assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
    assert (await seller.service.client().get(ACCOUNT)).status_code == 401
    browser = await signed_in(seller)
    assert (await browser.http.patch(ACCOUNT, json={})).json()["code"] == "csrf_failed"
    assert (await seller.get(ACCOUNT)).json()["planner_opt_in"] is False


async def test_two_owners_who_change_at_once_lose_nothing_of_each_other(a_seller):
    seller = await a_seller()
    browsers = [
        await signed_in(seller),
        await joined(seller, "second-owner@example.invalid", role="owner"),
    ]
    names = ["magic", "pokemon", "yugioh", "lorcana"]
    await asyncio.gather(
        *(switch(browsers[n % 2], **{name: False}) for n, name in enumerate(names))
    )
    told = {
        line["name"]: line["enabled"]
        for line in (await seller.get(ACCOUNT)).json()["product_lines"]
    }
    assert {name for name, on in told.items() if not on} == set(names)
    assert len(await feed(seller)) == 4


async def test_the_operators_changes_stand_in_the_feed_too(a_seller):
    seller = await a_seller()
    await seller.set(plan="paid", suspended=True)
    assert await feed(seller) == [("operator", "plan=paid, suspended=true")]


async def test_the_operator_can_set_all_that_the_owner_can_and_more(a_seller):
    """decisions.md, section 10."""
    dates = {"network_consented_at", "network_published_at"}
    assert SETTINGS.keys() >= FIELDS - {"product_lines"} - dates
    assert SETTINGS.keys() >= {
        "plan",
        "trial_ends_at",
        "suspended",
        "past_due",
        "full_history_requested",
    }
    seller = await a_seller(store_name="Bea's Cards", network_consent=True, network_published=True)
    told = (await seller.get(ACCOUNT)).json()
    assert told.keys() == FIELDS
    assert (told["store_name"], told["network_consent"], told["network_published"]) == (
        "Bea's Cards",
        True,
        True,
    )


# Product lines

TWO = [a_row(1, line="Magic", market="9.00"), a_row(2, line="Pokemon", market="9.00")]


@pytest.mark.day
async def test_a_line_that_is_switched_off_keeps_its_cards_and_exports_none(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await seller.import_csv(a_csv(*TWO))
    assert await exported(seller) == (None, 2)
    await switch(browser, pokemon=False)
    assert await exported(seller) == (None, 1)
    assert (await explained(seller, 2))[0] == ["product_line_disabled"]
    await seller.service.run_jobs()
    assert "settings changed" in (await browser.get("/pricing/runs")).text
    await seller.fingerprint_is_right()
    assert await exported(seller) == (None, 1)
    assert await explained(seller, 2) == (["product_line_disabled"], None)
    cards = (await seller.get("/api/cards")).json()
    assert {card["marketplace_id"]: card["status"] for card in cards["cards"]} == {
        1: "active",
        2: "active",
    }
    assert (await seller.get("/api/cards", params={"search": "game:pokemon"})).json()["total"] == 1
    answer = await seller.upload(a_csv(TWO[1]), **{"X-Product-Line": "pokemon"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_product_line")


@pytest.mark.day
async def test_its_rows_are_rejected_and_its_cards_are_not_taken_for_gone(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await seller.import_csv(a_csv(*TWO, a_row(3, line="Pokemon")))
    await switch(browser, pokemon=False)
    await seller.service.run_jobs()
    report = await seller.import_csv(
        a_csv(a_row(1, market="8.00"), a_row(2, line="Pokemon", price="7.77"))
    )
    assert (report["state"], report["applied"], report["gone"]) == ("done", 1, 0)
    assert [row["code"] for row in report["rejected"]] == ["product_line_not_enabled"]
    assert [(card["marketplace_id"], str(card["price"]),
             card["gone"]) for card in await seller.cards()] == [
        (1, "1.0000", False), (2, "1.0000", False), (3, "1.0000", False),
    ]  # fmt: skip
    assert await exported(seller) == (None, 1)


@pytest.mark.night
async def test_switched_on_again_its_cards_are_priced_anew(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await seller.import_csv(a_csv(*TWO))
    await switch(browser, pokemon=False, magic=False)
    await seller.service.run_jobs()
    assert await exported(seller) == ("no_updates", 0)
    await switch(browser, pokemon=True)
    assert await exported(seller) == ("no_updates", 0)
    await seller.service.run_jobs()
    await seller.fingerprint_is_right()
    assert await exported(seller) == (None, 1)
    told = await switch(browser, magic=True)
    # The default is the first of those that stayed on; what comes back stands behind them.
    assert next(line["name"] for line in told["product_lines"] if line["enabled"]) == "yugioh"


@pytest.mark.night
@pytest.mark.day
async def test_pinned_cards_and_all_of_the_lines_may_be_switched_off(a_seller):
    seller = await a_seller(lines=["magic"])
    browser = await signed_in(seller)
    await seller.import_csv(a_csv(a_row(1, market="9.00")))
    assert (await seller.http.put("/api/pricing/pins/1", json={"price": "5.00"})).status_code == 200
    await switch(browser, magic=False)
    await seller.service.run_jobs()
    await seller.fingerprint_is_right()
    assert await exported(seller) == ("no_updates", 0)
    assert (await seller.post("/api/v1/heartbeat")).json()["product_lines"] == []
    assert (await seller.import_csv(a_csv(a_row(1, line=""))))["applied"] == 0
    answer = await browser.post(
        "/api/contributions",
        json={"name": "Bolt", "set": "Alpha", "condition": "Near Mint", "quantity": 1},
    )
    assert answer.status_code == 422, answer.text


@pytest.mark.night
@pytest.mark.day
async def test_the_file_of_a_rollback_leaves_out_what_is_switched_off(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await seller.import_csv(a_csv(*TWO))
    targets = {card["marketplace_id"]: card["target_price"] for card in await seller.cards()}
    await seller.import_csv(
        a_csv(*(row | {"TCG Marketplace Price": str(targets[n])} for n, row in enumerate(TWO, 1)))
    )
    run = (await seller.get("/api/pricing/runs")).json()["runs"][-1]["id"]
    assert (await seller.post("/api/pricing/rollbacks", json={"run_id": run})).json()["cards"] == 2
    await seller.service.run_jobs()
    await switch(browser, pokemon=False)
    assert await exported(seller) == (None, 1)


async def test_a_line_of_the_sellers_own_stays_off_though_files_may_bring_new_ones(
    a_seller, service
):
    seller = await a_seller(lines=["magic"])
    browser = await signed_in(seller)
    own = "UPDATE account SET product_lines = '{magic, chess}' WHERE seller_id = :id"
    await service.sql(seller.id, own, id=seller.id)
    told = await switch(browser, chess=False)
    assert {"name": "chess", "enabled": False} in told["product_lines"]
    assert {"name": "chess", "enabled": True} in (await switch(browser, chess=True))[
        "product_lines"
    ]


@pytest.mark.parametrize(
    ("enabled", "disabled", "lines", "on", "off"),
    [
        (["magic"], [], {}, ["magic"], []),
        (["magic", "pokemon"], [], {"magic": False}, ["pokemon"], ["magic"]),
        (["pokemon"], ["magic"], {"magic": True}, ["pokemon", "magic"], []),
        (["magic"], [], {"pokemon": False}, ["magic"], ["pokemon"]),
        (["chess"], ["go"], {"go": True, "chess": False}, ["go"], ["chess"]),
        (["magic"], [], {"magic": True, "lorcana": True}, ["magic", "lorcana"], []),
    ],
)
def test_switching_lines(enabled, disabled, lines, on, off):
    assert switched(enabled, disabled, lines) == (on, off)
