"""Where a shop arrives, people sign in, agents go on, names stay, and nothing opens that should
not.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from browsers import A_PASSWORD, signed_in
from builders import SellerBuilder, a_csv, a_row, undo_newest
from cardsync.operations.moving import archive_file
from cardsync.operations.processes.worker import sweep
from cardsync.platform.work.jobs import WorkDue
from cardsync.shop.notices.webhook_signature import unsealed
from inline_jobs import InlineJobs


async def at_work(seller):
    """Work off the jobs of the other installation."""
    async with InlineJobs.open(seller.service.work) as jobs:
        await jobs.run()


async def test_people_keys_and_names_go_on(shop, moved):
    there = await moved(shop)
    owner = await signed_in(there)
    bea = await signed_in(there, f"bea-{shop.email}", A_PASSWORD)
    assert await owner.is_in()
    assert (await bea.get("/api/session")).json()["member"]["role"] == "staff"
    assert (await there.get("/api/v1/status")).status_code == 200
    tokens = await there.service.sql(
        there.id, "SELECT revoked_at FROM access_token WHERE seller_id = :id", id=there.id
    )
    assert tokens
    assert all(row["revoked_at"] for row in tokens)
    entries = (await owner.get("/api/v1/agent/activity?per_page=100")).json()["activity"]
    assert entries[0]["summary"].startswith("the shop came from another installation")
    names = {one["actor_name"] for one in entries if one["actor"].startswith(("key", "member"))}
    before = (await (await signed_in(shop)).get("/api/v1/agent/activity?per_page=100")).json()
    assert names - {None} == {
        one["actor_name"]
        for one in before["activity"]
        if one["actor"].startswith(("key", "member"))
    } - {None}
    assert len(names - {None}) > 1


async def test_the_shop_goes_on_with_ids_of_its_own(shop, moved):
    """The next upload makes cards, runs and entries beside those that came."""
    there = await moved(shop)
    file = a_csv(*(a_row(n, price="7.00") for n in range(100, 200)))
    assert (await there.upload(file)).status_code == 202
    await at_work(there)
    assert len(await there.cards()) == 199
    ids = [card["id"] for card in await there.cards()]
    assert len(set(ids)) == len(ids)
    owner = await signed_in(there)
    made = await owner.post("/api/lists", json={"name": "New"})
    assert made.status_code == 201, made.text
    for page in (
        "/today",
        "/cards",
        "/orders",
        "/sales",
        "/activity",
        "/pricing",
        "/settings/data",
    ):
        assert (await owner.get(page)).status_code == 200, page


@pytest.mark.night
async def test_an_archive_of_data_alone_lets_nobody_in(shop, moved, tmp_path):
    there = await moved(shop, "--only-data")
    assert (await there.get("/api/v1/status")).status_code == 401
    credentials = {"email": shop.email, "password": shop.password}
    async with there.service.client() as http:
        assert (await http.post("/api/session", json=credentials)).status_code == 401
    with archive_file.opened(tmp_path / f"{shop.id}.zip") as archive:
        assert archive.manifest.holds == "data"


@pytest.mark.night
@pytest.mark.parametrize("secrets", [True, False])
async def test_webhooks_are_sealed_anew_or_off(shop, moved, secrets):
    sealed = "SELECT secret, off_at, off_why FROM webhook WHERE seller_id = :id"
    [was] = await shop.service.sql(shop.id, sealed, id=shop.id)
    there = await moved(shop, *["--with-secrets"] * secrets)
    [now] = await there.service.sql(there.id, sealed, id=there.id)
    plain = unsealed(shop.service.settings, shop.id, was["secret"])
    assert (unsealed(there.service.settings, there.id, now["secret"]) == plain) is secrets
    assert (now["off_at"] is None, now["off_why"]) == (secrets, None if secrets else "owner")


@pytest.mark.night
async def test_the_shop_is_hidden_until_its_owner_shows_it(shop, moved):
    await shop.set(network_consent=True, network_published=True, store_name="The Card House")
    there = await moved(shop)
    [row] = await there.service.sql(
        there.id, "SELECT exposed FROM network_seller WHERE seller_id = :id", id=there.id
    )
    assert row == {"exposed": False}


@pytest.mark.night
async def test_products_that_the_catalog_has_are_found_and_others_made(shop, elsewhere, moved):
    """Another shop there lists some of the same cards: they are the same products."""
    other = await SellerBuilder(elsewhere)()
    assert (await other.upload(a_csv(*(a_row(n) for n in range(140, 150))))).status_code == 202
    await at_work(other)
    await shop.import_csv(a_csv(*(a_row(n) for n in range(145, 155))))
    there = await moved(shop)
    ids = {card["marketplace_id"]: card["product_id"] for card in await there.cards()}
    same = {card["marketplace_id"]: card["product_id"] for card in await other.cards()}
    assert {n: ids[n] for n in range(145, 150)} == {n: same[n] for n in range(145, 150)}
    assert len(set(ids.values())) == len(ids)
    known = await elsewhere.sql(0, "SELECT id, product_name FROM product")
    names = {row["id"]: row["product_name"] for row in known}
    for card in await there.cards():
        assert names[card["product_id"]] == card["product_name"]


@pytest.mark.night
async def test_an_upload_that_waits_is_worked_off_where_the_shop_arrives(shop, moved):
    """Accepted at the old installation and not begun, with its object in the archive."""
    rows = [a_row(n, name=f'Card "{n}"\\N, ünï', price=f"{n}.26") for n in range(1, 130)]
    accepted = await shop.upload(a_csv(*rows))
    assert accepted.status_code == 202
    there = await moved(shop)
    async with there.service.database.shared() as session:
        late = {WorkDue.due_at: WorkDue.due_at - timedelta(hours=1)}
        await session.execute(update(WorkDue).values(late))
    async with InlineJobs.open(there.service.work) as jobs:
        await sweep(there.service.work)
        await jobs.run()
    report = await there.report(accepted.json()["upload_id"])
    assert report["state"] == "done", report
    assert str((await there.cards())[0]["price"]) == "1.2600"


@pytest.mark.night
async def test_a_match_that_was_settled_is_undone_where_the_shop_arrives(shop, moved):
    """The undo names products of the old installation."""
    owner = await signed_in(shop)
    cards = {card["marketplace_id"]: card for card in await shop.cards()}
    await shop.service.sql(
        shop.id,
        "UPDATE product SET provisional = false WHERE id = :id",
        id=cards[6]["product_id"],
    )
    path = f"/api/cards/{cards[5]['id']}/match"
    done = await owner.post(path, json={"product_id": cards[6]["product_id"]})
    assert done.status_code == 200, done.text
    there = await moved(shop)
    came = {card["marketplace_id"]: card for card in await there.cards()}
    assert came[5]["product_id"] == came[6]["product_id"]
    undone = await undo_newest(await signed_in(there), "card.match_settled")
    assert undone.status_code == 200, undone.text
    [names] = await there.service.sql(
        there.id,
        "SELECT p.product_name, c.product_name AS own FROM card c JOIN product p"
        " ON p.id = c.product_id WHERE c.seller_id = :id AND c.marketplace_id = 5",
        id=there.id,
    )
    assert names["product_name"] == names["own"]
