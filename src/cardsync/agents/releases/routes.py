"""HTTP routes of releases: the desktop wrapper's update check, and the public downloads that update
answers link to.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, cast

import structlog
from litestar import Response, Router, get
from litestar.datastructures import ResponseHeader, State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Parameter
from litestar.response import Stream

from cardsync.access.caller import Caller
from cardsync.agents.errors import RangeNotSatisfiable
from cardsync.agents.releases import download
from cardsync.agents.releases.offer import STABLE, Installation
from cardsync.agents.releases.own_sync_app import ADDRESS, packed
from cardsync.agents.releases.update import Update, update_fields
from cardsync.platform import clock, errors
from cardsync.platform.settings import Settings
from cardsync.web.request import FOR_AGENTS, AnyResponse, ApiRequest, WithSlashes, problems
from cardsync.web.request_forms import reads_by

log = structlog.get_logger(__name__)


@get("/desktop/update", responses=problems(*FOR_AGENTS))
async def desktop_update(
    request: ApiRequest,
    caller: Caller,
    state: State,
    version: Annotated[
        str | None, Parameter(required=False, description="The one installed; none counts as 0")
    ] = None,
    platform: Annotated[
        str | None, Parameter(required=False, description="os/arch; none: the newest of any")
    ] = None,
    channel: str = STABLE,
) -> Update:
    """Return whether a newer desktop wrapper exists for this installation, and whether it must
    update.
    """
    settings: Settings = state.settings
    asks = Installation(str(caller.seller_id), version, platform, channel or STABLE)
    origin = settings.origin_for(request.headers.get("host"))
    return Update(**update_fields(state.releases, "desktop", asks, clock.now(), origin))


_ADDRESS = "/downloads/{product:str}/{version:str}/{path:path}"
_HEADERS = [
    ResponseHeader("ETag", documentation_only=True, description="Strong; the SHA-256"),
    ResponseHeader(
        "Cache-Control",
        documentation_only=True,
        description="Forever: under one address the bytes stay",
    ),
    ResponseHeader("Accept-Ranges", documentation_only=True, description="bytes"),
]
_BINARY = "application/octet-stream"
_ELSEWHERE = ResponseSpec(
    None, description="The bytes are in the object store, for some minutes at Location"
)


@get(
    _ADDRESS,
    media_type=_BINARY,
    response_headers=_HEADERS,
    responses={
        206: ResponseSpec(
            bytes,
            description="The one range asked for",
            media_type=_BINARY,
            generate_examples=False,
        ),
        302: _ELSEWHERE,
        304: ResponseSpec(None, description="Unchanged since the ETag in If-None-Match"),
        **problems(
            errors.NotFound,
            RangeNotSatisfiable,
            errors.RateLimited,
            errors.ServiceUnavailable,
        ),
    },
)
async def download_release(
    request: ApiRequest,
    state: State,
    product: str,
    version: str,
    path: WithSlashes,
) -> Response[bytes]:
    """A published artifact, whole or one byte range.

    The route is public: clients verify the signatures and need not trust the address.
    """
    await state.rate_limits.admit_anonymous(request.scope)
    release = await state.releases.published(product, version, path)
    # A presigned URL is valid for one HTTP method only.
    if url := state.store.presign_read(release.storage_key, reads_by(request.scope)):
        return _redirect(url)
    part = download.part_of(release, request.headers)
    if part.status == 304:
        return _bodyless(304, part.headers)
    await download.check_stored(state.store, release)
    chunks = state.store.read_range(release.storage_key, part.start, part.end)
    stream = Stream(
        chunks,
        status_code=part.status,
        headers=part.headers,
        media_type=_BINARY,
    )
    return cast("Response[bytes]", stream)


@get(f"{ADDRESS}/{{name:str}}", include_in_schema=False)
async def download_sync_app(request: ApiRequest, state: State, name: str) -> Response[bytes]:
    """Send the sync app of this installation, for pip."""
    await state.rate_limits.admit_anonymous(request.scope)
    app = await asyncio.to_thread(packed)
    if name != app.name:
        raise errors.NotFound(f"this server has {app.name}")
    return Response(app.content, media_type="application/zip")


def _redirect(url: str) -> AnyResponse:
    return _bodyless(302, {"Location": url, "Cache-Control": "no-store"})


def _bodyless(status: int, headers: dict[str, str]) -> AnyResponse:
    # The body is empty bytes, because the framework renders None only as JSON.
    return Response(b"", status_code=status, headers=headers, media_type=_BINARY)


router = Router(path="", route_handlers=[desktop_update], tags=["releases"])
downloads = Router(
    path="",
    route_handlers=[download_release, download_sync_app],
    tags=["releases"],
)
