"""Holds every number of the specification's Limits table (and what decisions.md adds to it), one
constant each. Sizes are in bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

BODY_WIRE_BYTES = 10_000_000
BODY_INFLATED_BYTES = 50_000_000
JSON_DEPTH = 100
PRESIGNED_COMPRESSED_BYTES = 20_000_000
PRESIGNED_PLAIN_BYTES = 50_000_000
PRESIGNED_SECONDS = 600

UPLOAD_ROWS = 50_000
ORDER_NUMBER_CHARACTERS = 200
BUYER_NAME_CHARACTERS = 500
STATUS_CHARACTERS = 200

SCREENSHOT_BYTES = 2_000_000
SCREENSHOT_SIDE = 8_192
CAPABILITIES_BYTES = 2_000
SNIPPET_BYTES = 64_000
STEP_NAME_CHARACTERS = 200
STEP_ERROR_CHARACTERS = 10_000
AGENT_CHARACTERS = 200
SELECTOR_CHARACTERS = 1_000
# A correction that failed so often is disabled; so many sellers decide for all.
CORRECTION_FAILURES = 3
SELLERS_TO_SHARE = 3
# The newest corrections of one step that are read; the rest are too old to matter.
CORRECTIONS_READ = 500

TASKS_CLAIMED = 10
UPLOADS_PER_PAGE = 50
UPLOADS_PER_PAGE_MOST = 200
CYCLES_PER_PAGE = 25
CYCLES_PER_PAGE_MOST = 100
TASKS_PER_PAGE = 50
TASKS_PER_PAGE_MOST = 200
TASK_RESULT_BYTES = 100_000

# The largest value of PostgreSQL's bigint.
LARGEST_ID = 2**63 - 1

CSV_MAX_COLUMNS = 200
REJECTED_LISTED = 1_000

SHORT_INVENTORY_MIN_ROWS = 20
BREAKER_MIN_CARDS = 50

POLL_SECONDS = 30
# A client's clock may be so far from ours.
CLOCK_SECONDS = 300

SALES_REPORT_LOOKBACK_MONTHS = 24
SALES_REPORT_MONTHS_A_CYCLE = 2

SKIP_WAIT_CREDITS = 1
IDEMPOTENCY_KEY_CHARACTERS = 255
CREDIT_BALANCE = 1_000_000_000

RELEASE_BYTES = 500_000_000
CATALOG_FILE_BYTES = 500_000_000
RELEASE_NAME_CHARACTERS = 100

PAGE_MOST = 1_000_000_000
ORDERS_PER_PAGE = 50
SOLD_ORDERS_MOST = 100
ORDERS_PER_PAGE_MOST = 200
ITEMS_PER_ORDER = 20
ITEMS_PER_ORDER_MOST = 200
REFUND_TEXT_CHARACTERS = 500
PULL_SESSIONS_SHOWN = 10
SETTLED_CARDS_SHOWN = 100
PULL_STATUSES = 100
SEARCHED_CHARACTERS = 200

SEARCH_CHARACTERS = 2_000
FILTER_CHARACTERS = 200
# Ids that one request picks; as a text they are separated by commas.
SELECTED_IDS = 100_000
SELECTED_CHARACTERS = 2_000_000
SEARCH_TERMS = 200
SEARCH_DEPTH = 20
# The values that the rules of a search compare with, counted each time the search names a rule.
SEARCH_RULE_VALUES = 2_000
CARDS_PER_PAGE = 50
CARDS_PER_PAGE_MOST = 200
# A table scrolls through so many cards: browsers draw no taller one. The rest is on pages.
CARDS_SCROLLED = 400_000
CARD_HISTORY_SHOWN = 365
# With what has moved to the object store.
CARD_HISTORY_WHOLE = 5_000
ACTIVITY_PER_PAGE = 50
ACTIVITY_PER_PAGE_MOST = 200

LISTS_PER_SELLER = 100
CARDS_PER_LIST = 1_000
SAVED_SEARCHES = 100
PINNED_AT_ONCE = 10_000
# The reviews that wait for one seller: those that are worth the most.
RECOMMENDATIONS = 5_000
STALE_STOCK = 20
OBSERVATIONS = 20
LIST_NAME_CHARACTERS = 100

EMAIL_CHARACTERS = 320
MEMBER_NAME_CHARACTERS = 100
STORE_NAME_CHARACTERS = 100
KEY_NAME_CHARACTERS = 100
KEYS_OF_ACCOUNT = 50
WEBHOOKS_OF_ACCOUNT = 10
WEBHOOK_KINDS = 100
DELIVERIES_SHOWN = 100
PASSKEYS_OF_MEMBER = 20
SESSIONS_SHOWN = 100
PASSWORD_CHARACTERS = 8
PASSWORD_CHARACTERS_MOST = 1_000
SIGN_IN_BYTES = 20_000
# The description of a client that registers itself.
CLIENT_BYTES = 8_000
# The address that a sign-in leads to; the longest is an assistant's request.
NEXT_CHARACTERS = 8_000
PAGE_FORM_BYTES = 1_000_000

# Phones that pull: links and marks of a session, marks of a request, open streams of a seller on a
# process. A link has a share of each, so that a leaked one leaves room for the others: so many
# marks, and more for each copy that it shows. The desk's pages have streams of their own.
PULL_LINKS = 200
PULL_MARKS = 50_000
PULL_LINK_MARKS = 500
PULL_LINK_MARKS_A_COPY = 10
PULL_LINK_MARKS_MOST = 20_000
PULL_MARKS_AT_ONCE = 500
PULL_STREAMS = 30
PULL_LINK_STREAMS = 3
PULL_DESK_STREAMS = 10
PULL_QUANTITY = 10_000

SHELF_NUMBER = 1_000_000
# A box's label, as it is kept and as it may be sent, and how many labeled boxes a shop has.
BOX_LABEL = 12
BOX_GIVEN = 100
LABELED_BOXES = 10_000
SHELVED_QUANTITY = 1_000_000
SHIP_WITHIN_MOST = 30
SHELVED_AT_ONCE = 100_000
# An entry of the feed keeps at most so many places to be undone.
PLACES_UNDONE = 20_000
LABELS_AT_ONCE = 10_000
SALES_SUMMARY_DAYS = 3_660
SALES_ITEMS_DAYS = 366
SALES_CARDS = 20
# A file of lots or of payments, the lots of a page, and the differences of fees that are listed.
LOT_ROWS = 20_000
LOTS_AT_ONCE = 200
LOTS_PER_PAGE = 100
SOLD_WITHOUT_COST = 200
LOT_FILE_CHARACTERS = 2_000_000
FEE_DIFFERENCES = 500
CUSTOMER_NOTE_CHARACTERS = 2_000
MISSING_NOTE_CHARACTERS = 500
STORE_CREDIT_MOST = 1_000_000
STORE_CREDIT_ENTRIES = 200
BUYING_NAME_CHARACTERS = 100
BUYING_CUSTOMERS_SHOWN = 50
OFFER_LINES = 20_000
OFFER_LINES_AT_ONCE = 1_000
OFFER_COPIES = 10_000
OFFER_NOTE_CHARACTERS = 1_000
OFFER_DAYS = 90
BUYING_OFFERS_SHOWN = 50
BUYLIST_TERMS_CHARACTERS = 2_000
BUYLIST_ROWS = 12
BUYLIST_CART_LINES = 100
BUYLIST_DRAFTS = 200
BUYLIST_DRAFT_DAYS = 30
ORDERS_OF_CUSTOMER = 100
REFUNDERS_SHOWN = 200
OPERATOR_SELLERS = 50
OPERATOR_ROWS = 20
RETURNS_PER_PAGE = 50
RETURNS_PER_PAGE_MOST = 200
COUNT_LINES = 100_000
COUNTED_AT_ONCE = 1_000
COUNTS_PER_PAGE = 100
COUNTS_SUGGESTED = 100
CONTRIBUTION_CHARACTERS = 300
PUBLISHED_AT_ONCE = 500
# Entries drafted or published at once, rows of one served file (their ids are in a header), and
# the marketplace's words for a rejection.
QUICK_ADD_BATCH = 200
QUICK_ADD_ROWS = 250
QUICK_ADD_REASON = 500
TYPE_AHEAD = 20
TYPE_AHEAD_MOST = 100
PLACES_PER_PAGE = 100
PLACES_PER_PAGE_MOST = 500
RULE_NAME_CHARACTERS = 100
RULE_PRIORITY = 100_000
# A sale takes off at most so much.
SALE_CUT_MOST_BP = 9_000
RULES = 200
# Each guard of a shop is one bit of a number.
GUARDS = 50
RULE_TESTS = 50
OVERRIDE_REASON_CHARACTERS = 300
SALES = 200
RUNS_SHOWN = 100
# One plan of an assistant; of its pricing actions where one enables or disables a rule.
PLAN_BYTES = 1_000_000
PLAN_ACTIONS = 20
PLAN_CHANGES = 100
PLAN_PINS = 200
PLAN_KEY_CHARACTERS = 255
# Cards that a plan shows, and that a list of plans shows of each.
PLAN_CARDS_SHOWN = 30
PLAN_CARDS_LISTED = 3
TRANSITION_ACTIONS = 5
PLANS_PER_PAGE = 50
PLANS_PER_PAGE_MOST = 200
# Priced one after the other in one request, and lines sold that are listed beside them.
BACKTEST_SNAPSHOTS = 366
BACKTEST_SOLD = 1_000
ROLLBACKS_SHOWN = 100
ROLLBACK_DIFF_SHOWN = 50


# The seller's preset rule has this position; `default_rule_enabled` switches whatever rule has this
# priority.
DEFAULT_PRIORITY: Final = 1_000


PLANS = ("free", "trial", "paid", "complimentary", "founder")
ROLES = ("owner", "staff")

# Parts that sellers are divided into, where the database is spread over several machines.
SHARDS = 32

# Discovery: references in one request, letters of a name, and what an answer lists at most.
REFERENCES = 25
REFERENCE_NAME = 2
CANDIDATES = 10
OFFERS_SHOWN = 25
NEARBY = 5
# A basket: its references, the copies of one, and the offers that are weighed for all of them.
BASKET_REFERENCES = 200
BASKET_COPIES = 1_000
BASKET_SELLERS = 1_000
BASKET_OFFERS = 40_000
# Unmet demand: rows that are kept, and noted before they are written; callers and days that make
# it; what a page shows of it, and of a seller's own offers.
MISSES = 100_000
MISSES_NOTED = 10_000
MISS_CALLERS = 5
MISS_DAYS = 30
UNMET_SHOWN = 50
OWN_OFFERS_SHOWN = 10


WINDOW = 60
MOST = 1_000_000_000
_WRITTEN = re.compile(r"([0-9]{1,10})/min(?::([0-9]{1,10}))?")


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` requests a minute, of which `burst` may come at once."""

    count: int
    burst: int
    # Seconds that one request costs; how far the arrival time may be ahead of a request that is
    # admitted.
    emission: float = field(init=False)
    tolerance: float = field(init=False)

    def __post_init__(self) -> None:
        emission = WINDOW / self.count
        object.__setattr__(self, "emission", emission)
        # A millionth of a request for what floats lose: a burst must not be short of its last one.
        object.__setattr__(self, "tolerance", (self.burst - 1 + 1e-6) * emission)


def read_limit(text: str) -> Limit | None:
    """`300/min:100` or `300/min` (a burst of a third) as a limit, `0` as none; ValueError says
    what is wrong.
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
