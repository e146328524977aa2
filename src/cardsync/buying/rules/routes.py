"""HTTP routes of buy rules: read, create, change and delete rules, apply a preset, and create,
delete and run rule tests.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch, post
from litestar.types import ControllerRouterHandler
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_READING_TOKEN, READS
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.buying.rules import buy_rule_sets, buy_rule_tests
from cardsync.buying.rules.buy_rule_json import BuyRuleFields, BuyRuleShown
from cardsync.buying.rules.buy_rule_tests import (
    BuyRuleTestList,
    BuyRuleTestShown,
    BuyRuleVerdicts,
)
from cardsync.platform import clock, errors
from cardsync.platform.described import Like
from cardsync.platform.value_types import JsonObject
from cardsync.web.request import (
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    Deleted,
    problems,
)

Body = JsonObject


class BuyRuleList(msgspec.Struct):
    rules: list[BuyRuleShown]
    """The buy rules, by priority"""


WRITING = (*FOR_OWNERS, *WITH_JSON_BODY, errors.InvalidRule, errors.InvalidQuery)
TESTING = (*FOR_OWNERS, *WITH_JSON_BODY, errors.InvalidQuery)


@get("/rules", responses=problems(*READ_BY_OWNERS))
async def list_buy_rules(caller: Caller, session: AsyncSession) -> BuyRuleList:
    """The buy rules, by priority. A card is bought by the first published and enabled rule that
    selects it.
    """
    return BuyRuleList(await buy_rule_sets.read_all(session, caller))


@post("/rules", opt=WRITES, responses=problems(*WRITING))
async def create_buy_rule(
    caller: Caller, session: AsyncSession, data: Annotated[Body, Like(BuyRuleFields, "name")]
) -> BuyRuleShown:
    """Create a buy rule. By default it is a draft, with a priority before the preset's rule."""
    return await buy_rule_sets.create(session, caller, data, clock.now())


@get("/rules/{rule_id:int}", responses=problems(*READ_BY_OWNERS, errors.NotFound))
async def read_buy_rule(caller: Caller, session: AsyncSession, rule_id: int) -> BuyRuleShown:
    """One buy rule."""
    return await buy_rule_sets.read_one(session, caller, rule_id)


@patch("/rules/{rule_id:int}", opt=WRITES, responses=problems(*WRITING, errors.NotFound))
async def change_buy_rule(
    caller: Caller,
    session: AsyncSession,
    rule_id: int,
    data: Annotated[Body, Like(BuyRuleFields)],
) -> BuyRuleShown:
    """Change a buy rule. Fields that are not sent keep their values."""
    return await buy_rule_sets.change(session, caller, rule_id, data, clock.now())


@delete(
    "/rules/{rule_id:int}",
    status_code=200,
    responses=problems(*FOR_OWNERS, errors.NotFound),
)
async def delete_buy_rule(caller: Caller, session: AsyncSession, rule_id: int) -> Deleted:
    """Delete a buy rule. Offers that it has priced keep their prices."""
    await buy_rule_sets.remove(session, caller, rule_id, clock.now())
    return Deleted(True)


@post(
    "/presets/{preset:str}",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_OWNERS, errors.NotFound),
)
async def apply_buy_preset(caller: Caller, session: AsyncSession, preset: str) -> BuyRuleShown:
    """Create the rule of the preset conservative, standard or hungry. It replaces the rule of an
    earlier preset.
    """
    return await buy_rule_sets.apply_preset(session, caller, preset, clock.now())


@get("/rule_tests", responses=problems(*READ_BY_OWNERS))
async def list_buy_rule_tests(caller: Caller, session: AsyncSession) -> BuyRuleTestList:
    """The rule tests of buying, oldest first."""
    return await buy_rule_tests.read_all(session, caller)


@post("/rule_tests", opt=WRITES, responses=problems(*TESTING))
async def create_buy_rule_test(
    caller: Caller,
    session: AsyncSession,
    data: Annotated[Body, Like(buy_rule_tests.BuyRuleTestFields, "name", "expectation")],
) -> BuyRuleTestShown:
    """Create a rule test, with `name` and `expectation`. Without `search`, it tests all cards."""
    return await buy_rule_tests.create(session, caller, data, clock.now())


@delete(
    "/rule_tests/{test_id:int}",
    status_code=200,
    responses=problems(*FOR_OWNERS, errors.NotFound),
)
async def delete_buy_rule_test(caller: Caller, session: AsyncSession, test_id: int) -> Deleted:
    """Delete a rule test."""
    await buy_rule_tests.remove(session, caller, test_id, clock.now())
    return Deleted(True)


@post(
    "/rule_tests/check",
    status_code=200,
    opt=READS,
    security=[A_READING_TOKEN],
    responses=problems(*FOR_OWNERS),
)
async def check_buy_rule_tests(caller: Caller, session: AsyncSession) -> BuyRuleVerdicts:
    """Run all rule tests on the prices that the rules would pay if all drafts were published."""
    return await buy_rule_tests.check(session, caller, clock.now())


HANDLERS: list[ControllerRouterHandler] = [
    list_buy_rules,
    create_buy_rule,
    read_buy_rule,
    change_buy_rule,
    delete_buy_rule,
    apply_buy_preset,
    list_buy_rule_tests,
    create_buy_rule_test,
    delete_buy_rule_test,
    check_buy_rule_tests,
]
router = Router(path="/buying", route_handlers=HANDLERS, tags=["buying"])
