"""Declares the tables in an account's export. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple


class Sheet(NamedTuple):
    """A table in the export. Its rows are ordered by `key`, a SQL expression for a whole number
    that is the same for few rows only.
    """

    name: str
    table: str
    key: str
    columns: str
    which: str = "true"


_ACCEPTED: Final = """
    (SELECT d.{column} FROM price_decision d
      WHERE d.seller_id = :seller AND d.kind = 'accepted'
        AND d.marketplace_id = proposal.marketplace_id) AS {name}
"""
_EVIDENCE: Final = "((evidence ->> '{name}')::bigint / 10000.0)::numeric(12, 4) AS {name}"
_DAY: Final = "(day - DATE '2000-01-01')"
_OF_DAY: Final = """
    (SELECT coalesce(sum(s.{0}), 0) FROM sales_sum s
      WHERE s.seller_id = :seller AND s.ordered = sales_kept.ordered)::{1}
"""
SHEETS: Final = (
    Sheet(
        "cards.csv",
        "card",
        "id",
        "id, marketplace_id, listing_id, product_line, product_name, set_name, title, number,"
        " rarity, condition_label, printing, language, quantity, price, target_price, market, low,"
        " low_with_shipping, direct_low, gone, custom, contribution, photo_url, observed_at,"
        " created_at, updated_at",
        # A private contribution is visible only to its member, so private contributions of other
        # members are omitted.
        "(contribution IS DISTINCT FROM 'private' OR contributed_by = :member)",
    ),
    Sheet("price_history.csv", "price_observation", "card_id", "*"),
    Sheet(
        "orders.csv",
        "orders",
        "id",
        "id, order_number, buyer_name, order_date, placed_at_given, status, product_amt,"
        " shipping_amt, total_amt, refund_type, refund_origin, refund_product_amt,"
        " refund_shipping_amt, refund_total_given AS refund_total_amt, refund_amt, refund_reason,"
        " refund_note, shipping_method, city, state, postal_code, tracking_number,"
        " shipping_item_count, product_weight, shipping_type, items_total, items_quantity,"
        " feedback_rating, feedback_comment, shipped_marked_at, pull_dismissed_at, created_at,"
        " updated_at",
    ),
    Sheet("order_items.csv", "order_item", "id", "*"),
    Sheet("lists.csv", "card_list", "id", "id, name, created_at, deleted_at"),
    Sheet("list_cards.csv", "card_list_entry", "list_id", "list_id, card_id, added_at"),
    Sheet("saved_searches.csv", "saved_search", "id", "id, name, query, position, created_at"),
    Sheet("settled_matches.csv", "settled_match", "card_id", "*"),
    Sheet("activity.csv", "activity", "id", "*"),
    Sheet(
        "places.csv",
        "card_location",
        "card_id",
        "seller_id, card_id, coalesce((SELECT b.label FROM shelf_box b WHERE"
        " b.seller_id = :seller AND b.box = card_location.box), box::text) AS box, slot, quantity",
    ),
    Sheet(
        "counts.csv",
        "shelf_count",
        "id",
        "seller_id, id, coalesce(box_label, box::text) AS box, slot, state, begun_by, begun_at,"
        " ended_at, lines, correct, wrong, moved, unseen",
    ),
    Sheet("counted_cards.csv", "shelf_count_line", "count_id", "*"),
    Sheet("pricing_rules.csv", "pricing_rule", "id", "*"),
    Sheet("rule_tests.csv", "rule_test", "id", "*"),
    Sheet("pricing_sales.csv", "pricing_sale", "id", "*"),
    Sheet(
        "pinned_prices.csv",
        "price_decision",
        "marketplace_id",
        "seller_id, marketplace_id, price, since AS created_at, until",
        "kind = 'pin'",
    ),
    Sheet(
        "price_runs.csv",
        "price_run",
        "id",
        "id, trigger, state, started_at, finished_at, summary",
    ),
    Sheet(
        "price_reviews.csv",
        "proposal",
        "marketplace_id",
        "seller_id, marketplace_id, state, kind AS reason, rule_id, current_price, proposed_price,"
        f" {_EVIDENCE.format(name='regular_price')}, {_EVIDENCE.format(name='result')}, worth,"
        " revision, created_at, expires_at, settled_at AS decided_at, settled_by AS decided_by,"
        f"{_ACCEPTED.format(column='price', name='accepted_price')},"
        f"{_ACCEPTED.format(column='since', name='accepted_at')}",
        "family = 'review'",
    ),
    Sheet(
        "price_holdouts.csv",
        "price_decision",
        "marketplace_id",
        "seller_id, marketplace_id, part, source_id AS rule_id, kind = 'held_out' AS held, price,"
        " asked, since",
        "kind IN ('held_out', 'twin')",
    ),
    Sheet(
        "recommendations.csv",
        "proposal",
        "id",
        "seller_id, id, slot, family, kind, state, card_id, rule_id, current_price,"
        " proposed_price, expected_value, worth, confidence, evidence, evidence_key, revision,"
        " created_at, expires_at, settled_at, settled_by",
        "family <> 'review'",
    ),
    Sheet("recommendation_events.csv", "recommendation_event", "recommendation_id", "*"),
    Sheet("listed_value.csv", "listed_value", _DAY, "*"),
    Sheet(
        "sales_by_day.csv",
        "sales_kept",
        "(ordered - DATE '2000-01-01')",
        f"seller_id, ordered AS day, {_OF_DAY.format('orders', 'integer')} AS orders,"
        f" {_OF_DAY.format('gross', 'numeric(20, 4)')} AS gross, kept_at AS seen_at",
        # Orders without a date have an earlier date here, and are omitted.
        "ordered > DATE '0001-01-01'",
    ),
    Sheet("sales_reports.csv", "sales_report", "(month - DATE '2000-01-01')", "*"),
    Sheet(
        "customer_notes.csv",
        "customer_note",
        "('x' || substr(encode(key, 'hex'), 1, 15))::bit(60)::bigint",
        "encode(key, 'hex') AS customer, note, updated_at",
    ),
    Sheet("pulls.csv", "pull_session", "id", "id, state, opened_at, completed_at"),
    Sheet(
        "pulled_orders.csv",
        "pull_session_order",
        "session_id",
        "session_id, order_id, pulled_at, missing_at",
    ),
    Sheet(
        "pull_marks.csv",
        "pull_mark",
        "session_id",
        "session_id, order_id, item_id, sku_id, kind, quantity, person, undone, received_at",
    ),
    Sheet(
        "quick_adds.csv",
        "quick_add",
        "id",
        "seller_id, id, status, product_id, listing_id, product_line, product_line_label, set_name,"
        " product_name, number, rarity, condition, condition_label, printing, language, title,"
        " photo_url, quantity, price, cost, source, coalesce(box_label, box::text) AS box, slot,"
        " contribution_id, served, served_at, file_sha256, quantity_before, reason, settled_by,"
        " card_id, created_by, created_at, updated_at, published_at, settled_at",
    ),
    Sheet("buying_customers.csv", "buying_customer", "id", "*"),
    Sheet("store_credit.csv", "store_credit_entry", "id", "*"),
    Sheet(
        "offers.csv",
        "buying_offer",
        "id",
        "id, state, source, customer_id, note, way, cash_part, paid_cash, paid_credit, created_at,"
        " offered_at, expires_at, answered_at, received_at, paid_at, stocked_at",
    ),
    Sheet(
        "offer_lines.csv",
        "buying_offer_line",
        "id",
        "id, offer_id, product_line, set_name, product_name, number, condition, printing,"
        " language, copies, cash_each, credit_each, reason, accepted, received_copies,"
        " received_condition, received_cash_each, received_credit_each, cost_each",
    ),
    Sheet("lots.csv", "lot", "id", "*"),
    Sheet("sold_from_lots.csv", "lot_use", "item_id", "*"),
    Sheet(
        "payments.csv",
        "order_payment",
        "('x' || substr(md5(order_number), 1, 15))::bit(60)::bigint",
        "*",
    ),
    Sheet("buy_rules.csv", "buy_rule", "id", "*"),
    Sheet("buy_rule_tests.csv", "buy_rule_test", "id", "*"),
    Sheet(
        "collections.csv",
        "collection",
        "id",
        "id, name, state, format, rows, rejected_count, created_by, received_at, finished_at",
    ),
    # The key includes the row number, because a collection has too many rows for one part.
    Sheet("collection_rows.csv", "collection_row", "(collection_id * 1000000 + row)", "*"),
    Sheet("notices.csv", "notice", "id", "*"),
    Sheet(
        "webhooks.csv", "webhook", "id", "id, url, kinds, created_at, off_at, off_why, last_sent_at"
    ),
    Sheet(
        "credits.csv",
        "credit_transaction",
        "id",
        "id, kind, amount, balance_after, reason, created_at",
    ),
)
