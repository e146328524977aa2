"""Limits of what pricing accepts and shows."""

from __future__ import annotations

BREAKER_MIN_CARDS = 50

# Maximum difference between a client's clock and the server's.
CLOCK_SECONDS = 300

PINNED_AT_ONCE = 10_000
# Maximum number of recommendations that wait for a seller: those that are worth the most.
RECOMMENDATIONS = 5_000
STALE_STOCK = 20
OBSERVATIONS = 20

RULE_PRIORITY = 100_000

# Maximum number of guards of a shop, because each guard is one bit of an integer.
GUARDS = 50
OVERRIDE_REASON_CHARACTERS = 300
SALES = 200
RUNS_SHOWN = 100
# Limits of an assistant's plan. `TRANSITION_ACTIONS` limits the pricing actions of a plan that
# enables or disables a rule.
PLAN_BYTES = 1_000_000
PLAN_ACTIONS = 20
PLAN_CHANGES = 100
PLAN_PINS = 200
PLAN_KEY_CHARACTERS = 255
# Number of cards that a plan shows, and that a list of plans shows for each plan.
PLAN_CARDS_SHOWN = 30
PLAN_CARDS_LISTED = 3
TRANSITION_ACTIONS = 5
PLANS_PER_PAGE = 50
PLANS_PER_PAGE_MOST = 200
# Number of snapshots that one backtest request prices, and of sold lines that it lists.
BACKTEST_SNAPSHOTS = 366
BACKTEST_SOLD = 1_000
ROLLBACKS_SHOWN = 100
ROLLBACK_DIFF_SHOWN = 50
