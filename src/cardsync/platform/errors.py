"""Defines every refusal as a `Problem` with a status and a code; `asgi.py` renders them all.

Raise a problem where a rule is broken, with a message that names field, row and reason. Bodies are
`{error, code}`; the few bodies that the specification defines differently have their own struct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import msgspec

from cardsync.platform.value_types import JsonObject


class Problem(Exception):
    """An expected error, rendered as its status and `{error, code}` and never logged as a crash."""

    status: ClassVar[int]
    code: ClassVar[str]

    def __init__(self, message: str = "", *, headers: Mapping[str, str] | None = None) -> None:
        # The formatter breaks a long docstring into lines; the answer has it on one line.
        super().__init__(message or " ".join((type(self).__doc__ or self.code).split()))
        self.headers = dict(headers or {})

    def body(self) -> JsonObject:
        return {"error": str(self), "code": self.code}


def kinds_of(kind: type[Problem]) -> Iterator[type[Problem]]:
    """Yield every subclass of this error that a loaded module defines."""
    for one in kind.__subclasses__():
        yield one
        yield from kinds_of(one)


class WithStatus(Problem):
    """An error whose body is its own struct: `status` names the error, and the body has no `error`
    and no `code`.
    """

    shape: ClassVar[type[msgspec.Struct]]

    def __init__(self, answer: msgspec.Struct, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(headers=headers)
        self._answer = answer

    def body(self) -> JsonObject:
        return {name: getattr(self._answer, name) for name in self._answer.__struct_fields__}


class CommandError(Exception):
    """The error of an operator's command that cannot do its work; the message is one sentence."""


class BadRequest(Problem):
    """The body is not valid JSON, ends too early or comes too slowly."""

    status = 400
    code = "bad_request"


class Unauthorized(Problem):
    """Missing or invalid API key."""

    status = 401
    code = "unauthorized"

    @classmethod
    def challenge(cls, *, credentials_sent: bool) -> Unauthorized:
        """Return the error; `WWW-Authenticate` names an error only if credentials were sent (RFC
        6750, section 3).
        """
        error = ', error="invalid_token"' if credentials_sent else ""
        return cls(headers={"WWW-Authenticate": f'Bearer realm="cardsync"{error}'})

    @classmethod
    def ended(cls) -> Unauthorized:
        """Return the error for a session cookie that is no longer valid."""
        challenge = cls.challenge(credentials_sent=True)
        return cls("the session has ended; sign in again", headers=challenge.headers)


class InvalidCredentials(Problem):
    """The email or the password is wrong."""

    status = 401
    code = "invalid_credentials"

    def __init__(self, message: str = "") -> None:
        super().__init__(message, headers={"WWW-Authenticate": 'Bearer realm="cardsync"'})


TOP_UP_PATH = "/account/credits"


class AccountSuspended(Problem):
    """This account is suspended."""

    status = 403
    code = "account_suspended"


class OperatorRequired(Problem):
    """Only an operator of this installation may do this."""

    status = 403
    code = "operator_required"


class InsufficientScope(Problem):
    """The token lacks the scope that this request needs."""

    status, code = 403, "insufficient_scope"

    @classmethod
    def of(cls, scope: str, metadata_url: str) -> InsufficientScope:
        """Return the error; `WWW-Authenticate` names the scope (RFC 6750, section 3.1) and the
        address of the metadata (RFC 9728, section 5.1).
        """
        challenge = (
            f'Bearer realm="cardsync", error="insufficient_scope", scope="{scope}",'
            f' resource_metadata="{metadata_url}"'
        )
        return cls(f"this needs a token with {scope}", headers={"WWW-Authenticate": challenge})


class BuyersHidden(Problem):
    """This assistant may not see who the buyers are, so it can't write about them; connect it again
    with buyer data.
    """

    status, code = 403, "buyers_hidden"


class SessionRequired(Problem):
    """Only a member who is signed in can do this; an API key or a token can't."""

    status = 403
    code = "session_required"


class KeyRequired(Problem):
    """Only the sync app can do this, with an API key; a browser's session or a token can't."""

    status = 403
    code = "key_required"


class CsrfFailed(Problem):
    """The request comes from another site, or its X-CSRF-Token is missing or not the session's."""

    status = 403
    code = "csrf_failed"


class OwnerRequired(Problem):
    """Only owners can do this; ask an owner for access."""

    status = 403
    code = "owner_required"


class PublicDemo(Problem):
    """Visitors of this public demo can't change that. Try prices, orders, lists or buying: each
    night undoes them.
    """

    status = 403
    code = "public_demo"


class PaidPlanRequired(Problem):
    """The account's plan does not include that."""

    status = 403
    code = "paid_plan_required"


class InvalidSignature(Problem):
    """The upload URL's signature does not fit."""

    status = 403
    code = "invalid_signature"


class UrlExpired(Problem):
    """The upload URL has expired; ask for a new one with POST /api/v1/sync/upload-request."""

    status = 403
    code = "url_expired"


class NotFound(Problem):
    """The requested object does not exist."""

    status = 404
    code = "not_found"


class Misdirected(Problem):
    """This service does not answer under that host name."""

    status = 421
    code = "misdirected_request"


class MethodNotAllowed(Problem):
    """This address does not accept that method."""

    status = 405
    code = "method_not_allowed"


class RestoreUnderWay(Problem):
    """A backup is being restored already."""

    status = 409
    code = "restore_under_way"


class NotAwaitingReview(Problem):
    """This upload is not awaiting review."""

    status = 409
    code = "not_awaiting_review"


class AccountEnding(Problem):
    """This account is about to be deleted; keep it first, and then make a new key."""

    status = 409
    code = "account_ending"


class RevisionConflict(Problem):
    """This recommendation was decided, or has a newer revision."""

    status = 409
    code = "revision_conflict"


class NotTheNewest(Problem):
    """A newer upload has arrived since; correct its rows instead."""

    status = 409
    code = "not_the_newest"


class ChangedSince(Problem):
    """The thing that this entry changed has been changed again since; the message names it."""

    status, code = 409, "changed_since"


class PullSessionNotOpen(Problem):
    """This pull session is completed or cancelled."""

    status = 409
    code = "pull_session_not_open"


class CardMissing(Problem):
    """A card of this order was not found in its pull; say what is done about it, or send this again
    with `confirm` to ship without it.
    """

    status, code = 409, "card_missing"


class PullLinkEnded(Problem):
    """This link opens no pull: the link was revoked, or its pull has ended; ask at the desk for a
    new link.
    """

    status, code = 410, "pull_link_ended"


class StoreCreditTooLow(Problem):
    """The customer has less store credit than this."""

    status, code = 409, "store_credit_too_low"


class OfferStateWrong(Problem):
    """The offer is not in a state that allows this; read it again."""

    status, code = 409, "offer_state_wrong"


class OfferLinkEnded(Problem):
    """This link opens no offer: the offer has ended, or the shop has made a new link; ask the shop."""

    status, code = 410, "offer_link_ended"


class StockPromotedReload(Problem):
    """The marketplace now lists the card that was contributed here; load the cards again and choose
    the listed one.
    """

    status = 409
    code = "stock_promoted_reload"


class MutexHeldBody(msgspec.Struct):
    status: Literal["mutex_held"]
    """Always mutex_held"""
    retry_after_seconds: int


class MutexHeld(WithStatus):
    """Prices are being written."""

    status = 409
    code = "mutex_held"
    shape = MutexHeldBody

    def __init__(self, seconds: int) -> None:
        super().__init__(
            MutexHeldBody("mutex_held", seconds),
            headers={"Retry-After": str(seconds)},
        )


class PayloadTooLarge(Problem):
    """The body is larger than allowed."""

    status = 413
    code = "payload_too_large"


class DecompressedTooLarge(Problem):
    """The body is larger than allowed once decompressed."""

    status = 413
    code = "decompressed_too_large"


class TooManyRows(Problem):
    """The upload has more rows than allowed."""

    status = 413
    code = "too_many_rows"


class UnsupportedMediaType(Problem):
    """This endpoint takes JSON."""

    status = 415
    code = "unsupported_media_type"


class InvalidPayload(Problem):
    """The body has the wrong shape."""

    status = 422
    code = "invalid_payload"


class NameTooShort(Problem):
    """A reference's name has fewer than two characters."""

    status = 422
    code = "name_too_short"


class TooManyReferences(Problem):
    """A request names more cards than one answer covers."""

    status = 422
    code = "too_many_references"


class InvalidRule(Problem):
    """A field of a pricing rule, sale or setting is unknown, or has a value that it cannot have."""

    status = 422
    code = "invalid_rule"


class InvalidQuery(Problem):
    """The search query cannot be parsed; the message names the offset."""

    status = 422
    code = "invalid_query"


class WithFigures(Problem):
    """A refusal with figures of the refused change: the body has `error`, `code` and the
    figures.
    """

    shape: ClassVar[type[msgspec.Struct]]

    def __init__(self, message: str, **figures: object) -> None:
        super().__init__(message)
        self._figures = figures

    def body(self) -> JsonObject:
        return super().body() | self._figures


class NeedsReviewBody(msgspec.Struct):
    """`proposal_id` is the proposal that waits at `confirm_url` for a member; `limit` is the
    exceeded limit, or `permission` if the owner wants to be asked.
    """

    error: str
    code: Literal["needs_review"]
    proposal_id: int
    confirm_url: str
    risk: Literal["low", "medium", "high", "critical"]
    limit: str
    cards_affected: int
    listed_value_change: str


class NeedsReview(WithFigures):
    """The change goes beyond what a key or a token may do to prices; nothing has changed, and a
    member decides at `confirm_url`.
    """

    status, code = 409, "needs_review"
    shape = NeedsReviewBody


class RefusedByGrant(Problem):
    """The owner does not allow this assistant to do that."""

    status, code = 403, "refused_by_grant"


class ConfirmationNeededBody(msgspec.Struct):
    """`deepest_fall_bp` is the fall of the card that falls most, in basis points."""

    error: str
    code: Literal["confirmation_needed"]
    cards_affected: int
    listed_value_change: str
    deepest_fall_bp: int
    """The fall of the card that falls most, in basis points"""


class ConfirmationNeeded(WithFigures):
    """The change lowers a card's price by more than half or the shop's prices by more than a fifth,
    or it is a large promotion; send the change again with `confirm: true`.
    """

    status, code = 422, "confirmation_needed"
    shape = ConfirmationNeededBody


class RuleTestsFailed(Problem):
    """The change of the rules would turn rule tests red; the owner may override them with
    `override_reason`, which stays in the activity.
    """

    status, code = 409, "rule_tests_failed"


class InvalidCsv(Problem):
    """The CSV cannot be read."""

    status = 422
    code = "invalid_csv"


class InvalidGzip(Problem):
    """The body is declared as gzip but is not a complete gzip file."""

    status = 422
    code = "invalid_gzip"


class InvalidName(Problem):
    """The name is missing, blank, too long or no text."""

    status = 422
    code = "invalid_name"


class NameTaken(Problem):
    """That name is already in use."""

    status = 422
    code = "name_taken"


class ListLimitReached(Problem):
    """The shop already has as many lists as a shop may have."""

    status = 422
    code = "list_limit_reached"


class ListFull(Problem):
    """The list is full, and the request would add to it."""

    status = 422
    code = "list_full"


class RateLimited(Problem):
    """Too many requests; wait as long as Retry-After says."""

    status = 429
    code = "rate_limited"


class ServiceUnavailable(Problem):
    """The service is briefly unavailable; try again."""

    status = 503
    code = "service_unavailable"

    def __init__(self, message: str = "", *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, headers={"Retry-After": "5", **(headers or {})})
