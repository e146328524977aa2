-- name: found
WITH hits AS MATERIALIZED (
    SELECT id, game, product_name, set_name, set_code, number, number_key, rarity, finish,
           language, marketplace_product_id
      FROM product
     WHERE NOT provisional
       AND catalog_words(product_name, set_code, number, number_key) @@ CAST(:words AS tsquery)
       AND game = ANY (CAST(:games AS text[]))
     LIMIT {looked_at})
SELECT id, game, product_name, set_name, set_code, number, rarity, finish, language,
       marketplace_product_id
  FROM hits
 ORDER BY coalesce(lower(number_key) = ANY (CAST(:numbers AS text[])), false) DESC,
          lower(product_name) LIKE :beginning DESC, length(product_name), product_name,
          set_name, number_key, id
 LIMIT :most
