"""Each end of a pricing has the effects of the one list (`decisions/ended.py`), whatever wrote the
prices or targets, and however it ended: it marks the kept figures of `OF_PRICES` as out of date,
stores the price file's fingerprint, and gives the sync app its task where it asks other prices.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from builders import a_csv, a_row, cancel, undo_newest
from cardsync.imports.drain import work_off_one
from cardsync.platform import clock
from cardsync.platform.derived.kept_figures import OF_PRICES, Figure
from cardsync.prices.engine import engine
from cardsync.prices.recommendations.generate import RECOMMENDATIONS
from cardsync.prices.rollback import apply_imported_prices
from market_builder import ago
from rollbacks_builder import a_rule, newest_run, ready
from stopped_workers import stopped
from world import exported

ROWS = a_csv(
    a_row(1, market="20.00", low="20.00", price="10.00"),
    a_row(2, market="10.00", low="10.00", price="9.00"),
)


async def an_import(seller):
    await seller.import_csv(ROWS)


async def an_import_with_a_run(seller):
    await a_rule(seller, query="quantity>0", name="With a query")
    await seller.import_csv(ROWS)


async def a_file_that_is_lost(seller):
    upload = (await seller.upload(ROWS)).json()["upload_id"]
    for key in await seller.service.objects():
        await seller.service.work.store.delete(key)
    await seller.service.run_jobs()
    assert (await seller.report(upload))["state"] == "failed"


async def a_cancelled_import(seller):
    await seller.upload(a_csv(a_row(1, market="21.00", price="10.00")))
    async with stopped(seller, work_off_one(seller.service.work, seller.id), [1], 0) as worker:
        assert (await cancel(seller))[0] == 202
    await worker
    await seller.service.run_jobs()


async def a_run(seller):
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    await seller.service.run_jobs()


async def a_run_that_fails(seller):
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(engine, "price", lambda *_: 1 / 0)
        await a_run(seller)
    [newest, *_] = (await seller.get("/api/pricing/runs")).json()["runs"]
    assert newest["state"] == "failed"


async def a_report(seller):
    body = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 1,
        "rows": [{"marketplace_id": 2, "old_price": "9.00", "new_price": "9.90"}],
    }
    answer = await seller.post("/api/v1/repricing_events", json=body)
    assert answer.status_code == 201, answer.text


async def imported_prices(seller):
    await a_report(seller)
    await seller.service.run_jobs()


async def imported_prices_that_fail(seller):
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(apply_imported_prices, "unpack", lambda _: 1 / 0)
        await imported_prices(seller)
    query = "SELECT error FROM repricing_event WHERE seller_id = :id"
    [event] = await seller.service.sql(seller.id, query, id=seller.id)
    assert event["error"]["code"] == "internal_error"


async def an_accepted_review(seller):
    [waiting] = (await seller.get("/api/pricing/reviews")).json()["reviews"]
    said = {name: waiting[name] for name in ("marketplace_id", "revision")}
    answer = await seller.post("/api/pricing/reviews/accept", json={"reviews": [said]})
    assert answer.status_code == 200, answer.text


async def an_acceptance_that_is_taken_back(seller):
    await an_accepted_review(seller)
    await forgotten(seller)
    answer = await undo_newest(seller, "pricing.review_accepted")
    assert answer.status_code == 200, answer.text


async def a_typed_price(seller):
    answer = await seller.http.put("/api/pricing/pins/2", json={"price": "9.50"})
    assert answer.status_code == 200, answer.text


async def a_typed_price_that_is_taken_back(seller):
    await a_typed_price(seller)
    await forgotten(seller)
    assert (await undo_newest(seller, "pricing.pinned")).status_code == 200


async def many_typed_prices(seller):
    answer = await seller.post("/api/pricing/pins/pin_many", json={"marketplace_ids": [1, 2]})
    assert answer.json()["changed"] == 2, answer.text


async def a_promotion(seller):
    now = clock.now()
    times = {"starts_at": clock.rfc3339(now), "ends_at": clock.rfc3339(now + timedelta(hours=1))}
    sale = {"name": "A tenth off", "adjust_bp": -1_000} | times
    assert (await seller.post("/api/pricing/sales", json=sale)).status_code == 201
    clock.shift(timedelta(minutes=1))
    await seller.sweep()
    await seller.service.run_jobs()


async def a_plan(seller):
    pin = {"type": "pricing.pins", "set": [{"marketplace_id": 2, "price": "9.85"}]}
    plan = await seller.post("/api/v1/agent/plans", json={"actions": [pin]})
    assert (plan.status_code, plan.json()["status"]) == (201, "applied"), plan.text


async def an_applied_rollback(seller):
    await ready(seller, run_id=await newest_run(seller))
    file = await seller.export()
    body = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": file.text.count("\n") - 1,
        "file_sha256": hashlib.sha256(file.content).hexdigest(),
    }
    answer = await seller.post("/api/v1/repricing_events", json=body)
    assert answer.status_code == 201, answer.text
    await seller.service.run_jobs()
    [rollback] = (await seller.get("/api/pricing/rollbacks")).json()["rollbacks"]
    assert rollback["state"] == "applied"


async def an_accepted_suggestion(seller):
    await a_rule(seller, name="As it is", price_source="current", priority=1)
    await an_import(seller)
    await RECOMMENDATIONS.work_off(seller.service.work, seller.id)
    [one, *_] = (await seller.get("/api/recommendations")).json()["recommendations"]
    await forgotten(seller)
    path = f"/api/recommendations/{one['id']}/accept"
    answer = await seller.post(path, json={"revision": one["revision"]})
    assert answer.status_code == 200, answer.text


async def a_suggestion_that_is_taken_back(seller):
    await an_accepted_suggestion(seller)
    await forgotten(seller)
    assert (await undo_newest(seller, "recommendations.accepted")).status_code == 200


# After these the price file has prices for which the sync app has no task.
PUSHING = [
    an_import, an_import_with_a_run, an_accepted_review, an_acceptance_that_is_taken_back,
    a_typed_price, a_typed_price_that_is_taken_back, many_typed_prices, a_promotion, a_plan,
    an_accepted_suggestion, a_suggestion_that_is_taken_back,
]  # fmt: skip
ENDS = [
    *PUSHING, a_file_that_is_lost, a_cancelled_import, a_run, a_run_that_fails, imported_prices,
    imported_prices_that_fail, an_applied_rollback,
]  # fmt: skip


async def forgotten(seller) -> None:
    """No figure is marked, none was ever refreshed, and the sync app has nothing to do."""
    due = "DELETE FROM work_due WHERE seller_id = :id AND stream = ANY (:figures)"
    await seller.service.sql(seller.id, due, id=seller.id, figures=[*OF_PRICES])
    kept = "DELETE FROM shop_figures WHERE seller_id = :id"
    await seller.service.sql(seller.id, kept, id=seller.id)
    await seller.applied()


async def marked(seller) -> set[str]:
    """The figures that were marked; those of the stock are refreshed at once."""
    query = "SELECT stream FROM work_due WHERE seller_id = :id AND stream = ANY (:figures)"
    rows = await seller.service.sql(seller.id, query, id=seller.id, figures=[*OF_PRICES])
    kept = await seller.service.sql(
        seller.id, "SELECT FROM shop_figures WHERE seller_id = :id", id=seller.id
    )
    return {row["stream"] for row in rows} | ({Figure.STOCK} if kept else set())


@pytest.fixture
async def seller(a_seller):
    """A shop with a price that waits for a review."""
    seller = await a_seller()
    limits = {"review_up_bp": 5_000}
    assert (await seller.http.patch("/api/pricing/settings", json=limits)).status_code == 200
    await seller.import_csv(ROWS, **{"X-Exported-At": ago(minutes=10)})
    await forgotten(seller)
    return seller


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_each_end_has_the_effects_of_the_list(seller, end):
    file, fingerprint = await exported(seller), await seller.fingerprint()
    await end(seller)
    assert await marked(seller) == {*OF_PRICES}
    tasks = "SELECT FROM agent_task WHERE seller_id = :id AND kind = :kind AND status = 'pending'"
    waits = await seller.service.sql(seller.id, tasks, id=seller.id, kind="apply_price_updates")
    assert bool(waits) == (end in PUSHING)
    stored = await seller.fingerprint()
    assert stored is not None
    assert stored != fingerprint or await exported(seller) == file


def stored(tree: ast.AST) -> Iterator[str]:
    """What is stored as the export's fingerprint in a module, but for None."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr == "export_fingerprint":
                yield ast.unparse(node.value)
        if isinstance(node, ast.keyword) and node.arg == "export_fingerprint":
            yield ast.unparse(node.value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for said in node.value.split("export_fingerprint = ")[1:]:
                yield said.split()[0].rstrip(",").replace("NULL", "None")


def test_nothing_else_stores_the_exports_fingerprint():
    naming = [
        path for path in Path("src").rglob("*.py") if "export_fingerprint" in path.read_text()
    ]
    found = {
        path.name: [value for value in stored(ast.parse(path.read_text())) if value != "None"]
        for path in naming
    }
    assert {name: values for name, values in found.items() if values} == {
        "exported.py": ["exported"]
    }
