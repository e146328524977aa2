-- name: open_again
UPDATE proposal r
   SET state = CASE WHEN newer.slot IS NULL THEN 'pending' ELSE 'expired' END,
       settled_at = CASE WHEN newer.slot IS NULL THEN NULL ELSE CAST(:now AS timestamptz) END,
       settled_by = NULL
  FROM unnest(CAST(:keys AS bigint[])) AS w (key)
  JOIN proposal p ON p.seller_id = :seller AND p.{key} = w.key
  LEFT JOIN proposal newer
         ON newer.seller_id = :seller AND newer.slot = p.slot AND newer.id <> p.id
        AND newer.state IN ('pending', 'snoozed', 'dismissed')
 WHERE r.seller_id = :seller AND r.id = p.id AND r.family = ANY (CAST(:families AS text[]))
   AND r.state = :answer
   AND (CAST(:at AS timestamptz) IS NULL OR r.settled_at = :at)
