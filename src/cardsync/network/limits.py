"""The limits of this district."""

from __future__ import annotations

# Discovery: references in one request, letters of a name, and the most rows of an answer.
REFERENCES = 25
REFERENCE_NAME = 2
CANDIDATES = 10
OFFERS_SHOWN = 25
NEARBY = 5
# A basket: its references, the copies of one, and the offers that are considered for all of them.
BASKET_REFERENCES = 200
BASKET_COPIES = 1_000
BASKET_SELLERS = 1_000
BASKET_OFFERS = 40_000
# Unmet demand: stored rows, and rows noted before a write; the callers and days that establish it;
# the rows that a page shows of it, and of a seller's own offers.
MISSES = 100_000
MISSES_NOTED = 10_000
MISS_CALLERS = 5
MISS_DAYS = 30
UNMET_SHOWN = 50
OWN_OFFERS_SHOWN = 10
