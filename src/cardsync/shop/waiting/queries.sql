-- name: page
WITH page AS MATERIALIZED (
    SELECT w.*, array_position(CAST(:kinds AS text[]), w.kind) AS place FROM ({waits}) w
     WHERE w.kind = ANY (CAST(:kinds AS text[]))
       AND (CAST(:id AS bigint) IS NULL OR w.id = :id)
     ORDER BY place, worth DESC, id DESC LIMIT :limit OFFSET :offset)
SELECT p.kind, p.id, p.moment, p.revision, p.since, p.cards,
       CASE WHEN p.kind = 'price' THEN sign(p.proposed_price - coalesce(p.current_price, 0))
            ELSE 1 END * p.amount,
       p.risk, p.expires_at, p.current_price, p.proposed_price,
       coalesce(c.product_name, d.product_name)
  FROM page p
  LEFT JOIN card c ON c.seller_id = :seller AND c.id = p.card_id
  LEFT JOIN card d ON d.seller_id = :seller AND d.marketplace_id = p.listed_as
                  AND d.contribution IS NULL
 ORDER BY p.place, p.worth DESC, p.id DESC
