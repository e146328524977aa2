-- name: promised
SELECT l.rule_id,
       (coalesce(sum(l.copies * l.cash_each)
                  FILTER (WHERE o.way IS DISTINCT FROM 'credit'), 0) * 10000)::bigint AS cash,
       (coalesce(sum(l.copies * l.credit_each)
                  FILTER (WHERE o.way IS DISTINCT FROM 'cash'), 0) * 10000)::bigint AS credit
  FROM buying_offer o JOIN buying_offer_line l
    ON l.seller_id = :seller AND l.offer_id = o.id AND l.accepted IS NOT FALSE
       AND l.rule_id IS NOT NULL
 WHERE o.seller_id = :seller AND o.offered_at >= :since
   AND o.state IN ('offered', 'accepted', 'received', 'paid', 'in_stock')
 GROUP BY l.rule_id
