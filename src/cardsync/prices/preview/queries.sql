-- name: snapshot
(SELECT c.id, c.marketplace_id,
        coalesce({{rule}}, 0) AS rule_id, coalesce({{sale}}, 0) AS sale_id,
          {{guards}} AS guards,
        c.quantity,
        c.custom::integer AS custom,
        {prices},
        (extract(epoch FROM c.observed_at) * 1000000)::bigint AS observed_at,
        c.seen::integer AS seen,
        coalesce(array_position(:lines, c.product_line), 0) AS line{{market}}
   FROM (SELECT {of_now}, {values},
                g.quantity = 0 AS gone, NULL::numeric AS target_price,
                g.day_start_price, g.week_start_price, g.seen
           FROM (SELECT DISTINCT ON (card_id) * FROM gathered
                  WHERE observed_at > :after AND observed_at <= :now
                 ORDER BY card_id, observed_at DESC) g
          JOIN card k ON k.seller_id = :seller AND k.id = g.card_id) c {{joins}}) snapshot

-- name: gather
CREATE TEMP TABLE gathered ON COMMIT DROP AS
SELECT *, observed_at IN (SELECT exported_at FROM upload
                           WHERE seller_id = :seller AND stream = 'inventory') AS seen
  FROM (
SELECT k.id AS card_id, {began},
       {{day}} AS day_start_price, {{week}} AS week_start_price
  FROM card k CROSS JOIN LATERAL (
       SELECT * FROM (
           SELECT {kept} WHERE k.observed_at <= :first
           UNION ALL (SELECT {of_other} FROM price_observation o
             WHERE o.seller_id = :seller AND o.card_id = k.id
               AND o.observed_at <= :first AND k.observed_at > :first
             ORDER BY o.observed_at DESC LIMIT 1)) newest) began
 WHERE k.seller_id = :seller AND k.contribution IS NULL
UNION ALL
SELECT card_id, {values}, NULL, NULL FROM price_observation
 WHERE seller_id = :seller AND observed_at > :first AND observed_at <= :last
UNION ALL
SELECT id, {values}, NULL, NULL FROM card
 WHERE seller_id = :seller AND contribution IS NULL
   AND observed_at > :first AND observed_at <= :last) observed
 ORDER BY observed_at
