-- name: captured
WITH sold AS (
    SELECT i.sku_id, i.unit_price, coalesce(i.quantity, 1) AS copies,
           coalesce(orders.placed_at_given,
                    timezone(:zone, CAST(orders.order_date + 1 AS timestamp))) AS at
      FROM orders JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
     WHERE {sold} AND orders.order_date BETWEEN :first_read AND :last_read
       AND {day} BETWEEN :first AND :last
       AND (orders.refund_amt >= orders.total_amt) IS NOT TRUE
       AND i.unit_price IS NOT NULL AND i.sku_id IS NOT NULL
)
SELECT coalesce(sum(s.copies), 0)::bigint,
       coalesce(sum((s.unit_price - before.price) * s.copies), 0)
  FROM sold s
  JOIN LATERAL (SELECT c.id FROM card c
                 WHERE c.seller_id = :seller AND c.marketplace_id = s.sku_id
                 ORDER BY c.gone, c.id LIMIT 1) c ON true
  JOIN LATERAL (
       SELECT o.price FROM price_observation o
        WHERE o.seller_id = :seller AND o.card_id = c.id AND o.observed_at < s.at
          AND o.observed_at > s.at - interval '90 days'
          AND o.price IS DISTINCT FROM s.unit_price
        ORDER BY o.observed_at DESC LIMIT 1) before ON true
 WHERE before.price < s.unit_price
