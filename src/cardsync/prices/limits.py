"""The numbers that bound what this district takes and shows."""

from __future__ import annotations

BREAKER_MIN_CARDS = 50

# A client's clock may be so far from ours.
CLOCK_SECONDS = 300

PINNED_AT_ONCE = 10_000
# The reviews that wait for one seller: those that are worth the most.
RECOMMENDATIONS = 5_000
STALE_STOCK = 20
OBSERVATIONS = 20

RULE_PRIORITY = 100_000

# Each guard of a shop is one bit of a number.
GUARDS = 50
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
