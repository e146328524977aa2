-- name: audit
(c.listing_id IN (
 SELECT m.sku_id FROM pull_mark m
  WHERE m.seller_id = :seller AND m.kind = 'missing' AND NOT m.undone AND m.sku_id IS NOT NULL
    AND m.received_at >= CAST(:now AS timestamptz) - interval '90 days'
    AND NOT {counted_since}) OR c.id IN (
 SELECT dropped.id FROM (
    SELECT c.id, c.listing_id, other.quantity - c.quantity AS missing,
           other.observed_at - interval '1 day' AS since
     FROM card c {others} WHERE c.seller_id = :seller AND other.quantity > c.quantity
      AND (other.place = 1 OR other.observed_at >= CAST(:now AS timestamptz) - interval '90 days')
 ) AS dropped LEFT JOIN (
   SELECT i.sku_id, i.quantity, {placed_at} AS placed_at FROM {sold_items}
 ) AS sold ON sold.sku_id = dropped.listing_id AND sold.placed_at >= dropped.since
  GROUP BY dropped.id, dropped.missing, dropped.since
 HAVING coalesce(sum(sold.quantity), 0) < dropped.missing))
