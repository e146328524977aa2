"""Defines the limits of the specification's Limits table and of decisions.md, one constant for
each. Sizes are in bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

BODY_WIRE_BYTES = 10_000_000
BODY_INFLATED_BYTES = 50_000_000
JSON_DEPTH = 100
PRESIGNED_PLAIN_BYTES = 50_000_000
PRESIGNED_SECONDS = 600

UPLOAD_ROWS = 50_000

STEP_ERROR_CHARACTERS = 10_000

UPLOADS_PER_PAGE = 50
CYCLES_PER_PAGE = 25

# The largest value of PostgreSQL's bigint.
LARGEST_ID = 2**63 - 1

CSV_MAX_COLUMNS = 200
REJECTED_LISTED = 1_000


POLL_SECONDS = 30


CATALOG_FILE_BYTES = 500_000_000

PAGE_MOST = 1_000_000_000
ORDERS_PER_PAGE = 50
SEARCHED_CHARACTERS = 200

SEARCH_CHARACTERS = 2_000
FILTER_CHARACTERS = 200
CARDS_PER_PAGE = 50
CARDS_PER_PAGE_MOST = 200
# The most cards of a table that scrolls, because browsers cannot draw a taller table. Further cards
# are on pages.
CARDS_SCROLLED = 400_000

CARDS_PER_LIST = 1_000

MEMBER_NAME_CHARACTERS = 100
STORE_NAME_CHARACTERS = 100
PASSWORD_CHARACTERS = 8
PASSWORD_CHARACTERS_MOST = 1_000
SIGN_IN_BYTES = 20_000
# The description of a client that registers itself.
CLIENT_BYTES = 8_000
# The address that a sign-in redirects to; the longest is an assistant's request.
NEXT_CHARACTERS = 8_000
PAGE_FORM_BYTES = 1_000_000


SHELF_NUMBER = 1_000_000
# The most characters of a box's label as it is stored, and as it may be sent.
BOX_LABEL = 12
BOX_GIVEN = 100
SHELVED_QUANTITY = 1_000_000
LOTS_PER_PAGE = 100
LOT_FILE_CHARACTERS = 2_000_000
CUSTOMER_NOTE_CHARACTERS = 2_000
MISSING_NOTE_CHARACTERS = 500
OFFER_DAYS = 90
BUYLIST_ROWS = 12
RETURNS_PER_PAGE = 50
RETURNS_PER_PAGE_MOST = 200
COUNTS_PER_PAGE = 100
# The most quick adds that are drafted or published at a time, and the most rows of one served file,
# whose IDs are in a header.
QUICK_ADD_BATCH = 200
QUICK_ADD_ROWS = 250
TYPE_AHEAD = 20
TYPE_AHEAD_MOST = 100
PLACES_PER_PAGE = 100
RULE_NAME_CHARACTERS = 100
# The largest discount of a sale, in basis points.
SALE_CUT_MOST_BP = 9_000
RULES = 200
RULE_TESTS = 50


# The priority of the seller's preset rule; `default_rule_enabled` switches the rule that has this
# priority.
DEFAULT_PRIORITY: Final = 1_000


PLANS = ("free", "trial", "paid", "complimentary", "founder")
ROLES = ("owner", "staff")

# The number of parts that sellers are divided into if the database is spread over several machines.
SHARDS = 32


WINDOW = 60
MOST = 1_000_000_000
_WRITTEN = re.compile(r"([0-9]{1,10})/min(?::([0-9]{1,10}))?")


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` requests a minute, of which `burst` may arrive at the same time."""

    count: int
    burst: int
    # `emission` is the seconds that one request costs; a request may arrive up to `tolerance`
    # seconds too early.
    emission: float = field(init=False)
    tolerance: float = field(init=False)

    def __post_init__(self) -> None:
        emission = WINDOW / self.count
        object.__setattr__(self, "emission", emission)
        # The tolerance includes a millionth of a request, so that a rounding error does not refuse
        # a burst's last request.
        object.__setattr__(self, "tolerance", (self.burst - 1 + 1e-6) * emission)


def read_limit(text: str) -> Limit | None:
    """Parse `300/min:100` or `300/min` (a burst of a third) as a limit, `0` as no limit. Raises
    ValueError with the reason.
    """
    text = text.strip()
    if text == "0":
        return None
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is no rate limit; write <n>/min or <n>/min:<burst>, for example 300/min:100, or 0"
        )
    count = int(found[1])
    burst = int(found[2]) if found[2] else max(1, count // 3)
    if not (1 <= count <= MOST and 1 <= burst <= MOST):
        raise ValueError(
            f"{text!r}: requests and burst are 1 to {MOST:,}; 0 alone switches the limit off"
        )
    return Limit(count, burst)
