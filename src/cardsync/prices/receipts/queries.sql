-- name: stale_since
WITH last AS (
    SELECT coalesce(max(started_at), '-infinity') AS at FROM price_run
     WHERE seller_id = :seller AND state = 'completed'
       AND trigger NOT IN ('recommendation', 'review'))
SELECT EXISTS (SELECT FROM pricing_rule WHERE seller_id = :seller AND updated_at > last.at)
    OR EXISTS (SELECT FROM pricing_sale WHERE seller_id = :seller AND updated_at > last.at)
    OR EXISTS (SELECT FROM activity
                WHERE seller_id = :seller AND created_at > last.at
                  AND action ~ '^pricing[.](rule|sale|settings|preset|default|unpinned)')
       AS rule_changed,
       EXISTS (SELECT FROM card WHERE seller_id = :seller AND id = :card
                  AND observed_at > last.at) AS new_prices
  FROM last
