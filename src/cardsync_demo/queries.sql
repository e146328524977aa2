-- name: listed
INSERT INTO listed_value
       (seller_id, product_line, day, cards, copies, listed, market, seen_at)
SELECT :seller, c.product_line, d.day, count(*), sum(o.quantity), sum(o.price * o.quantity),
       sum(coalesce(o.market, o.price) * o.quantity), d.ends
  FROM (SELECT at::date AS day, at + interval '1 day' AS ends
          FROM generate_series(CAST(:first AS timestamptz), CAST(:last AS timestamptz),
                               interval '1 day') at) d
 CROSS JOIN card c
 CROSS JOIN LATERAL (
       SELECT o.quantity, o.price, o.market FROM price_observation o
        WHERE o.seller_id = :seller AND o.card_id = c.id AND o.observed_at < d.ends
        ORDER BY o.observed_at DESC LIMIT 1) o
 WHERE c.seller_id = :seller AND NOT c.gone AND o.quantity > 0 AND o.price IS NOT NULL
 GROUP BY c.product_line, d.day, d.ends
ON CONFLICT DO NOTHING
