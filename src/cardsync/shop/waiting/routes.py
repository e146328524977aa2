"""HTTP routes of the decisions that wait for the owner: their list, and the answer to a
decision.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, get, post
from litestar.di import Provide
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors
from cardsync.platform.described import Like
from cardsync.platform.kit.row_pages import OF_CARDS, read_paging
from cardsync.platform.read_json import read
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json
from cardsync.prices.errors import MarketEvidenceChanged, NotEligible
from cardsync.prices.plans.request_writer import WRITING_SEEN
from cardsync.prices.plans.writer import Writer
from cardsync.shop.waiting import all_waiting, decide_waiting
from cardsync.shop.waiting.all_waiting import Answer, Kind
from cardsync.shop.waiting.schemas import DecidedItem, WaitingList, decided_body, list_of, shown
from cardsync.web.own_queries import PageNumber, PerPage
from cardsync.web.request import (
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    problems,
    provide_bounded_session,
)


@get(
    "/waiting",
    responses=problems(*READ_BY_OWNERS, errors.InvalidPayload),
    dependencies={"session": Provide(provide_bounded_session)},
)
async def read_waiting(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    kind: str | None = None,
    page_number: PageNumber = None,
    page_size: PerPage = None,
) -> WaitingList:
    """The decisions that wait for the owner: uploads and pricing runs in review, then plans, then
    prices that need review and suggestions, the largest amounts first. With `kind`, only decisions
    of that kind.
    """
    only: Kind | None = None if kind is None else read(kind, Kind, "kind")
    paging = read_paging(page_number, page_size, *OF_CARDS)
    (rows, numbers), counts = await all_waiting.page_of(session, caller, only, paging, clock.now())
    return list_of([shown(one, settings.origin) for one in rows], counts, numbers)


class WaitingDecision(msgspec.Struct, forbid_unknown_fields=True):
    """A decision. `answer` is one of the item's `answers`, and `revision` is the item's
    revision.
    """

    answer: Annotated[Json, Like(Answer, needed=True)] = None
    revision: Annotated[Json, Like(str, needed=True)] = None


@post(
    "/waiting/{kind:str}/{waiting_id:int}",
    status_code=200,
    opt=WRITES,
    responses=problems(
        *FOR_OWNERS,
        *WITH_JSON_BODY,
        errors.SessionRequired,
        errors.KeyRequired,
        errors.NotFound,
        errors.RevisionConflict,
        NotEligible,
        MarketEvidenceChanged,
        errors.MutexHeld,
        errors.NeedsReview,
        errors.RefusedByGrant,
    ),
    dependencies=WRITING_SEEN,
)
async def decide_on_waiting(
    writer: Writer, kind: str, waiting_id: int, data: WaitingDecision
) -> DecidedItem:
    """Approve, decline or snooze a waiting decision, if it has not changed since the caller read
    it. If several callers decide at the same time, one succeeds and the others get 409. Only a
    signed-in member can decide on a plan.
    """
    done = await decide_waiting.decide(writer, kind, waiting_id, data.revision, data.answer)
    return decided_body(done, writer.settings.origin)


router = Router(path="", route_handlers=[read_waiting, decide_on_waiting], tags=["pricing"])
