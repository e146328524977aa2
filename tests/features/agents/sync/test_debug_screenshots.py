"""Screenshots of a cycle: where they belong, what is refused, that object and row come and go
together.
"""

import asyncio
import base64
import json
from datetime import timedelta

import pytest

from builders import a_png, log
from cardsync.operations.processes.retention import tidy
from cardsync.platform import clock
from cardsync.platform.storage import ObjectMissing
from cardsync.shop.accounts import sellers
from cardsync.tables import tenant_tables


async def send(seller, png=None, **fields):
    picture = base64.b64encode(a_png() if png is None else png).decode()
    return await seller.post("/api/v1/sync/debug", json={"screenshot": picture} | fields)


async def keep(seller, **fields):
    answer = await send(seller, **fields)
    assert (answer.status_code, answer.content, answer.headers["Content-Length"]) == (
        201,
        b"",
        "0",
    ), answer.text


async def kept(seller) -> list[dict]:
    query = """
        SELECT s.step_name, s.page_url, s.storage_key, s.size, s.captured_at, c.sync_cycle_id,
            c.status, c.placeholder, c.trigger_source
          FROM debug_screenshot s JOIN sync_cycle c ON c.seller_id = s.seller_id
              AND c.id = s.cycle_id
         WHERE s.seller_id = :id ORDER BY s.id
    """
    return await seller.service.sql(seller.id, query, id=seller.id)


async def test_a_screenshot_is_kept_with_all_that_came_along(a_seller, service):
    seller = await a_seller()
    png = a_png(30, 20, b"hello")
    fields = {
        "step_name": "export_inventory",
        "page_url": ("https://example.invalid/page?x=1"),
        "captured_at": "2026-11-20T10:00:00+01:00",
    }
    await keep(seller, png=png, sync_cycle_id="c1", **fields)
    [row] = await kept(seller)
    assert (row["step_name"], row["page_url"], row["size"]) == (
        "export_inventory",
        fields["page_url"],
        len(png),
    )
    assert clock.rfc3339(row["captured_at"]) == "2026-11-20T09:00:00Z"
    assert row["storage_key"].startswith(f"debug/u{seller.id}/")
    assert await service.work.store.read(row["storage_key"]) == png


async def test_only_the_picture_is_required(a_seller):
    seller = await a_seller()
    await log(seller)
    await keep(seller)
    await keep(
        seller,
        sync_cycle_id=None,
        step_name=None,
        page_url=None,
        captured_at="yesterday",
        later_field=1,
    )
    assert [(row["step_name"], row["captured_at"]) for row in await kept(seller)] == [
        (None, None)
    ] * 2


async def test_before_its_log_a_cycle_is_a_failed_placeholder_that_the_log_fills_in(a_seller):
    seller = await a_seller()
    await seller.get("/api/v1/sync/pending", params={"agent_id": "a"})
    await keep(seller, sync_cycle_id="c1")
    [row] = await kept(seller)
    assert (row["status"], row["placeholder"], row["trigger_source"]) == (
        "failed",
        True,
        "scheduled",
    )
    await log(seller, "partial", sync_cycle_id="c1")
    [row] = await kept(seller)
    assert (row["status"], row["placeholder"], row["trigger_source"]) == (
        "partial",
        False,
        "scheduled",
    )


async def test_after_its_log_a_cycle_stays_as_it_was_logged(a_seller):
    seller = await a_seller()
    await log(seller, "success", sync_cycle_id="c1")
    await keep(seller, sync_cycle_id="c1")
    [row] = await kept(seller)
    assert (row["status"], row["placeholder"]) == ("success", False)


async def test_without_a_cycle_it_belongs_to_the_newest(a_seller):
    seller = await a_seller()
    await log(seller, sync_cycle_id="old", started_at="2099-01-01T00:00:00Z")
    await log(seller, sync_cycle_id="new", started_at="2001-01-01T00:00:00Z")
    await keep(seller)
    assert [row["sync_cycle_id"] for row in await kept(seller)] == ["new"]


async def test_without_a_cycle_and_without_any_log_there_is_nothing_to_belong_to(a_seller, service):
    other, seller = await a_seller(), await a_seller()
    await log(other, sync_cycle_id="not yours")
    answer = await send(seller)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert await objects_of(seller) == 0


async def objects_of(seller) -> int:
    keys = await seller.service.objects(f"debug/u{seller.id}")
    return sum(key.endswith(".png") for key in keys)


async def test_two_sellers_may_use_the_same_cycle_id(a_seller):
    one, two = await a_seller(), await a_seller()
    await log(one, "success", sync_cycle_id="same")
    await keep(two, sync_cycle_id="same")
    assert [row["status"] for row in await kept(two)] == ["failed"]
    assert await kept(one) == []


async def test_a_log_and_screenshots_of_one_cycle_at_once_make_one_row(a_seller, service):
    seller = await a_seller()
    await asyncio.gather(
        keep(seller, sync_cycle_id="c1"), log(seller, sync_cycle_id="c1"),
        *(keep(seller, sync_cycle_id="c1") for _ in range(3))
    )  # fmt: skip
    assert [(row["status"], row["placeholder"]) for row in await kept(seller)] == [
        ("success", False)
    ] * 4
    assert await service.sql(seller.id, "SELECT count(*) FROM sync_cycle") == [{"count": 1}]


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"screenshot": None},
        {"screenshot": 7},
        {"screenshot": ""},
        {"screenshot": "not base64"},
        {"screenshot": base64.b64encode(b"\xff\xd8\xff\xe0 a JPEG").decode()},
        {"screenshot": base64.b64encode(a_png(8193, 1)).decode()},
        {"screenshot": base64.b64encode(a_png()).decode(), "step_name": 7},
        {"screenshot": base64.b64encode(a_png()).decode(), "sync_cycle_id": ""},
        {"screenshot": base64.b64encode(a_png()).decode(), "sync_cycle_id": "x" * 201},
    ],
    ids=lambda body: json.dumps(body)[:40],
)
async def test_the_wrong_shape_is_invalid_payload_and_leaves_nothing(a_seller, body):
    seller = await a_seller()
    await log(seller, sync_cycle_id="c1")
    answer = await seller.post("/api/v1/sync/debug", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert (await kept(seller), await objects_of(seller)) == ([], 0)


async def test_what_is_no_json_is_bad_request(a_seller):
    seller = await a_seller()
    answer = await seller.post(
        "/api/v1/sync/debug", content=a_png(), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_two_million_bytes_are_taken_and_one_more_is_too_large(a_seller):
    seller = await a_seller()
    room = 2_000_000 - len(a_png(text=b"x")) + 1
    await keep(seller, png=a_png(text=b"x" * room), sync_cycle_id="c1")
    assert [row["size"] for row in await kept(seller)] == [2_000_000]
    answer = await send(seller, png=a_png(text=b"x" * (room + 1)), sync_cycle_id="c1")
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")


async def test_without_a_key_nothing_is_read(service):
    async with service.client() as http:
        assert (await http.post("/api/v1/sync/debug", content=b"{")).status_code == 401


async def work_off(seller) -> None:
    """Sweep as a worker does sooner or later."""
    await seller.sweep()
    await seller.service.run_jobs()


@pytest.mark.day
@pytest.mark.night
async def test_screenshots_go_after_fourteen_days_row_and_object(a_seller, service):
    seller = await a_seller()
    await log(seller, sync_cycle_id="c1")
    await keep(seller, step_name="old")
    clock.shift(timedelta(days=13))
    await keep(seller, step_name="new")
    clock.shift(timedelta(days=2))
    await work_off(seller)
    assert [row["step_name"] for row in await kept(seller)] == ["new"]
    clock.shift(timedelta(days=13))
    await work_off(seller)
    assert await kept(seller) == []
    assert (await tidy(service.work))["screenshots"] >= 2
    assert await objects_of(seller) == 0
    due = await service.sql(seller.id, "SELECT * FROM work_due WHERE seller_id = :id", id=seller.id)
    assert due == []
    # The cycle itself is not a screenshot.
    assert await service.sql(seller.id, "SELECT count(*) FROM sync_cycle") == [{"count": 1}]


@pytest.mark.night
async def test_young_screenshots_are_left_alone(a_seller, service):
    seller = await a_seller()
    await keep(seller, sync_cycle_id="c1")
    clock.shift(timedelta(days=13))
    await work_off(seller)
    await tidy(service.work)
    [row] = await kept(seller)
    assert row["storage_key"] in await service.objects("debug")


async def test_erasing_a_seller_erases_its_screenshots(a_seller, service):
    seller = await a_seller()
    await keep(seller, sync_cycle_id="c1")
    [row] = await kept(seller)
    tables = [table.name for table in tenant_tables()]
    await sellers.delete_seller(service.database, service.work.store, seller.id, tables)
    with pytest.raises(ObjectMissing):
        await service.work.store.read(row["storage_key"])
