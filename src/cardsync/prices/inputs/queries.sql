-- name: listed_before
SELECT card_id,
  min(observed_at) FILTER (WHERE observed_at > coalesce(sold_out, '-infinity')) AS since,
  max(observed_at) FILTER (
           WHERE market > 0 AND before > 0 AND abs(market - before) * 20 >= before) AS moved
  FROM (SELECT card_id, observed_at, market, max(observed_at)
    FILTER (WHERE quantity = 0) OVER w AS sold_out,
               lag(market) OVER (w ORDER BY observed_at) AS before
          FROM (SELECT card_id, observed_at, market, quantity FROM price_observation
            WHERE seller_id = {seller_id} AND {observed}
                 UNION ALL SELECT id, observed_at, market, quantity FROM card c
                   WHERE seller_id = {seller_id} AND {newest}) seen
        WINDOW w AS (PARTITION BY card_id)) seen
 GROUP BY card_id
