"""The numbers that bound what this district takes and shows."""

from __future__ import annotations

# Ids that one request picks; as a text they are separated by commas.
SELECTED_IDS = 100_000
SELECTED_CHARACTERS = 2_000_000
SEARCH_TERMS = 200
SEARCH_DEPTH = 20
# The values that the rules of a search compare with, counted each time the search names a rule.
SEARCH_RULE_VALUES = 2_000

CARD_HISTORY_SHOWN = 365
# Including the observations in the object store.
CARD_HISTORY_WHOLE = 5_000

LISTS_PER_SELLER = 100
SAVED_SEARCHES = 100

LIST_NAME_CHARACTERS = 100

LABELED_BOXES = 10_000

SHELVED_AT_ONCE = 100_000
# The most places that an entry of the feed keeps to be undone.
PLACES_UNDONE = 20_000
LABELS_AT_ONCE = 10_000

COUNT_LINES = 100_000
COUNTED_AT_ONCE = 1_000
COUNTS_SUGGESTED = 100
CONTRIBUTION_CHARACTERS = 300
PUBLISHED_AT_ONCE = 500

QUICK_ADD_REASON = 500

PLACES_PER_PAGE_MOST = 500
