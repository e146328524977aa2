-- name: unpin
WITH picked AS MATERIALIZED ({picked}),
wanted AS MATERIALIZED (
    SELECT c.marketplace_id, old.price AS was, old.until
      FROM picked p JOIN card c ON c.seller_id = :seller AND c.id = p.id
           JOIN price_decision old
             ON old.seller_id = :seller AND old.kind = 'pin'
            AND old.marketplace_id = c.marketplace_id
     ORDER BY p.place, p.id LIMIT :most + 1
),
kept AS MATERIALIZED (SELECT * FROM wanted LIMIT :most)
SELECT (SELECT count(*) FROM picked), (SELECT count(*) > :most FROM wanted),
       array_agg(marketplace_id), array_agg(CAST(was AS text)), array_agg(until),
       array_agg(CAST(NULL AS text))
  FROM kept

-- name: pin
WITH picked AS MATERIALIZED ({picked}),
wanted AS MATERIALIZED (
    SELECT c.marketplace_id, c.price, old.price AS was, old.until
      FROM picked p JOIN card c ON c.seller_id = :seller AND c.id = p.id
           LEFT JOIN price_decision old
                  ON old.seller_id = :seller AND old.kind = 'pin'
                 AND old.marketplace_id = c.marketplace_id
     WHERE c.contribution IS NULL AND c.price >= 0.01 AND c.price = round(c.price, 2)
       AND (old.price IS DISTINCT FROM c.price OR old.until IS NOT NULL)
     ORDER BY p.place, p.id LIMIT :most + 1
),
kept AS MATERIALIZED (SELECT * FROM wanted LIMIT :most)
SELECT (SELECT count(*) FROM picked), (SELECT count(*) > :most FROM wanted),
       array_agg(marketplace_id), array_agg(CAST(was AS text)), array_agg(until),
       array_agg(CAST(price AS text))
  FROM kept
