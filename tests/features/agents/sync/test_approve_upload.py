"""The one upload that a seller approves from a read-only account: the heartbeat announces it, and
the agent clears it.
"""

import asyncio

import pytest


async def approved(seller) -> bool:
    return (await seller.post("/api/v1/heartbeat")).json()["upload_approved"]


async def clear(seller, **options):
    return await seller.http.request("DELETE", "/api/v1/sync/approve_upload", **options)


@pytest.mark.parametrize("sync_mode", ["full", "read_only"])
async def test_the_agent_clears_the_approval_once_it_has_uploaded(a_seller, sync_mode):
    seller = await a_seller(sync_mode=sync_mode, upload_approved=True)
    assert await approved(seller)
    answer = await clear(seller)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "upload_approved": False})
    assert not await approved(seller)


async def test_clearing_what_is_clear_is_the_same(a_seller):
    seller = await a_seller()
    for _ in range(2):
        answer = await clear(seller)
        assert (answer.status_code, answer.json()) == (
            200,
            {"status": "ok", "upload_approved": False},
        )


async def test_two_that_clear_at_once_are_both_told_so(a_seller):
    seller = await a_seller(upload_approved=True)
    answers = await asyncio.gather(*(clear(seller) for _ in range(2)))
    assert [answer.json()["upload_approved"] for answer in answers] == [False, False]
    assert not await approved(seller)


async def test_a_body_is_ignored(a_seller):
    seller = await a_seller(upload_approved=True)
    assert (await clear(seller, content=b"not json")).status_code == 200


async def test_an_approval_may_come_again(a_seller):
    seller = await a_seller(upload_approved=True)
    await clear(seller)
    await seller.set(upload_approved=True)
    assert await approved(seller)


async def test_an_approval_that_the_plan_hides_is_cleared_too(a_seller):
    seller = await a_seller(plan="free", upload_approved=True)
    assert not await approved(seller)
    await clear(seller)
    await seller.set(plan="paid")
    assert not await approved(seller)


async def test_another_sellers_approval_stays(a_seller):
    one, other = await a_seller(upload_approved=True), await a_seller(upload_approved=True)
    await clear(one)
    assert await approved(other)


async def test_it_needs_a_key(service):
    async with service.client() as http:
        assert (await http.delete("/api/v1/sync/approve_upload")).status_code == 401
