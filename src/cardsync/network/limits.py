"""The limits of the network."""

from __future__ import annotations

# Availability: the maximum references of a request, the minimum letters of a name, and the maximum
# rows of an answer.
REFERENCES = 25
REFERENCE_NAME = 2
CANDIDATES = 10
OFFERS_SHOWN = 25
NEARBY = 5
# A basket: the maximum references, copies of a reference, sellers, and offers that are considered.
BASKET_REFERENCES = 200
BASKET_COPIES = 1_000
BASKET_SELLERS = 1_000
BASKET_OFFERS = 40_000
# Unmet demand: the maximum of stored rows, and of misses in memory; the callers and the days for
# which a product counts as wanted; the maximum rows of wanted products, and of a seller's own
# offers, on the page.
MISSES = 100_000
MISSES_NOTED = 10_000
MISS_CALLERS = 5
MISS_DAYS = 30
UNMET_SHOWN = 50
OWN_OFFERS_SHOWN = 10
