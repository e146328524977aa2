-- name: claim_mails
UPDATE notice_mail
   SET due_at = :until, tries = tries + 1, letter = :letter,
       first_try_at = coalesce(first_try_at, :now)
 WHERE seller_id = :seller AND id IN (
       SELECT id FROM notice_mail
        WHERE seller_id = :seller AND member_id = :member AND state = 'waiting'
          AND due_at <= :now
          AND letter IS NOT DISTINCT FROM CAST(:tried AS text)
          AND sent_to IS NOT DISTINCT FROM CAST(:to AS text)
        ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING id, notice_id, tries, first_try_at

-- name: claim_webhooks
UPDATE webhook_delivery d
   SET next_at = :until, tries = tries + 1, first_try_at = coalesce(first_try_at, :now)
  FROM webhook w
 WHERE d.seller_id = :seller AND w.seller_id = :seller AND w.id = d.webhook_id
   AND d.id IN (SELECT first.id FROM webhook own CROSS JOIN LATERAL (
                SELECT id FROM webhook_delivery
                 WHERE seller_id = :seller AND webhook_id = own.id AND state = 'waiting'
                   AND next_at <= :now
                 ORDER BY next_at, id LIMIT 1 FOR UPDATE SKIP LOCKED) first
                 WHERE own.seller_id = :seller
                   AND (own.rests_until IS NULL OR own.rests_until <= :now))
RETURNING d.id, d.webhook_id, d.message_id, d.body, d.tries, d.first_try_at, w.url, w.secret,
          CASE WHEN w.former_until > :now THEN w.former_secret END
