-- name: network_cells
CREATE TEMP TABLE own_card ON COMMIT DROP AS
SELECT c.marketplace_id, k.id AS cell,
       coalesce(p.marketplace_product_id, q.marketplace_product_id) AS product_id,
       CASE WHEN NOT c.gone AND c.quantity > 0 AND c.price > 0
            THEN (c.price * 10000)::bigint END AS price
  FROM card c
  JOIN product p ON p.id = c.product_id
  LEFT JOIN product q ON q.id = p.adopted_by
  JOIN market_cell k ON k.condition = c.condition AND k.printing = c.printing
                    AND k.language = c.language
 WHERE c.seller_id = :seller AND NOT c.custom AND c.contribution IS NULL
   AND coalesce(p.marketplace_product_id, q.marketplace_product_id) IS NOT NULL

-- name: looks_of_past
SELECT p.product_id, s.at AS sales_at, l.at AS listings_at
  FROM past_product p
  LEFT JOIN LATERAL (
       SELECT looked_at AS at FROM market_sales_look
        WHERE product_id = p.product_id AND looked_at <= :at
        ORDER BY looked_at DESC LIMIT 1) s ON true
  LEFT JOIN LATERAL (
       SELECT observed_at AS at FROM market_listing
        WHERE product_id = p.product_id AND observed_at <= :at
        ORDER BY observed_at DESC LIMIT 1) l ON true
 WHERE s.at IS NOT NULL OR l.at IS NOT NULL

-- name: network
SELECT n.product_id, n.cell,
       CASE WHEN count(n.low) >= :sellers THEN min(n.low) END,
       CASE WHEN count(n.low) >= :sellers THEN sum(n.listings)::bigint END,
       CASE WHEN count(n.low) >= :sellers
            THEN min({seen_at}) FILTER (WHERE n.low > 0) END,
       CASE WHEN count(n.median) >= :sellers
            THEN floor(percentile_cont(0.5) WITHIN GROUP (ORDER BY n.median) + 0.5)::bigint END,
       CASE WHEN count(n.median) >= :sellers THEN sum(n.sales)::bigint END,
       CASE WHEN count(n.median) >= :sellers THEN sum(n.sales_week)::bigint END,
       CASE WHEN count(n.median) >= :sellers
            THEN {newest_sold_at} END,
       CASE WHEN count(n.median) >= :sellers
            THEN min({seen_at}) FILTER (WHERE n.median > 0) END
  FROM network_cell n
  JOIN network_seller s ON s.seller_id = n.seller_id
  JOIN network_look l ON l.seller_id = n.seller_id
 WHERE n.product_id = ANY (CAST(:products AS bigint[]))
   AND n.cell = ANY (CAST(:cells AS smallint[]))
   AND n.seller_id <> :reader AND s.exposed AND NOT s.suspended
   AND (s.paid_until IS NULL OR s.paid_until > :now)
   AND l.seen_at BETWEEN :looked_since AND :now
 GROUP BY n.product_id, n.cell
HAVING count(n.low) >= :sellers OR count(n.median) >= :sellers
