-- name: renew_names
INSERT INTO catalog_name AS n (game, name_key, own, words, printings, provisional)
SELECT r.game, r.name_key, array_to_tsvector(string_to_array(r.name_key, ' ')),
       p.words, p.printings, p.provisional
  FROM renewed r CROSS JOIN LATERAL (
       SELECT array_to_tsvector(array_remove(string_to_array(string_agg(DISTINCT
                  concat_ws(' ', name_key, back_key, variant_key), ' '), ' '), ''))
                  AS words,
              count(*) FILTER (WHERE NOT provisional) AS printings,
              bool_or(provisional AND adopted_by IS NULL) AS provisional
         FROM product WHERE game = r.game AND name_key = r.name_key) AS p
 WHERE p.words IS NOT NULL
 ORDER BY r.game, r.name_key
ON CONFLICT (game, name_key) DO UPDATE
   SET words = excluded.words, printings = excluded.printings,
       provisional = excluded.provisional
 WHERE (n.words, n.printings, n.provisional)
       IS DISTINCT FROM (excluded.words, excluded.printings, excluded.provisional)

-- name: described
CREATE TEMP TABLE described ON COMMIT DROP AS
WITH same AS (
    SELECT i.identity, p.id, p.finish_key FROM incoming i JOIN product p ON {same_printing}
     WHERE NOT p.provisional AND p.source <> :source
     UNION
    SELECT i.identity, p.id, p.finish_key FROM incoming i
      JOIN product p ON p.marketplace_product_id = i.marketplace_product_id AND {same_name}
     WHERE :by_ids AND NOT p.provisional AND p.source <> :source
     UNION
    SELECT i.identity, p.id, p.finish_key FROM incoming i
     CROSS JOIN LATERAL (VALUES
           {ids}
           ) AS e (kind, id)
      JOIN product_elsewhere x ON x.kind = e.kind AND x.id = e.id
      JOIN product p ON p.id = x.product_id AND {same_name}
     WHERE :by_ids AND NOT p.provisional AND p.source <> :source
)
SELECT identity, id FROM (
    SELECT s.identity, s.id,
           count(*) OVER (PARTITION BY s.identity, s.finish_key) AS theirs,
           count(*) OVER (PARTITION BY s.id) AS ours
      FROM same s
     WHERE NOT EXISTS (SELECT FROM product q WHERE q.identity = md5(s.identity))
) AS pairs WHERE theirs = 1 AND ours = 1
