"""The refusals of this district."""

from __future__ import annotations

from cardsync.platform.errors import Problem


class CountOpen(Problem):
    """This box is being counted: finish or cancel that count first."""

    status, code = 409, "count_open"


class CountNotOpen(Problem):
    """This count is settled or cancelled."""

    status, code = 409, "count_not_open"


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


class SavedSearchLimitReached(Problem):
    """There are as many saved searches as there may be."""

    status = 422
    code = "saved_search_limit_reached"
