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
