"""The shop's revenue is the owner's: staff try every route, page and file of a shop whose sums
occur nowhere else, and find none of them unless the account lets them.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
from datetime import timedelta
from decimal import Decimal

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, an_order
from cards_builder import a_place, card_ids
from cardsync.platform import clock
from dashboard_builder import filled_shop
from pages import PAGES, filled
from plans_builder import changes, planned
from requests_of_routes import BODIES, DOCUMENT

DAY = timedelta(days=1)
NUMBER = re.compile(r"(?<![\d.])\d+\.\d{2,}(?![\d.])")
# The fields of the JSON answers that hold revenue.
REVENUE = {
    "gross", "net", "fees", "refunds", "value", "market_value", "lifetime_total", "refunded_total",
    "gross_sales", "product_amount", "total_fees", "shipping_amount", "total_refund_amount",
    "refunded_fees", "adjustments", "net_sales_minus_fees", "net_sales", "received", "profit",
}  # fmt: skip
# The answers that have them, and one field of each that must be there.
SOURCES = {
    "/api/today": "gross",
    "/api/listed_value": "market_value",
    "/api/sales/summary?by=day": "fees",
    "/api/sales/summary?by=month": "net",
    "/api/buying/profit?by=month": "received",
    "/api/sales/summary?by=game": "gross",
    "/api/sales/cards": "gross",
    "/api/v1/sales_report": "net_sales",
    "/api/customers": "lifetime_total",
    "/api/customers/{key}": "refunded_total",
    "/api/returns/customers": "refunded_total",
    "/api/counts/suggested": "value",
}
# These read, and take a body.
READS = {
    "POST /api/pricing/preview": {},
    "POST /api/pricing/preview?format=csv": {},
    "POST /api/pricing/preview?format=parquet": {},
    "POST /api/pricing/preview/draft": {"rule": {"name": "All", "price_source": "market"}},
    "POST /api/pricing/preview/sale": {"sale": {"adjust_bp": -500}},
    "POST /api/pricing/backtest": BODIES["POST /api/pricing/backtest"],
    "POST /api/pricing/rule_tests/check": {},
    **{route: BODIES[route] for route in BODIES if route.startswith("POST /api/discovery/")},
}
# Addresses beside those of the tables: the same things, asked for otherwise.
MORE = (
    "/api/sales/summary.csv?by=game", "/api/sales/cards.csv", "/sales?by=day", "/sales?by=game",
    "/sales?by=cards", "/today?days=30", "/customers?page=1", "/orders?refund=true",
    "/orders?search=Ada", "/api/orders?items=full", "/returns?state=restocked",
    "/cards?search=box:9", "/api/cards?search=sold:90d", "/api/pricing/updates.csv",
    "/api/cards/export.csv?search=box:9", "/shelves/box?box=9", "/shelves/9", "/activity?page=2",
)  # fmt: skip
# What would never end, or belongs to nobody who is signed in, is asked for by itself.
APART = {
    "/pulls/{session_id:int}/changes",
    "/set-up",
    "/set-up/restore",
    "/styleguide",
}


def amounts(text):
    """The amounts of a text, as numbers."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", html.unescape(text))
    return {Decimal(found) for found in NUMBER.findall(plain)}


def earned(answer):
    """The revenue in a JSON answer."""
    match answer:
        case dict():
            own = {str(answer[name]) for name in REVENUE & answer.keys()}
            return set().union(amounts(" ".join(own)), *map(earned, answer.values()))
        case list():
            return set().union(*map(earned, answer))
    return set()


async def a_shop(a_seller):
    """A shop in the middle of a month with two customers, whose sums are like nothing else."""
    clock.stop()
    clock.shift((clock.now().replace(day=1, hour=15) + 45 * DAY).replace(day=20) - clock.now())
    seller, ids = await filled_shop(a_seller)
    card = a_row(3, price="411.37", market="399.13", quantity=7)
    first = [a_row(1, price="1234.50", market="9.00"), a_row(2, price="5.00", market="4.00")]
    await seller.import_csv(a_csv(*first, card))
    for number, card_id in (await card_ids(seller)).items():
        await a_place(seller, card_id, 9, number, 7 if number == 3 else 1)
    today = clock.now()
    orders = {
        "R-1": ("Ada", today, 1017.31), "R-2": ("Ada", today, 2023.47),
        "R-3": ("Bob", today, 411.13), "R-4": ("Bob", today - 8 * DAY, 733.29),
        "R-5": ("Ada", today - 35 * DAY, 357.91), "R-6": ("Bob", today - 33 * DAY, 619.73),
    }  # fmt: skip
    await seller.orders(
        [
            an_order(
                number,
                buyer_name=name,
                order_date=f"{day:%m/%d/%Y}",
                total_amt=total,
                product_amt=total - 1,
                status="Ready to Ship",
            )
            for number, (name, day, total) in orders.items()
        ]
    )
    refunds = {"R-1": 107.53, "R-2": 211.61}
    await seller.refunds(
        [{"order_number": number, "refund_amt": amount} for number, amount in refunds.items()]
    )
    found = (await seller.get("/api/orders?per_page=50")).json()["orders"]
    numbers = {order["order_number"]: order["id"] for order in found}
    line = {"sku_id": 3, "unit_price": 347.19, "product_name": "Card 3", "quantity": 1}
    await seller.items([line | {"order_number": number} for number in ("R-1", "R-3", "R-5")])
    await report(seller, today.replace(day=1) - DAY, 41_237.61)
    await report(seller, today, 52_861.43)
    ids["key"] = next(
        one["key"]
        for one in (await seller.get("/api/customers")).json()["customers"]
        if one["buyer_name"] == "Ada"
    )
    return seller, ids | {"order_id": numbers["R-1"]}


async def report(seller, day, gross):
    """A month's report of the marketplace, until that day."""
    told = {
        "date_from": f"{day.replace(day=1):%Y-%m-%d}",
        "date_to": f"{day:%Y-%m-%d}",
        "report": {
            "gross_sales": gross,
            "order_count": 9,
            "total_fees": round(gross / 7, 2),
            "net_sales": round(gross * 0.99, 2),
        },
    }
    answer = await seller.post("/api/v1/sales_report", json=told)
    assert answer.status_code == 200, answer.text


async def more_of(seller, owner, ids):
    """A sale, a plan, and a phone's link, with their ids."""
    sale = {"name": "All", "adjust_bp": -900, "starts_at": "2020-01-01T00:00:00Z"}
    sold = await seller.post("/api/pricing/sales", json=sale | {"ends_at": "2099-01-01T00:00:00Z"})
    assert sold.status_code == 201, sold.text
    drop = {"op": "update", "rule_id": ids["rule_id"], "set": {"adjust_bp": -500}}
    plan = await planned(seller, changes(drop))
    await seller.post(f"/api/pull_sessions/{ids['session_id']}/cancel")
    opened = await seller.post("/api/pull_sessions", json={})
    assert opened.status_code == 201, opened.text
    pull = {"session_id": opened.json()["id"]}
    linked = await owner.post("/api/pull_links", json=pull)
    [link, *_] = linked.json()["links"]
    return pull | {"sale_id": sold.json()["id"], "plan_id": plan["plan_id"], "token": link["url"]}


def addresses(ids):
    """Every GET route of the interface and every page, and what they are asked with."""
    told = dict(ids, marketplace_id=3)
    routes = [path for path, methods in DOCUMENT["paths"].items() if "get" in methods]
    query = {"/api/pricing/receipts/{marketplace_id}": "?at=1", "/api/quick_add/products": "?q=a"}
    key = {"/api/print/sheets/{key}": "a4-3x8", "/print/sheets/{key:str}": "a4-3x8"}
    for route in routes:
        own = told | {"key": key.get(route, told["key"])}
        yield re.sub(r"\{\w+\}", "1", filled(route, own)) + query.get(route, "")
    for page in PAGES:
        if page.route not in APART:
            own = told | {"key": key.get(page.route, told["key"])}
            yield re.sub(r"\{\w+(:\w+)?\}", "1", page.address(own))
    yield from MORE
    yield told["token"]
    yield f"{told['token']}/queue"


async def walk(browser, ids, those=None):
    """Return the status of each address, or of each of `those`, and the amounts in its answer."""
    found = {}
    for address in addresses(ids):
        if those is None or address in those:
            answer = await browser.get(address)
            found[address] = answer.status_code, amounts(answer.text)
    for route, body in READS.items():
        method, path = route.split(" ")
        answer = await browser.send(method, path, json=body)
        found[route] = answer.status_code, amounts(answer.text)
    return found


async def heard(browser, seller, session_id):
    """The events of a pull, until it is cancelled."""
    stream = asyncio.create_task(browser.get(f"/pulls/{session_id}/changes"))
    await asyncio.sleep(0.2)
    await seller.post(f"/api/pull_sessions/{session_id}/cancel")
    return (await asyncio.wait_for(stream, 30)).text


async def sums_of(owner, ids):
    """The recognisable figures of the revenue: those that no order, line or card has for itself."""
    own = set()
    for path in ("/api/orders?items=full&per_page=100", "/api/cards", "/api/movers"):
        own |= amounts(json.dumps((await owner.get(path)).json()))
    own |= amounts((await owner.get("/orders/{order_id}".format_map(ids))).text)
    sums = set()
    for source, field in SOURCES.items():
        told = (await owner.get(filled(source, ids))).json()
        assert f'"{field}"' in json.dumps(told), source
        new = {amount for amount in earned(told) if amount > 100} - own
        assert new, source
        sums |= new
    return sums


def where(walked, sums):
    """The addresses that show some of the sums."""
    return {address: shown & sums for address, (_, shown) in walked.items() if shown & sums}


@pytest.mark.day
async def test_staff_find_no_revenue_behind_any_door_until_the_account_lets_them(a_seller):
    seller, ids = await a_shop(a_seller)
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    ids |= await more_of(seller, owner, ids)
    sums = await sums_of(owner, ids)
    of_owner, of_staff = await walk(owner, ids), await walk(staff, ids)
    with_sums = where(of_owner, sums)
    assert not [address for address, (status, _) in of_owner.items() if status >= 500]
    assert set().union(*with_sums.values()) == sums
    pages = {"/today", "/sales", "/customers", "/returns", "/counts", f"/customers/{ids['key']}"}
    assert pages <= with_sums.keys()
    assert where(of_staff, sums) == {}
    # They saw all else: what an owner gets is refused, or answered without the figures.
    refused = {
        address: (status, of_staff[address][0])
        for address, (status, _) in of_owner.items()
        if of_staff[address][0] not in (status, 303, 403)
    }
    assert refused == {}
    answered = [address for address, (status, _) in of_staff.items() if status == 200]
    assert {"/today", "/customers", "/orders", "/api/today", "/api/orders"} <= set(answered)
    assert not amounts(await heard(staff, seller, ids["session_id"])) & sums
    told = await owner.send("PATCH", "/api/account", json={"staff_see_revenue": True})
    assert told.status_code == 200, told.text
    shown = where(await walk(staff, ids, with_sums), sums)
    assert set().union(*shown.values()) == sums
    assert pages <= shown.keys()
    for address, figures in shown.items():
        assert figures == with_sums[address], address


async def test_staff_get_an_answer_without_these_fields_or_a_refusal(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    await seller.orders([an_order("A-1", status="Ready to Ship")])
    staff = await joined(seller, f"staff-{seller.email}")
    today = (await staff.get("/api/today")).json()
    assert not {"sales", "listed"} & today.keys()
    assert [(one["kind"], one["money"]) for one in today["conditions"]] == [
        ("orders_to_pull", None)
    ]
    [customer] = (await staff.get("/api/customers")).json()["customers"]
    assert set(customer) == {
        "key", "buyer_name", "order_count", "first_order_at", "last_order_at",
    }  # fmt: skip
    told = (await staff.get("/api/customers/export.csv")).text.splitlines()
    assert told[0] == "buyer_name,order_count,first_order_at,last_order_at"
    assert len(told) == 2
    for path in ("/api/listed_value", "/api/v1/sales_report", "/api/sales/summary"):
        answer = await staff.get(path)
        assert (answer.status_code, answer.json()["code"]) == (403, "owner_required"), path
    assert 'href="/sales"' not in (await staff.get("/today")).text
    await seller.set(staff_see_revenue=True)
    assert 'href="/sales"' in (await staff.get("/today")).text
    assert (await staff.get("/api/today")).json()["sales"]["month"]["orders"] >= 0
    assert (await staff.get("/api/customers")).json()["customers"][0]["lifetime_total"] == "11.81"
    # The setting opens revenue and nothing else.
    assert (await staff.get("/api/account")).status_code == 403


async def test_staff_ask_for_a_sync_and_not_for_the_whole_history(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    whole = {"kind": "orders", "full_history": True}
    answer = await staff.post("/api/v1/sync/request", json=whole)
    assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
    assert not (await seller.get("/api/v1/sync/pending")).json()["sync_requested"]
    answer = await staff.post("/api/v1/sync/request", json={"kind": "orders"})
    assert answer.json() == {"status": "requested"}
    assert (await owner.post("/api/v1/sync/request", json=whole)).status_code == 200
