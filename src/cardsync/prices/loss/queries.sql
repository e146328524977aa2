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
