-- name: wait
INSERT INTO proposal AS r (seller_id, slot, family, kind, state, marketplace_id, rule_id,
                           current_price, proposed_price, worth, evidence, revision, created_at,
                           expires_at)
SELECT :seller, 'review:' || g.id, 'review', g.reason, 'pending', g.id, g.rule,
       g.current / 10000.0, g.proposed / 10000.0, g.worth,
       jsonb_build_object('regular_price', g.regular, 'result', g.result), :now, :now, g.expires
  FROM unnest(CAST(:ids AS bigint[]), CAST(:reasons AS text[]), CAST(:rules AS bigint[]),
              CAST(:currents AS bigint[]), CAST(:proposed AS bigint[]),
              CAST(:regulars AS bigint[]), CAST(:results AS bigint[]),
              CAST(:worths AS bigint[]), CAST(:expires AS timestamptz[]))
       AS g (id, reason, rule, current, proposed, regular, result, worth, expires)
ON CONFLICT (seller_id, marketplace_id) WHERE family = 'review' DO UPDATE
   SET state = 'pending', kind = excluded.kind, rule_id = excluded.rule_id,
       current_price = excluded.current_price, proposed_price = excluded.proposed_price,
       worth = excluded.worth, evidence = excluded.evidence, expires_at = excluded.expires_at,
       revision = CASE WHEN {same} THEN r.revision ELSE excluded.revision END,
       created_at = CASE WHEN r.state = 'pending' THEN r.created_at
                         ELSE excluded.created_at END,
       settled_at = NULL, settled_by = NULL
 WHERE NOT (r.state = 'dismissed' AND {young} AND {near})
   AND NOT (r.state = 'snoozed' AND {young} AND {figures})
   AND NOT ({same} AND r.expires_at = excluded.expires_at AND r.worth = excluded.worth
            AND r.rule_id IS NOT DISTINCT FROM excluded.rule_id)

-- name: sold
SELECT asked.sale_id, bounds.since, bounds.until,
       coalesce(sold.pieces, 0), sold.gross, coalesce(sold.unpriced, 0),
       coalesce(sold.undated, 0)
  FROM unnest(CAST(:sales AS bigint[])) AS asked (sale_id)
  JOIN LATERAL (
       SELECT min(p.since) AS since,
              CASE WHEN bool_and(p.until IS NOT NULL) THEN max(p.until) END AS until
         FROM promotion_card p WHERE p.seller_id = :seller AND p.sale_id = asked.sale_id
  ) bounds ON bounds.since IS NOT NULL
  LEFT JOIN LATERAL (
       SELECT CAST(sum(line.pieces) FILTER (WHERE had.it) AS bigint) AS pieces,
              sum(line.gross) FILTER (WHERE had.it) AS gross,
              CAST(sum(line.unpriced) FILTER (WHERE had.it) AS bigint) AS unpriced,
              CAST(sum(line.pieces) FILTER (WHERE NOT had.it) AS bigint) AS undated
         FROM (SELECT i.sku_id, {placed_at} AS placed, orders.placed_at_given IS NULL AS dated,
                      {pieces}
                 FROM orders
                 JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
                WHERE {sold}
                  AND orders.order_date >= CAST(bounds.since AS date) - 1
                  AND orders.order_date <= CAST(coalesce(bounds.until, :now) AS date) + 1
              ) line
         CROSS JOIN LATERAL (
              SELECT bool_or({noon} >= p.since AND (p.until IS NULL OR {noon} < p.until)) AS it
                FROM promotion_card p
               WHERE p.seller_id = :seller AND p.sale_id = asked.sale_id
                 AND p.marketplace_id = line.sku_id
                 AND CASE WHEN line.dated THEN line.placed + interval '1 day' > p.since
                          ELSE line.placed >= p.since END
                 AND (p.until IS NULL OR line.placed < p.until)
         ) had
        WHERE had.it IS NOT NULL
  ) sold ON true
