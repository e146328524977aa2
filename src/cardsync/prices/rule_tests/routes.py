"""HTTP routes of rule tests: read, make, change and delete them, and check all of them on the
cards.
"""

from __future__ import annotations

from typing import Annotated

from litestar import Router, delete, get, patch, post
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_READING_TOKEN, READS
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.value_types import JsonObject
from cardsync.prices.rule_tests import rule_tests
from cardsync.prices.rule_tests.schemas import (
    RuleTestList,
    RuleTestShown,
    RuleTestVerdicts,
)
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import FOR_OWNERS, READ_BY_OWNERS, WITH_JSON_BODY, Deleted, problems

Body = JsonObject
WRITING = (*FOR_OWNERS, *WITH_JSON_BODY, errors.InvalidQuery)


@get("/rule_tests", responses=problems(*READ_BY_OWNERS))
async def list_rule_tests(caller: Caller, session: AsyncSession) -> RuleTestList:
    """List the rule tests, oldest first."""
    found = await rule_tests.read_all(session, caller)
    return RuleTestList([struct_of(RuleTestShown, row) for row in found])


@post("/rule_tests", opt=WRITES, responses=problems(*WRITING))
async def create_rule_test(
    caller: Caller,
    session: AsyncSession,
    data: Annotated[Body, Like(rule_tests.RuleTestFields, "name", "expectation")],
) -> RuleTestShown:
    """Create a rule test from `name`, `expectation` and, unless the test is for every card,
    `search`.
    """
    return struct_of(RuleTestShown, await rule_tests.create(session, caller, data, clock.now()))


@patch(
    "/rule_tests/{test_id:int}",
    opt=WRITES,
    responses=problems(*WRITING, errors.NotFound, errors.RefusedByGrant),
)
async def change_rule_test(
    caller: Caller,
    session: AsyncSession,
    test_id: int,
    data: Annotated[Body, Like(rule_tests.RuleTestFields)],
) -> RuleTestShown:
    """Set the fields that the body names."""
    return struct_of(
        RuleTestShown, await rule_tests.change(session, caller, test_id, data, clock.now())
    )


@delete(
    "/rule_tests/{test_id:int}",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_OWNERS, errors.NotFound, errors.RefusedByGrant),
)
async def delete_rule_test(caller: Caller, session: AsyncSession, test_id: int) -> Deleted:
    """Delete a rule test, so that it refuses no rule any more."""
    await rule_tests.remove(session, caller, test_id, clock.now())
    return Deleted(True)


@post(
    "/rule_tests/check",
    status_code=200,
    opt=READS,
    security=[A_READING_TOKEN],
    responses=problems(*FOR_OWNERS),
)
async def check_rule_tests(caller: Caller, heavy: HeavyWork) -> RuleTestVerdicts:
    """Check every rule test on all cards that it selects, as if all draft rules were published.
    Nothing is written.
    """
    return await heavy.read(rule_tests.verdicts_now, caller, Work.PRICES_ALL, clock.now())


router = Router(
    path="/pricing",
    route_handlers=[
        list_rule_tests,
        create_rule_test,
        change_rule_test,
        delete_rule_test,
        check_rule_tests,
    ],
    tags=["pricing"],
)
