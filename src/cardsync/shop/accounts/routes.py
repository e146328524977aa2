"""HTTP routes of an account's settings. The owner reads and changes them; keys can only read
them.
"""

from __future__ import annotations

from litestar import Router, get, patch
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_KEY, A_SESSION, A_TOKEN, BY_ANY, BY_SESSION, admitting
from cardsync.access.caller import Caller
from cardsync.platform import clock, errors, read_json
from cardsync.platform.read_json import given_fields
from cardsync.shop.accounts import account_settings
from cardsync.shop.accounts.schemas import AccountChange, AccountSettings, settings_body
from cardsync.web.request import BEHIND_A_KEY, FOR_MEMBERS, WITH_JSON_BODY, ApiRequest, problems


async def _strictly(request: ApiRequest) -> AccountChange:
    """Parse the body strictly by types, because the framework accepts "true" and 1 for true."""
    return read_json.read(await request.json(), AccountChange)


@get(
    "/account",
    opt=BY_ANY,
    security=[A_KEY, A_SESSION, A_TOKEN],
    responses=problems(*BEHIND_A_KEY, errors.OwnerRequired),
)
async def read_account(caller: Caller, session: AsyncSession) -> AccountSettings:
    """The account's settings."""
    return settings_body(await account_settings.account_of(session, caller))


@patch(
    "/account",
    opt=BY_SESSION,
    security=[A_SESSION],
    responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY, errors.OwnerRequired),
)
async def change_account(
    request: ApiRequest,
    caller: Caller,
    session: AsyncSession,
    data: AccountChange,
) -> AccountSettings:
    """Change settings of the account. Fields that are not sent keep their values."""
    data = await _strictly(request)
    values = given_fields(data)
    lines = {line.name: line.enabled for line in values.pop("product_lines", ())}
    return settings_body(await account_settings.change(session, caller, values, lines, clock.now()))


router = Router(
    path="/api",
    route_handlers=[read_account, change_account],
    middleware=[admitting],
    tags=["account"],
)
