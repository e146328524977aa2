"""Answers every failure: `Problem`s with their own status and sentence, every other error as
InternalError in JSON or HTML.

A 5xx never shows a message, SQL or a path; the request id connects the caller's answer with the
log.
"""

from __future__ import annotations

import errno
import re
from typing import Any

import obstore.exceptions
import psycopg
import structlog
from litestar import MediaType, Request, Response
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

log = structlog.get_logger(__name__)

AnyRequest = Request[Any, Any, Any]

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


# Litestar's `request.accept` takes `text/html;q=0` for an offer, prefers a page where text/html
# and application/json weigh the same, and lets `*/*` outweigh the q that application/json names;
# the tests of this module hold the cases. So the header is read here.
def _quality(accept: str) -> dict[str, float]:
    """Read the media ranges of an Accept header with their q; a q that cannot be read counts as 0."""
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
    """Return True if text/html is named with a higher q than application/json gets; a wildcard
    lends json its own.
    """
    ranges = _quality(accept or "")
    json = ranges.get("application/json", ranges.get("application/*", ranges.get("*/*", 0.0)))
    return ranges.get("text/html", 0.0) > json


def internal_error(request: AnyRequest, status: int, message: str) -> Response[Any]:
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


def problem(request: AnyRequest, exc: errors.Problem) -> Response[Any]:
    return Response(
        exc.body(),
        status_code=exc.status,
        media_type=MediaType.JSON,
        headers=exc.headers,
    )


# The framework writes so of a parameter that has no default and that a request leaves out.
_LEFT_OUT = re.compile(r"Missing required (\w+) parameter '([^']+)'")
_KINDS = {"query": "query parameter", "header": "header", "cookie": "cookie"}


def _unread(request: AnyRequest, exc: ValidationException) -> str:
    """Return the parameter or the field that has the wrong shape, and the reason."""
    if left_out := _LEFT_OUT.match(exc.detail or ""):
        return f"{left_out[2]}: the {_KINDS.get(left_out[1], 'parameter')} is missing"
    details = exc.extra if isinstance(exc.extra, list) else []
    handler: BaseRouteHandler | None = request.scope.get("route_handler")
    reasons = [_reason(item, handler) for item in details if isinstance(item, dict)]
    return "; ".join(reasons) or "the body has the wrong shape"


def _reason(item: dict[str, Any], handler: BaseRouteHandler | None) -> str:
    """Describe one refused value. The framework names a parameter of the route's function; for a
    missing body it gives only the word `data`. The fields of a body were read before.
    """
    key, message = str(item.get("key") or "body"), str(item.get("message"))
    if message == "'data'":
        return "the body is missing"
    field, shape = _shape_of(key, handler)
    sent = getattr(field.kwarg_definition, "name", None) if field else None
    # An address has texts only, so it does not help to say that this is one.
    return sentence(message.removesuffix(", got `str`"), shape, sent or key)


def _shape_of(name: str, handler: BaseRouteHandler | None) -> tuple[FieldDefinition | None, Any]:
    """Return how a parameter is described, by the route's function or by what provides its
    arguments.
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


def http_exception(request: AnyRequest, exc: HTTPException) -> Response[Any]:
    """Render a refusal of the framework itself."""
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
        # Its words are the framework's.
        return problem(request, errors.BadRequest("the request could not be read"))
    return unforeseen(request, exc)


def away(request: AnyRequest, exc: Exception) -> Response[Any]:
    """Answer 503: the database is away, all its connections are taken, or it ended a statement or a
    wait for a lock that took too long.
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


def store_away(request: AnyRequest, exc: Exception) -> Response[Any]:
    """Answer 503: the disk is full or read-only, or the bucket is out of reach."""
    reason = errno.errorcode.get(getattr(exc, "errno", None) or 0, "")
    log.warning(
        "object_store_away",
        kind=type(exc).__name__,
        reason=reason,
        request_id=request_id_of(request.scope),
    )
    return problem(request, errors.ServiceUnavailable())


def unforeseen(request: AnyRequest, exc: Exception) -> Response[Any]:
    log.exception("request_crashed", exc_info=exc, request_id=request_id_of(request.scope))
    return internal_error(request, 500, "Something went wrong on our end")


HANDLERS: dict[type[Exception] | int, Any] = {
    errors.Problem: problem,
    HTTPException: http_exception,
    OperationalError: away,
    InterfaceError: away,
    PoolExhausted: away,
    # The polled reads use psycopg itself; its PoolTimeout is an OperationalError too.
    psycopg.OperationalError: away,
    psycopg.InterfaceError: away,
    StoreAway: store_away,
    obstore.exceptions.BaseError: store_away,
    Exception: unforeseen,
}
