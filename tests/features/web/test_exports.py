"""Tables as CSV files: the same rows as the reads, whatever a spreadsheet makes of their texts."""

from __future__ import annotations

import csv
import io

import pytest

from browsers import joined, signed_in
from builders import a_row, a_shop, an_order
from cardsync.platform.kit.safe_texts import safe
from cardsync.sales.orders import as_csv as of_orders


@pytest.fixture
async def shop(a_seller):
    seller = await a_shop(a_seller, a_row(1, price="1.00", market="2.00"))
    orders = [
        an_order(number=f"A-{n}", status="Shipped" if n % 2 else "Ready to Ship", buyer_name=name)
        for n, name in enumerate(("=1+1", "Bea", "@cmd", "Zoë", "Bea"))
    ]
    await seller.orders(orders)
    return seller


async def rows_of(http, path, **query):
    answer = await http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    return list(csv.DictReader(io.StringIO(answer.text)))


async def test_orders_are_those_of_the_read_in_parts_of_any_size(shop, monkeypatch):
    everything = await rows_of(shop, "/api/orders/export.csv")
    told = (await shop.get("/api/orders")).json()["orders"]
    assert {row["id"]: row["total_amt"] for row in everything} == {
        str(order["id"]): order["total_amt"] or "" for order in told
    }
    monkeypatch.setattr(of_orders, "PART", 2)
    assert await rows_of(shop, "/api/orders/export.csv") == everything


async def test_the_filters_of_the_read_narrow_it(shop):
    shipped = await rows_of(shop, "/api/orders/export.csv", status="Shipped")
    assert {row["status"] for row in shipped} == {"Shipped"}
    found = await rows_of(shop, "/api/orders/export.csv", search="zoë")
    assert [row["buyer_name"] for row in found] == ["Zoë"]
    wrong = await shop.get("/api/orders/export.csv?date_from=soon")
    assert wrong.json()["code"] == "invalid_payload"
    unknown = await shop.get("/api/orders/export.csv?pull_session=77")
    assert unknown.status_code == 422


async def test_no_text_is_a_formula(shop):
    names = {row["buyer_name"] for row in await rows_of(shop, "/api/orders/export.csv")}
    assert {"'=1+1", "'@cmd", "Bea"} <= names
    customers = await rows_of(shop, "/api/customers/export.csv")
    assert {row["buyer_name"] for row in customers} == {"'=1+1", "Bea", "'@cmd", "Zoë"}
    assert {"order_count": "2"}.items() <= next(
        row for row in customers if row["buyer_name"] == "Bea"
    ).items()
    assert [safe(text) for text in ("-1.50", "-x", "+1", "a")] == [
        "-1.50", "'-x", "'+1", "a",
    ]  # fmt: skip


async def test_lists_activity_and_runs_come_too(shop):
    owner = await signed_in(shop)
    await owner.post("/api/lists", json={"name": "=Binder"})
    [one] = await rows_of(owner, "/api/lists/export.csv")
    assert (one["name"], one["card_count"]) == ("'=Binder", "0")
    entries = await rows_of(owner, "/api/v1/agent/activity/export.csv", action="list")
    assert [(row["action"], row["undone_by"]) for row in entries] == [("list.created", "")]
    assert '"name": "=Binder"' in entries[0]["after"]
    runs = await rows_of(owner, "/api/pricing/runs/export.csv")
    told = (await owner.get("/api/pricing/runs")).json()["runs"]
    assert [row["id"] for row in runs] == [str(run["id"]) for run in told]


async def test_the_pages_link_their_files(shop):
    staff = await joined(shop, "exporting@example.invalid")
    page = await staff.get("/orders", params={"status": "Shipped", "sort": "total"})
    assert 'href="/orders/export.csv?status=Shipped"' in page.text
    assert len(await rows_of(staff, "/orders/export.csv", status="Shipped")) == 2
    for path in ("/customers", "/activity"):
        assert f'href="{path}/export.csv' in (await staff.get(path)).text
        assert await rows_of(staff, f"{path}/export.csv")
    [entry, *_] = await rows_of(staff, "/activity/export.csv")
    assert entry["after"] == ""
    await staff.post("/api/lists", json={"name": "Mine"})
    assert 'href="/lists/export.csv"' in (await staff.get("/lists")).text
    assert await rows_of(staff, "/lists/export.csv")
    assert await rows_of(staff, "/pricing/runs/export.csv")
    signed_out = await shop.service.client().get("/orders/export.csv")
    assert signed_out.headers["location"] == "/sign-in?next=/orders/export.csv"
