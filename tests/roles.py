"""The roles that each route takes: every route of openapi.json is in one of five tables.

One that is in none fails `tests/features/access/test_roles.py`, so that each new route needs a
decision.
"""

from __future__ import annotations


def routes(told: str) -> set[str]:
    return {line.strip() for line in told.strip().splitlines()}


# They take no credentials, or bring their own.
STRANGERS = routes("""
    POST /api/session
    POST /api/session/passkey
    POST /api/session/passkey/options
    POST /api/invitations/{token}
    PUT /objects/{key}
    GET /downloads/{product}/{version}/{path}
    HEAD /downloads/{product}/{version}/{path}
    GET /healthz
    GET /readyz
""")
# The agent's work: a browser's session is refused, whoever it belongs to.
AGENTS = routes("""
    POST /api/v1/heartbeat
    GET /api/v1/sync/pending
    POST /api/v1/sync/upload-request
    POST /api/v1/sync
    POST /api/v1/sync/log
    POST /api/v1/sync/debug
    DELETE /api/v1/sync/approve_upload
    GET /api/v1/export/price-updates
    POST /api/v1/tasks/claim
    PATCH /api/v1/tasks/{task_id}
    POST /api/v1/repricing_events
    POST /api/v1/repricing_events/failure
    POST /api/v1/workflow/heal
    POST /api/v1/workflow/corrections
    POST /api/v1/workflow/corrections/{correction_id}/failure
    GET /api/v1/desktop/update
    GET /api/v1/workflow/packs/{marketplace}
    POST /api/v1/orders
    POST /api/v1/order_refunds
    POST /api/v1/order_items
    POST /api/v1/orders/shipping
    POST /api/v1/order_feedbacks
    POST /api/v1/sales_report
    GET /api/v1/sales_report/gaps
""")
# Every member.
STAFF = routes("""
    GET /api/session
    DELETE /api/session
    GET /api/sessions
    DELETE /api/sessions/{member_session_id}
    GET /api/passkeys
    POST /api/passkeys
    POST /api/passkeys/options
    DELETE /api/passkeys/{passkey_id}
    GET /api/notices/choices
    PATCH /api/notices/choices
    GET /api/today
    GET /api/movers
    GET /api/cards
    GET /api/cards/complete
    GET /analytics/clearing_coverage
    GET /api/analytics/clearing_coverage
    GET /api/market_depth/holds
    GET /api/market_depth/badges
    GET /api/recommendations
    GET /api/pricing/reviews
    POST /api/recommendations/shown
    GET /api/cards/export.csv
    GET /api/cards/{card_id}
    GET /api/orders/export.csv
    GET /api/customers/export.csv
    GET /api/lists/export.csv
    GET /api/pricing/runs/export.csv
    GET /api/v1/agent/activity/export.csv
    GET /api/saved_searches
    POST /api/saved_searches
    PATCH /api/saved_searches/{search_id}
    DELETE /api/saved_searches/{search_id}
    GET /api/card_columns
    PUT /api/card_columns
    GET /api/cards/{card_id}/behind
    GET /api/cards/{card_id}/match
    GET /api/cards/{card_id}/orders
    GET /api/orders
    GET /api/orders/{order_id}
    GET /api/customers
    GET /api/lists
    GET /api/lists/{list_id}
    POST /api/lists
    POST /api/lists/{list_id}/cards
    GET /api/v1/pricing/explain/{marketplace_id}
    GET /api/pricing/receipts/{marketplace_id}
    GET /api/pricing/runs
    GET /api/pricing/runs/{run_id}
    GET /api/pricing/sales
    GET /api/pricing/sales/{sale_id}
    POST /api/pull_sessions
    GET /api/pull_sessions/{session_id}
    POST /api/pull_sessions/{session_id}/orders/{order_id}/pulled
    POST /api/pull_sessions/{session_id}/orders/{order_id}/defer
    POST /api/pull_sessions/{session_id}/orders/{order_id}/unassign
    POST /api/pull_sessions/{session_id}/complete
    POST /api/pull_sessions/{session_id}/cancel
    POST /api/pull_links
    GET /api/pull_links
    DELETE /api/pull_links/{link_id}
    POST /api/orders/{order_id}/dismiss
    POST /api/orders/{order_id}/undismiss
    POST /api/orders/{order_id}/mark_shipped
    POST /api/orders/{order_id}/unmark_shipped
    GET /api/shelves
    GET /api/shelves/{box}
    POST /api/shelves/put
    POST /api/shelves/put_many
    POST /api/shelves/move
    POST /api/shelves/remove
    POST /api/contributions
    POST /api/contributions/{card_id}/publish
    POST /api/v1/sync/request
    GET /api/v1/status
    GET /api/v1/agent/activity
    POST /api/discovery/availability
    POST /api/discovery/basket
    GET /api/buying/collections
    POST /api/buying/collections
    GET /api/buying/collections/{collection_id}
    GET /api/buying/collections/{collection_id}/rows
    GET /api/buying/collections/{collection_id}/waiting
    GET /api/buying/collections/{collection_id}/value
    POST /api/buying/collections/{collection_id}/choices
    PUT /api/buying/collections/{collection_id}/columns
    GET /api/quick_add/products
    GET /api/buying/offers
    GET /api/buying/offers/{offer_id}
    GET /api/buying/customers
    GET /api/buying/customers/{customer_id}
    GET /api/buying/customers/{customer_id}/credit
    POST /api/buying/offers
    PATCH /api/buying/offers/{offer_id}
    DELETE /api/buying/offers/{offer_id}
    POST /api/buying/customers
    PATCH /api/buying/customers/{customer_id}
    GET /api/quick_add
    POST /api/quick_add
    PATCH /api/quick_add/{entry_id}
    DELETE /api/quick_add/{entry_id}
    GET /api/quick_add/pending
    GET /api/print/sheets
    GET /api/print/sheets/{key}
    GET /api/counts
    POST /api/counts
    GET /api/counts/suggested
    GET /api/counts/{count_id}
    POST /api/counts/{count_id}/seen
    POST /api/counts/{count_id}/settle
    POST /api/counts/{count_id}/cancel
    GET /api/customers/{key}
    PUT /api/customers/{key}/note
    GET /api/returns
    GET /api/returns/customers
    POST /api/returns/{order_id}/restocked
""")
# Operators of the installation alone.
OPERATORS = routes("""
    GET /api/operator/sellers
    GET /api/operator/sellers/{seller_id}
    PATCH /api/operator/sellers/{seller_id}
    GET /api/operator/installation
""")
# Every member, but what a body may ask for beyond: the whole history of orders.
MORE_FOR_OWNERS = routes("""
    POST /api/v1/sync/request
""")
# Owners alone; the revenue, also staff where the account lets them see it.
OWNERS = routes("""
    GET /api/network
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
    GET /api/webhooks
    POST /api/webhooks
    PATCH /api/webhooks/{webhook_id}
    DELETE /api/webhooks/{webhook_id}
    POST /api/webhooks/{webhook_id}/secret
    POST /api/webhooks/{webhook_id}/test
    GET /api/webhooks/{webhook_id}/deliveries
    POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/replay
    GET /api/export/everything
    GET /api/account/deletion
    POST /api/account/deletion
    DELETE /api/account/deletion
    POST /api/v1/pricing/explain/{marketplace_id}/changed
    POST /api/cards/{card_id}/match
    PUT /api/card_columns/shop
    PATCH /api/lists/{list_id}
    DELETE /api/lists/{list_id}
    DELETE /api/lists/{list_id}/cards
    GET /api/pricing/rules
    POST /api/pricing/rules
    GET /api/pricing/rules/analysis
    GET /api/pricing/presets
    GET /api/pricing/updates.csv
    GET /api/pricing/rules/{rule_id}
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
    GET /api/pricing/settings
    PATCH /api/pricing/settings
    POST /api/pricing/pins/pin_many
    POST /api/pricing/pins/unpin_many
    PUT /api/pricing/pins/{marketplace_id}
    DELETE /api/pricing/pins/{marketplace_id}
    POST /api/pricing/preview
    POST /api/pricing/preview/draft
    POST /api/pricing/test
    DELETE /api/buying/collections/{collection_id}
    GET /api/buying/rules
    POST /api/buying/rules
    GET /api/buying/rules/{rule_id}
    PATCH /api/buying/rules/{rule_id}
    DELETE /api/buying/rules/{rule_id}
    POST /api/buying/presets/{preset}
    POST /api/buying/preview
    GET /api/buying/rule_tests
    POST /api/buying/rule_tests
    DELETE /api/buying/rule_tests/{test_id}
    POST /api/buying/rule_tests/check
    GET /api/pricing/rule_tests
    POST /api/pricing/rule_tests
    PATCH /api/pricing/rule_tests/{test_id}
    DELETE /api/pricing/rule_tests/{test_id}
    POST /api/pricing/rule_tests/check
    GET /api/listed_value
    GET /api/v1/sales_report
    GET /api/sales/summary
    GET /api/sales/summary.csv
    GET /api/sales/cards
    GET /api/sales/cards.csv
    POST /api/pricing/backtest
    GET /api/recommendations/outcomes
    POST /api/recommendations/{recommendation_id}/accept
    POST /api/recommendations/{recommendation_id}/dismiss
    POST /api/recommendations/{recommendation_id}/snooze
    POST /api/pricing/reviews/accept
    POST /api/pricing/reviews/dismiss
    POST /api/pricing/reviews/snooze
    POST /api/pricing/reprice
    POST /api/pricing/runs/{run_id}/confirm
    POST /api/pricing/runs/{run_id}/discard
    GET /api/pricing/rollbacks
    POST /api/pricing/rollbacks
    GET /api/pricing/rollbacks/{rollback_id}
    POST /api/pricing/rollbacks/{rollback_id}/cancel
    POST /api/v1/sync/cancel
    POST /api/v1/sync/skip_wait
    GET /api/v1/sync/cycles
    GET /api/v1/sync/cycles/{cycle_id}
    GET /api/v1/sync/screenshots/{screenshot_id}
    GET /api/v1/uploads
    GET /api/v1/uploads/{upload_id}
    GET /api/v1/uploads/{upload_id}/rejected.csv
    POST /api/v1/uploads/{upload_id}/mend
    POST /api/v1/uploads/{upload_id}/confirm
    POST /api/v1/uploads/{upload_id}/discard
    GET /api/account
    PATCH /api/account
    POST /api/v1/tasks
    POST /api/v1/agent/activity/{activity_id}/undo
    POST /api/v1/agent/plans
    GET /api/v1/agent/plans
    GET /api/v1/agent/plans/{plan_id}
    POST /api/v1/agent/plans/{plan_id}/confirm
    POST /api/v1/agent/plans/{plan_id}/decline
    GET /api/v1/agent/plans/permissions
    PATCH /api/v1/agent/plans/permissions
    POST /api/quick_add/publish
    GET /api/buying/buylist
    PATCH /api/buying/buylist
    POST /api/buying/customers/{customer_id}/credit
    POST /api/buying/offers/{offer_id}/link
    POST /api/buying/offers/{offer_id}/offer
    POST /api/buying/offers/{offer_id}/accept
    POST /api/buying/offers/{offer_id}/decline
    POST /api/buying/offers/{offer_id}/receive
    POST /api/buying/offers/{offer_id}/pay
    POST /api/buying/offers/{offer_id}/stock
    POST /api/quick_add/{entry_id}/settle
    GET /api/v1/tasks
""")
