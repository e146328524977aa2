-- name: promised
SELECT l.rule_id,
       (coalesce(sum(l.copies * l.cash_each)
                  FILTER (WHERE o.way IS DISTINCT FROM 'credit'), 0) * 10000)::bigint AS cash,
       (coalesce(sum(l.copies * l.credit_each)
                  FILTER (WHERE o.way IS DISTINCT FROM 'cash'), 0) * 10000)::bigint AS credit
  FROM buying_offer o JOIN buying_offer_line l
    ON l.seller_id = :seller AND l.offer_id = o.id AND l.accepted IS NOT FALSE
       AND l.rule_id IS NOT NULL
 WHERE o.seller_id = :seller AND o.offered_at >= :since
   AND o.state IN ('offered', 'accepted', 'received', 'paid', 'in_stock')
 GROUP BY l.rule_id

-- name: others
WITH {wanted},
same AS MATERIALIZED (
    SELECT w.product_id AS wanted, w.language, p.id, p.marketplace_product_id
      FROM wanted_card w JOIN product p ON p.id = w.product_id
    UNION
    SELECT w.product_id, w.language, b.id, b.marketplace_product_id
      FROM wanted_card w
      JOIN product p ON p.id = w.product_id AND NOT p.provisional
      JOIN product b ON b.game = p.game AND b.name_key = p.name_key
           AND b.number_key = p.number_key AND b.set_key = p.set_key AND NOT b.provisional
           AND b.language = p.language AND b.variant_key IS NOT DISTINCT FROM p.variant_key
),
named AS (
    SELECT DISTINCT wanted, language, marketplace_product_id AS id FROM same
     WHERE marketplace_product_id IS NOT NULL
),
known AS (
    SELECT s.wanted, s.language, c.condition, c.printing, CASE WHEN c.gone THEN 2
      ELSE 0 END AS by,
           (coalesce(c.target_price, c.price) * 10000)::bigint AS target,
           (c.market * 10000)::bigint AS market, (c.low * 10000)::bigint AS low
      FROM same s
      JOIN card c ON c.seller_id = :seller AND c.contribution IS NULL AND c.product_id = s.id
           AND c.language = s.language
    UNION ALL
    SELECT n.wanted, n.language, e.condition, e.printing, 1, NULL, m.median, m.low
      FROM named n JOIN market_newest m ON m.product_id = n.id
      JOIN market_cell e ON e.id = m.cell AND e.language = n.language
    UNION ALL
    SELECT n.wanted, n.language, 'NM', m.printing, 1, NULL, m.market, m.low
      FROM named n
      JOIN LATERAL (SELECT DISTINCT ON (printing) printing, market, low FROM market_price
                     WHERE product_id = n.id AND observed_at <= :now
                     ORDER BY printing, observed_at DESC) m ON true
)
SELECT wanted, language, condition, printing,
       (array_agg(target ORDER BY by, target DESC)
         FILTER (WHERE target IS NOT NULL))[1] AS target,
       (array_agg(market ORDER BY by, market DESC)
         FILTER (WHERE market IS NOT NULL))[1] AS market,
       (array_agg(low ORDER BY by, low DESC) FILTER (WHERE low IS NOT NULL))[1] AS low
  FROM known
 WHERE condition IN ('NM', 'LP', 'MP', 'HP', 'DMG')
 GROUP BY wanted, language, condition, printing
 ORDER BY wanted, language, printing, condition

-- name: facts
WITH {wanted}, {shop}, {market}
SELECT w.product_id, w.finish, w.language, w.game, w.set_name, w.product_name, w.number,
       w.rarity, s.target,
       coalesce(s.market, m.market, n.median, s.last_market) AS market,
       coalesce(s.low, n.low, m.low, s.last_low) AS low,
       coalesce(t.copies, 0)::bigint AS in_stock, coalesce(q.copies, 0)::bigint AS on_order,
       ceil(d.days)::bigint AS days_to_sell, coalesce(l.lists, '') AS lists
  FROM wanted w
  LEFT JOIN shop s ON s.product_id = w.product_id AND s.printing = w.finish
        AND s.language = w.language
  LEFT JOIN stock t ON t.product_id = w.product_id AND t.printing = w.finish
  LEFT JOIN coming q ON q.product_id = w.product_id AND q.printing = w.finish
  LEFT JOIN listed l ON l.product_id = w.product_id AND l.printing = w.finish
  LEFT JOIN sold d ON d.product_id = w.product_id AND d.printing = w.finish
  LEFT JOIN quoted m ON m.product_id = w.marketplace_product_id AND m.printing = w.finish
  LEFT JOIN seen n ON n.product_id = w.marketplace_product_id AND n.printing = w.finish
        AND n.language = w.language

-- name: market
wanted AS MATERIALIZED (
    SELECT w.product_id, w.finish, w.language, p.marketplace_product_id, p.game, p.set_name,
           p.product_name, coalesce(p.number, '') AS number, coalesce(p.rarity, '') AS rarity
      FROM wanted_card w JOIN product p ON p.id = w.product_id
),
named AS (
    SELECT DISTINCT marketplace_product_id AS id FROM wanted
     WHERE marketplace_product_id IS NOT NULL
),
quoted AS (
    SELECT DISTINCT ON (m.product_id, m.printing) m.product_id, m.printing, m.market, m.low
      FROM market_price m JOIN named n ON n.id = m.product_id
     WHERE m.observed_at <= :now
     ORDER BY m.product_id, m.printing, m.observed_at DESC
),
seen AS (
    SELECT m.product_id, e.printing, e.language, m.low, m.median
      FROM market_newest m JOIN named n ON n.id = m.product_id
      JOIN market_cell e ON e.id = m.cell AND e.condition = 'NM'
)

-- name: shop
shop AS MATERIALIZED (
    SELECT c.product_id, c.printing, c.language,
           sum(c.quantity) FILTER (WHERE NOT c.gone)::bigint AS copies, {prices}
      FROM card c
     WHERE c.seller_id = :seller AND c.contribution IS NULL
       AND c.product_id IN (SELECT product_id FROM wanted_card)
     GROUP BY c.product_id, c.printing, c.language
),
stock AS (
    SELECT product_id, printing, sum(copies) AS copies FROM shop GROUP BY product_id, printing
),
coming AS (
    SELECT a.product_id, a.printing, sum(a.copies) AS copies
      FROM (
        SELECT q.product_id, q.printing, q.quantity AS copies FROM quick_add q
         WHERE q.seller_id = :seller
           AND (q.status IN ('draft', 'published', 'pending')
                OR q.status = 'listed' AND q.card_id IS NULL)
           AND q.product_id IN (SELECT product_id FROM wanted_card)
        UNION ALL
        SELECT l.product_id, l.printing, coalesce(l.received_copies, l.copies)
          FROM buying_offer o
          JOIN buying_offer_line l ON l.seller_id = :seller AND l.offer_id = o.id
         WHERE o.seller_id = :seller
           AND o.state IN ('offered', 'accepted', 'received', 'paid')
           AND l.accepted IS NOT FALSE
           AND coalesce(l.cash_each, l.credit_each) IS NOT NULL
           AND l.product_id IN (SELECT product_id FROM wanted_card)
      ) a
     GROUP BY a.product_id, a.printing
),
listed AS (
    SELECT c.product_id, c.printing, string_agg(DISTINCT e.list_id::text, ' ') AS lists
      FROM card_list_entry e
      JOIN card c ON c.seller_id = :seller AND c.id = e.card_id
     WHERE e.seller_id = :seller AND c.product_id IN (SELECT product_id FROM wanted_card)
     GROUP BY c.product_id, c.printing
),
sold AS (
    SELECT c.product_id, c.printing,
           percentile_cont(0.5) WITHIN GROUP (
               ORDER BY date_part('epoch', {placed_at} - c.created_at) / 86400
           ) AS days
      FROM card c
      JOIN order_item i ON i.seller_id = :seller AND i.sku_id = c.listing_id
      JOIN orders ON orders.seller_id = :seller AND orders.id = i.order_id
     WHERE c.seller_id = :seller AND c.product_id IN (SELECT product_id FROM wanted_card)
       AND {placed_at} BETWEEN greatest(c.created_at, :since) AND :now
     GROUP BY c.product_id, c.printing
)
