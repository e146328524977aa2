"""HTTP routes of repairs of the agent's workflows."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import Router, post
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.errors import CorrectionDisabled
from cardsync.agents.repairs import corrections
from cardsync.agents.repairs.heal import HealRequest, Selector, heal
from cardsync.agents.repairs.schemas import (
    CachedRepair,
    ConfirmedRepair,
    FailedRepair,
    NoRepair,
    ProposedRepair,
)
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.web.request import FOR_AGENTS, WITH_JSON_BODY, problems

RowId = Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)]
Text = Annotated[str, msgspec.Meta(max_length=2_000)]


class VerifiedRepair(msgspec.Struct, kw_only=True):
    """Confirms a selector, which may differ from the proposed selector; `heal_id` or
    `correction_id` names the repair.
    """

    heal_id: RowId | None = None
    correction_id: RowId | None = None
    selector: Selector
    """The selector that worked"""
    verified: Literal[True]


class RepairError(msgspec.Struct, kw_only=True):
    code: Text | None = None
    message: Text | None = None


class RepairFailure(msgspec.Struct, kw_only=True):
    error: Text | RepairError | None = None


@post("/workflow/heal", status_code=200, responses=problems(*FOR_AGENTS, *WITH_JSON_BODY))
async def request_heal(
    caller: Caller,
    database: Database,
    store: Store,
    settings: Settings,
    data: HealRequest,
) -> CachedRepair | ProposedRepair | NoRepair:
    """Request a new selector for a selector that no longer finds its element.

    The snippet is only parsed and compared, never run.
    """
    return await heal(database, caller, store, settings, data, clock.now())


@post(
    "/workflow/corrections",
    status_code=201,
    responses=problems(*FOR_AGENTS, *WITH_JSON_BODY, errors.NotFound, CorrectionDisabled),
)
async def confirm_correction(
    caller: Caller,
    session: AsyncSession,
    data: VerifiedRepair,
) -> ConfirmedRepair:
    """Report that the step worked with a selector; from now on it is served as cached."""
    verified = await corrections.verify(
        session,
        caller,
        data.heal_id,
        data.correction_id,
        data.selector,
        clock.now(),
    )
    return ConfirmedRepair(verified)


@post(
    "/workflow/corrections/{correction_id:int}/failure",
    status_code=200,
    responses=problems(*FOR_AGENTS, *WITH_JSON_BODY, errors.NotFound),
)
async def report_failure(
    caller: Caller,
    session: AsyncSession,
    correction_id: int,
    data: RepairFailure | None = None,
) -> FailedRepair:
    """Report that a correction did not work; the third report disables it for good."""
    error = data.error if data else None
    if isinstance(error, RepairError):
        error = ": ".join(part for part in (error.code, error.message) if part)
    return await corrections.fail(session, caller, correction_id, error, clock.now())


router = Router(
    path="",
    route_handlers=[request_heal, confirm_correction, report_failure],
    tags=["agent work"],
)
