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
