"""Rollbacks asked for over HTTP, and what the agent gets: for the tests of rollbacks and of what
agents report.
"""

from __future__ import annotations

from builders import a_csv, a_row
from world import exported

ROLLBACKS = "/api/pricing/rollbacks"
RULES = "/api/pricing/rules"


def rows(prices, market="2.00"):
    return a_csv(*(a_row(n, market=market, price=price) for n, price in prices.items()))


async def a_rule(seller, **fields):
    answer = await seller.post(RULES, json={"name": "A rule", "state": "published"} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def newest_run(seller):
    return (await seller.get("/api/pricing/runs")).json()["runs"][0]["id"]


async def repriced(seller):
    answer = await seller.post("/api/pricing/reprice")
    assert answer.status_code == 202, answer.text
    await seller.service.run_jobs()
    return answer.json()["run_id"]


async def ask(seller, **scope):
    answer = await seller.post(ROLLBACKS, json=scope)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def ready(seller, **scope):
    """Asked for and prepared."""
    rollback = await ask(seller, **scope)
    await seller.service.run_jobs()
    return await read(seller, rollback["id"])


async def read(seller, id):
    answer = await seller.get(f"{ROLLBACKS}/{id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def cancel(seller, id):
    return await seller.post(f"{ROLLBACKS}/{id}/cancel")


async def tasks(seller):
    query = (
        "SELECT kind, status, payload FROM agent_task"
        " WHERE seller_id = :id AND kind = 'apply_rollback' ORDER BY id"
    )
    return [
        (row["status"], row["payload"])
        for row in await seller.service.sql(seller.id, query, id=seller.id)
    ]


async def a_pushed_run(a_seller, cards=3, **options):
    """A run whose prices are on the marketplace, as the next upload shows; the run's id.

    So many cards do not move by half.
    """
    before = "1.00" if cards < 50 else "1.50"
    seller = await a_seller(**options)
    await seller.import_csv(rows(dict.fromkeys(range(1, cards + 1), before)))
    run = await newest_run(seller)
    await seller.import_csv(rows(dict.fromkeys(range(1, cards + 1), "1.98")))
    assert await exported(seller) == {}
    return seller, run
