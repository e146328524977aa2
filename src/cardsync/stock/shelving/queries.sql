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
