-- name: held_badges
SELECT marketplace_id, kind AS reason, (proposed_price * 10000)::bigint AS price,
       '' AS verdict, NULL AS period, false AS stays
  FROM proposal
 WHERE seller_id = :seller AND family = 'review'
   AND marketplace_id = ANY (CAST(:ids AS bigint[]))
   AND state = 'pending' AND expires_at > :now
 UNION ALL
SELECT h.marketplace_id, 'holdout', (h.asked * 10000)::bigint, '', NULL, false
  FROM price_decision h
  JOIN pricing_rule r ON r.seller_id = :seller AND r.id = h.source_id
 WHERE h.seller_id = :seller AND h.kind = 'held_out' AND h.part = :part
   AND h.marketplace_id = ANY (CAST(:ids AS bigint[]))
   AND r.enabled AND r.state = 'published' AND r.settings ->> 'holdout_bp' IS NOT NULL
 UNION ALL
SELECT h.marketplace_id, 'cap', (h.asked * 10000)::bigint, '',
       r.settings -> 'cap' ->> 'period', h.part = 1
  FROM price_decision h
  LEFT JOIN pricing_rule r ON r.seller_id = :seller AND r.id = h.source_id
 WHERE h.seller_id = :seller AND h.kind = 'cap'
   AND h.marketplace_id = ANY (CAST(:ids AS bigint[]))
 UNION ALL
SELECT marketplace_id, 'gate', NULL, verdict, NULL, false FROM gate_hold
 WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))

-- name: badges_of_cards
SELECT c.id, c.marketplace_id, c.condition, c.printing, c.language,
       coalesce(p.marketplace_product_id, q.marketplace_product_id) AS product_id,
       EXISTS (SELECT FROM price_decision n
                WHERE n.seller_id = :seller AND n.kind = 'pin'
                  AND n.marketplace_id = c.marketplace_id
                  AND (n.until IS NULL OR n.until > :now)) AS pinned
  FROM card c
  LEFT JOIN product p ON p.id = c.product_id
  LEFT JOIN product q ON q.id = p.adopted_by
 WHERE c.seller_id = :seller AND c.contribution IS NULL AND NOT c.gone
   AND (c.marketplace_id = ANY (CAST(:marketplace_ids AS bigint[]))
        OR c.id = ANY (CAST(:card_ids AS bigint[])))
 ORDER BY c.id

-- name: generation_over
WITH over AS (
    UPDATE proposal r SET state = 'expired', settled_at = :now
     WHERE r.seller_id = :seller AND r.id IN (
           SELECT o.id FROM proposal o LEFT JOIN found f ON f.slot = o.slot
            WHERE o.seller_id = :seller AND o.family <> 'review' AND f.slot IS NULL
              AND (o.state = 'pending'
                   OR o.state IN ('snoozed', 'dismissed') AND o.settled_at <= :forgotten))
 RETURNING r.id, r.revision)
INSERT INTO recommendation_event (seller_id, recommendation_id, revision, kind, at, actor)
SELECT :seller, id, revision, 'expired', :now, :actor FROM over
ON CONFLICT DO NOTHING
