"""The HTTP routes of programs that request access: the server's metadata (RFC 8414, RFC 9728),
dynamic registration (RFC 7591), tokens (RFC 6749) and their revocation (RFC 7009).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from litestar import MediaType, Response, Router, get, post

from cardsync.access.admission import among_programs
from cardsync.access.audience import METADATA_PATH, PATH, SCOPES, audience
from cardsync.assistant.oauth import clients, exchange
from cardsync.assistant.oauth.client_metadata import GRANT_TYPES
from cardsync.assistant.oauth.exchange import Tokens
from cardsync.assistant.oauth.refused import Refused
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.web.forms import sent_form
from cardsync.web.request import AnyRequest, ApiRequest, media_type

PRIVATE: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_FORM: Final = "application/x-www-form-urlencoded"


class ServerMetadata(msgspec.Struct):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    scopes_supported: tuple[str, ...] = SCOPES
    response_types_supported: tuple[str, ...] = ("code",)
    response_modes_supported: tuple[str, ...] = ("query",)
    grant_types_supported: tuple[str, ...] = GRANT_TYPES
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("none",)
    revocation_endpoint_auth_methods_supported: tuple[str, ...] = ("none",)
    code_challenge_methods_supported: tuple[str, ...] = ("S256",)
    authorization_response_iss_parameter_supported: bool = True
    client_id_metadata_document_supported: bool = True


class ResourceMetadata(msgspec.Struct):
    resource: str
    authorization_servers: list[str]
    scopes_supported: tuple[str, ...] = SCOPES
    bearer_methods_supported: tuple[str, ...] = ("header",)
    resource_name: str = "cardsync"


class Registered(msgspec.Struct):
    client_id: str
    client_id_issued_at: int
    client_name: str
    redirect_uris: list[str]
    grant_types: tuple[str, ...] = GRANT_TYPES
    response_types: tuple[str, ...] = ("code",)
    token_endpoint_auth_method: str = "none"  # noqa: S105 (a method)


@get("/.well-known/oauth-authorization-server")
async def server_metadata(request: ApiRequest, settings: Settings) -> ServerMetadata:
    issuer = settings.origin_for(request.headers.get("host"))
    return ServerMetadata(
        issuer,
        f"{issuer}/oauth/authorize",
        f"{issuer}/oauth/token",
        f"{issuer}/oauth/register",
        f"{issuer}/oauth/revoke",
    )


@get([METADATA_PATH, METADATA_PATH + PATH])
async def resource_metadata(request: ApiRequest, settings: Settings) -> ResourceMetadata:
    """Serve the metadata of the one resource. Clients look for it with and without the resource's
    path.
    """
    host = request.headers.get("host")
    return ResourceMetadata(audience(settings, host), [settings.origin_for(host)])


@post(
    "/oauth/register",
    status_code=201,
    middleware=[among_programs],
    request_max_body_size=limits.CLIENT_BYTES,
)
async def register(request: ApiRequest, database: Database) -> Response[Registered]:
    try:
        told = await request.json()
    except (errors.BadRequest, errors.InvalidPayload, errors.UnsupportedMediaType) as e:
        raise Refused("invalid_client_metadata", str(e)) from None
    now = clock.now()
    async with database.shared() as session:
        client = await clients.register(session, told, now)
    made = Registered(
        client.client_id, int(now.timestamp()), client.name, list(client.redirect_uris)
    )
    return Response(made, status_code=201, media_type=MediaType.JSON, headers=PRIVATE)


@post("/oauth/token", status_code=200, middleware=[among_programs])
async def token(request: ApiRequest, database: Database, settings: Settings) -> Response[Tokens]:
    form, now = await _form(request)
    ours = audience(settings, request.headers.get("host"))
    made = await exchange.tokens_for(database, settings, ours, form, now)
    return Response(made, media_type=MediaType.JSON, headers=PRIVATE)


@post("/oauth/revoke", status_code=200, middleware=[among_programs])
async def revoke(request: ApiRequest, database: Database) -> Response[None]:
    form, now = await _form(request)
    await exchange.give_up(database, form, now)
    return Response(None, media_type=MediaType.JSON, headers=PRIVATE)


async def _form(request: ApiRequest) -> tuple[dict[str, list[str]], datetime]:
    if media_type(request.headers) != _FORM:
        raise Refused("invalid_request", f"Content-Type: must be {_FORM}")
    try:
        return dict((await sent_form(request)).sent), clock.now()
    except (errors.BadRequest, errors.InvalidPayload) as e:
        raise Refused("invalid_request", str(e)) from None


def _refused(request: AnyRequest, exc: Refused) -> Response[dict[str, str]]:
    headers = PRIVATE | ({"WWW-Authenticate": "Bearer"} if exc.status == 401 else {})
    return Response(exc.body(), status_code=exc.status, media_type=MediaType.JSON, headers=headers)


router = Router(
    path="/",
    route_handlers=[server_metadata, resource_metadata, register, token, revoke],
    exception_handlers={Refused: _refused},
    # The metadata document of RFC 8414 describes these routes.
    include_in_schema=False,
    request_max_body_size=limits.SIGN_IN_BYTES,
)
