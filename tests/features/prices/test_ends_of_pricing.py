"""Each end of a pricing marks the same kept figures as out of date: those of `OF_PRICES`, whatever
wrote the prices or targets, and however it ended. Who stores the export's fingerprint ends one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import a_csv, a_row, cancel, undo_newest
from cardsync.imports.drain import work_off_one
from cardsync.platform import clock
from cardsync.platform.derived.kept_figures import OF_PRICES, Figure
from cardsync.prices.engine import engine
from cardsync.prices.rollback import apply_imported_prices
from market_builder import ago
from rollbacks_builder import a_rule
from stopped_workers import stopped

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


ENDS = [
    an_import, an_import_with_a_run, a_file_that_is_lost, a_cancelled_import, a_run,
    a_run_that_fails, imported_prices, imported_prices_that_fail, an_accepted_review,
    an_acceptance_that_is_taken_back,
]  # fmt: skip


async def forgotten(seller) -> None:
    """No figure is marked, and none was ever refreshed."""
    due = "DELETE FROM work_due WHERE seller_id = :id AND stream = ANY (:figures)"
    await seller.service.sql(seller.id, due, id=seller.id, figures=[*OF_PRICES])
    kept = "DELETE FROM shop_figures WHERE seller_id = :id"
    await seller.service.sql(seller.id, kept, id=seller.id)


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
async def test_each_end_marks_the_figures_of_prices(seller, end):
    await end(seller)
    assert await marked(seller) == {*OF_PRICES}


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
