"""HTTP routes of an account's settings: its owner reads and changes them, a key reads them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import Router, get, patch
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_KEY, A_SESSION, A_TOKEN, BY_ANY, BY_SESSION, admitting
from cardsync.access.caller import Caller
from cardsync.agents.seller_state.sync_kinds import SyncMode
from cardsync.platform import clock, errors, read_json
from cardsync.shop.accounts import account_settings
from cardsync.shop.accounts.schemas import AccountSettings, LineSwitch, settings_body
from cardsync.shop.limits import SHIP_WITHIN_MOST
from cardsync.web.request import BEHIND_A_KEY, FOR_MEMBERS, WITH_JSON_BODY, ApiRequest, problems

Minutes = Annotated[int, msgspec.Meta(ge=30, le=60 * 24 * 366)]

Days = Annotated[int, msgspec.Meta(ge=1, le=SHIP_WITHIN_MOST)]


class AccountChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields to set; null takes the default. `quiet_hours` is like 22:00-06:00, in `time_zone`;
    `ship_within_days` are working days; `loss_budget` is what keys, tokens and the automatic mode
    may take off the listed value within a week, in dollars. `costing` says which lot a sold copy
    is of, and the amounts are what an order costs to send.

    Product lines that are not named stay as they are.
    """

    sync_mode: SyncMode | UnsetType = UNSET
    sync_interval_minutes: Minutes | UnsetType | None = UNSET
    quiet_hours: str | UnsetType | None = UNSET
    """No sync begins then, as 22:00-06:00 in the seller's time zone"""
    time_zone: str | UnsetType = UNSET
    auto_sync_paused: bool | UnsetType = UNSET
    automatic_pricing_paused: bool | UnsetType = UNSET
    planner_opt_in: bool | UnsetType = UNSET
    write_consent: bool | UnsetType = UNSET
    upload_approved: bool | UnsetType = UNSET
    ship_within_days: Days | UnsetType = UNSET
    tracking_threshold: str | int | float | UnsetType = UNSET
    loss_budget: str | int | float | UnsetType | None = UNSET
    costing: Literal["fifo", "average"] | UnsetType = UNSET
    """fifo: a sold copy is of the oldest lot. average: it costs the mean of all"""
    letter_postage: str | int | float | UnsetType = UNSET
    parcel_postage: str | int | float | UnsetType = UNSET
    supplies: str | int | float | UnsetType = UNSET
    direct_program: bool | UnsetType = UNSET
    staff_see_revenue: bool | UnsetType = UNSET
    attribution_logging: bool | UnsetType = UNSET
    store_name: str | UnsetType | None = UNSET
    network_consent: bool | UnsetType = UNSET
    network_published: bool | UnsetType = UNSET
    listing_url_template: str | UnsetType | None = UNSET
    postage_steps: str | UnsetType | None = UNSET
    product_lines: list[LineSwitch] | UnsetType = UNSET


async def _strictly(request: ApiRequest) -> AccountChange:
    """A setting that is not of its type is refused: the framework takes "true" and 1 for true."""
    return read_json.read(await request.json(), AccountChange)


@get(
    "/account",
    opt=BY_ANY,
    security=[A_KEY, A_SESSION, A_TOKEN],
    responses=problems(*BEHIND_A_KEY, errors.OwnerRequired),
)
async def read_account(caller: Caller, session: AsyncSession) -> AccountSettings:
    """Show the owner's settings."""
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
    """Set the fields that the body names."""
    data = await _strictly(request)
    values = {
        name: value for name, value in msgspec.structs.asdict(data).items() if value is not UNSET
    }
    lines = {line.name: line.enabled for line in values.pop("product_lines", ())}
    return settings_body(await account_settings.change(session, caller, values, lines, clock.now()))


router = Router(
    path="/api",
    route_handlers=[read_account, change_account],
    middleware=[admitting],
    tags=["account"],
)
