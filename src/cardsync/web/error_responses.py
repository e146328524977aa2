"""Renders errors: a `Problem` with its own status and sentence, and any other error as
InternalError in JSON or HTML.

An answer with status 5xx never contains a message of the exception, SQL or a path. Its request id
also appears in the log.
"""

from __future__ import annotations

import errno
import re
from typing import Any

import obstore.exceptions
import psycopg
import structlog
from litestar import MediaType, Response
from litestar.exceptions import (
    ClientException,
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
from litestar.handlers import BaseRouteHandler
from litestar.typing import FieldDefinition
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from cardsync.platform import errors
from cardsync.platform.read_json import sentence
from cardsync.platform.storage import StoreAway
from cardsync.web.access_log import request_id_of
from cardsync.web.pages import page
from cardsync.web.request import AnyRequest, AnyResponse

log = structlog.get_logger(__name__)


CODES = {404: "not_found", 422: "unprocessable_content"}
TITLES = {
    404: "Page not found",
    422: "This request cannot be processed",
    500: "Something went wrong on our end",
}

_TOO_LONG = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)
TOO_LONG = (
    "This takes too long to answer; ask for less (a date range, a longer search), or try again"
)
ADVICE = {
    404: "Check the address, or go back and try another way.",
    500: "The problem was logged. Try again in a moment.",
}


# Litestar's `request.accept` has three faults: it accepts `text/html;q=0`, prefers HTML if
# text/html and application/json have the same weight, and lets `*/*` override the q of
# application/json. So this module parses the header itself. Tests of the module cover these cases.
def _quality(accept: str) -> dict[str, float]:
    """Parse an Accept header into media ranges with their q. An invalid q counts as 0."""
    ranges = {}
    for part in accept.split(","):
        kind, *parameters = [piece.strip() for piece in part.split(";")]
        pairs = (parameter.partition("=") for parameter in parameters)
        named = {name.strip(): value for name, _, value in pairs}
        try:
            ranges[kind.lower()] = float(named.get("q", 1))
        except ValueError:
            ranges[kind.lower()] = 0.0
    return ranges


def wants_html(accept: str | None) -> bool:
    """Return whether text/html has a higher q than application/json. A wildcard counts only for
    JSON.
    """
    ranges = _quality(accept or "")
    json = ranges.get("application/json", ranges.get("application/*", ranges.get("*/*", 0.0)))
    return ranges.get("text/html", 0.0) > json


def internal_error(request: AnyRequest, status: int, message: str) -> AnyResponse:
    request_id = request_id_of(request.scope)
    headers = {"Vary": "Accept"}
    if wants_html(request.headers.get("accept")):
        return page(
            "failure.html",
            status,
            headers,
            heading=TITLES.get(status, TITLES[500]),
            status=status,
            advice=ADVICE.get(status, ADVICE[500]),
            request_id=request_id,
        )
    code = CODES.get(status, "internal_server_error")
    body = {
        "error": message,
        "code": code,
        "status": status,
        "request_id": request_id,
    }
    return Response(body, status_code=status, media_type=MediaType.JSON, headers=headers)


def problem(request: AnyRequest, exc: errors.Problem) -> AnyResponse:
    return Response(
        exc.body(),
        status_code=exc.status,
        media_type=MediaType.JSON,
        headers=exc.headers,
    )


# Litestar's message for a missing parameter that has no default.
_LEFT_OUT = re.compile(r"Missing required (\w+) parameter '([^']+)'")
_KINDS = {"query": "query parameter", "header": "header", "cookie": "cookie"}


def _unread(request: AnyRequest, exc: ValidationException) -> str:
    """Return which parameter or field has the wrong form, and the reason."""
    if left_out := _LEFT_OUT.match(exc.detail or ""):
        return f"{left_out[2]}: the {_KINDS.get(left_out[1], 'parameter')} is missing"
    details = exc.extra if isinstance(exc.extra, list) else []
    handler: BaseRouteHandler | None = request.scope.get("route_handler")
    reasons = [_reason(item, handler) for item in details if isinstance(item, dict)]
    return "; ".join(reasons) or "the body has the wrong shape"


def _reason(item: dict[str, object], handler: BaseRouteHandler | None) -> str:
    """Describe one refused value. Litestar names the parameter of the route's function; for a
    missing body it gives only the word `data`. The fields of a body were checked earlier
    (`ApiRequest.json`).
    """
    key, message = str(item.get("key") or "body"), str(item.get("message"))
    if message == "'data'":
        return "the body is missing"
    field, shape = _shape_of(key, handler)
    sent = getattr(field.kwarg_definition, "name", None) if field else None
    # Every value in a query or path is a string, so the message need not mention it.
    return sentence(message.removesuffix(", got `str`"), shape, sent or key)


def _shape_of(name: str, handler: BaseRouteHandler | None) -> tuple[FieldDefinition | None, object]:
    """Return the declaration of a parameter, which belongs to the route's function or to a
    dependency.
    """
    if handler is not None:
        providers = handler.resolve_dependencies().values()
        for signature in (
            handler.signature_model,
            *(provider.signature_model for provider in providers),
        ):
            if name in signature.__annotations__:
                return signature._fields.get(name), signature.__annotations__[name]
    return None, Any


def http_exception(request: AnyRequest, exc: HTTPException) -> Response[object]:
    """Render an error that Litestar raised."""
    if isinstance(exc, ValidationException):
        return problem(request, errors.InvalidPayload(_unread(request, exc)))
    if isinstance(exc, MethodNotAllowedException):
        given = {name.lower(): value for name, value in (exc.headers or {}).items()}
        methods = set(given.get("allow", "").split(", "))
        headers = {"Allow": ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))}
        return problem(
            request,
            errors.MethodNotAllowed(f"{request.method} is not allowed here", headers=headers),
        )
    if isinstance(exc, NotFoundException):
        return internal_error(request, 404, "Address not found")
    if exc.status_code == 413:
        return problem(request, errors.PayloadTooLarge())
    if isinstance(exc, ClientException):
        # Litestar's own message is not meant for clients.
        return problem(request, errors.BadRequest("the request could not be read"))
    return unforeseen(request, exc)


def away(request: AnyRequest, exc: Exception) -> Response[object]:
    """Answer 503. The database is unavailable, all its connections are in use, or it cancelled a
    statement or a wait for a lock that took too long.
    """
    if isinstance(getattr(exc, "orig", exc), _TOO_LONG):
        log.warning("read_took_too_long", request_id=request_id_of(request.scope))
        return problem(request, errors.ServiceUnavailable(TOO_LONG))
    log.warning(
        "database_away",
        kind=type(exc).__name__,
        request_id=request_id_of(request.scope),
    )
    return problem(request, errors.ServiceUnavailable())


def store_away(request: AnyRequest, exc: Exception) -> Response[object]:
    """Answer 503. The disk is full or read-only, or the bucket is unreachable."""
    reason = errno.errorcode.get(getattr(exc, "errno", None) or 0, "")
    log.warning(
        "object_store_away",
        kind=type(exc).__name__,
        reason=reason,
        request_id=request_id_of(request.scope),
    )
    return problem(request, errors.ServiceUnavailable())


def unforeseen(request: AnyRequest, exc: Exception) -> Response[object]:
    log.exception("request_crashed", exc_info=exc, request_id=request_id_of(request.scope))
    return internal_error(request, 500, "Something went wrong on our end")


HANDLERS: dict[type[Exception] | int, Any] = {
    errors.Problem: problem,
    HTTPException: http_exception,
    OperationalError: away,
    InterfaceError: away,
    PoolExhausted: away,
    # The reads for polls use psycopg directly. psycopg's PoolTimeout is an OperationalError.
    psycopg.OperationalError: away,
    psycopg.InterfaceError: away,
    StoreAway: store_away,
    obstore.exceptions.BaseError: store_away,
    Exception: unforeseen,
}
