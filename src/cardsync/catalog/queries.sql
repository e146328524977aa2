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
