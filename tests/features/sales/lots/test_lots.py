"""Lots by hand and by file over HTTP: what sold copies cost, what was earned with them, corrections
with their undo, the fee audit, and two callers at once.
"""

from __future__ import annotations

import asyncio
import re
from datetime import date, timedelta
from decimal import Decimal
from html import unescape

from sqlalchemy import text

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order, undo_newest
from cards_builder import explained
from cardsync.platform import clock
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.sales.lots.settle_uses import LOTS
from cardsync.sales.lots.stale_cards import mark_sold
from lots_builder import add, settle

CARD = 4_040
SPAN = {"from": "2026-07-01", "to": "2026-07-31"}


async def bought(seller, quantity, cost, day="2026-07-01", card=CARD):
    lot = {"marketplace_id": card, "quantity": quantity, "cost": cost, "bought_on": day}
    answer = await seller.post("/api/buying/lots", json={"lots": [lot]})
    assert answer.status_code == 201, answer.text
    return answer.json()["ids"][0]


async def sold(seller, number, quantity, price, *, day="2026-07-03", **order):
    total = quantity * price
    amounts = {"product_amt": total, "shipping_amt": 1.0, "total_amt": total + 1.0}
    await seller.send("/orders", [an_order(number, order_date=day, **amounts, **order)])
    item = {
        "order_number": number, "sku_id": CARD, "quantity": quantity, "unit_price": price,
        "product_line": "Magic",
    }  # fmt: skip
    await seller.send("/order_items", [item])


async def lots(seller):
    answer = await seller.get("/api/buying/lots", params={"marketplace_id": CARD})
    assert answer.status_code == 200, answer.text
    return answer.json()["lots"]


async def earned(seller, by="day", **span):
    answer = await seller.get("/api/buying/profit", params=SPAN | span | {"by": by})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def undo(browser, action):
    feed = (await browser.get("/api/v1/agent/activity")).json()["activity"]
    entry = next(one for one in feed if one["action"] == action)
    answer = await browser.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    assert answer.status_code in (200, 201), answer.text


async def test_sold_copies_cost_what_their_lots_did(a_seller):
    seller = await a_seller()
    await bought(seller, 2, "1.00", "2026-07-01")
    await bought(seller, 5, None, "2026-07-02")
    await sold(seller, "A-1", 3, 10.0)
    await settle(seller)
    assert [lot["remaining"] for lot in await lots(seller)] == [4, 0]
    total = (await earned(seller))["total"]
    # Fees: 31.00 x (10.75 % + 2.5 %) + 0.30. Of three copies two have a cost.
    assert (total["pieces"], total["costed"], total["received"]) == (3, 2, "31.00")
    assert (total["fees"], total["cost"]) == ("4.41", "2.00")
    assert Decimal(total["profit"]) == Decimal("15.73")
    [game] = (await earned(seller, "game"))["rows"]
    assert (game["game"], game["profit"]["profit"]) == ("magic", total["profit"])
    kept = (await seller.get(f"/api/buying/costs/{CARD}")).json()
    assert kept == {"copies": 4, "known": 0, "cost": None, "oldest": "2026-07-02"}


async def test_an_order_says_what_it_earns_and_its_figures_add_up(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await bought(seller, 2, "1.00")
    await sold(seller, "A-1", 2, 10.0)
    await sold(seller, "A-2", 1, 10.0, day="2026-07-04")
    await settle(seller)
    ids = {
        one["order_number"]: one["id"] for one in (await seller.get("/api/orders")).json()["orders"]
    }
    # Received 21.00, fees 21.00 x (10.75 % + 2.5 %) + 0.30; two copies cost 1.00 each.
    drawer = (await browser.get(f"/orders/peek?order={ids['A-1']}")).text
    amount = r'<dt[^>]*>([^<]+)</dt>\s*<dd[^>]*>(?:<span class="money">)?(−?)\$([\d.]+)'
    told = {
        name.split(",")[0]: Decimal(sign.replace("−", "-") + value)
        for name, sign, value in re.findall(amount, drawer)
    }
    assert told["Total"] == told["Cards"] + told["Shipping paid"] == Decimal("21.00")
    assert told["Fees"] == Decimal("-3.08")
    assert told["Cost of 2 cards"] == Decimal("-2.00")
    parts = told["Fees"] + told["Postage and supplies"] + told["Cost of 2 cards"]
    assert told["You earn"] == told["Total"] + parts
    page = (await browser.get(f"/orders/{ids['A-1']}")).text
    for amount in ("$21.00", "$3.08", "$2.00", f"${told['You earn']}"):
        assert amount in page, amount
    # Without a cost nobody knows, and nothing is counted as nothing.
    drawer = (await browser.get(f"/orders/peek?order={ids['A-2']}")).text
    assert "no cost known" in drawer
    assert "Cost of" not in drawer
    staff = await joined(seller, f"staff-{seller.id}@example.invalid")
    assert "You earn" not in (await staff.get(f"/orders/peek?order={ids['A-1']}")).text


async def test_prices_that_do_not_add_up_are_scaled_to_what_the_buyer_paid(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await bought(seller, 3, "1.00")
    amounts = {"product_amt": 20.0, "shipping_amt": 0, "total_amt": 20.0}
    await seller.send("/orders", [an_order("A-1", order_date="2026-07-03", **amounts)])
    items = [
        {"order_number": "A-1", "sku_id": sku, "quantity": 1, "unit_price": price}
        for sku, price in ((CARD, 1.0), (CARD + 1, 3.0))
    ]
    await seller.send("/order_items", items)
    await settle(seller)
    total = (await earned(seller))["total"]
    # Fees: 20.00 x (10.75 % + 2.5 %) + 0.30; a quarter of all is the line whose copy has a cost.
    assert (total["received"], total["fees"]) == ("20.00", "2.95")
    assert Decimal(total["profit"]) == Decimal("3.26")
    [order] = (await seller.get("/api/orders")).json()["orders"]
    page = (await browser.get(f"/orders/{order['id']}")).text
    assert "don't add up" in page
    assert "Price each" not in (await browser.get(f"/print/orders/{order['id']}")).text


async def test_another_setting_changes_profit_and_costs(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    await bought(seller, 1, "1.00", "2026-07-01")
    await bought(seller, 3, "3.00", "2026-07-02")
    await sold(seller, "A-1", 1, 10.0)
    await settle(seller)
    before = (await earned(seller))["total"]
    wanted = {"costing": "average", "letter_postage": "0.73", "supplies": "0.27"}
    answer = await browser.send("PATCH", "/api/account", json=wanted)
    assert answer.status_code == 200, answer.text
    await settle(seller)
    after = (await earned(seller))["total"]
    assert (before["cost"], after["cost"]) == ("1.00", "2.50")
    assert (before["postage"], after["postage"]) == ("0.00", "1.00")
    assert Decimal(before["profit"]) - Decimal(after["profit"]) == Decimal("2.50")


async def test_a_refund_gives_copies_back_to_their_lot(a_seller):
    seller = await a_seller()
    await bought(seller, 1, "1.00", "2026-07-01")
    await bought(seller, 1, "5.00", "2026-07-02")
    await sold(seller, "A-1", 1, 10.0)
    await settle(seller)
    await sold(seller, "A-2", 1, 10.0)
    await settle(seller)
    back = {"order_number": "A-1", "refund_type": "full", "total_amt": 11.0}
    await seller.send("/order_refunds", [back])
    await settle(seller)
    assert [lot["remaining"] for lot in await lots(seller)] == [0, 1]
    total = (await earned(seller))["total"]
    assert (total["pieces"], total["costed"], total["cost"]) == (1, 1, "5.00")


async def test_copies_back_in_stock_return_to_the_newest_lot_that_was_taken_from(a_seller):
    """A partial refund with a return leaves the copies sold until they are put back, and an undo sells them
    again; what is earned then holds for the copies that stayed with the buyer.
    """
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(CARD, quantity=3)))
    [card] = await seller.cards()
    await bought(seller, 2, "1.00", "2026-07-01")
    await bought(seller, 2, "5.00", "2026-07-02")
    await sold(seller, "A-1", 4, 10.0)
    back = {"order_number": "A-1", "refund_type": "partial", "total_amt": 10.0}
    back |= {"refund_reason": "Cards returned"}
    await seller.send("/order_refunds", [back])
    await settle(seller)
    assert [lot["remaining"] for lot in await lots(seller)] == [0, 0]
    before = (await earned(seller))["total"]
    [order] = (await seller.get("/api/returns")).json()["returns"]
    path = f"/api/returns/{order['order_id']}/restocked"
    places = [{"card_id": card["id"], "box": 1, "slot": slot, "quantity": 1} for slot in (1, 2)]
    # Two of the four have a place; the others may come back later.
    answer = await seller.post(path, json={"places": places})
    assert answer.status_code == 200, answer.text
    live = (await earned(seller))["total"]
    assert (live["pieces"], live["costed"]) == (2, 4)
    await settle(seller)
    assert [lot["remaining"] for lot in await lots(seller)] == [2, 0]
    after = (await earned(seller))["total"]
    assert (after["pieces"], after["costed"], after["cost"]) == (2, 2, "2.00")
    assert Decimal(after["profit"]) == Decimal(before["profit"]) + 10
    assert (await undo_newest(seller, "order.restocked")).status_code == 200
    await settle(seller)
    assert [lot["remaining"] for lot in await lots(seller)] == [0, 0]
    assert (await earned(seller))["total"] == before


async def test_the_list_of_customers_says_what_each_earned(a_seller):
    """Kept with their other sums: another cost, a cancelled order and a name that changes."""
    seller = await a_seller()
    owner = await signed_in(seller)
    staff = await joined(seller, f"bea-{seller.email}")
    await bought(seller, 3, "1.00", "2026-07-01")
    await sold(seller, "A-1", 2, 10.0, buyer_name="Ann")
    await sold(seller, "A-2", 2, 10.0, buyer_name="Bob")
    await settle(seller)

    async def told():
        rows = (await seller.get("/api/customers")).json()["customers"]
        ones = [(await seller.get(f"/api/customers/{row['key']}")).json() for row in rows]
        assert all(row.items() <= one.items() for row, one in zip(rows, ones, strict=True))
        total = (await earned(seller))["total"]
        held = [Decimal(row["profit"]) for row in rows if row["profit"]]
        assert sum(held) == Decimal(total["profit"] or 0)
        return {row["buyer_name"]: (row["pieces"], row["costed"], row["profit"]) for row in rows}

    # 21.00 less fees of 3.08, less 2.00; of Bob's two copies one has a cost.
    assert await told() == {"Ann": (2, 2, "15.92"), "Bob": (2, 1, "7.96")}
    page = " ".join((await owner.get("/customers")).text.split())
    assert "for 1 of 2</small>" in page
    table = (await owner.get("/api/customers/export.csv")).text.splitlines()
    assert table[0].endswith("lifetime_total,pieces,costed,profit")
    assert {line.split(",", 4)[4] for line in table[1:]} == {"21.00,2,2,15.92", "21.00,2,1,7.96"}
    for path in ("/api/customers", "/customers", "/api/customers/export.csv"):
        assert "15.92" not in (await staff.get(path)).text
    await sold(seller, "A-1", 2, 10.0, buyer_name="Bob")
    await settle(seller)
    assert await told() == {"Bob": (4, 3, "23.88")}
    await sold(seller, "A-1", 2, 10.0, buyer_name="Bob", status="Cancelled")
    await settle(seller)
    assert await told() == {"Bob": (2, 2, "15.92")}


async def test_a_file_comes_in_once_and_its_bad_rows_are_told(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    csv = (
        "TCGplayer Id;Quantity;Purchase price;Date Bought\r\n"
        f"{CARD};4;$1.25;07/01/2026\r\n{CARD};0;1;2026-07-01\r\nx;1;1;\r\n{CARD};1;;soon\r\n"
    )
    first = (await seller.post("/api/buying/lots/file", json={"csv": csv})).json()
    assert (first["lots"], first["known_before"]) == (1, False)
    assert [(row["row"], row["field"]) for row in first["rejected"]] == [
        (3, "quantity"), (4, "marketplace_id"), (5, "bought_on"),
    ]  # fmt: skip
    again = await asyncio.gather(
        *(seller.post("/api/buying/lots/file", json={"csv": csv}) for _ in range(3))
    )
    assert all(one.json()["known_before"] for one in again)
    [lot] = await lots(seller)
    assert (lot["quantity"], lot["cost"], lot["bought_on"]) == (4, "1.25", "2026-07-01")
    table = (await seller.get("/api/buying/lots.csv")).text
    assert table.splitlines()[0].startswith("id,marketplace_id,quantity,remaining,cost")
    await undo(browser, "lots.imported")
    assert await lots(seller) == []


async def test_the_file_of_lots_has_all_its_parts(a_seller, monkeypatch):
    monkeypatch.setattr("cardsync.sales.lots.read_lots.PART", 2)
    seller = await a_seller()
    await add(seller, *((CARD + n, 1, Decimal("1.00"), date(2026, 7, 1)) for n in range(5)))
    table = (await seller.get("/api/buying/lots.csv")).text.splitlines()
    cards = [int(line.split(",")[1]) for line in table[1:]]
    assert cards == [CARD + n for n in (4, 3, 2, 1, 0)]


async def test_the_page_of_lots_goes_on_by_key(a_seller, limited):
    """A lot that comes in meanwhile moves none from one page to the next."""
    limited("LOTS_PER_PAGE", 2)
    seller = await a_seller()
    owner = await signed_in(seller)
    lot = (1, Decimal("1.00"), date(2026, 7, 1))
    await add(seller, *((CARD + n, *lot) for n in range(5)))
    path, seen = "/profit?by=lots", []
    while path:
        page = (await owner.get(path)).text
        seen += [int(card) for card in re.findall(r"sku%3A(\d+)", page)]
        await add(seller, (CARD + 9, *lot))
        found = re.search(r'rel="next" href="([^"]+)"', page)
        path = unescape(found[1]) if found else None
    assert seen == [CARD + n for n in (4, 3, 2, 1, 0)]
    assert (await owner.get("/profit?by=lots&after=x")).status_code == 200


async def test_a_lot_is_corrected_removed_and_brought_back(a_seller):
    seller = await a_seller()
    browser = await signed_in(seller)
    lot = await bought(seller, 2, "1.00")
    await sold(seller, "A-1", 2, 10.0)
    await settle(seller)
    path = f"/api/buying/lots/{lot}"
    answer = await seller.http.patch(path, json={"quantity": 1, "cost": "2.00"})
    assert answer.status_code == 200, answer.text
    await settle(seller)
    total = (await earned(seller))["total"]
    assert (total["costed"], total["cost"]) == (1, "2.00")
    await undo(browser, "lots.corrected")
    await settle(seller)
    total = (await earned(seller))["total"]
    assert (total["costed"], total["cost"]) == (2, "2.00")
    assert (await seller.http.delete(path)).status_code == 200
    await settle(seller)
    assert (await earned(seller))["total"]["profit"] is None
    await undo(browser, "lots.removed")
    await settle(seller)
    assert (await earned(seller))["total"]["costed"] == 2
    assert (await seller.http.patch(f"{path}9", json={"quantity": 1})).status_code == 404


async def test_profit_is_told_by_the_rule_that_set_the_price(a_seller):
    seller = await a_seller()
    rule = {"name": "High end", "priority": 5, "state": "published"}
    made = (await seller.post("/api/pricing/rules", json=rule)).json()
    await seller.import_csv(a_csv(*(a_row(card, market="2.00", price="5.00") for card in (1, 2))))
    [target] = {card["target_price"] for card in await seller.cards()}
    assert target not in (None, "5.00")
    await add(seller, *((card, 9, Decimal("0.50"), date(2026, 7, 1)) for card in (1, 2)))
    today = clock.now().date()
    amounts = {"product_amt": 20.0, "shipping_amt": 1.0, "total_amt": 21.0}
    dates = {"A-1": today, "A-2": today - timedelta(days=40), "A-3": today}
    # A-1 sold at the rule's price and at one that no rule asked, A-2 before the rule was there; of
    # A-3 the card is not known.
    rows = [an_order(number, order_date=f"{day}", **amounts) for number, day in dates.items()]
    await seller.orders(rows)
    lines = [("A-1", 1, target), ("A-1", 2, "5.00"), ("A-2", 1, target), ("A-3", 999, "20.00")]
    await seller.items(
        [
            {"order_number": order, "sku_id": card, "quantity": 1, "unit_price": float(price)}
            for order, card, price in lines
        ],
    )
    span = {"from": f"{today - timedelta(days=60)}", "to": f"{today + timedelta(days=1)}"}

    async def told():
        found = await earned(seller, "pricing_rule", **span)
        whole = (await earned(seller, "day", **span))["total"]
        assert found["total"] == whole
        return [(row["priced_by"], row["rule"], row["profit"]["pieces"]) for row in found["rows"]]

    # The days are counted by the reader, and then kept.
    before = await told()
    assert before == [("rule", "High end", 1), ("no_rule", None, 2), ("unknown", None, 1)]
    await settle(seller)
    assert await told() == before
    owner = await signed_in(seller)
    page = unescape((await owner.get("/profit", params=span)).text)
    table = re.search(r"Profit by rule.*?</table>", page, re.S)[0]
    assert f'href="/pricing/rules/{made["id"]}"' in table
    assert "<bdi>High end</bdi>" in table
    assert "No rule" in table
    assert "Unknown" in table
    asked = {"params": span | {"by": "pricing_rule"}}
    sheet = (await seller.get("/api/buying/profit.csv", **asked)).text.splitlines()
    assert sheet[0].startswith("priced_by,rule_id,rule,pieces,costed,")
    assert f"rule,{made['id']},High end,1,1," in sheet[1]
    assert (await seller.http.delete(f"/api/pricing/rules/{made['id']}")).is_success
    assert (await told())[0] == ("rule", None, 1)


async def test_a_buy_rule_says_what_its_money_brought(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    assert (await owner.post("/api/buying/presets/standard")).status_code == 200
    [live] = (await owner.get("/api/buying/rules")).json()["rules"]
    await add(seller, (CARD, 4, Decimal("2.00"), date(2026, 7, 1)), rule_id=live["id"])
    await sold(seller, "A-1", 2, 10.0, day="2026-07-05")
    await settle(seller)
    [rule] = (await earned(seller, "rule"))["rules"]
    assert (rule["rule_id"], rule["bought"], rule["paid"]) == (live["id"], 4, "8.00")
    assert (rule["sold"], rule["cost"], rule["days_to_sell"]) == (2, "4.00", 4.0)
    assert rule["profit"] == (await earned(seller))["total"]["profit"]
    page = await owner.get("/profit?by=rule&from=2026-07-01&to=2026-07-31")
    assert f"<bdi>{live['name']}</bdi>" in page.text


async def test_a_fee_that_is_not_known_is_told_and_nothing_is_kept(a_seller):
    seller = await a_seller()
    await sold(seller, "A-1", 1, 20.0)
    await settle(seller)
    rows = "A-1,0.83,2.29,3.12\n"
    for header, said in (
        ("Order #,Processing Fee,Marketplace Fee", "Marketplace Fee"),
        ("Order #,Transaction Fee,Channel Commissions", "Channel Commissions"),
        ("Order #,processing_fee,service-charge", "service-charge"),
    ):
        answer = await seller.post("/api/buying/payments", json={"csv": f"{header}\n{rows}"})
        assert answer.status_code == 422, answer.text
        assert f"csv: line 1 has an unknown fee column, '{said}'" in answer.json()["error"]
    found = (await seller.get("/api/buying/fees", params=SPAN)).json()
    assert (found["months"], found["claim"]) == ([], "")
    # A total says all, and what is no amount of a fee is none.
    for header in (
        "Order #,Marketplace Fee,Channel Fee,Total Fees",
        "Order #,Processing Fee,Commission,Commission Rate",
        "Order #,Direct Fees,Commission Fees,Net after fees",
    ):
        answer = await seller.post("/api/buying/payments", json={"csv": f"{header}\n{rows}"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["rejected"] == []
        [month] = (await seller.get("/api/buying/fees", params=SPAN)).json()["months"]
        assert month["taken"] == "3.12", header


async def test_the_fee_audit_lists_what_was_charged_too_much(a_seller):
    seller = await a_seller()
    await sold(seller, "A-1", 3, 10.0)
    await sold(seller, "A-2", 1, 10.0)
    await settle(seller)
    report = "Order #,Commission,Payment Processing Fee\nA-1,-3.34,(1.08)\nA-2,1.18,0.58\nA-9,x,1\n"
    told = (await seller.post("/api/buying/payments", json={"csv": report})).json()
    assert (told["orders"], told["changed"], len(told["rejected"])) == (2, 2, 1)
    found = (await seller.get("/api/buying/fees", params=SPAN)).json()
    [month] = found["months"]
    assert (month["orders"], month["expected"], month["taken"]) == (2, "6.17", "6.18")
    assert found["differences"] == []
    report = "Order #,Fees\nA-2,2.00\n"
    await seller.post("/api/buying/payments", json={"csv": report})
    found = (await seller.get("/api/buying/fees", params=SPAN)).json()
    [one] = found["differences"]
    assert (one["order_number"], one["expected"], one["difference"]) == ("A-2", "1.76", "0.24")
    assert "10.75% of items and shipping" in one["rule"]
    assert "A-2 (2026-07-03): expected $1.76, charged $2.00, $0.24 too much" in found["claim"]
    await settle(seller)
    order = await seller.service.sql(
        seller.id, "SELECT id FROM orders WHERE seller_id = :id AND order_number = 'A-2'",
        id=seller.id,
    )  # fmt: skip
    answer = await seller.get(f"/api/buying/profit/orders/{order[0]['id']}")
    [line] = answer.json()["lines"]
    assert (line["fees_reported"], line["profit"]["fees"]) == (True, "2.00")


async def test_two_workers_settle_each_copy_once(a_seller):
    seller = await a_seller()
    await bought(seller, 3, "1.00")
    for number in range(4):
        await sold(seller, f"A-{number}", 1, 10.0)
    await settle(seller)
    await bought(seller, 2, "2.00")
    async with seller.service.database.tenant(seller.id) as session:
        await mark(session, seller.id, Figure.LOTS)
    await asyncio.gather(*(LOTS.work_off(seller.service.work, seller.id) for _ in range(4)))
    await settle(seller)
    [row] = await seller.service.sql(
        seller.id,
        "SELECT (SELECT sum(taken - given_back) FROM lot_use WHERE seller_id = :id) AS used,"
        " (SELECT sum(quantity - remaining) FROM lot WHERE seller_id = :id) AS gone",
        id=seller.id,
    )
    assert (row["used"], row["gone"]) == (4, 4)


async def test_lots_and_orders_that_come_at_once_see_each_other(a_seller):
    """Orders look for lots, lots come, and both commit: one of the two marks the card."""
    seller = await a_seller()
    await bought(seller, 1, "1.00", card=9)
    found = {"seller": seller.id, "card": CARD}
    asked = "SELECT CAST(:card AS bigint) AS sku_id"
    database = seller.service.database
    async with database.tenant(seller.id) as orders:
        await mark_sold(orders, asked, found)
        lot = asyncio.create_task(add(seller, (CARD, 1, Decimal("2.00"), date(2026, 7, 1))))
        done, _ = await asyncio.wait([lot], timeout=0.3)
        assert not done
    await lot
    async with database.tenant(seller.id) as orders:
        await orders.execute(text("DELETE FROM lot_stale WHERE seller_id = :seller"), found)
        await mark_sold(orders, asked, found)
        marked = "SELECT marketplace_id FROM lot_stale WHERE seller_id = :seller"
        assert await orders.scalar(text(marked), found) == CARD


async def test_a_rule_never_asks_less_than_the_cost_and_more(a_seller):
    seller = await a_seller()
    rule = {"name": "By cost", "priority": 5, "state": "published", "floor_cost_bp": 2_000}
    answer = await seller.post("/api/pricing/rules", json=rule)
    assert answer.status_code == 201, answer.text
    await bought(seller, 2, "3.33", card=1)
    await settle(seller)
    rows = [a_row(card, market="2.00", price="5.00") for card in (1, 2)]
    await seller.import_csv(a_csv(*rows))
    said = {}
    for card in (1, 2):
        steps = (await explained(seller, card))["historical_breakdown"]["steps"]
        said[card] = next(one for one in steps if one["name"] == "bounds")
    known, unknown = said[1], said[2]
    assert (known["output"], known["bound"], known["cost_floor"]) == ("4.00", "cost_floor", "4.00")
    assert known["summary"] == "2.00 is below the rule's cost-based floor, 4.00."
    assert (unknown["output"], unknown["bound"], unknown["cost"]) == ("2.00", None, None)
    assert unknown["summary"].endswith("so the rule's cost-based floor doesn't apply.")
    found = await seller.get("/api/cards", params={"search": "cost>3 margin<40 age>10"})
    assert [card["marketplace_id"] for card in found.json()["cards"]] == [1]
    days = [(clock.now().date() + timedelta(day)).isoformat() for day in (-1, 1)]
    asked = {"rules": [{"floor_cost_bp": 2_000}], "from": days[0], "to": days[1]}
    tried = await seller.post("/api/pricing/backtest", json=asked)
    assert tried.json()["days"][0]["listed_value"] == "6.00", tried.text


async def test_staff_who_see_no_revenue_find_no_costs(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, price="5.00")))
    await bought(seller, 2, "3.00", card=1)
    await settle(seller)
    staff = await joined(seller, "bea@example.com")
    for search in ("cost>2", "-(name:x cost<2)", "margin<90"):
        asked = {"search": search}
        assert (await seller.get("/api/cards", params=asked)).status_code == 200
        for path in ("/api/cards", "/api/cards/export.csv"):
            answer = await staff.get(path, params=asked)
            assert "only members who can see sales can search by" in answer.text
            assert "product_name" not in answer.text
