-- name: end
UPDATE agent_task
   SET status = CASE WHEN :counts = 1 AND attempt + 1 < {attempts} THEN 'pending'
     ELSE CAST(:ended_as AS text) END,
       finished_at = CASE WHEN :counts = 1 AND attempt + 1 < {attempts} THEN NULL
         ELSE CAST(:now AS timestamptz) END,
       claimed_at = CASE WHEN :counts = 1 AND attempt + 1 < {attempts} THEN NULL
         ELSE claimed_at END,
       attempt = attempt + :counts, result = CAST(:result AS jsonb),
         error = CAST(:error AS jsonb),
       token_hash = NULL, claim_expires_at = NULL, ended_hash = CAST(:hash AS bytea),
         ended_as = CAST(:ended_as AS text)
 WHERE seller_id = :seller AND id = :id AND status = 'claimed' AND token_hash = :hash
   AND claim_expires_at > :now
RETURNING id

-- name: claim
WITH free AS MATERIALIZED (
    SELECT id, CASE WHEN attempt > 0 THEN {retry} ELSE priority END AS rank FROM agent_task
     WHERE seller_id = :seller AND status = 'pending' AND kind = ANY(CAST(:kinds AS text[]))
       AND created_at <= :now
       AND (:kinds_known = 1 OR EXISTS (
            SELECT FROM sync_state s WHERE s.seller_id = :seller
               AND (s.agent_kinds IS NULL OR agent_task.kind = ANY (s.agent_kinds))))
     ORDER BY rank, id LIMIT :most FOR UPDATE SKIP LOCKED
), numbered AS (
    SELECT id, row_number() OVER (ORDER BY rank, id) AS place FROM free
), handed AS (
    SELECT id, place, (CAST(:hashes AS bytea[]))[place] AS hash FROM numbered
)
UPDATE agent_task AS t
   SET status = 'claimed', claimed_at = :now, claim_expires_at = :ends,
       token_hash = n.hash
  FROM handed n
 WHERE t.seller_id = :seller AND t.id = n.id
RETURNING n.place, t.id, t.kind, t.payload, t.attempt

-- name: note_due
UPDATE sync_state SET tasks_due_at = due.other, price_tasks_due_at = due.price{{also}}
  FROM (SELECT min(at) FILTER (WHERE kind <> ALL (CAST(:price_tasks AS text[]))
    AND can) AS other,
               min(at) FILTER (WHERE kind = ANY (CAST(:price_tasks AS text[]))) AS price
          FROM (SELECT t.kind,
                       greatest(CASE WHEN t.status = 'pending' THEN t.created_at
                                     ELSE t.claim_expires_at END,
                                CASE WHEN t.kind IN ({after_a_rollback})
                                     THEN s.rollback_until END) AS at,
                       {{kinds}} IS NULL OR t.kind = ANY ({{kinds}}) AS can
                  FROM agent_task t JOIN sync_state s ON s.seller_id = t.seller_id
                 WHERE t.seller_id = :seller AND s.seller_id = :seller
                   AND t.status IN ('pending', 'claimed')) AS open) AS due
 WHERE seller_id = :seller
