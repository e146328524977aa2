"""The errors of counts, quick-add and saved searches."""

from __future__ import annotations

from cardsync.platform.errors import Problem


class CountOpen(Problem):
    """This box has an open count. Settle or cancel that count first."""

    status, code = 409, "count_open"


class CountNotOpen(Problem):
    """This count is settled or cancelled."""

    status, code = 409, "count_not_open"


class NotADraft(Problem):
    """This quick-add entry is not a draft: it is published, sent to the marketplace, or
    rejected.
    """

    status, code = 409, "not_a_draft"


class NotPending(Problem):
    """This quick-add entry is not pending, so it can't be settled."""

    status, code = 409, "not_pending"


class ListingInHand(Problem):
    """An agent may still be listing this entry. It can be settled as not listed 30 minutes after it
    was sent.
    """

    status, code = 409, "listing_in_hand"


class SavedSearchLimitReached(Problem):
    """The shop already has the maximum number of saved searches."""

    status = 422
    code = "saved_search_limit_reached"
