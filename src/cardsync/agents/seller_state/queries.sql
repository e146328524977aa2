-- name: importable
NOT c.gone AND c.contribution IS NULL
AND c.product_line = ANY (CAST(
    (SELECT a.product_lines FROM account a WHERE a.seller_id = {seller_id}) AS text[]))
AND c.listing_id NOT IN (
    SELECT c.listing_id
      FROM card c JOIN card d
        ON d.seller_id = c.seller_id AND d.marketplace_id = c.listing_id
     WHERE c.seller_id = {seller_id} AND c.custom AND NOT c.gone AND NOT d.gone
     UNION ALL
    SELECT listing_id FROM card WHERE seller_id = {seller_id} AND custom AND NOT gone
     GROUP BY listing_id HAVING count(*) > 1)

-- name: hold
UPDATE sync_state
   SET lease_expires_at = :expires,
       lock_refreshed_at = CASE WHEN lock_kind IS NOT NULL THEN :now END,
       work_phase = coalesce(:phase, work_phase),
       work_total = coalesce(:total, work_total),
       work_done = CASE WHEN work_done = coalesce(:after, work_done)
                        THEN coalesce(:done, work_done) ELSE -1 END,
       prices_revision = prices_revision
           + CASE WHEN CAST(:done AS integer) IS NULL THEN 0 ELSE 1 END,
       export_fingerprint = CASE WHEN CAST(:done AS integer) IS NULL THEN export_fingerprint END
 WHERE seller_id = :id AND lease_token = CAST(:token AS uuid)
RETURNING cancel_requested_at, work_done
