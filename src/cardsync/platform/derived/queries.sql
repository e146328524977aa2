-- name: games
WITH {split}, sold AS MATERIALIZED (
    SELECT * FROM ({found}) found WHERE found.day BETWEEN :first AND :last
), summed AS (
    SELECT game, CAST(sum(orders) AS bigint) AS orders, {counted}
      FROM (SELECT g.game, g.orders, g.pieces, g.gross, g.estimated, g.unpriced
              FROM kept JOIN sales_game g ON g.seller_id = :seller
                                         AND g.ordered = kept.ordered
             WHERE g.day BETWEEN :first AND :last
            UNION ALL
            SELECT game, count(DISTINCT order_id), {counted} FROM sold GROUP BY 1) found
     GROUP BY game
), paces AS (
    SELECT game, days, sum(items) AS items
      FROM (SELECT p.game, p.days, p.items
              FROM kept JOIN sales_pace p ON p.seller_id = :seller
                                         AND p.ordered = kept.ordered
             WHERE p.day BETWEEN :first AND :last
            UNION ALL
            SELECT s.game, s.day - CAST(c.created_at AS date), count(*)
              FROM sold s JOIN card c ON c.seller_id = :seller
                                     AND c.marketplace_id = s.sku_id
             WHERE s.day >= CAST(c.created_at AS date) GROUP BY 1, 2) found
     GROUP BY game, days
), counted AS (
    SELECT game, days, sum(items) OVER (PARTITION BY game ORDER BY days) AS until,
           sum(items) OVER (PARTITION BY game) AS items
      FROM paces
), medians AS (
    SELECT game, (min(days) FILTER (WHERE until >= floor((items + 1) / 2))
                  + min(days) FILTER (WHERE until >= floor(items / 2) + 1)) / 2.0 AS days
      FROM counted GROUP BY game
)
SELECT s.game, s.orders, s.pieces, s.gross, CAST(m.days AS double precision), s.estimated,
       s.unpriced
  FROM summed s LEFT JOIN medians m ON m.game = s.game
 ORDER BY s.gross DESC NULLS LAST, s.game

-- name: periods
WITH {split}
SELECT day, CAST(sum(orders) AS bigint), sum(gross), CAST(sum(refunded) AS bigint),
       sum(refunds)
  FROM (SELECT s.day, s.orders, s.gross, s.refunded, s.refunds
          FROM kept JOIN sales_sum s ON s.seller_id = :seller AND s.ordered = kept.ordered
         WHERE s.day BETWEEN :first AND :last
        UNION ALL
        SELECT live.* FROM days CROSS JOIN LATERAL (
            SELECT {day}, count(*), coalesce(sum({total}), 0),
                   count(orders.refund_amt), coalesce(sum(orders.refund_amt), 0)
              FROM orders WHERE {sold} AND orders.order_date = days.ordered
               AND {day} BETWEEN :first AND :last GROUP BY 1 OFFSET 0) live) found
 GROUP BY day

-- name: split
kept AS MATERIALIZED (
    SELECT k.ordered FROM sales_kept k
     WHERE k.seller_id = :seller AND k.zone = :zone
       AND k.ordered BETWEEN :first_read AND :last_read
       AND NOT EXISTS (SELECT FROM sales_stale t
                        WHERE t.seller_id = :seller AND t.ordered = k.ordered)
), days AS MATERIALIZED (
    SELECT CAST(d AS date) AS ordered
      FROM generate_series(CAST(:first_read AS date), CAST(:last_read AS date),
                           interval '1 day') d
    EXCEPT SELECT kept.ordered FROM kept
)

-- name: moved
WITH moved AS (
    SELECT c.id, c.quantity, began.price AS before, c.price AS after
      FROM card c CROSS JOIN LATERAL (
           SELECT o.price FROM price_observation o
            WHERE o.seller_id = :seller AND o.card_id = c.id AND o.observed_at <= :since
            ORDER BY o.observed_at DESC LIMIT 1) began
     WHERE {on_sale} AND c.observed_at > :since
       AND EXISTS (SELECT FROM price_observation o
                    WHERE o.seller_id = :seller AND o.observed_at <= :since)
       AND c.price IS NOT NULL AND began.price > 0 AND began.price <> c.price
), ranked AS (
    SELECT moved.*, row_number() OVER (PARTITION BY after > before
                    ORDER BY abs(after - before) * quantity DESC, id) AS place
      FROM moved)
SELECT id, (before * 10000)::bigint, (after * 10000)::bigint FROM ranked
 WHERE place <= :most ORDER BY place

-- name: dropped
WITH empty AS MATERIALIZED (
    SELECT c.id, c.marketplace_id, c.price, c.observed_at FROM card c
     WHERE c.seller_id = :seller AND c.gone AND c.contribution IS NULL
       AND c.updated_at >= CAST(:now AS timestamptz) - interval '{dropped_days} days'
), dropped AS MATERIALIZED (
    SELECT e.id, e.marketplace_id, e.price, had.quantity
      FROM empty e CROSS JOIN LATERAL (
           SELECT o.quantity, o.observed_at FROM price_observation o
            WHERE o.seller_id = :seller AND o.card_id = e.id AND o.quantity > 0
            ORDER BY o.observed_at DESC LIMIT 1) had
     WHERE coalesce((
           SELECT min(o.observed_at) FROM price_observation o
            WHERE o.seller_id = :seller AND o.card_id = e.id
              AND o.observed_at > had.observed_at), e.observed_at)
           >= CAST(:now AS timestamptz) - interval '{dropped_days} days'
), sold AS (
    SELECT i.sku_id FROM orders o
      JOIN order_item i ON i.seller_id = :seller AND i.order_id = o.id
     WHERE o.seller_id = :seller AND o.order_date >= CAST(CAST(:now AS timestamptz)
           AT TIME ZONE 'UTC' - interval '{counted_days} days' AS date)
)
SELECT d.id, d.price, d.quantity FROM dropped d
 WHERE EXISTS (SELECT FROM orders o WHERE o.seller_id = :seller)
   AND NOT EXISTS (SELECT FROM sold WHERE sold.sku_id = d.marketplace_id)
