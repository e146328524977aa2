-- name: judge_counts
WITH standing AS (
    SELECT l.card_id, l.slot, l.expected, l.seen, coalesce(p.quantity, 0) AS lying
      FROM shelf_count_line l
      LEFT JOIN card_location p ON p.seller_id = :seller AND p.card_id = l.card_id
           AND p.box = :box AND p.slot = l.slot
     WHERE l.seller_id = :seller AND l.count_id = :count
)
UPDATE shelf_count_line l SET outcome = CASE
       WHEN s.seen IS NULL THEN 'unseen' WHEN s.lying <> s.expected THEN 'moved'
       WHEN s.seen = s.expected THEN 'correct' ELSE 'wrong' END
  FROM standing s
 WHERE l.seller_id = :seller AND l.count_id = :count AND l.card_id = s.card_id
   AND l.slot = s.slot

-- name: put_many
WITH picked AS MATERIALIZED ({picked}),
lying AS (
    SELECT card_id, sum(quantity) AS quantity
      FROM card_location WHERE seller_id = :seller GROUP BY card_id
),
waiting AS (
    SELECT p.id, p.place, c.quantity - coalesce(l.quantity, 0) AS quantity
      FROM picked p JOIN card c ON c.seller_id = :seller AND c.id = p.id
           LEFT JOIN lying l ON l.card_id = c.id
),
ranged AS (
    SELECT id, quantity, CAST(sum(quantity) OVER (ORDER BY place, id) AS bigint) AS upto
      FROM waiting WHERE quantity > 0
),
fitting AS (
    SELECT id, upto - quantity AS begins, upto AS ends FROM ranged WHERE upto <= :most
),
split AS (
    SELECT id, :start + turn AS slot,
           least(ends, (turn + 1) * :per_slot) - greatest(begins, turn * :per_slot) AS quantity
      FROM fitting, generate_series(begins / :per_slot, (ends - 1) / :per_slot) AS turn
),
put AS (
    INSERT INTO card_location AS l (seller_id, card_id, box, slot, quantity)
    SELECT :seller, id, :box, slot, quantity FROM split
    ON CONFLICT (seller_id, card_id, box, slot)
       DO UPDATE SET quantity = l.quantity + excluded.quantity
    RETURNING 1
)
SELECT (SELECT count(*) FROM fitting), (SELECT coalesce(max(ends), 0) FROM fitting),
       (SELECT count(*) FROM picked),
       (SELECT count(*) FROM ranged) > (SELECT count(*) FROM fitting),
       min(slot), max(slot), (SELECT count(*) FROM put), array_agg(id), array_agg(slot),
       array_agg(quantity)
  FROM split

-- name: facts
WITH lying AS (
    SELECT l.box, l.card_id, sum(l.quantity) AS quantity
      FROM card_location l JOIN card c ON c.seller_id = :seller AND c.id = l.card_id
     WHERE l.seller_id = :seller AND {visible} GROUP BY l.box, l.card_id
), shelved AS (
    SELECT card_id, sum(quantity) AS quantity FROM lying GROUP BY card_id
), drifting AS (
    SELECT c.id, s.quantity - c.quantity AS pieces,
           CASE WHEN c.custom THEN c.listing_id ELSE c.marketplace_id END AS sku_id
      FROM shelved s JOIN card c ON c.seller_id = :seller AND c.id = s.card_id
     WHERE s.quantity > c.quantity
), sold AS (
    SELECT d.id, sum(coalesce(i.quantity, 1)) AS pieces
      FROM drifting d
      JOIN order_item i ON i.seller_id = :seller AND i.sku_id = d.sku_id
      JOIN orders o ON o.seller_id = :seller AND o.id = i.order_id
     WHERE o.status_group <> 'Cancelled' AND o.order_date >= :since GROUP BY d.id
), dropped AS (
    SELECT d.id, greatest(d.pieces - coalesce(sold.pieces, 0), 0) AS pieces
      FROM drifting d LEFT JOIN sold ON sold.id = d.id
), counted AS (
    SELECT box, max(ended_at) AS ended_at FROM shelf_count
     WHERE seller_id = :seller AND state = 'settled' AND slot IS NULL GROUP BY box
)
SELECT {box}, count(*), CAST(sum(l.quantity) AS bigint),
       CAST(coalesce(sum(coalesce(c.price, c.market, 0) * l.quantity), 0) * 10000 AS bigint),
       CAST(sum(least(coalesce(dropped.pieces, 0), l.quantity)) AS bigint), max(k.ended_at)
  FROM lying l JOIN card c ON c.seller_id = :seller AND c.id = l.card_id
  LEFT JOIN dropped ON dropped.id = l.card_id LEFT JOIN counted k ON k.box = l.box
  {named}
 GROUP BY l.box, b.label
