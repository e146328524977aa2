"""The credentials that each route takes: every route of openapi.json is in one of these tables or
in STRANGERS and AGENTS of roles.py, which also says what staff may do.

One that is in none fails `tests/features/access/test_credentials.py`.
"""

from __future__ import annotations

from roles import AGENTS, OPERATORS, OWNERS, STAFF, routes

# A member who is signed in, and nobody else.
SESSION_ALONE = routes("""
    GET /api/session
    DELETE /api/session
    PATCH /api/account
    GET /api/members
    POST /api/members/invitations
    PATCH /api/members/{member_id}
    DELETE /api/members/{member_id}
    DELETE /api/members/{member_id}/sessions
    POST /api/members/{member_id}/link
    GET /api/assistants
    PATCH /api/assistants/{assistant_id}
    DELETE /api/assistants/{assistant_id}
    GET /api/keys
    POST /api/keys
    POST /api/keys/{key_id}/replace
    DELETE /api/keys/{key_id}
    GET /api/notices/choices
    PATCH /api/notices/choices
    GET /api/webhooks
    POST /api/webhooks
    PATCH /api/webhooks/{webhook_id}
    DELETE /api/webhooks/{webhook_id}
    POST /api/webhooks/{webhook_id}/secret
    POST /api/webhooks/{webhook_id}/test
    GET /api/webhooks/{webhook_id}/deliveries
    POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/replay
    GET /api/export/everything
    GET /api/sessions
    DELETE /api/sessions/{member_session_id}
    GET /api/passkeys
    POST /api/passkeys
    POST /api/passkeys/options
    DELETE /api/passkeys/{passkey_id}
    GET /api/account/deletion
    POST /api/account/deletion
    DELETE /api/account/deletion
    GET /api/operator/sellers
    GET /api/operator/sellers/{seller_id}
    PATCH /api/operator/sellers/{seller_id}
    GET /api/operator/installation
    POST /api/pull_links
    GET /api/pull_links
    DELETE /api/pull_links/{link_id}
    GET /api/shelves
    GET /api/shelves/{box}
    POST /api/shelves/put
    POST /api/shelves/put_many
    POST /api/shelves/move
    POST /api/shelves/remove
    GET /api/counts
    POST /api/counts
    GET /api/counts/suggested
    GET /api/counts/{count_id}
    POST /api/counts/{count_id}/seen
    POST /api/counts/{count_id}/settle
    POST /api/counts/{count_id}/cancel
    POST /api/recommendations/shown
    POST /api/contributions
    POST /api/contributions/{card_id}/publish
    GET /api/quick_add/pending
    GET /api/v1/sync/screenshots/{screenshot_id}
    POST /api/quick_add/{entry_id}/settle
    POST /api/v1/agent/plans/{plan_id}/confirm
    POST /api/v1/agent/plans/{plan_id}/decline
    GET /api/v1/agent/plans/permissions
    PATCH /api/v1/agent/plans/permissions
""")
# A key or a member; tokens are refused as on the agent's routes.
KEY_OR_SESSION = routes("""
    POST /api/v1/sync/cancel
    POST /api/v1/sync/skip_wait
    GET /api/v1/sales_report
    POST /api/v1/uploads/{upload_id}/confirm
    POST /api/v1/uploads/{upload_id}/discard
    POST /api/buying/lots
    POST /api/buying/lots/file
    PATCH /api/buying/lots/{lot_id}
    DELETE /api/buying/lots/{lot_id}
    POST /api/buying/payments
    POST /api/v1/uploads/{upload_id}/mend
""")
# Everybody; a token needs mcp:read.
READS = routes("""
    GET /api/account
    GET /api/today
    GET /api/network
    GET /api/listed_value
    GET /api/movers
    GET /api/cards
    GET /api/cards/complete
    GET /analytics/clearing_coverage
    GET /api/analytics/clearing_coverage
    GET /api/market_depth/holds
    GET /api/market_depth/badges
    GET /api/recommendations
    GET /api/pricing/reviews
    GET /api/recommendations/outcomes
    GET /api/cards/export.csv
    GET /api/cards/{card_id}
    GET /api/orders/export.csv
    GET /api/customers/export.csv
    GET /api/lists/export.csv
    GET /api/pricing/runs/export.csv
    GET /api/v1/agent/activity/export.csv
    GET /api/saved_searches
    GET /api/card_columns
    GET /api/cards/{card_id}/behind
    GET /api/cards/{card_id}/match
    GET /api/cards/{card_id}/orders
    GET /api/orders
    GET /api/orders/{order_id}
    GET /api/customers
    GET /api/lists
    GET /api/lists/{list_id}
    GET /api/pull_sessions/{session_id}
    GET /api/pricing/rules
    GET /api/pricing/rules/analysis
    GET /api/pricing/presets
    GET /api/pricing/updates.csv
    GET /api/pricing/rules/{rule_id}
    GET /api/pricing/sales
    GET /api/pricing/sales/{sale_id}
    GET /api/pricing/settings
    GET /api/pricing/runs
    GET /api/pricing/runs/{run_id}
    GET /api/pricing/receipts/{marketplace_id}
    GET /api/pricing/rollbacks
    GET /api/pricing/rollbacks/{rollback_id}
    POST /api/pricing/preview
    POST /api/pricing/preview/draft
    POST /api/pricing/test
    GET /api/buying/collections
    GET /api/buying/collections/{collection_id}
    GET /api/buying/collections/{collection_id}/rows
    GET /api/buying/collections/{collection_id}/waiting
    GET /api/buying/collections/{collection_id}/value
    GET /api/buying/rules
    GET /api/buying/rules/{rule_id}
    GET /api/buying/rule_tests
    POST /api/buying/rule_tests/check
    POST /api/buying/preview
    GET /api/pricing/rule_tests
    POST /api/pricing/rule_tests/check
    GET /api/buying/lots
    GET /api/buying/lots.csv
    GET /api/buying/costs/{marketplace_id}
    GET /api/buying/profit
    GET /api/buying/profit.csv
    GET /api/buying/profit/orders/{order_id}
    GET /api/buying/fees
    GET /api/sales/summary
    GET /api/sales/summary.csv
    GET /api/sales/cards
    GET /api/sales/cards.csv
    GET /api/print/sheets
    GET /api/print/sheets/{key}
    GET /api/customers/{key}
    GET /api/returns
    GET /api/returns/customers
    POST /api/pricing/backtest
    GET /api/v1/pricing/explain/{marketplace_id}
    POST /api/v1/pricing/explain/{marketplace_id}/changed
    GET /api/v1/status
    GET /api/v1/agent/activity
    GET /api/v1/tasks
    GET /api/v1/agent/plans
    GET /api/v1/agent/plans/{plan_id}
    GET /api/v1/sync/cycles
    GET /api/v1/sync/cycles/{cycle_id}
    GET /api/v1/uploads
    GET /api/v1/uploads/{upload_id}
    GET /api/v1/uploads/{upload_id}/rejected.csv
    POST /api/discovery/availability
    POST /api/discovery/basket
    GET /api/quick_add
    GET /api/quick_add/products
    GET /api/buying/offers
    GET /api/buying/offers/{offer_id}
    GET /api/buying/customers
    GET /api/buying/customers/{customer_id}
    GET /api/buying/customers/{customer_id}/credit
    GET /api/buying/buylist
""")
# Everybody; a token needs mcp:write.
WRITES = routes("""
    POST /api/v1/agent/plans
    POST /api/quick_add
    PATCH /api/quick_add/{entry_id}
    DELETE /api/quick_add/{entry_id}
    POST /api/quick_add/publish
    POST /api/buying/offers
    PATCH /api/buying/offers/{offer_id}
    DELETE /api/buying/offers/{offer_id}
    POST /api/buying/customers
    PATCH /api/buying/customers/{customer_id}
    PATCH /api/buying/buylist
    POST /api/buying/customers/{customer_id}/credit
    POST /api/buying/offers/{offer_id}/link
    POST /api/buying/offers/{offer_id}/offer
    POST /api/buying/offers/{offer_id}/accept
    POST /api/buying/offers/{offer_id}/decline
    POST /api/buying/offers/{offer_id}/receive
    POST /api/buying/offers/{offer_id}/pay
    POST /api/buying/offers/{offer_id}/stock
    POST /api/saved_searches
    PATCH /api/saved_searches/{search_id}
    DELETE /api/saved_searches/{search_id}
    PUT /api/card_columns
    PUT /api/card_columns/shop
    POST /api/cards/{card_id}/match
    POST /api/lists
    PATCH /api/lists/{list_id}
    DELETE /api/lists/{list_id}
    POST /api/lists/{list_id}/cards
    DELETE /api/lists/{list_id}/cards
    POST /api/pull_sessions
    POST /api/pull_sessions/{session_id}/orders/{order_id}/pulled
    POST /api/pull_sessions/{session_id}/orders/{order_id}/defer
    POST /api/pull_sessions/{session_id}/orders/{order_id}/unassign
    POST /api/pull_sessions/{session_id}/complete
    POST /api/pull_sessions/{session_id}/cancel
    POST /api/orders/{order_id}/dismiss
    POST /api/orders/{order_id}/undismiss
    POST /api/orders/{order_id}/mark_shipped
    POST /api/orders/{order_id}/unmark_shipped
    POST /api/pricing/rules
    PATCH /api/pricing/rules/{rule_id}
    DELETE /api/pricing/rules/{rule_id}
    POST /api/pricing/rules/{rule_id}/publish
    POST /api/pricing/rules/{rule_id}/enable
    POST /api/pricing/rules/{rule_id}/disable
    POST /api/pricing/rules/reorder
    POST /api/pricing/presets/{preset}
    POST /api/pricing/sales
    PATCH /api/pricing/sales/{sale_id}
    DELETE /api/pricing/sales/{sale_id}
    PATCH /api/pricing/settings
    POST /api/pricing/pins/pin_many
    POST /api/pricing/pins/unpin_many
    PUT /api/pricing/pins/{marketplace_id}
    DELETE /api/pricing/pins/{marketplace_id}
    POST /api/buying/collections
    POST /api/buying/collections/{collection_id}/choices
    PUT /api/buying/collections/{collection_id}/columns
    DELETE /api/buying/collections/{collection_id}
    POST /api/buying/rules
    PATCH /api/buying/rules/{rule_id}
    DELETE /api/buying/rules/{rule_id}
    POST /api/buying/presets/{preset}
    POST /api/buying/rule_tests
    DELETE /api/buying/rule_tests/{test_id}
    POST /api/pricing/rule_tests
    PATCH /api/pricing/rule_tests/{test_id}
    DELETE /api/pricing/rule_tests/{test_id}
    PUT /api/customers/{key}/note
    POST /api/returns/{order_id}/restocked
    POST /api/recommendations/{recommendation_id}/accept
    POST /api/recommendations/{recommendation_id}/dismiss
    POST /api/recommendations/{recommendation_id}/snooze
    POST /api/pricing/reviews/accept
    POST /api/pricing/reviews/dismiss
    POST /api/pricing/reviews/snooze
    POST /api/pricing/reprice
    POST /api/pricing/runs/{run_id}/confirm
    POST /api/pricing/runs/{run_id}/discard
    POST /api/pricing/rollbacks
    POST /api/pricing/rollbacks/{rollback_id}/cancel
    POST /api/v1/sync/request
    POST /api/v1/tasks
    POST /api/v1/agent/activity/{activity_id}/undo
""")
CREDENTIALS = ("owner", "staff", "key", "read", "write")


def refusal(route: str, credential: str) -> str:
    """The code of the 403 that this credential gets on the route, or nothing."""
    if route in SESSION_ALONE and credential in ("key", "read", "write"):
        return "session_required"
    if route in OPERATORS:
        # Neither of these members is an operator.
        return "operator_required"
    if route in AGENTS and credential != "key":
        return "key_required"
    if route in KEY_OR_SESSION and credential in ("read", "write"):
        return "key_required"
    if (route in READS and credential == "write") or (route in WRITES and credential == "read"):
        return "insufficient_scope"
    if credential == "staff" and route in OWNERS:
        return "owner_required"
    assert route in AGENTS | OWNERS | STAFF
    return ""
