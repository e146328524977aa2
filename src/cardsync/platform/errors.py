"""Defines every refusal as a `Problem` with a status and a code; `asgi.py` renders them in one
place.

Raise one where the rule is broken, with a message that names field, row and reason. Bodies are
`{error, code}`; the few that the specification shapes otherwise have a struct of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec


class Problem(Exception):
    """An expected refusal: rendered as its status and `{error, code}`, never logged as a crash."""

    status: ClassVar[int]
    code: ClassVar[str]

    def __init__(self, message: str = "", *, headers: Mapping[str, str] | None = None) -> None:
        # The formatter breaks a long docstring into lines; the answer says it in one.
        super().__init__(message or " ".join((type(self).__doc__ or self.code).split()))
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        return {"error": str(self), "code": self.code}


class WithStatus(Problem):
    """A refusal whose body is a struct of its own: its `status` names it, there is no error and
    no code.
    """

    shape: ClassVar[type[msgspec.Struct]]

    def __init__(self, answer: msgspec.Struct, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(headers=headers)
        self._answer = answer

    def body(self) -> dict[str, Any]:
        return {name: getattr(self._answer, name) for name in self._answer.__struct_fields__}


class CommandError(Exception):
    """The one-sentence message of an operator's command that cannot do its work."""


class BadRequest(Problem):
    """The body is not valid JSON, ends too early or comes too slowly."""

    status = 400
    code = "bad_request"


class IdempotencyKeyRequired(Problem):
    """The header X-Idempotency-Key is missing or blank; send a new key, a UUID say, for each wait
    that you want to skip.
    """

    status = 400
    code = "idempotency_key_required"


class Unauthorized(Problem):
    """Missing or invalid API key."""

    status = 401
    code = "unauthorized"

    @classmethod
    def challenge(cls, *, credentials_sent: bool) -> Unauthorized:
        """`WWW-Authenticate` names an error only when credentials came along (RFC 6750, section
        3).
        """
        error = ', error="invalid_token"' if credentials_sent else ""
        return cls(headers={"WWW-Authenticate": f'Bearer realm="cardsync"{error}'})

    @classmethod
    def ended(cls) -> Unauthorized:
        """A session's cookie that is good no longer."""
        challenge = cls.challenge(credentials_sent=True)
        return cls("the session has ended; sign in again", headers=challenge.headers)


class InvalidCredentials(Problem):
    """The email or the password is wrong."""

    status = 401
    code = "invalid_credentials"

    def __init__(self, message: str = "") -> None:
        super().__init__(message, headers={"WWW-Authenticate": 'Bearer realm="cardsync"'})


TOP_UP_PATH = "/account/credits"


class MeteredCooldownBody(msgspec.Struct):
    status: Literal["cooldown"]
    """Always cooldown"""
    cooldown_remaining_seconds: int
    balance: int
    """The credits that are left"""
    top_up_path: str


class MeteredCooldown(WithStatus):
    """The cooldown after the last sync is not over; a credit skips it (POST
    /api/v1/sync/skip_wait).
    """

    status = 402
    code = "cooldown"
    shape = MeteredCooldownBody

    def __init__(self, remaining_seconds: int, balance: int) -> None:
        super().__init__(MeteredCooldownBody("cooldown", remaining_seconds, balance, TOP_UP_PATH))


class InsufficientBalanceBody(msgspec.Struct):
    status: Literal["insufficient_balance"]
    """Always insufficient_balance"""
    balance: Literal[0]
    top_up_path: str


class InsufficientBalance(WithStatus):
    """There is no credit to skip the wait with."""

    status = 402
    code = "insufficient_balance"
    shape = InsufficientBalanceBody

    def __init__(self) -> None:
        super().__init__(InsufficientBalanceBody("insufficient_balance", 0, TOP_UP_PATH))


class AccountSuspended(Problem):
    """This account is suspended."""

    status = 403
    code = "account_suspended"


class OperatorRequired(Problem):
    """Only an operator of this installation may do this."""

    status = 403
    code = "operator_required"


class InsufficientScope(Problem):
    """The token lacks the scope that this takes."""

    status, code = 403, "insufficient_scope"

    @classmethod
    def of(cls, scope: str, metadata_url: str) -> InsufficientScope:
        """`WWW-Authenticate` names the scope (RFC 6750, section 3.1), and where the resource is
        described (RFC 9728, section 5.1).
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
    """This takes a member who is signed in; an API key or a token can't do it."""

    status = 403
    code = "session_required"


class KeyRequired(Problem):
    """This is the agent's work; it takes an API key, a browser's session or a token can't do it."""

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


class ObjectStorePipelineDisabled(Problem):
    """Presigned uploads are switched off for this account; send the CSV itself to POST
    /api/v1/sync.
    """

    status = 403
    code = "object_store_pipeline_disabled"


class InvalidSignature(Problem):
    """The upload URL's signature does not fit."""

    status = 403
    code = "invalid_signature"


class UrlExpired(Problem):
    """The upload URL has expired; ask for a new one with POST /api/v1/sync/upload-request."""

    status = 403
    code = "url_expired"


class CorrectionDisabled(Problem):
    """This selector has failed three times for this step, or for three sellers, and is not used
    again; verify another.
    """

    status, code = 409, "correction_disabled"


class NotFound(Problem):
    """There is no such thing here."""

    status = 404
    code = "not_found"


class Misdirected(Problem):
    """This service is not reached by that name."""

    status = 421
    code = "misdirected_request"


class MethodNotAllowed(Problem):
    """This address does not take that method."""

    status = 405
    code = "method_not_allowed"


class NoSyncInProgress(Problem):
    """No sync is in progress."""

    status = 409
    code = "no_sync_in_progress"


class AlreadyUsed(Problem):
    """This upload URL was used already; each is good for one upload."""

    status = 409
    code = "already_used"


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


class MarketEvidenceChanged(Problem):
    """The evidence behind this recommendation has changed; it is pending with a new revision."""

    status = 409
    code = "market_evidence_changed"


class RevisionConflict(Problem):
    """This recommendation was decided, or has a newer revision."""

    status = 409
    code = "revision_conflict"


class NotEligible(Problem):
    """This recommendation can't be accepted; the message says why."""

    status = 409
    code = "not_eligible"


class NotTheNewest(Problem):
    """A newer upload has come since; mend its rows instead."""

    status = 409
    code = "not_the_newest"


class RollbackOpen(Problem):
    """Another rollback is not over yet; cancel it, or wait until it is applied, fails or
    expires.
    """

    status = 409
    code = "rollback_open"


class NotCancellable(Problem):
    """This rollback was served, or is over."""

    status = 409
    code = "not_cancellable"


class NotUndoable(Problem):
    """This entry can't be undone."""

    status, code = 409, "not_undoable"


class ChangedSince(Problem):
    """The thing that this entry changed has been changed again since; the message names it."""

    status, code = 409, "changed_since"


class PullSessionOpen(Problem):
    """A pull session is open already; complete or cancel it first."""

    status = 409
    code = "pull_session_open"


class PullSessionNotOpen(Problem):
    """This pull session is completed or cancelled."""

    status = 409
    code = "pull_session_not_open"


class CountOpen(Problem):
    """This box is being counted: finish or cancel that count first."""

    status, code = 409, "count_open"


class CountNotOpen(Problem):
    """This count is settled or cancelled."""

    status, code = 409, "count_not_open"


class MissingSettled(Problem):
    """Somebody has already decided about this missing card; undo that in Activity first."""

    status, code = 409, "missing_settled"


class CardMissing(Problem):
    """A card of this order was not found in its pull; say what is done about it, or send this again
    with `confirm` to ship without it.
    """

    status, code = 409, "card_missing"


class AlreadyRestocked(Problem):
    """The copies of this order are back in stock already."""

    status, code = 409, "already_restocked"


class PullLinkEnded(Problem):
    """This link opens no pull: it was revoked, or its pull has ended; ask at the desk for a new
    one.
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


class NotADraft(Problem):
    """This quick-add entry is no draft: it is published, sent, or to be changed first."""

    status, code = 409, "not_a_draft"


class NotPending(Problem):
    """This quick-add entry is not pending: there is nothing to settle."""

    status, code = 409, "not_pending"


class ListingInHand(Problem):
    """An agent may still be listing it; say that it is not listed 30 minutes after it was sent,
    at the earliest.
    """

    status, code = 409, "listing_in_hand"


class ClaimExpired(Problem):
    """The token does not hold this task: its claim ran out, or another one was handed out."""

    status, code = 409, "claim_expired"


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


class RangeNotSatisfiable(Problem):
    """The range begins behind the end of the file."""

    status = 416
    code = "range_not_satisfiable"


class InvalidJson(Problem):
    """The body is not valid JSON."""

    status = 422
    code = "invalid_json"


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


class TooManyObservations(Problem):
    """A request reports more shown recommendations than one may."""

    status = 422
    code = "too_many_observations"


class EmptyPayload(Problem):
    """The body is an empty array."""

    status = 422
    code = "empty_payload"


class InvalidRule(Problem):
    """A field of a pricing rule, sale or setting is unknown, or has a value that it cannot have."""

    status = 422
    code = "invalid_rule"


class InvalidQuery(Problem):
    """The search query does not read; the message names the offset."""

    status = 422
    code = "invalid_query"


class TransitionMatrixTooLarge(Problem):
    """A plan that enables or disables a rule has at most 5 pricing actions; send the others in
    another plan.
    """

    status, code = 422, "transition_matrix_too_large"


class OverlappingRuleTransitions(Problem):
    """A rule that the plan enables or disables selects cards of another pricing action; send the
    two in plans of their own.
    """

    status, code = 422, "overlapping_rule_transitions"


class PlanNotWaiting(Problem):
    """This plan was previewed, refused for want of permission, declined or expired; send it
    again.
    """

    status, code = 409, "plan_not_waiting"


class WithFigures(Problem):
    """A refusal that also says how large the refused change is: `{error, code}` and the figures."""

    shape: ClassVar[type[msgspec.Struct]]

    def __init__(self, message: str, **figures: Any) -> None:
        super().__init__(message)
        self._figures = figures

    def body(self) -> dict[str, Any]:
        return super().body() | self._figures


class NeedsReviewBody(msgspec.Struct):
    """`proposal_id` is what waits at `confirm_url` for a member; `limit` is the one that broke, or
    `permission` where the owner wants to be asked.
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
    """The owner does not let this assistant do that."""

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
    """The change takes a card down by more than half or the shop by more than a fifth, or it is a
    large promotion; send it again with `confirm: true`.
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
    """The body says gzip but is not a whole gzip file."""

    status = 422
    code = "invalid_gzip"


class InvalidProductLine(Problem):
    """The product line is not configured for this account."""

    status = 422
    code = "invalid_product_line"


class InvalidObjectKey(Problem):
    """The key is missing, not of the required shape, or names no uploaded object of this
    account.
    """

    status = 422
    code = "invalid_object_key"


class InvalidName(Problem):
    """The name is missing, blank, too long or no text."""

    status = 422
    code = "invalid_name"


class NameTaken(Problem):
    """There is one of that name already."""

    status = 422
    code = "name_taken"


class ListLimitReached(Problem):
    """There are as many lists as there may be."""

    status = 422
    code = "list_limit_reached"


class SavedSearchLimitReached(Problem):
    """There are as many saved searches as there may be."""

    status = 422
    code = "saved_search_limit_reached"


class ListFull(Problem):
    """The list is full, and something new would have been added."""

    status = 422
    code = "list_full"


class CsvProcessingFailed(Problem):
    """The CSV could not be processed."""

    status = 422
    code = "csv_processing_failed"


class RateLimited(Problem):
    """Too many requests; wait as long as Retry-After says."""

    status = 429
    code = "rate_limited"


class CooldownBody(msgspec.Struct):
    status: Literal["cooldown"]
    """Always cooldown"""
    cooldown_remaining_seconds: int


class Cooldown(WithStatus):
    """The cooldown after the last sync is not over."""

    status = 429
    code = "cooldown"
    shape = CooldownBody

    def __init__(self, remaining_seconds: int) -> None:
        super().__init__(
            CooldownBody("cooldown", remaining_seconds),
            headers={"Retry-After": str(remaining_seconds)},
        )


class ServiceUnavailable(Problem):
    """The service is briefly unavailable; try again."""

    status = 503
    code = "service_unavailable"

    def __init__(self, message: str = "", *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, headers={"Retry-After": "5", **(headers or {})})
