"""Maps each kind of undo to its function, which takes an entry's `undo` and restores the rows as
they were before the entry. Most kinds restore stored copies of rows (`access/undo_rows.py`). A
function raises ChangedSince if the rows have changed since the entry. Its caller is an owner.

To add a kind, write `undo={"kind": …}` with `access.activity.note`, and add a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cardsync.access.undo_rows import Undo
from cardsync.buying.buylist import buylist_settings
from cardsync.buying.offers import offer_drafts
from cardsync.buying.rules import buy_rule_sets, buy_rule_tests
from cardsync.buying.store_credit import buying_customers, credit_entries
from cardsync.prices.decisions import accept_reviews as reviews
from cardsync.prices.recommendations import accept_recommendation as recommendations
from cardsync.prices.rule_tests import rule_tests
from cardsync.prices.rules import pin_many
from cardsync.prices.rules import undo_rules as rules
from cardsync.prices.rules import undo_sales as sales
from cardsync.sales.lots import write_lots as lots_of_cards
from cardsync.sales.orders import one_customer, pull_sessions, reopen_pulls, returned_copies
from cardsync.sales.orders import pull_marks as orders
from cardsync.sales.pulling import missing_cards
from cardsync.shop.accounts import account_settings as account
from cardsync.stock.cards import chosen_match as cards
from cardsync.stock.cards import saved_searches as searches
from cardsync.stock.lists import undo_lists as lists
from cardsync.stock.shelving import cycle_counts, rename_box
from cardsync.stock.shelving import undo_placing as shelves

KINDS: Final[Mapping[str, Undo]] = {
    rules.KIND: rules.UNDO,
    searches.MADE: searches.UNDO,
    searches.CHANGED: searches.UNDO,
    searches.DELETED: searches.UNDO,
    cards.KIND: cards.UNDO,
    rule_tests.TESTS.kind: rule_tests.TESTS.undo,
    buy_rule_tests.TESTS.kind: buy_rule_tests.TESTS.undo,
    sales.SALE: sales.UNDO_SALE,
    sales.SETTINGS: sales.UNDO_SETTINGS,
    account.KIND: account.UNDO,
    **pin_many.UNDO,
    reviews.KIND: reviews.UNDO,
    **lists.UNDO,
    lots_of_cards.KIND: lots_of_cards.UNDO,
    lots_of_cards.FILE: lots_of_cards.UNDO_FILE,
    orders.DISMISSED: orders.undo_marks,
    orders.SHIPPED: orders.undo_marks,
    orders.MANY_SHIPPED: orders.undo_marks,
    pull_sessions.COMPLETED: reopen_pulls.REOPEN,
    pull_sessions.CANCELLED: reopen_pulls.REOPEN,
    missing_cards.KIND: missing_cards.UNDO,
    buylist_settings.KIND: buylist_settings.UNDO,
    offer_drafts.DELETED: offer_drafts.UNDELETE,
    buy_rule_sets.KIND: buy_rule_sets.UNDO,
    buying_customers.KIND: buying_customers.UNDO,
    credit_entries.KIND: credit_entries.undo_entry,
    cycle_counts.SETTLED: cycle_counts.UNDO,
    shelves.KIND: shelves.UNDO,
    rename_box.KIND: rename_box.unrename,
    one_customer.KIND: one_customer.UNDO,
    returned_copies.KIND: returned_copies.undo_restock,
    recommendations.ACCEPTED: recommendations.UNDO,
    recommendations.SETTLED: recommendations.UNDO,
}
