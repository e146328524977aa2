"""The second import of a shop that the planner knows nothing of yet, as after any first import:
each of its statements is explained while it runs, and reads no other cards than its slab's.
"""

import json
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import event

from builders import a_csv, a_row
from cardsync.platform.database.urls import libpq_url

CARDS = 600


@contextmanager
def explained(engine):
    """(statement, plan) of every statement that joins cards with a slab's rows."""
    plans = []

    def ask(_connection, _cursor, statement, parameters, *_):
        joins = "card c" in statement and "incoming i" in statement
        return (
            f"EXPLAIN (ANALYZE, TIMING off, FORMAT json) {statement}" if joins else statement
        ), parameters

    def keep(_connection, cursor, statement, *_):
        if statement.startswith("EXPLAIN"):
            told = cursor.fetchall()[0][0]
            plans.append(
                (statement, (json.loads(told) if isinstance(told, str) else told)[0]["Plan"])
            )

    event.listen(engine, "before_cursor_execute", ask, retval=True)
    event.listen(engine, "after_cursor_execute", keep)
    try:
        yield plans
    finally:
        event.remove(engine, "before_cursor_execute", ask)
        event.remove(engine, "after_cursor_execute", keep)


def cards_read(node):
    """How many cards a plan looked at, those included that a filter left out."""
    read = sum(cards_read(child) for child in node.get("Plans", ()))
    if node.get("Alias") == "c" and "Scan" in node["Node Type"]:
        left_out = sum(node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck"))
        read += (node["Actual Rows"] + left_out) * node["Actual Loops"]
    return read


@pytest.fixture
async def young_seller(a_seller, owner_url):
    """Its cards are newer than the statistics, which know other sellers' alone."""
    for _ in range(3):
        other = await a_seller()
        await other.import_csv(a_csv(*(a_row(n) for n in range(1, 201))))
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute("ANALYZE card")
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, market="1.00") for n in range(1, CARDS + 1))))
    return seller


CHANGES = {
    "prices": lambda n: a_row(n, market="1.05"),
    "names": lambda n: a_row(n, market="1.00", name=f"Renamed {n}"),
}


@pytest.mark.day
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.night
async def test_a_slab_reads_the_cards_that_are_its_own(young_seller, service, change):
    rows = [CHANGES[change](n) for n in range(1, CARDS + 1)]
    with explained(service.database.engine.sync_engine) as plans:
        report = await young_seller.import_csv(a_csv(*rows))
    assert (report["state"], report["applied"]) == ("done", CARDS)
    # A history and an update for each slab.
    assert len(plans) == 2 * CARDS / service.settings.slab_rows
    for statement, plan in plans:
        assert cards_read(plan) <= service.settings.slab_rows, (statement, plan)


@pytest.mark.day
@pytest.mark.night
async def test_what_is_gone_is_found_without_reading_the_rest(young_seller, service):
    """A few cards at the end of the shop are absent: what comes before them is not read."""
    with explained(service.database.engine.sync_engine) as plans:
        report = await young_seller.import_csv(
            a_csv(*(a_row(n, market="1.00") for n in range(1, CARDS - 19)))
        )
    assert report["gone"] == 20
    assert [cards_read(plan) <= 20 for _, plan in plans] == [True, True]
