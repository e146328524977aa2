"""What a sync brought: sums by rule that add up to the listed value of Today, what was not sent, what
raised prices captured, and the way there from Today and from the notice.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from browsers import joined, signed_in
from builders import a_csv, a_row, log
from cardsync.platform import clock
from cardsync.prices.rollback.brought import LARGEST, with_more
from cardsync.shop.today.sync_result import NEXT_STARTED
from lots_builder import settle
from notices_builder import a_mail_server, of_service, reaching, reported
from orders_builder import an_item, an_order
from rollbacks_builder import a_rule

PATH = "/api/sync_result"


async def result(seller, **query):
    answer = await seller.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


async def a_synced_shop(a_seller):
    """A shop whose last sync raised two prices, lowered one, and had one refused."""
    seller = await a_seller()
    await seller.http.delete(
        f"/api/pricing/rules/{(await seller.get('/api/pricing/rules')).json()['rules'][0]['id']}"
    )
    free = {"cap": None, "never_lower": False, "price_source": "market"}
    await a_rule(seller, name="Foils", query="name:foil", priority=1, **free)
    await a_rule(seller, name="The rest", priority=2, **free)
    await seller.import_csv(
        a_csv(
            a_row(1, name="Foil one", price="10.00", market="11.00", quantity=2),
            a_row(2, name="Plain one", price="5.00", market="5.50", quantity=1),
            a_row(3, name="Plain two", price="8.00", market="7.25", quantity=4),
            a_row(4, name="Plain three", price="3.00", market="3.25", quantity=1),
        )
    )
    moves = {1: ("10.00", "11.00"), 2: ("5.00", "5.50"), 3: ("8.00", "7.25")}
    body = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": len(moves),
        "sync_cycle_id": "c1",
        "file_sha256": "a" * 64,
        "rows": [
            {"marketplace_id": id, "old_price": old, "new_price": new}
            for id, (old, new) in moves.items()
        ],
        "rejected": [{"marketplace_id": 4, "message": "The listing was removed"}],
    }
    answer = await seller.post("/api/v1/repricing_events", json=body)
    assert answer.status_code == 201, answer.text
    await seller.service.run_jobs()
    await log(seller, "success", {"inventory": "success"}, sync_cycle_id="c1")
    return seller


async def test_the_sums_of_a_sync_add_up_to_the_listed_value(a_seller):
    seller = await a_synced_shop(a_seller)
    told = await result(seller)
    assert (told["raised"], told["raised_value"]) == (2, "2.50")
    assert (told["lowered"], told["lowered_value"]) == (1, "3.00")
    assert [
        (rule["name"], rule["raised"], rule["raised_value"], rule["lowered"], rule["lowered_value"])
        for rule in told["rules"]
    ] == [("Foils", 1, "2.00", 0, "0.00"), ("The rest", 1, "0.50", 1, "3.00")]
    today = (await seller.get("/api/today")).json()
    assert told["listed_now"] == today["listed"]["value"]
    before, up, down = (
        Decimal(told[name]) for name in ("listed_before", "raised_value", "lowered_value")
    )
    assert before + up - down == Decimal(told["listed_now"])
    brought = {name: told[name] for name in today["last_sync"]}
    assert brought == today["last_sync"]
    assert [(one["product_name"], one["price_before"], one["price_after"])
            for one in told["largest"]] == [
        ("Plain two", "8.00", "7.25"), ("Foil one", "10.00", "11.00"), ("Plain one", "5.00", "5.50"),
    ]  # fmt: skip
    [refused] = told["refused"]
    assert (refused["product_name"], refused["reason"]) == (
        "Plain three",
        "The listing was removed",
    )
    assert await result(seller, cycle=told["id"]) == told


async def test_prices_that_a_task_sent_after_a_sync_are_of_that_sync(a_seller):
    seller = await a_synced_shop(a_seller)
    first = await result(seller)
    body = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 1,
        "file_sha256": "b" * 64,
        "rows": [{"marketplace_id": 4, "old_price": "3.00", "new_price": "3.25"}],
    }
    assert (await seller.post("/api/v1/repricing_events", json=body)).status_code == 201
    await seller.service.run_jobs()
    told = await result(seller)
    assert (told["raised"], told["raised_value"]) == (3, "2.75")
    await log(seller, "success", {"orders": "success"}, sync_cycle_id="c9")
    later = await result(seller)
    assert (later["raised"], later["lowered"]) == (0, 0)
    assert (await result(seller, cycle=first["id"]))["raised_value"] == "2.75"


async def test_it_is_one_click_from_today_and_in_the_notice(a_seller):
    seller = await a_synced_shop(a_seller)
    owner = await signed_in(seller)
    page = (await owner.get("/today")).text
    assert 'href="/sync/result"' in page
    page = (await owner.get("/sync/result")).text
    text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    for said in (
        "What the last sync brought",
        "2 prices raised $2.50",
        "1 price lowered $3.00",
        "1 refused by TCGplayer",
        "The listing was removed",
        "Foils",
    ):
        assert said in text, said
    assert (await owner.get("/sync/result?cycle=999999")).status_code == 404
    page = (await owner.get("/sync")).text
    files = re.search(r'aria-label="Price files".*?</table>', page, re.S)[0]
    cells = [" ".join(re.sub(r"<[^>]*>", " ", cell).split())
             for cell in re.findall(r"<td.*?</td>", files, re.S)]  # fmt: skip
    assert cells[:5] == ["3", "2", "1", "▼ falls by $0.50", "Sent 1 refused"]
    assert "Schedule" in page
    staff = await joined(seller, f"staff-{seller.email}")
    assert (await staff.get(PATH)).status_code == 403
    assert (await staff.get("/api/today")).json()["last_sync"] is None


async def test_the_digest_says_what_the_last_sync_brought_as_today_does(a_seller, service, alive):
    async with a_mail_server() as box:
        url = f"smtp://127.0.0.1:{box.port}"
        async with reaching(
            service, alive, mail_url=url, mail_from="Cards <notices@shop.example>"
        ) as mailing:
            seller = of_service(await a_synced_shop(a_seller), mailing)
            await reported(seller)
            # Prices that were sent after the sync's end are in the letter, too.
            body = {
                "imported_at": clock.rfc3339(clock.now()),
                "row_count": 1,
                "file_sha256": "b" * 64,
                "rows": [{"marketplace_id": 4, "old_price": "3.00", "new_price": "3.25"}],
            }
            assert (await seller.post("/api/v1/repricing_events", json=body)).is_success
            await seller.service.run_jobs()
            await seller.set(past_due=True)
            await reported(seller)
            text = " ".join(box.of(seller.email)[-1].get_content().split())
            told = (await seller.get("/api/today")).json()["last_sync"]
    assert (told["raised"], told["lowered"]) == (3, 1)
    assert (
        f"The last sync raised 3 prices by ${told['raised_value']} and lowered 1 price by"
        f" ${told['lowered_value']}."
    ) in text
    assert f"/sync/result?cycle={told['id']}" in text


async def test_each_figure_of_the_digest_is_that_of_today_and_of_the_page_behind_its_link(
    a_seller, service, alive
):
    async with a_mail_server() as box:
        url = f"smtp://127.0.0.1:{box.port}"
        async with reaching(
            service, alive, mail_url=url, mail_from="Cards <notices@shop.example>"
        ) as mailing:
            seller = of_service(await a_seller(), mailing)
            rule = {"name": "Market", "state": "published", "priority": 1}
            assert (await seller.post("/api/pricing/rules", json=rule)).status_code == 201
            await seller.http.patch("/api/pricing/settings", json={"review_up_bp": 500})
            moved = [a_row(n, price="10.00", market=f"{20 + n}.00", quantity=n) for n in (1, 2, 3)]
            await seller.import_csv(a_csv(*moved))
            for number in (1, 2):
                day = clock.now().date() - timedelta(days=9)
                order = await an_order(seller, order_number=f"T-{number}", order_date=day)
                await an_item(seller, order, sku_id=number)
            await seller.service.run_jobs()
            await reported(seller)
            clock.shift(timedelta(days=1))
            await reported(seller)
            letters = [
                letter.get_content().partition("\r\n--")[0] for letter in box.of(seller.email)
            ]
            owner = await signed_in(seller)
            today = seen((await owner.get("/today")).text)
            said = re.findall(
                r"^(.*?(\d+).*?)(?: \((\$[\d.]+)\))?\n.*?: \S+?://[^/]+(/\S*)$",
                "\n".join(letters).replace("\r", ""), re.M,
            )  # fmt: skip
            assert {path for *_, path in said} == {"/pulls", "/pricing/reviews"}, letters
            assert [bool(money) for *_, money, _ in said].count(True) == 1
            for sentence, count, money, path in said:
                assert sentence.partition(". ")[0].rstrip(".") in today, path
                assert money in today, path
                behind = seen((await owner.get(path)).text)
                assert re.search(rf"\b{count} (?:prices?|orders?|cards?|to)\b", behind), path


def seen(page):
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def test_before_the_first_sync_there_is_nothing_and_a_sync_without_prices_says_so(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    assert await result(seller) is None
    assert "No sync has ended yet" in (await owner.get("/sync/result")).text
    await log(seller, "success", {"orders": "success"}, sync_cycle_id="c2")
    told = await result(seller)
    assert (told["raised"], told["lowered"], told["rules"], told["listed_now"]) == (0, 0, [], None)
    assert "This sync changed no prices." in (await owner.get("/sync/result")).text


async def test_captured_is_what_was_sold_above_the_price_before_its_raise(a_seller):
    seller = await a_synced_shop(a_seller)
    assert (await result(seller))["captured"] == {"copies": 0, "value": "0.00"}
    account = (await seller.get("/api/account")).json()
    now = clock.now()
    day = now.astimezone(ZoneInfo(account["time_zone"])).date()
    soon = now + timedelta(seconds=2)
    for number, (sku, price, more) in enumerate(
        [(1, "11.00", {}), (3, "7.25", {}), (2, "5.50", {"refund_amt": Decimal("5.50")})]
    ):
        order = await an_order(
            seller,
            order_number=f"C-{number}",
            order_date=day,
            placed_at_given=soon,
            total_amt=Decimal(price) * 2,
            **more,
        )
        await an_item(seller, order, sku_id=sku, unit_price=Decimal(price), quantity=2)
    await settle(seller)
    # Two copies rose by 1.00 and two by 0.50; a lowered price captures nothing.
    told = (await result(seller))["captured"]
    assert told["copies"] == 4
    assert Decimal(told["value"]) == Decimal("3.00")


MOVES = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(1, 3)),
        st.integers(0, 5),
        st.decimals(0, 100, places=2),
        st.integers(0, 5),
        st.decimals(0, 100, places=2),
    ),
    max_size=12,
)


@given(MOVES, st.integers(0, 12))
def test_parts_bring_the_same_as_the_whole(rules, at):
    def kept(*parts):
        found = None
        for part in parts:
            found = with_more(found, [[*row] for row in part], [])
        return {row[0]: [Decimal(str(one)) for one in row[1:]] for row in found["rules"]}

    assert kept(rules[:at], rules[at:]) == kept(rules)
    largest = [[n, "1.00", f"{1 + n}.00", 1] for n in range(1, 20)]
    parts = with_more(with_more(None, [], largest[:at]), [], largest[at:])["largest"]
    assert parts == with_more(None, [], largest)["largest"]
    assert [move[0] for move in parts] == [*range(19, 19 - LARGEST, -1)]


CYCLES = """
    INSERT INTO sync_cycle (seller_id, sync_cycle_id, status, started_at, logged_at)
    SELECT :seller, 'c' || n, 'success', :now - n % 7 * interval '1 minute', :now
      FROM generate_series(1, 3000) n
"""
NEXT = f"SELECT {NEXT_STARTED} AS next FROM sync_cycle c WHERE c.seller_id = :seller AND id = :id"


async def test_when_the_next_sync_began_reads_few_cycles_of_an_old_shop(a_seller):
    seller = await a_seller()
    now = clock.now()
    await seller.service.sql(seller.id, CYCLES, seller=seller.id, now=now)
    ids = [
        row["id"]
        for row in await seller.service.sql(
            seller.id,
            "SELECT id FROM sync_cycle WHERE seller_id = :seller ORDER BY id",
            seller=seller.id,
        )
    ]

    async def next_after(place):
        [row] = await seller.service.sql(seller.id, NEXT, seller=seller.id, id=ids[place])
        return row["next"]

    # The result ends where the earliest of the later cycles began, whatever their numbers.
    assert await next_after(0) == now - timedelta(minutes=6)
    assert await next_after(-2) == now - 3000 % 7 * timedelta(minutes=1)
    assert await next_after(-1) is None
    for place in (0, -1):
        rows = await seller.service.sql(
            seller.id, f"EXPLAIN (ANALYZE, TIMING off) {NEXT}", seller=seller.id, id=ids[place]
        )
        plan = "\n".join(row["QUERY PLAN"] for row in rows)
        assert "Rows Removed by Filter" not in plan, plan
        assert "ix_sync_cycle_recent" not in plan, plan
