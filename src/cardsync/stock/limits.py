"""The limits of cards, searches, lists, shelves and quick-add."""

from __future__ import annotations

# The maximum number of ids in a request, and of characters in their comma-separated text.
SELECTED_IDS = 100_000
SELECTED_CHARACTERS = 2_000_000
SEARCH_TERMS = 200
SEARCH_DEPTH = 20
# The maximum number of values in the rules of a search. For each term that searches by rule, the
# values of all rules count again.
SEARCH_RULE_VALUES = 2_000

CARD_HISTORY_SHOWN = 365
# The maximum observations of a card, including observations in the object store.
CARD_HISTORY_WHOLE = 5_000

LISTS_PER_SELLER = 100
SAVED_SEARCHES = 100

LIST_NAME_CHARACTERS = 100

LABELED_BOXES = 10_000

SHELVED_AT_ONCE = 100_000
# The maximum number of places that an entry of the activity feed stores for its undo.
PLACES_UNDONE = 20_000
LABELS_AT_ONCE = 10_000

COUNT_LINES = 100_000
COUNTED_AT_ONCE = 1_000
COUNTS_SUGGESTED = 100
CONTRIBUTION_CHARACTERS = 300
PUBLISHED_AT_ONCE = 500

QUICK_ADD_REASON = 500

PLACES_PER_PAGE_MOST = 500
