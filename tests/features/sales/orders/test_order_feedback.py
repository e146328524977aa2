"""POST /order_feedbacks: applied in the request, behind every upload that was accepted before."""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import replace

from builders import an_order
from cardsync.asgi import create_app
from cardsync.platform.work.jobs import ORDERS
from cardsync.platform.work.streams import hold_still


async def stored(seller, number="A-1"):
    order = await seller.stored_order(number)
    return order["feedback_rating"], order["feedback_comment"]


async def test_feedback_counts_orders_that_are_still_being_applied(a_seller):
    seller = await a_seller()
    uploads = [await seller.send("/orders", [an_order(f"A-{n}")]) for n in range(3)]
    answer = await seller.feedback(
        [
            {"order_number": "A-0", "rating": 5},
            {"order_number": "A-2", "rating": 1, "comment": "late"},
        ]
    )
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "updated": 2})
    assert await stored(seller, "A-2") == (1, "late")
    assert [(await seller.report(upload.json()["upload_id"]))["state"] for upload in uploads] == [
        "done"
    ] * 3


async def test_rows_that_cant_be_used_are_skipped(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1"), an_order("A-2")])
    answer = await seller.feedback([
        {"order_number": "A-1", "rating": 4}, {"order_number": "A-2", "rating": 6},
        {"order_number": "A-2", "rating": 0},
        {"order_number": "A-2", "rating": 4.5}, {"order_number": "A-2", "rating": True},
        {"order_number": "A-2"},
        {"order_number": "A-2", "rating": None}, {"order_number": None, "rating": 5}, {"rating": 5},
        "A-2", None, {"order_number": "nobody's", "rating": 5},
    ])  # fmt: skip
    assert answer.json() == {"status": "ok", "updated": 1}
    assert await stored(seller, "A-2") == (None, None)


async def test_an_order_counts_once_and_the_last_row_wins(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    rows = [
        {"order_number": "A-1", "rating": 2, "comment": "first"},
        {"order_number": "A-1", "rating": "5"},
    ]
    assert (await seller.feedback(rows)).json()["updated"] == 1
    assert await stored(seller) == (5, "first")
    # The same again is no new feedback, and yet the order received some.
    assert (await seller.feedback(rows)).json()["updated"] == 1


async def test_an_absent_comment_stays_and_null_clears_it(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    await seller.feedback([{"order_number": "A-1", "rating": 3, "comment": "a\0b"}])
    assert await stored(seller) == (3, "a\ufffdb")
    await seller.feedback(
        [{"order_number": "A-1", "rating": 4}, {"order_number": "A-1", "rating": 4, "comment": 12}]
    )
    assert await stored(seller) == (4, "a\ufffdb")
    await seller.feedback([{"order_number": "A-1", "rating": 4, "comment": None}])
    assert await stored(seller) == (4, None)


async def test_gzip_is_taken_and_an_object_is_not(a_seller):
    seller = await a_seller()
    await seller.orders([an_order("A-1")])
    body = json.dumps([{"order_number": "A-1", "rating": 5}]).encode()
    answer = await seller.post("/api/v1/order_feedbacks", content=gzip.compress(body))
    assert answer.json() == {"status": "ok", "updated": 1}
    answer = await seller.feedback({"order_number": "A-1", "rating": 5})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


async def test_feedback_before_its_order_is_skipped(a_seller):
    seller = await a_seller()
    assert (await seller.feedback([{"order_number": "A-1", "rating": 5}])).json()["updated"] == 0
    await seller.orders([an_order("A-1")])
    assert await stored(seller) == (None, None)


async def test_feedback_waits_only_so_long_for_what_another_is_applying(service, a_seller, alive):
    seller = await a_seller()
    upload = (await seller.send("/orders", [an_order("A-1")])).json()["upload_id"]
    app = create_app(service.settings.model_copy(update={"feedback_wait_seconds": 0.3}))
    async with alive(app), service.database.tenant(seller.id) as session:
        await hold_still(session, seller.id, ORDERS)
        impatient = replace(service, app=app)
        async with impatient.client(Authorization=f"Bearer {seller.api_key}") as http:
            answer = await http.post(
                "/api/v1/order_feedbacks", json=[{"order_number": "A-1", "rating": 5}]
            )
    assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert (await seller.feedback([{"order_number": "A-1", "rating": 5}])).json()["updated"] == 1
    assert (await seller.report(upload))["state"] == "done"


async def test_many_callers_at_once_all_see_the_orders(a_seller):
    callers = 24
    seller = await a_seller()
    await seller.send("/orders", [an_order(f"A-{n}") for n in range(200)])
    rows = [{"order_number": f"A-{n}", "rating": 5} for n in range(200)]
    answers = await asyncio.gather(*(seller.feedback(rows) for _ in range(callers)))
    assert [answer.json() for answer in answers] == [{"status": "ok", "updated": 200}] * callers
