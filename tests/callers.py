"""The callers that each route takes: every route of openapi.json stands in one line of TABLE, with who
may ask and by what. Each new route needs a decision: one that is missing fails
`tests/features/access/test_credentials.py`.

Who: a stranger brings no credentials, or its own; an agent works for the seller, and a browser's
session is refused whoever it belongs to; staff is every member; owner is owners alone (the revenue
is also for staff where the account lets them see it); operator is operators of the installation.
By what: session is a member who is signed in and nobody else; key is a key, too; read and write are
a token with that scope, too.
"""

from __future__ import annotations

TABLE = """
    staff    read     GET /analytics/clearing_coverage
    owner    read     GET /api/account
    owner    session  PATCH /api/account
    owner    session  DELETE /api/account/deletion
    owner    session  GET /api/account/deletion
    owner    session  POST /api/account/deletion
    staff    read     GET /api/analytics/clearing_coverage
    owner    session  GET /api/assistants
    owner    session  DELETE /api/assistants/{assistant_id}
    owner    session  PATCH /api/assistants/{assistant_id}
    owner    read     GET /api/buying/buylist
    owner    write    PATCH /api/buying/buylist
    staff    read     GET /api/buying/collections
    staff    write    POST /api/buying/collections
    owner    write    DELETE /api/buying/collections/{collection_id}
    staff    read     GET /api/buying/collections/{collection_id}
    staff    write    POST /api/buying/collections/{collection_id}/choices
    staff    write    PUT /api/buying/collections/{collection_id}/columns
    staff    read     GET /api/buying/collections/{collection_id}/rows
    staff    read     GET /api/buying/collections/{collection_id}/value
    staff    read     GET /api/buying/collections/{collection_id}/waiting
    owner    read     GET /api/buying/costs/{marketplace_id}
    staff    read     GET /api/buying/customers
    staff    write    POST /api/buying/customers
    staff    read     GET /api/buying/customers/{customer_id}
    staff    write    PATCH /api/buying/customers/{customer_id}
    staff    read     GET /api/buying/customers/{customer_id}/credit
    owner    write    POST /api/buying/customers/{customer_id}/credit
    owner    read     GET /api/buying/fees
    owner    read     GET /api/buying/lots
    owner    key      POST /api/buying/lots
    owner    read     GET /api/buying/lots.csv
    owner    key      POST /api/buying/lots/file
    owner    key      DELETE /api/buying/lots/{lot_id}
    owner    key      PATCH /api/buying/lots/{lot_id}
    staff    read     GET /api/buying/offers
    staff    write    POST /api/buying/offers
    staff    write    DELETE /api/buying/offers/{offer_id}
    staff    read     GET /api/buying/offers/{offer_id}
    staff    write    PATCH /api/buying/offers/{offer_id}
    owner    write    POST /api/buying/offers/{offer_id}/accept
    owner    write    POST /api/buying/offers/{offer_id}/decline
    owner    write    POST /api/buying/offers/{offer_id}/link
    owner    write    POST /api/buying/offers/{offer_id}/offer
    owner    write    POST /api/buying/offers/{offer_id}/pay
    owner    write    POST /api/buying/offers/{offer_id}/receive
    owner    write    POST /api/buying/offers/{offer_id}/stock
    owner    key      POST /api/buying/payments
    owner    write    POST /api/buying/presets/{preset}
    owner    read     POST /api/buying/preview
    owner    read     GET /api/buying/profit
    owner    read     GET /api/buying/profit.csv
    owner    read     GET /api/buying/profit/orders/{order_id}
    owner    read     GET /api/buying/profit/without_cost
    owner    read     GET /api/buying/rule_tests
    owner    write    POST /api/buying/rule_tests
    owner    read     POST /api/buying/rule_tests/check
    owner    write    DELETE /api/buying/rule_tests/{test_id}
    owner    read     GET /api/buying/rules
    owner    write    POST /api/buying/rules
    owner    write    DELETE /api/buying/rules/{rule_id}
    owner    read     GET /api/buying/rules/{rule_id}
    owner    write    PATCH /api/buying/rules/{rule_id}
    staff    read     GET /api/card_columns
    staff    write    PUT /api/card_columns
    owner    write    PUT /api/card_columns/shop
    staff    read     GET /api/cards
    staff    read     GET /api/cards/complete
    staff    read     GET /api/cards/export.csv
    staff    read     GET /api/cards/{card_id}
    staff    read     GET /api/cards/{card_id}/behind
    staff    read     GET /api/cards/{card_id}/match
    owner    write    POST /api/cards/{card_id}/match
    staff    read     GET /api/cards/{card_id}/orders
    staff    session  POST /api/contributions
    staff    session  POST /api/contributions/{card_id}/publish
    staff    session  GET /api/counts
    staff    session  POST /api/counts
    staff    session  GET /api/counts/suggested
    staff    session  GET /api/counts/{count_id}
    staff    session  POST /api/counts/{count_id}/cancel
    staff    session  POST /api/counts/{count_id}/seen
    staff    session  POST /api/counts/{count_id}/settle
    staff    read     GET /api/customers
    staff    read     GET /api/customers/export.csv
    staff    read     GET /api/customers/{key}
    staff    write    PUT /api/customers/{key}/note
    staff    read     POST /api/discovery/availability
    staff    read     POST /api/discovery/basket
    owner    session  GET /api/export/everything
    stranger nothing  POST /api/invitations/{token}
    owner    session  GET /api/keys
    owner    session  POST /api/keys
    owner    session  DELETE /api/keys/{key_id}
    owner    session  PATCH /api/keys/{key_id}
    owner    session  POST /api/keys/{key_id}/replace
    owner    read     GET /api/listed_value
    owner    read     GET /api/sync_result
    staff    read     GET /api/lists
    staff    write    POST /api/lists
    staff    read     GET /api/lists/export.csv
    owner    write    DELETE /api/lists/{list_id}
    staff    read     GET /api/lists/{list_id}
    owner    write    PATCH /api/lists/{list_id}
    owner    write    DELETE /api/lists/{list_id}/cards
    staff    write    POST /api/lists/{list_id}/cards
    staff    read     GET /api/market_depth/badges
    staff    read     GET /api/market_depth/holds
    owner    session  GET /api/members
    owner    session  POST /api/members/invitations
    owner    session  DELETE /api/members/{member_id}
    owner    session  PATCH /api/members/{member_id}
    staff    session  PATCH /api/members/me
    owner    session  POST /api/members/{member_id}/link
    owner    session  DELETE /api/members/{member_id}/sessions
    staff    read     GET /api/movers
    staff    read     GET /api/missing_cards
    owner    read     GET /api/network
    staff    session  GET /api/notices/choices
    staff    session  PATCH /api/notices/choices
    operator session  GET /api/operator/backups
    operator session  POST /api/operator/backups
    operator session  GET /api/operator/catalogs
    operator session  POST /api/operator/catalogs
    operator session  PATCH /api/operator/catalogs
    operator session  POST /api/operator/catalogs/back
    operator session  POST /api/operator/catalogs/files
    operator session  GET /api/operator/installation
    operator session  GET /api/operator/sellers
    operator session  GET /api/operator/sellers/{seller_id}
    operator session  PATCH /api/operator/sellers/{seller_id}
    staff    read     GET /api/orders
    staff    read     GET /api/orders/export.csv
    staff    read     GET /api/orders/{order_id}
    staff    write    POST /api/orders/mark_shipped
    staff    write    POST /api/orders/{order_id}/dismiss
    staff    write    POST /api/orders/{order_id}/mark_shipped
    staff    write    POST /api/orders/{order_id}/missing/{item_id}
    staff    write    POST /api/orders/{order_id}/undismiss
    staff    write    POST /api/orders/{order_id}/unmark_pulled
    staff    write    POST /api/orders/{order_id}/unmark_shipped
    staff    session  GET /api/passkeys
    staff    session  POST /api/passkeys
    staff    session  POST /api/passkeys/options
    staff    session  DELETE /api/passkeys/{passkey_id}
    owner    read     POST /api/pricing/backtest
    owner    write    POST /api/pricing/pins/pin_many
    owner    write    POST /api/pricing/pins/unpin_many
    owner    write    DELETE /api/pricing/pins/{marketplace_id}
    owner    write    PUT /api/pricing/pins/{marketplace_id}
    owner    read     GET /api/pricing/presets
    owner    write    POST /api/pricing/presets/{preset}
    owner    read     POST /api/pricing/preview
    owner    read     POST /api/pricing/preview/draft
    owner    read     POST /api/pricing/preview/sale
    staff    read     GET /api/pricing/receipts/{marketplace_id}
    owner    write    POST /api/pricing/reprice
    staff    read     GET /api/pricing/reviews
    owner    write    POST /api/pricing/reviews/accept
    owner    write    POST /api/pricing/reviews/dismiss
    owner    write    POST /api/pricing/reviews/snooze
    owner    read     GET /api/pricing/rollbacks
    owner    write    POST /api/pricing/rollbacks
    owner    read     GET /api/pricing/rollbacks/{rollback_id}
    owner    write    POST /api/pricing/rollbacks/{rollback_id}/cancel
    owner    read     GET /api/pricing/rule_tests
    owner    write    POST /api/pricing/rule_tests
    owner    read     POST /api/pricing/rule_tests/check
    owner    write    DELETE /api/pricing/rule_tests/{test_id}
    owner    write    PATCH /api/pricing/rule_tests/{test_id}
    owner    read     GET /api/pricing/rules
    owner    write    POST /api/pricing/rules
    owner    read     GET /api/pricing/rules/analysis
    owner    write    POST /api/pricing/rules/reorder
    owner    write    DELETE /api/pricing/rules/{rule_id}
    owner    read     GET /api/pricing/rules/{rule_id}
    owner    write    PATCH /api/pricing/rules/{rule_id}
    owner    write    POST /api/pricing/rules/{rule_id}/disable
    owner    write    POST /api/pricing/rules/{rule_id}/enable
    owner    write    POST /api/pricing/rules/{rule_id}/publish
    staff    read     GET /api/pricing/runs
    staff    read     GET /api/pricing/runs/export.csv
    staff    read     GET /api/pricing/runs/{run_id}
    owner    write    POST /api/pricing/runs/{run_id}/confirm
    owner    write    POST /api/pricing/runs/{run_id}/discard
    staff    read     GET /api/pricing/sales
    owner    write    POST /api/pricing/sales
    owner    write    DELETE /api/pricing/sales/{sale_id}
    staff    read     GET /api/pricing/sales/{sale_id}
    owner    write    PATCH /api/pricing/sales/{sale_id}
    owner    read     GET /api/pricing/settings
    owner    write    PATCH /api/pricing/settings
    owner    read     POST /api/pricing/test
    owner    read     GET /api/pricing/updates.csv
    staff    read     GET /api/print/sheets
    staff    read     GET /api/print/sheets/{key}
    staff    session  GET /api/pull_links
    staff    session  POST /api/pull_links
    staff    session  DELETE /api/pull_links/{link_id}
    staff    write    POST /api/pull_sessions
    staff    read     GET /api/pull_sessions/{session_id}
    staff    write    POST /api/pull_sessions/{session_id}/cancel
    staff    write    POST /api/pull_sessions/{session_id}/complete
    staff    write    POST /api/pull_sessions/{session_id}/orders/{order_id}/defer
    staff    write    POST /api/pull_sessions/{session_id}/orders/{order_id}/pulled
    staff    write    POST /api/pull_sessions/{session_id}/orders/{order_id}/unassign
    staff    read     GET /api/quick_add
    staff    write    POST /api/quick_add
    staff    session  GET /api/quick_add/pending
    staff    read     GET /api/quick_add/products
    owner    write    POST /api/quick_add/publish
    staff    write    DELETE /api/quick_add/{entry_id}
    staff    write    PATCH /api/quick_add/{entry_id}
    owner    session  POST /api/quick_add/{entry_id}/settle
    staff    read     GET /api/recommendations
    owner    read     GET /api/recommendations/outcomes
    staff    session  POST /api/recommendations/shown
    owner    write    POST /api/recommendations/{recommendation_id}/accept
    owner    write    POST /api/recommendations/{recommendation_id}/dismiss
    owner    write    POST /api/recommendations/{recommendation_id}/snooze
    staff    read     GET /api/returns
    staff    read     GET /api/returns/customers
    staff    write    POST /api/returns/{order_id}/restocked
    owner    read     GET /api/sales/cards
    owner    read     GET /api/sales/cards.csv
    owner    read     GET /api/sales/summary
    owner    read     GET /api/sales/summary.csv
    staff    read     GET /api/saved_searches
    staff    write    POST /api/saved_searches
    staff    write    DELETE /api/saved_searches/{search_id}
    staff    write    PATCH /api/saved_searches/{search_id}
    staff    session  DELETE /api/session
    staff    session  GET /api/session
    stranger nothing  POST /api/session
    stranger nothing  POST /api/session/passkey
    stranger nothing  POST /api/session/passkey/options
    staff    session  GET /api/sessions
    staff    session  DELETE /api/sessions/{member_session_id}
    staff    session  GET /api/shelves
    staff    session  POST /api/shelves/move
    staff    session  POST /api/shelves/put
    staff    session  POST /api/shelves/put_many
    staff    session  POST /api/shelves/rename
    staff    session  POST /api/shelves/remove
    staff    session  GET /api/shelves/{box}
    staff    read     GET /api/today
    owner    read     GET /api/waiting
    owner    write    POST /api/waiting/{kind}/{waiting_id}
    staff    read     GET /api/v1/agent/activity
    staff    read     GET /api/v1/agent/activity/export.csv
    owner    write    POST /api/v1/agent/activity/{activity_id}/undo
    owner    read     GET /api/v1/agent/plans
    owner    write    POST /api/v1/agent/plans
    owner    session  GET /api/v1/agent/plans/permissions
    owner    session  PATCH /api/v1/agent/plans/permissions
    owner    read     GET /api/v1/agent/plans/{plan_id}
    owner    session  POST /api/v1/agent/plans/{plan_id}/confirm
    owner    session  POST /api/v1/agent/plans/{plan_id}/decline
    agent    key      GET /api/v1/desktop/update
    agent    key      GET /api/v1/export/price-updates
    agent    key      POST /api/v1/heartbeat
    agent    key      POST /api/v1/order_feedbacks
    agent    key      POST /api/v1/order_items
    agent    key      POST /api/v1/order_refunds
    agent    key      POST /api/v1/orders
    agent    key      POST /api/v1/orders/shipping
    staff    read     GET /api/v1/pricing/explain/{marketplace_id}
    owner    read     POST /api/v1/pricing/explain/{marketplace_id}/changed
    agent    key      POST /api/v1/repricing_events
    agent    key      POST /api/v1/repricing_events/failure
    owner    key      GET /api/v1/sales_report
    agent    key      POST /api/v1/sales_report
    agent    key      GET /api/v1/sales_report/gaps
    staff    read     GET /api/v1/status
    agent    key      POST /api/v1/sync
    agent    key      DELETE /api/v1/sync/approve_upload
    owner    key      POST /api/v1/sync/cancel
    owner    read     GET /api/v1/sync/cycles
    owner    read     GET /api/v1/sync/cycles/{cycle_id}
    agent    key      POST /api/v1/sync/debug
    agent    key      POST /api/v1/sync/log
    agent    key      GET /api/v1/sync/pending
    staff    write    POST /api/v1/sync/request
    owner    session  GET /api/v1/sync/screenshots/{screenshot_id}
    owner    key      POST /api/v1/sync/skip_wait
    agent    key      POST /api/v1/sync/upload-request
    owner    read     GET /api/v1/tasks
    owner    write    POST /api/v1/tasks
    agent    key      POST /api/v1/tasks/claim
    agent    key      PATCH /api/v1/tasks/{task_id}
    owner    read     GET /api/v1/uploads
    owner    read     GET /api/v1/uploads/{upload_id}
    owner    key      POST /api/v1/uploads/{upload_id}/confirm
    owner    key      POST /api/v1/uploads/{upload_id}/discard
    owner    key      POST /api/v1/uploads/{upload_id}/mend
    owner    read     GET /api/v1/uploads/{upload_id}/rejected.csv
    agent    key      POST /api/v1/workflow/corrections
    agent    key      POST /api/v1/workflow/corrections/{correction_id}/failure
    agent    key      POST /api/v1/workflow/heal
    agent    key      GET /api/v1/workflow/packs/{marketplace}
    owner    session  GET /api/webhooks
    owner    session  POST /api/webhooks
    owner    session  DELETE /api/webhooks/{webhook_id}
    owner    session  PATCH /api/webhooks/{webhook_id}
    owner    session  GET /api/webhooks/{webhook_id}/deliveries
    owner    session  POST /api/webhooks/{webhook_id}/deliveries/{delivery_id}/replay
    owner    session  POST /api/webhooks/{webhook_id}/secret
    owner    session  POST /api/webhooks/{webhook_id}/test
    stranger nothing  GET /downloads/{product}/{version}/{path}
    stranger nothing  GET /healthz
    stranger nothing  PUT /objects/{key}
    stranger nothing  GET /readyz
"""
LINES = [line.split(maxsplit=2) for line in TABLE.strip().splitlines()]
CALLERS = {route: (who, by) for who, by, route in LINES}

STRANGERS = {route for route, (who, _) in CALLERS.items() if who == "stranger"}
READS = {route for route, (_, by) in CALLERS.items() if by == "read"}
WRITES = {route for route, (_, by) in CALLERS.items() if by == "write"}
# Staff may ask, but not for all that a body may say: the whole history of orders.
MORE_FOR_OWNERS = {"POST /api/v1/sync/request", "PATCH /api/buying/offers/{offer_id}"}
CREDENTIALS = ("owner", "staff", "key", "read", "write")


def refusal(route: str, credential: str) -> str:
    """The code of the 403 that this credential gets on the route, or nothing."""
    who, by = CALLERS[route]
    of_member = credential in ("owner", "staff")
    if by == "session" and not of_member:
        return "session_required"
    if who == "operator":
        # Neither of these members is an operator.
        return "operator_required"
    if by == "key" and (credential in ("read", "write") or (who == "agent" and of_member)):
        return "key_required"
    if {by, credential} == {"read", "write"}:
        return "insufficient_scope"
    return "owner_required" if (who, credential) == ("owner", "staff") else ""
