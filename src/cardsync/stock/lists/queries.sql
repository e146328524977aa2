-- name: add
WITH picked AS MATERIALIZED ({{picked}}),
fresh AS MATERIALIZED (
    SELECT p.id, p.place FROM picked p WHERE NOT EXISTS (
         SELECT FROM card_list_entry e
          WHERE e.seller_id = :seller AND e.list_id = :list AND e.card_id = p.id)
),
room AS (
    SELECT :cap - count(*) AS room
      FROM card_list_entry e JOIN card c ON c.seller_id = e.seller_id AND c.id = e.card_id
     WHERE e.seller_id = :seller AND e.list_id = :list AND c.seller_id = :seller AND {visible}
),
added AS (
    INSERT INTO card_list_entry (seller_id, list_id, card_id, added_at)
    SELECT :seller, :list, id, :now FROM fresh ORDER BY place
     LIMIT (SELECT greatest(room, 0) FROM room)
    RETURNING card_id
)
SELECT (SELECT count(*) FROM picked), (SELECT count(*) FROM fresh),
       (SELECT coalesce(array_agg(card_id), CAST(ARRAY[] AS bigint[])) FROM added)

-- name: lists
SELECT l.id, l.name, l.slug, l.position, count(c.id) AS card_count,
       count(c.id) FILTER (WHERE NOT c.gone) AS active_count,
       count(c.id) FILTER (WHERE c.gone) AS gone_count,
       coalesce(bool_or({{member}}), false) AS member
  FROM card_list l LEFT JOIN (
           card_list_entry e JOIN card c
             ON c.seller_id = :seller AND e.seller_id = :seller AND c.id = e.card_id
            AND {visible}
       ) ON e.seller_id = l.seller_id AND e.list_id = l.id
 WHERE l.seller_id = :seller AND l.deleted_at IS NULL AND {{which}}
 GROUP BY l.seller_id, l.id ORDER BY l.position, l.id
