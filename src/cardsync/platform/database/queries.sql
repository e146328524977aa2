-- name: changed_rows
WITH became AS MATERIALIZED (
    SELECT * FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:became AS jsonb))
), named AS MATERIALIZED (
    SELECT * FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:named AS jsonb))
), standing AS MATERIALIZED (
    SELECT * FROM {table}
     WHERE seller_id = :seller AND ({keys}) IN (SELECT {keys} FROM named) FOR UPDATE
)
SELECT CASE WHEN s.seller_id IS NOT NULL THEN to_jsonb(s) END AS standing,
       CASE WHEN b.seller_id IS NOT NULL THEN to_jsonb(b) END AS became,
       array_remove(CAST(ARRAY[{differing}] AS text[]), NULL) AS columns, count(*) OVER ()
  FROM standing s FULL JOIN became b USING ({keys})
 WHERE s.seller_id IS NULL OR b.seller_id IS NULL OR {differs}
 ORDER BY {keys} LIMIT 1

-- name: restore
WITH was AS MATERIALIZED (
    SELECT * FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:was AS jsonb))
), named AS MATERIALIZED (
    SELECT * FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:named AS jsonb))
), gone AS (
    DELETE FROM {table} t
     WHERE t.seller_id = :seller AND ({keys}) IN (SELECT {keys} FROM named)
       AND ({anew} OR ({keys}) NOT IN (SELECT {keys} FROM was)) RETURNING t.*
), changed AS (
    UPDATE {table} t SET {change} FROM was w
     WHERE t.seller_id = :seller AND {same} AND NOT {anew} RETURNING t.*
)
INSERT INTO {table} (seller_id, {columns}) OVERRIDING SYSTEM VALUE
SELECT CAST(:seller AS bigint), {put} FROM was w LEFT JOIN gone s USING ({keys})
 WHERE (SELECT count(*) FROM gone) >= 0 AND ({keys}) NOT IN (SELECT {keys} FROM changed)
