"""GET /api/today, /api/listed_value and /api/movers over HTTP."""

from __future__ import annotations

from datetime import timedelta

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order
from cardsync.platform import clock

DAY = timedelta(days=1)


async def today(who):
    answer = await who.get("/api/today")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def kinds(who):
    return [one["kind"] for one in (await today(who))["conditions"]]


async def test_a_new_shop_is_to_be_set_up_and_has_no_figures(a_seller):
    told = await today(await a_seller())
    assert [one["kind"] for one in told["conditions"]] == ["set_up_unfinished"]
    assert told["conditions"][0]["next_step"]["path"] == "/set-up/prices"
    assert told["listed"] is None
    assert told["last_run"] is None
    assert told["sales"]["today"] == {"orders": 0, "gross": "0.00"}
    assert told["feedback"] == {"count": 0, "average": None, "ratings": []}
    assert told["sync"]["phase"] == "idle"


async def test_orders_to_pull_wait_with_their_money_until_they_are_shipped(a_seller):
    seller = await a_seller()
    day = clock.now().date()
    await seller.orders(
        [
            an_order("A-1", status="Ready to Ship", total_amt=12.5, order_date=f"{day:%m/%d/%y}"),
            an_order("A-2", status="Ready to Ship", total_amt=7.5, order_date=f"{day:%m/%d/%y}"),
        ]
    )
    told = await today(seller)
    [waits] = told["conditions"]
    assert (waits["kind"], waits["count"], waits["money"]) == ("orders_to_pull", 2, "20.00")
    assert waits["sentence"] == "2 orders to pull."
    assert waits["deadline"] > waits["since"]
    assert told["shipping"] == [{"shipping_type": "pwe", "orders": 2}]
    clock.shift(8 * DAY)
    [late] = (await today(seller))["conditions"]
    assert late["severity"] == "bad"
    assert "past its shipping deadline" in late["sentence"]
    for order in (await seller.get("/api/orders")).json()["orders"]:
        await seller.post(f"/api/orders/{order['id']}/mark_shipped")
    assert await kinds(seller) == []


async def test_a_pull_is_work_until_it_ends(a_seller):
    seller = await a_seller()
    day = f"{clock.now().date():%m/%d/%y}"
    numbers = ("A-1", "A-2")
    await seller.orders(
        [an_order(n, status="Ready to Ship", total_amt=12.5, order_date=day) for n in numbers]
    )
    [waits] = (await today(seller))["conditions"]
    pull = (await seller.post("/api/pull_sessions", json={})).json()["id"]
    staff = await joined(seller, f"bea-{seller.email}")
    [opened] = (await today(staff))["conditions"]
    assert (opened["kind"], opened["subject"]) == ("pull_under_way", pull)
    assert opened["sentence"] == f"Pull {pull}: 0 of 2 orders pulled."
    assert opened["next_step"] == {"label": "Continue the pull", "path": f"/pulls/{pull}"}
    assert (opened["deadline"], opened["money"]) == (waits["deadline"], None)
    [opened] = (await today(seller))["conditions"]
    assert (opened["deadline"], opened["money"]) == (waits["deadline"], "25.00")
    page = await (await signed_in(seller)).get("/today")
    assert f"Pull {pull}: 0 of 2 orders pulled" in page.text
    orders = (await seller.get(f"/api/pull_sessions/{pull}")).json()["orders"]
    for order in orders:
        path = f"/api/pull_sessions/{pull}/orders/{order['id']}/pulled"
        assert (await seller.post(path)).status_code == 200
    [done] = (await today(seller))["conditions"]
    assert (done["sentence"], done["money"], done["deadline"]) == (
        f"Pull {pull}: 2 of 2 orders pulled.",
        None,
        None,
    )
    assert (await seller.post(f"/api/pull_sessions/{pull}/complete")).status_code == 200
    assert "pull_under_way" not in await kinds(seller)


async def test_the_listed_value_has_a_row_for_each_day(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, price="2.00", market="2.50", quantity=3)))
    clock.shift(2 * DAY)
    await seller.import_csv(a_csv(a_row(1, price="3.00", market="2.50", quantity=3)))
    days = (await seller.get("/api/listed_value?days=7")).json()["days"]
    assert [(day["value"], day["market_value"]) for day in days] == [
        ("6.00", "7.50"),
        ("9.00", "7.50"),
    ]
    assert (await today(seller))["listed"]["value"] == "9.00"
    for wrong in ("0", "1101", "x"):
        answer = await seller.get(f"/api/listed_value?days={wrong}")
        assert answer.status_code == 422, wrong


async def test_the_movers_of_a_period_are_told_by_direction(a_seller):
    seller = await a_seller()
    rows = [a_row(n, price="2.00", quantity=n) for n in (1, 2, 3)]
    await seller.import_csv(a_csv(*rows))
    clock.shift(10 * DAY)
    await seller.import_csv(
        a_csv(a_row(1, price="5.00"), a_row(2, price="1.00", quantity=2), rows[2])
    )
    told = (await seller.get("/api/movers")).json()
    [up], [down] = told["rises"], told["falls"]
    assert (up["price_before"], up["price_after"]) == ("2.00", "5.00")
    assert (down["price_before"], down["price_after"], down["quantity"]) == ("2.00", "1.00", 2)
    month = (await seller.get("/api/movers?days=30")).json()
    assert (month["rises"], month["falls"]) == ([], [])
    assert (await seller.get("/api/movers?days=8")).status_code == 422


async def test_an_upload_in_review_is_the_owners_condition(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 41))))
    upload = (await seller.import_csv(a_csv(a_row(1, quantity=3))))["id"]
    owner, staff = await signed_in(seller), await joined(seller, f"bea-{seller.email}")
    assert await kinds(owner) == ["upload_in_review"]
    assert await kinds(staff) == []
    assert (await seller.post(f"/api/v1/uploads/{upload}/discard")).status_code == 200
    assert await kinds(owner) == []
