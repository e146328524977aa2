-- name: take_back
WITH net AS (
    SELECT w.id, w.today, w.worst, sum(m.today_moved) AS all_today,
           sum(m.worst_moved) AS all_worst
      FROM unnest(CAST(:ids AS bigint[]), CAST(:today AS bigint[]), CAST(:worst AS bigint[]))
           AS w (id, today, worst)
      JOIN automated_move m ON m.seller_id = :seller AND m.card_id = w.id
     GROUP BY w.id, w.today, w.worst
), rest AS (
    SELECT id, {today} AS today, {worst} AS worst FROM net
)
UPDATE automated_move m SET today_moved = trunc(m.today_moved * r.today),
       worst_moved = trunc(m.worst_moved * r.worst)
  FROM rest r WHERE m.seller_id = :seller AND m.card_id = r.id

-- name: still_counts
(m.source = ''
 OR (split_part(m.source, ' ', 1) = 'sale' AND EXISTS (
     SELECT FROM pricing_sale p
      WHERE p.seller_id = :seller AND p.id = split_part(m.source, ' ', 2)::bigint
        AND p.enabled AND p.ends_at > :now))
 OR (:targets AND split_part(m.source, ' ', 1) = 'rollback' AND EXISTS (
     SELECT FROM price_rollback b
      WHERE b.seller_id = :seller AND b.id = split_part(m.source, ' ', 2)::bigint
        AND (b.state = 'applied' OR b.state IN ('requested', 'ready', 'served')
             AND b.expires_at > :now)
        AND NOT {run_since_rollback}))
 OR (:targets AND split_part(m.source, ' ', 1) = 'listing' AND EXISTS (
     SELECT FROM quick_add q
      WHERE q.seller_id = :seller AND q.id = split_part(m.source, ' ', 2)::bigint
        AND q.status IN ('published', 'pending', 'listed')
        AND NOT {run_since_listing})))
