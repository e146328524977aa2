-- name: choose
UPDATE collection_row o
   SET product_id = CAST(:product AS bigint), left_out = :left_out, certainty = :certainty,
       how = :how, chosen_by = :actor, chosen_at = :now,
       condition = CASE WHEN CAST(:condition AS text) IS NOT NULL AND {meant} THEN :condition
                        WHEN :left_out OR o.condition = ANY (CAST(:conditions AS text[]))
                        THEN o.condition ELSE 'DMG' END,
       finish = CASE WHEN CAST(:finish AS text) IS NOT NULL AND {meant} THEN :finish
                     WHEN :left_out OR o.finish = ''
                          OR o.finish = ANY (CAST(:finishes AS text[]))
                     THEN o.finish
                     ELSE coalesce(p.finish, CASE WHEN o.finish ILIKE '%foil' THEN 'Foil'
                                                  ELSE 'Normal' END) END,
       language = CASE WHEN :left_out OR o.language = ANY (CAST(:languages AS text[]))
                       THEN o.language ELSE 'English' END,
       copies = CASE WHEN o.row = r.row THEN coalesce(CAST(:copies AS integer), o.copies)
                     ELSE o.copies END,
       reason = CASE WHEN :left_out THEN o.reason ELSE '' END
  FROM collection_row r LEFT JOIN product p ON p.id = CAST(:product AS bigint)
 WHERE r.seller_id = :seller AND r.collection_id = :collection AND r.row = :row
   AND o.seller_id = :seller AND o.collection_id = :collection
   AND (o.row = r.row OR o.product_id IS NULL AND NOT o.left_out AND {alike})

-- name: near
WITH near AS (
    SELECT *, (finish_key IS NULL OR finish_key IS NOT DISTINCT FROM :finish) AS fits
      FROM product
     WHERE game = ANY (CAST(:games AS text[])) AND name_key = :name AND NOT provisional)
SELECT id, product_name, set_name, number, rarity, finish, language FROM near
 WHERE fits OR NOT :finish_said OR NOT EXISTS (SELECT FROM near WHERE fits)
 ORDER BY coalesce(set_key = :set OR lower(set_code) = CAST(:code AS text), false) DESC,
          number_key = :number DESC, fits DESC,
          (language_key IS NULL OR language_key IS NOT DISTINCT FROM :language) DESC,
          set_name, number_key, finish_key, id
 LIMIT {candidates}

-- name: take_rematched
WITH mine AS (
    SELECT r.row FROM collection_row r
      JOIN found_row i ON i.row = r.row AND i.name = r.name
     WHERE {waits} AND r.collection_id = :collection
       AND (i.product_id IS NOT NULL OR i.certainty IS DISTINCT FROM r.certainty)
     ORDER BY r.row FOR UPDATE OF r
), taken AS (
    UPDATE collection_row r
       SET {identified}
      FROM mine JOIN found_row i ON i.row = mine.row
     WHERE r.seller_id = :seller AND r.collection_id = :collection AND r.row = mine.row
    RETURNING r.product_id
)
SELECT count(product_id) FROM taken
