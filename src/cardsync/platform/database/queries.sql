-- name: swap
WITH became AS MATERIALIZED (
    SELECT * FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:became AS jsonb))
), was AS MATERIALIZED (
    SELECT * FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:was AS jsonb))
), standing AS MATERIALIZED (
    SELECT * FROM {table}
     WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[])) FOR UPDATE
), otherwise AS MATERIALIZED (
    SELECT coalesce(s.id, b.id) AS id,
           CASE WHEN s.id IS NOT NULL THEN to_jsonb(s) END AS standing,
           array_remove(ARRAY[{differing}], NULL) AS columns
      FROM standing s FULL JOIN became b ON b.id = s.id
     WHERE s.id IS NULL OR b.id IS NULL OR {differs}
), gone AS (
    DELETE FROM {table}
     WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))
       AND NOT EXISTS (SELECT FROM otherwise) RETURNING id
), back AS (
    INSERT INTO {table} (seller_id, id, {columns}, {times}) OVERRIDING SYSTEM VALUE
    SELECT CAST(:seller AS bigint), w.id, {put},
           coalesce(s.created_at, w.created_at, CAST(:now AS timestamptz)){updated}
      FROM was w LEFT JOIN standing s ON s.id = w.id
     WHERE NOT EXISTS (SELECT FROM otherwise) AND (SELECT count(*) FROM gone) >= 0
    RETURNING id
)
SELECT id, standing, columns FROM otherwise ORDER BY id LIMIT 1
