"""The page of rule tests: each test with its search, its expectation and its result on the cards;
and the forms that make, change and delete a test.
"""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import again, post_form
from cardsync.dashboard.messages import message
from cardsync.dashboard.pages.pricing import show_part
from cardsync.dashboard.shell import PageRequest, see
from cardsync.platform import clock, errors
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.prices.rule_tests import rule_tests
from cardsync.prices.rule_tests.schemas import RuleTestShown
from cardsync.web.forms import Form, read_form
from cardsync.web.request import provide_heavy, reading

FIELDS = ("name", "search", "expectation")


@get("/pricing/tests")
async def tests_page(
    request: PageRequest,
    caller: Caller,
) -> Template:
    return await _shown(request, caller)


async def _shown(
    request: PageRequest,
    caller: Caller,
    _: AsyncSession | None = None,
    problem: errors.Problem | None = None,
) -> Template:
    """Show the tests; with the parameter `check`, also each test's result on the cards."""
    checked = None
    async with reading(request) as reads:
        tests = [struct_of(RuleTestShown, row) for row in await rule_tests.read_all(reads, caller)]
    if request.query_params.get("check"):
        now, heavy = clock.now(), provide_heavy(request.app.state)
        checked = await heavy.read(rule_tests.verdicts_now, caller, Work.PRICES_ALL, now)
    return show_part(
        request,
        caller,
        "pricing_tests.html",
        problem=problem,
        tests=tests,
        checked=checked,
        verdicts={verdict.id: verdict for verdict in checked.rule_tests} if checked else {},
        **read_form(request).some(*FIELDS),
    )


@post_form(
    "/pricing/tests",
    exception_handlers=again(_shown, errors.InvalidPayload, errors.InvalidQuery),
)
async def make_test(caller: Caller, form: Form, bounded: AsyncSession) -> Response[str]:
    await rule_tests.create(bounded, caller, form.some(*FIELDS), clock.now())
    return see("/pricing/tests", done=message("test_made"), check=1)


@post_form("/pricing/tests/{test_id:int}")
async def change_test(
    caller: Caller, form: Form, bounded: AsyncSession, test_id: int
) -> Response[str]:
    """Change or delete a test, depending on the form's button."""
    if form["action"] == "delete":
        await rule_tests.remove(bounded, caller, test_id, clock.now())
        return see("/pricing/tests", done=message("test_deleted"))
    body = form.some(*FIELDS)
    await rule_tests.change(bounded, caller, test_id, body, clock.now())
    return see("/pricing/tests", done=message("test_changed"), check=1)


ROUTES = [tests_page, make_test, change_test]
