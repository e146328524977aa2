"""The page Operator, its operations, and the commands that say who an operator is."""

import asyncio
from datetime import timedelta

import pytest
from click.testing import CliRunner

from browsers import joined, operates, signed_in
from builders import a_csv, a_row
from cardsync.cli import program
from cardsync.platform import clock
from cardsync.platform.backups.backup_reports import record
from cardsync.platform.logs import setup_logging
from cardsync.platform.work.jobs import mark_due
from cardsync.shop.operators.installation import without_values


@pytest.fixture
def admin(in_the_environment):
    """`admin("list")` is `cardsync admin operator list` against the tests' database."""

    async def run(*given):
        arguments = ["admin", "operator", *given]
        return await asyncio.to_thread(CliRunner().invoke, program, arguments)

    yield run
    setup_logging("warning", "json")


async def an_operator(a_seller):
    seller = await a_seller()
    await operates(seller)
    return seller, await signed_in(seller)


async def entries(seller):
    rows = await seller.service.sql(
        seller.id,
        "SELECT actor, action, before, after FROM activity WHERE seller_id = :id ORDER BY id",
        id=seller.id,
    )
    return [(row["actor"], row["action"], row["before"], row["after"]) for row in rows]


async def asked(shop):
    return await shop.get("/api/v1/sync/pending", params={"agent_id": "agent-1"})


async def test_a_member_is_an_operator_from_the_command_on_and_no_more_after_it(a_seller, admin):
    seller = await a_seller()
    browser = await signed_in(seller)
    assert (await browser.get("/operator")).status_code == 403
    assert 'href="/operator"' not in (await browser.get("/today")).text
    added = await admin("add", seller.email.upper())
    assert added.output == f"member {browser.member_id} is an operator\n"
    assert (await admin("add", seller.email)).exit_code == 0
    assert seller.email in (await admin("list")).output
    assert seller.email in (await admin("list", "--json")).output
    assert (await browser.get("/operator")).status_code == 200
    assert 'href="/operator"' in (await browser.get("/today")).text
    assert (await admin("remove", seller.email)).exit_code == 0
    assert (await browser.get("/operator")).status_code == 403


async def test_only_members_who_joined_can_be_operators(admin):
    refused = await admin("add", "nobody@example.invalid")
    assert refused.exit_code == 1
    assert "no member who has joined uses the address nobody@example.invalid" in refused.output
    refused = await admin("remove", "nobody@example.invalid")
    assert "no operator has the address nobody@example.invalid" in refused.output


async def test_a_key_is_no_operator_and_neither_is_a_colleague(a_seller):
    seller, _ = await an_operator(a_seller)
    colleague = await joined(seller, f"other-{seller.email}", role="owner")
    assert (await colleague.get("/api/operator/sellers")).json()["code"] == "operator_required"
    assert (await seller.get("/api/operator/sellers")).status_code == 403


async def test_the_page_shows_plans_and_switches_and_nothing_of_what_is_sold(a_seller):
    _, browser = await an_operator(a_seller)
    shop = await a_seller(plan="paid")
    await shop.import_csv(a_csv(a_row(1, name="Secret Lotus")))
    page = (await browser.get("/operator", params={"search": shop.email.upper()})).text
    found = (await browser.get("/api/operator/sellers", params={"search": shop.email})).json()
    assert [one["id"] for one in found["sellers"]] == [shop.id]
    assert found["sellers"][0]["plan"] == "paid"
    assert f'href="/operator/sellers/{shop.id}"' in page
    for path in ("/operator", f"/operator/sellers/{shop.id}", "/operator/installation"):
        assert "Secret Lotus" not in (await browser.get(path)).text


async def test_a_suspension_stands_in_both_feeds_and_ends_every_request_of_the_shop(a_seller):
    operator, browser = await an_operator(a_seller)
    shop = await a_seller()
    path = f"/operator/sellers/{shop.id}"
    done = await browser.form(path, suspended="true")
    assert done.status_code == 303
    assert "Account suspended." in (await browser.get(done.headers["location"])).text
    assert (await asked(shop)).json()["code"] == "account_suspended"
    told = ({"suspended": "false"}, {"suspended": "true"})
    assert ("operator", "account.changed", *told) in await entries(shop)
    actor = f"member {browser.member_id}"
    assert (actor, "operator.seller_changed", *told) in await entries(operator)
    await browser.form(path, suspended="false")
    assert (await asked(shop)).status_code == 200
    assert len(await entries(shop)) == 2


async def test_a_plan_is_set_and_an_unreadable_trial_is_refused(a_seller):
    _, browser = await an_operator(a_seller)
    shop = await a_seller()
    path = f"/operator/sellers/{shop.id}"
    await browser.form(path, plan="trial", trial_ends_at="2027-01-31T12:00")
    shown = (await browser.get(f"/api{path}")).json()
    assert (shown["plan"], shown["trial_ends_at"]) == ("trial", "2027-01-31T12:00:00Z")
    refused = await browser.form(path, plan="gold")
    assert refused.status_code == 422
    assert "must be one of free, trial" in refused.text
    assert (await browser.form(path, plan="trial", trial_ends_at="soon")).status_code == 422
    refused = await browser.send("PATCH", f"/api{path}", json={"plan": "gold"})
    assert refused.status_code == 422


async def test_operators_do_not_lock_themselves_out(a_seller):
    operator, browser = await an_operator(a_seller)
    path = f"/operator/sellers/{operator.id}"
    refused = await browser.form(path, suspended="true")
    assert refused.status_code == 422
    assert "an operator cannot suspend the account they sign in with." in refused.text
    assert (await browser.get("/operator/sellers/999999")).status_code == 404
    assert (await browser.form("/operator/sellers/999999", past_due="true")).status_code == 404


async def test_the_installation_tells_lines_queues_and_imports(a_seller):
    operator, browser = await an_operator(a_seller)
    await operator.import_csv(a_csv(a_row(1)))
    async with operator.service.database.tenant(operator.id) as session:
        await mark_due(session, operator.id, "orders")
    found = (await browser.get("/api/operator/installation")).json()
    assert {line["label"] for line in found["lines"]} >= {"Magic", "Pokemon"}
    [waits] = [queue for queue in found["queues"] if queue["stream"] == "orders"]
    assert waits["waiting"] == 1
    assert waits["oldest_seconds"] < 60
    page = (await browser.get("/operator/installation")).text
    assert "No releases published" in page
    assert "orders" in page


async def test_the_installation_shows_what_became_of_its_backups(a_seller):
    operator, browser = await an_operator(a_seller)
    page = (await browser.get("/operator/installation")).text
    assert "No backup by cardsync" in page
    url = operator.service.settings.migration_database_url
    at = clock.now() - timedelta(days=3)
    record(url, "backup", "2026-11-20T080000Z", at, at, None, 2_500_000)
    page = (await browser.get("/operator/installation")).text
    assert "is too old" in page
    assert "2.5 MB" in page
    record(url, "backup", "", clock.now(), clock.now(), "the disk is full")
    found = (await browser.get("/api/operator/installation")).json()["backups"]
    assert found["wrong"] == "The last backup failed: the disk is full"
    assert "backup_wrong" in (await browser.get("/api/today")).text
    another = await signed_in(await a_seller())
    assert "backup_wrong" not in (await another.get("/api/today")).text
    record(url, "backup", "2026-11-26T080000Z", clock.now(), clock.now(), None, 1)
    found = (await browser.get("/api/operator/installation")).json()["backups"]
    assert found["wrong"] is None
    assert found["backup"]["failure"] is None


async def mark_waiting(session, seller_id):
    from cardsync.platform.work.jobs import mark_due

    await mark_due(session, seller_id, "orders")


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("SELECT 'Some Buyer''s' FROM t1 WHERE a = 12.5", "SELECT ? FROM t1 WHERE a = ?"),
        ("SELECT E'a\\'b', $x$ hidden $x$", "SELECT ?, ?"),
        ("SELECT $1, a.b2  \n FROM x LIMIT 5", "SELECT $1, a.b2 FROM x LIMIT ?"),
        ("SELECT 'cut off", "SELECT ?"),
    ],
)
def test_statements_are_shown_without_their_values(statement, shown):
    assert without_values(statement) == shown
