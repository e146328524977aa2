"""HTTP route by which an agent fetches a workflow pack that is newer than its own."""

from __future__ import annotations

from typing import Annotated

from litestar import Router, get
from litestar.params import Parameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.workflows.offered_pack import OfferedPack, offered_pack
from cardsync.platform import errors, limits
from cardsync.web.request import FOR_AGENTS, problems, storable


@get(
    "/workflow/packs/{marketplace:str}",
    responses=problems(*FOR_AGENTS, errors.NotFound, errors.InvalidPayload),
)
async def workflow_pack(
    session: AsyncSession,
    marketplace: str,
    locale: Annotated[
        str, Parameter(required=False, description="The language of the marketplace's pages")
    ] = "en",
    have: Annotated[
        int, Parameter(required=False, description="The agent's own version; 0: it has none")
    ] = 0,
) -> OfferedPack:
    """Return the marketplace's newest workflow pack that is not withdrawn, with its signature, and
    the withdrawn versions. An agent that has this pack gets neither pack nor signature.
    """
    if not 0 <= have <= limits.LARGEST_ID:
        raise errors.InvalidPayload("have: must be a version, or 0")
    return await offered_pack(session, storable(marketplace), storable(locale), have)


router = Router(path="", route_handlers=[workflow_pack], tags=["workflows"])
