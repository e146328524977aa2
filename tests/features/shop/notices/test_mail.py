"""Notices by mail over HTTP, with a mail server on this machine: who gets what, when, and when no
more.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from datetime import timedelta

import pytest
from sqlalchemy import text

from browsers import joined, operates, signed_in
from builders import an_order
from cardsync.operations.processes.worker import SENT_AT_ONCE
from cardsync.platform import clock
from cardsync.shop.notices import old_notices, send_mail
from cardsync.shop.notices.look import watch_all
from cardsync.shop.notices.mail_server import AT_ONCE, hand_over, turn_at
from cardsync.shop.notices.mail_text import mail_of
from notices_builder import (
    a_mail_server,
    calls,
    looked_at,
    of_service,
    reaching,
    reported,
    sent,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(scope="module")
async def mail_server():
    async with a_mail_server() as box:
        yield box


@pytest.fixture(scope="module")
async def mailing(service, alive, mail_server):
    url = f"smtp://127.0.0.1:{mail_server.port}"
    async with reaching(
        service, alive, mail_url=url, mail_from="Cards <notices@shop.example>"
    ) as mailing:
        yield mailing


@pytest.fixture
def box(mail_server):
    mail_server.got.clear()
    mail_server.answer = ""
    return mail_server


@pytest.fixture
async def seller(a_seller, mailing, box):
    """A shop about which there is nothing to report."""
    seller = of_service(await a_seller(ship_within_days=30), mailing)
    await calls(seller)
    await reported(seller)
    assert box.got == []
    return seller


async def choose(browser, **ways):
    answer = await browser.send("PATCH", "/api/notices/choices", json={"ways": ways})
    assert answer.status_code == 200, answer.text
    return {one["kind"]: one["way"] for one in answer.json()["kinds"]}


async def test_what_a_former_member_chose_is_forgotten(seller):
    owner = await signed_in(seller)
    bea = await joined(seller, f"bea-{seller.email}")
    for browser in (owner, bea):
        await choose(browser, orders_new="at_once")
    gone = await owner.send("DELETE", f"/api/members/{bea.member_id}")
    assert gone.json() == {"deleted": True}
    await old_notices.drop_old(seller.service.database, clock.now() - DAY)
    sql = "SELECT member_id FROM notice_reader WHERE seller_id = :id"
    [row] = await seller.service.sql(seller.id, sql, id=seller.id)
    assert row["member_id"] == owner.member_id


async def next_day(seller):
    """A day on which the agent calls; the morning's mail is sent."""
    clock.shift(DAY)
    await calls(seller)
    await sent(seller, 2)


async def order(seller, number, total=12.5):
    day = f"{clock.now():%m/%d/%y}"
    await seller.orders([an_order(number, status="Ready to Ship", total_amt=total, order_date=day)])


async def test_what_is_urgent_comes_at_once_and_once(seller, box):
    await seller.set(past_due=True)
    for _ in range(3):
        await reported(seller)
    [mail] = box.of(seller.email)
    assert mail["Subject"].startswith("A Seller: Payment for the plan is past due.")
    assert mail["From"] == "Cards <notices@shop.example>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert mail["Auto-Submitted"] == "auto-generated"
    text = mail.get_content()
    assert "See the account: http://127.0.0.1:8000/account" in text
    assert "http://127.0.0.1:8000/settings/notices" in text
    await seller.set(past_due=False)
    await reported(seller)
    await seller.set(past_due=True)
    await reported(seller)
    assert len(box.of(seller.email)) == 2


@pytest.fixture
async def catalogs(service):
    """`await catalogs(sql)` changes what is installed; nothing is, at the beginning and the end."""

    async def change(sql):
        async with service.database.shared() as session:
            await session.execute(text(sql))

    await change("DELETE FROM catalog_install")
    yield change
    await change("DELETE FROM catalog_install")


async def test_operators_hear_once_of_catalogs_that_no_renewal_reaches(
    seller, box, catalogs, a_seller, mailing
):
    """A source that is away is one trouble, however many games come from it."""
    other = of_service(await a_seller(ship_within_days=30), mailing)
    await calls(other)
    await operates(seller)
    await catalogs("""
        INSERT INTO catalog_install (game, source, installed_at, checked_at, failed_at, failure)
        SELECT game, 'tcgcsv', now() - interval '40 days', now() - interval '13 days', now(),
               'TCGCSV is away: its host does not answer'
          FROM unnest(ARRAY['digimon', 'gundam']) AS game
    """)
    await reported(seller)
    assert box.got == []
    await catalogs("UPDATE catalog_install SET checked_at = now() - interval '15 days'")
    for _ in range(3):
        await reported(seller)
        await reported(other)
    [mail] = box.of(seller.email)
    assert len(box.got) == 1
    assert "2 card catalogs from TCGCSV are old." in mail["Subject"]
    told = mail.get_content()
    assert "Digimon Card Game, Gundam Card Game." in told
    assert "The last update failed: TCGCSV is away: its host does not answer." in told
    assert "http://127.0.0.1:8000/operator/catalogs" in told
    # A success ends it; the next trouble is another one.
    await catalogs("UPDATE catalog_install SET checked_at = now(), failure = NULL")
    await reported(seller)
    await catalogs(
        "UPDATE catalog_install SET checked_at = now() - interval '15 days' WHERE game = 'gundam'"
    )
    await reported(seller)
    [_, again] = box.of(seller.email)
    assert "The card catalog for Gundam Card Game is old." in again["Subject"]
    assert "no worker has looked for a newer one" in again.get_content()


async def test_a_day_is_one_letter_and_a_day_without_news_is_none(seller, box):
    for n in range(3):
        await order(seller, f"A-{n}")
        await reported(seller)
    assert box.got == []
    await next_day(seller)
    [mail] = box.of(seller.email)
    assert mail["Subject"] == "A Seller: 3 things to know"
    assert mail.get_content().count("1 new order to pull. ($12.50)") == 3
    for _ in range(2):
        await next_day(seller)
    assert len(box.got) == 1


async def test_what_is_over_before_the_day_s_mail_is_not_in_it(seller, box):
    await seller.set(write_consent=False)
    await reported(seller)
    await seller.set(write_consent=True)
    await reported(seller)
    await next_day(seller)
    assert box.got == []
    rows = await seller.service.sql(
        seller.id, "SELECT state FROM notice_mail WHERE seller_id = :seller", seller=seller.id
    )
    assert [row["state"] for row in rows] == ["dropped"]


async def test_staff_gets_what_the_role_allows_and_no_revenue(seller, box):
    bea = await joined(seller, f"bea-{seller.email}")
    refused = await bea.send(
        "PATCH", "/api/notices/choices", json={"ways": {"run_in_review": "at_once"}}
    )
    assert refused.json()["error"] == "ways: there is no notice run_in_review"
    ways = await choose(bea, orders_new="at_once", agent_silent="at_once")
    assert "payment_past_due" not in ways
    assert (ways["orders_new"], ways["sync_done"]) == ("at_once", "never")
    await choose(await signed_in(seller), orders_new="at_once")
    await seller.set(past_due=True)
    await order(seller, "A-1", 99.5)
    await reported(seller)
    [mine] = box.of(f"bea-{seller.email}")
    assert "1 new order to pull.\n" in mine.get_content().replace("\r\n", "\n")
    assert "99.50" not in mine.get_content()
    [owners] = box.of(seller.email)
    assert "1 new order to pull. ($99.50)" in owners.get_content()
    assert "Payment" in owners.get_content()
    await seller.set(staff_see_revenue=True)
    await order(seller, "A-2", 88.5)
    await reported(seller)
    assert "($88.50)" in box.of(f"bea-{seller.email}")[1].get_content()


async def test_who_is_no_owner_any_more_gets_no_owner_s_notice(seller, box):
    bea = await joined(seller, f"bea-{seller.email}", role="owner")
    await seller.set(past_due=True)
    await looked_at(seller)
    owner = await signed_in(seller)
    answer = await owner.send("PATCH", f"/api/members/{bea.member_id}", json={"role": "staff"})
    assert answer.status_code == 200, answer.text
    await sent(seller, 2)
    assert len(box.of(seller.email)) == 1
    assert box.of(f"bea-{seller.email}") == []


async def test_one_click_ends_all_mail_without_a_session(seller, box):
    await seller.set(past_due=True)
    await reported(seller)
    [mail] = box.of(seller.email)
    path = mail["List-Unsubscribe"].strip("<>").removeprefix("http://127.0.0.1:8000")
    async with seller.service.client() as program:
        page = await program.get(path)
        assert (page.status_code, "Stop all email from A Seller?" in page.text) == (200, True)
        # To look at the page stops nothing.
        owner = await signed_in(seller)
        assert (await owner.get("/api/notices/choices")).json()["stopped"] is False
        for wrong in (path[:-1], path[:-1] + ("0" if path[-1] != "0" else "1"), path + "x"):
            assert (await program.post(wrong)).status_code == 404
        for _ in range(2):
            done = await program.post(
                path,
                data={"List-Unsubscribe": "One-Click"},
                headers={"Origin": "https://mail.example", "Sec-Fetch-Site": "cross-site"},
            )
            assert done.status_code == 200
            assert "You won't get email from A Seller anymore." in done.text
    assert (await owner.get("/api/notices/choices")).json()["stopped"] is True
    await order(seller, "A-1")
    await seller.set(past_due=False, write_consent=False)
    await reported(seller)
    await next_day(seller)
    assert len(box.got) == 1
    owner = await signed_in(seller)
    again = await owner.form("/settings/notices/mail", stopped="false")
    assert again.status_code == 303
    assert (await owner.get("/api/notices/choices")).json()["stopped"] is False
    entries = (await seller.get("/api/v1/agent/activity?action=notices")).json()["activity"]
    assert [entry["action"] for entry in entries] == ["notices.chosen", "notices.unsubscribed"]


async def test_what_waits_when_somebody_unsubscribes_is_not_sent(seller, box):
    await order(seller, "A-1")
    await reported(seller)
    owner = await signed_in(seller)
    await owner.send("PATCH", "/api/notices/choices", json={"stopped": True})
    await next_day(seller)
    assert box.got == []


async def test_a_server_that_is_away_gets_the_same_letter_later(seller, box, mailing):
    box.answer = "451 later"
    await seller.set(past_due=True)
    await reported(seller)
    assert box.got == []
    box.answer = ""
    clock.shift(timedelta(minutes=10))
    await sent(seller, 2)
    assert len(box.got) == 1


async def test_a_mail_server_that_hangs_costs_one_wait_and_then_all_mail_rests(
    a_seller, service, alive
):
    """Each shop's mail goes to the same server: without a rest each would wait for it in turn, in
    slots that other notices need.
    """
    asked = []

    async def silent(reader, writer):
        asked.append(writer)
        await reader.read()

    server = await asyncio.start_server(silent, "127.0.0.1")
    url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with (
        server,
        reaching(
            service, alive, mail_url=url, mail_from="notices@shop.example", mail_seconds=0.5
        ) as hanging,
    ):
        shops = [of_service(await a_seller(ship_within_days=30), hanging) for _ in range(4)]
        for shop in shops:
            await shop.set(past_due=True)
            await looked_at(shop)
        begun = clock.monotonic()
        await asyncio.gather(*(send_mail.send_due(hanging.work, shop.id) for shop in shops))
        assert clock.monotonic() - begun < 5
        assert 1 <= len(asked) <= 4
        asked.clear()
        for shop in shops:
            await send_mail.send_due(hanging.work, shop.id)
        assert asked == []
        tries = "SELECT state, tries FROM notice_mail WHERE seller_id = :id"
        for shop in shops:
            [row] = await shop.service.sql(shop.id, tries, id=shop.id)
            assert (row["state"], row["tries"] <= 1) == ("waiting", True)
        # After the rest one mail asks, and the others go on resting.
        clock.shift(timedelta(minutes=6))
        await asyncio.gather(*(send_mail.send_due(hanging.work, shop.id) for shop in shops))
        assert len(asked) == 1


def test_mails_leave_slots_for_other_notices():
    with ExitStack() as held:
        for _ in range(AT_ONCE):
            assert held.enter_context(turn_at("smtp://slow.example")) is None
        assert held.enter_context(turn_at("smtp://slow.example")) > clock.now()
        assert held.enter_context(turn_at("smtp://other.example")) is None
    assert AT_ONCE * 2 < SENT_AT_ONCE
    with turn_at("smtp://slow.example") as again:
        assert again is None


async def test_a_recipient_that_is_refused_is_not_tried_again(seller, box):
    box.answer = "550 no such mailbox"
    await seller.set(past_due=True)
    await reported(seller)
    box.answer = ""
    clock.shift(HOUR)
    await sent(seller, 2)
    assert box.got == []
    [row] = await seller.service.sql(
        seller.id, "SELECT state, tries FROM notice_mail WHERE seller_id = :id", id=seller.id
    )
    assert (row["state"], row["tries"]) == ("failed", 1)


async def test_two_workers_send_a_letter_once_and_a_killed_one_sends_it_again(seller, box):
    work = seller.service.work
    await seller.set(past_due=True)
    await looked_at(seller)
    await asyncio.gather(*(send_mail.send_due(work, seller.id) for _ in range(3)))
    assert len(box.got) == 1
    await order(seller, "A-1")
    await choose(await signed_in(seller), orders_new="at_once")
    await looked_at(seller)
    claimed = await send_mail.claim(work, seller.id)
    letter = await send_mail.write(work, claimed, clock.now())
    await hand_over(work.settings.mail_url, mail_of(letter))
    # The worker dies here. What comes meanwhile is another letter.
    await order(seller, "A-2")
    await looked_at(seller)
    clock.shift(timedelta(minutes=3))
    await sent(seller, 2)
    ids = [mail["Message-ID"] for mail in box.of(seller.email)][1:]
    assert len(ids) == 3
    assert len(set(ids)) == 2
    assert ids.count(ids[0]) == 2


async def test_the_page_says_what_is_sent_and_keeps_what_is_chosen(seller, a_seller, service):
    owner = await signed_in(seller)
    page = (await owner.get("/settings/notices")).text
    assert "Choose your emails." in page
    assert "Orders to pull are due soon or late" in page
    done = await owner.form("/settings/notices", **{"way:sync_done": "daily", "way:x": "daily"})
    assert done.status_code == 303
    kinds = (await owner.get("/api/notices/choices")).json()["kinds"]
    assert {one["kind"]: one["way"] for one in kinds}["sync_done"] == "daily"
    # An installation without a mail server says so.
    plain = await signed_in(await a_seller())
    assert "set up on this server" in (await plain.get("/settings/notices")).text
    assert (await plain.get("/api/notices/choices")).json()["mail_on"] is False


async def test_with_mail_every_shop_is_looked_at(seller):
    async with seller.service.database.shared() as session:
        await session.execute(text("DELETE FROM work_due WHERE stream = 'notices'"))
    assert await watch_all(seller.service.work) >= 1
    assert await watch_all(seller.service.work) == 0
    await seller.set(past_due=True)
    await sent(seller, 3)
    rows = await seller.service.sql(
        seller.id, "SELECT kind FROM notice WHERE seller_id = :id", id=seller.id
    )
    assert "payment_past_due" in [row["kind"] for row in rows]
