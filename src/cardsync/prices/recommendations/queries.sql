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

-- name: sold
WITH applied AS MATERIALIZED (
    SELECT r.id, r.kind, r.rule_id, r.card_id, r.state, r.current_price, r.proposed_price,
           r.settled_at, (r.settled_at AT TIME ZONE 'UTC')::date AS day
      FROM proposal r
     WHERE r.seller_id = :seller AND r.family = 'price'
       AND r.state IN ('accepted', 'auto_applied') AND r.settled_at BETWEEN :since AND :until
       AND NOT EXISTS (
           SELECT FROM proposal b
            WHERE b.seller_id = :seller AND b.card_id = r.card_id
              AND b.state IN ('accepted', 'auto_applied')
              AND (b.settled_at, b.id) < (r.settled_at, r.id)
              AND b.settled_at > r.settled_at - CAST(:window AS interval))
       AND NOT EXISTS (
           SELECT FROM price_rollback_card u
             JOIN price_rollback v ON v.seller_id = :seller AND v.id = u.rollback_id
            WHERE u.seller_id = :seller AND u.card_id = r.card_id AND v.state = 'applied'
              AND v.finished_at BETWEEN r.settled_at
                                    AND r.settled_at + CAST(:window AS interval))
     ORDER BY r.settled_at DESC, r.id LIMIT :most
), alone AS MATERIALIZED (
    SELECT r.kind, r.card_id, r.current_price, r.revision
      FROM proposal r
     WHERE r.seller_id = :seller AND r.family = 'price'
       AND r.state NOT IN ('accepted', 'auto_applied') AND r.revision >= :near_since
       AND NOT EXISTS (
           SELECT FROM proposal a
            WHERE a.seller_id = :seller AND a.card_id = r.card_id
              AND a.state IN ('accepted', 'auto_applied'))
), matched AS (
    SELECT t.id, t.day, m.card_id
      FROM applied t CROSS JOIN LATERAL (
           SELECT a.card_id, min(abs(a.current_price - t.current_price)) AS far
             FROM alone a
            WHERE a.kind = t.kind
              AND a.current_price BETWEEN t.current_price / 2 AND t.current_price * 2
              AND a.revision BETWEEN t.settled_at - :near AND t.settled_at + :near
            GROUP BY a.card_id ORDER BY 2, 1 LIMIT :matches) m
), looked_at AS (
    SELECT id, day, card_id, true AS own FROM applied
     UNION ALL
    SELECT id, day, card_id, false FROM matched)
SELECT l.id, l.own, l.card_id, t.kind, t.rule_id, t.state, t.settled_at, t.current_price,
       t.proposed_price, c.product_name, s.price, s.quantity, s.kept
  FROM looked_at l JOIN applied t ON t.id = l.id
  JOIN card c ON c.seller_id = :seller AND c.id = l.card_id
  LEFT JOIN LATERAL (
       {sale} AND i.sku_id = c.marketplace_id
          AND o.order_date > l.day AND o.order_date <= l.day + 30) s ON true
 ORDER BY l.id, l.own DESC, l.card_id
