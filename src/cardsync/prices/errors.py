"""The errors of pricing."""

from __future__ import annotations

from cardsync.platform.errors import Problem


class MarketEvidenceChanged(Problem):
    """The evidence behind this recommendation has changed; it is pending with a new revision."""

    status = 409
    code = "market_evidence_changed"


class NotEligible(Problem):
    """This recommendation can't be accepted; the message says why."""

    status = 409
    code = "not_eligible"


class RollbackOpen(Problem):
    """Another rollback is still open; cancel it, or wait until it is applied, fails or expires."""

    status = 409
    code = "rollback_open"


class NotCancellable(Problem):
    """This rollback was served or has ended."""

    status = 409
    code = "not_cancellable"


class TooManyObservations(Problem):
    """The request reports more shown recommendations than one request may report."""

    status = 422
    code = "too_many_observations"


class TransitionMatrixTooLarge(Problem):
    """A plan that enables or disables a rule has at most 5 pricing actions; send the other actions
    in another plan.
    """

    status, code = 422, "transition_matrix_too_large"


class OverlappingRuleTransitions(Problem):
    """A rule that the plan enables or disables selects cards of another pricing action; send the
    two actions in separate plans.
    """

    status, code = 422, "overlapping_rule_transitions"


class PlanNotWaiting(Problem):
    """This plan was previewed, refused for lack of permission, declined or expired; send
    it again.
    """

    status, code = 409, "plan_not_waiting"
