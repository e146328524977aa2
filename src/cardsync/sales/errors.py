"""API errors of orders and pulls."""

from __future__ import annotations

from cardsync.platform.errors import Problem


class PullSessionOpen(Problem):
    """A pull session is open already; complete or cancel it first."""

    status = 409
    code = "pull_session_open"


class MissingSettled(Problem):
    """Somebody has already decided about this missing card; undo that in Activity first."""

    status, code = 409, "missing_settled"


class AlreadyRestocked(Problem):
    """The copies of this order are back in stock already."""

    status, code = 409, "already_restocked"


class InvalidJson(Problem):
    """The body is not valid JSON."""

    status = 422
    code = "invalid_json"


class EmptyPayload(Problem):
    """The body is an empty array."""

    status = 422
    code = "empty_payload"
