-- name: store_marks
INSERT INTO pull_mark (seller_id, session_id, id, link_id, item_id, order_id, sku_id, kind,
       quantity, undoes, device, sequence, person, received_at)
SELECT :seller, :session, m.id, :link, m.item_id, i.order_id, i.sku_id, m.kind, m.quantity,
       m.undoes, m.device, m.sequence, m.person, :now
  FROM unnest(CAST(:ids AS text[]), CAST(:items AS bigint[]), CAST(:kinds AS text[]),
              CAST(:quantities AS int[]), CAST(:undoes AS text[]), CAST(:devices AS text[]),
              CAST(:sequences AS bigint[]), CAST(:people AS text[]))
       WITH ORDINALITY AS m(id, item_id, kind, quantity, undoes, device, sequence, person, turn)
       LEFT JOIN pull_session_item i ON i.seller_id = :seller AND i.session_id = :session
                                    AND i.item_id = m.item_id
 ORDER BY m.turn ON CONFLICT DO NOTHING RETURNING id

-- name: list
SELECT i.order_id, i.item_id, i.session_id, orders.order_number, orders.buyer_name,
       i.product_name, i.product_line, i.set_name, i.condition,
       coalesce(i.quantity, 1) AS quantity,
       i.missing_at, i.missing_by, i.missing_reason, item.unit_price, orders.total_amt,
       card.id AS card_id, card.box, card.slot
  FROM pull_session_item i
  JOIN pull_session s ON s.seller_id = :seller AND s.id = i.session_id
  JOIN orders ON orders.seller_id = :seller AND orders.id = i.order_id
  LEFT JOIN order_item item ON item.seller_id = :seller AND item.id = i.item_id
  LEFT JOIN LATERAL (
       SELECT c.id, {box} AS box, l.slot
         FROM card c LEFT JOIN card_location l ON l.seller_id = :seller AND l.card_id = c.id
              {named}
        WHERE c.seller_id = :seller AND {visible}
          AND (c.marketplace_id = i.sku_id OR (c.custom AND c.listing_id = i.sku_id))
        ORDER BY c.gone, c.id, {way}, l.slot LIMIT 1) card ON true
 WHERE i.seller_id = :seller AND {unsettled} AND s.state <> 'cancelled'
   AND orders.shipped_marked_at IS NULL
   AND (CAST(:orders AS bigint[]) IS NULL OR i.order_id = ANY (:orders))
   AND (CAST(:session AS bigint) IS NULL OR i.session_id = :session)
 ORDER BY i.missing_at, i.order_id, i.item_id LIMIT :most

-- name: lines
SELECT i.item_id, i.order_id, orders.order_number, coalesce(i.product_line, '') AS product_line,
       coalesce(i.product_name, '') AS name, coalesce(i.set_name, '') AS set_name,
       coalesce(i.condition, '') AS condition, coalesce(i.rarity, '') AS rarity,
       coalesce(i.quantity, 1) AS wanted, i.sku_id, coalesce(i.main_photo_url, '') AS photo_url,
       coalesce(c.number, '') AS number, coalesce(c.printing, '') AS printing,
       {needs_review} AS stopped, {changed} AS changed, p.shipping_type,
       i.missing_outcome AS settled
  FROM pull_session_item i
  JOIN pull_session_order p ON p.seller_id = i.seller_id AND p.session_id = i.session_id
                           AND p.order_id = i.order_id
  JOIN orders ON orders.seller_id = i.seller_id AND orders.id = i.order_id
  LEFT JOIN LATERAL (
       SELECT c.number, c.printing FROM card c
        WHERE c.seller_id = :seller
          AND (c.marketplace_id = i.sku_id OR (c.custom AND c.listing_id = i.sku_id))
        ORDER BY c.id LIMIT 1) c ON true
 WHERE i.seller_id = :seller AND p.seller_id = :seller AND orders.seller_id = :seller
   AND i.session_id = :session
