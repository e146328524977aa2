-- name: update_feedback
UPDATE orders o
   SET feedback_rating = g.rating,
       feedback_comment = CASE WHEN g.carried THEN g.comment ELSE o.feedback_comment END,
       updated_at = :now
  FROM unnest(CAST(:numbers AS text[]), CAST(:ratings AS integer[]),
              CAST(:comments AS text[]), CAST(:carried AS boolean[]))
       AS g (order_number, rating, comment, carried)
 WHERE o.seller_id = :seller AND o.order_number = ANY(CAST(:numbers AS text[]))
   AND o.order_number = g.order_number
   AND (o.feedback_rating, o.feedback_comment) IS DISTINCT FROM
       (g.rating, CASE WHEN g.carried THEN g.comment ELSE o.feedback_comment END)

-- name: customers
WITH named AS MATERIALIZED (
    SELECT {buyer_hash} AS name, {sums} FROM orders WHERE seller_id = :seller GROUP BY 1
), customer AS (
    SELECT * FROM named WHERE name <> {nameless}
), ranked AS (
    SELECT * FROM customer {ranked} LIMIT :limit OFFSET :offset
), page AS (
    SELECT ranked.*, c.pieces, c.costed, c.profit
      FROM ranked LEFT JOIN customer_sum c ON c.seller_id = :seller AND c.name = ranked.name
), counted AS (
    SELECT count(*) AS total, count(*) FILTER (WHERE order_count > 1) AS returning FROM customer
)
{shown}

-- name: kept
WITH ranked AS MATERIALIZED (
    SELECT name FROM customer_sum
     WHERE seller_id = :seller {ranked} LIMIT :limit OFFSET :offset
), page AS (
    SELECT c.* FROM ranked JOIN customer_sum c
                 ON c.seller_id = :seller AND c.name = ranked.name
), counted AS (
    SELECT coalesce(sum(customers), 0) AS total, coalesce(sum(repeat_customers), 0) AS returning
      FROM customer_count WHERE seller_id = :seller
)
{shown}

-- name: sums
UPDATE orders o SET items_total = s.lines, items_quantity = s.quantity,
                    product_lines = s.product_lines, items_hash = s.items_hash,
                    updated_at = :now
  FROM (SELECT order_id, count(*) AS lines, coalesce(sum(quantity), 0) AS quantity,
               {items_hash} AS items_hash,
               coalesce(array_agg(DISTINCT product_line ORDER BY product_line)
                        FILTER (WHERE product_line IS NOT NULL), '{{{{}}}}') AS product_lines
          FROM order_item
         WHERE seller_id = :seller {{of_items}} AND order_id IN (SELECT order_id FROM found)
         GROUP BY order_id) s
 WHERE o.seller_id = :seller AND o.id = s.order_id {{of_orders}}
   AND (o.items_total, o.items_quantity, o.product_lines, o.items_hash)
       IS DISTINCT FROM (s.lines, s.quantity, s.product_lines, s.items_hash)

-- name: summaries
SELECT s.id, s.state AS status, s.opened_at, s.completed_at,
       o.order_count, o.item_count, o.pulled_count, o.review_count
  FROM pull_session s CROSS JOIN LATERAL (
       SELECT count(*) AS order_count, coalesce(sum(p.item_count), 0)::bigint AS item_count,
              count(p.pulled_at) AS pulled_count, count(*) FILTER (WHERE CASE
                  WHEN s.state = 'open' THEN (
                      SELECT {needs_review} OR {changed} <> '{{{{}}}}' OR p.missing_at IS NOT NULL
                        FROM orders
                       WHERE orders.seller_id = :seller AND orders.id = p.order_id)
                  ELSE p.in_review OR p.changed <> '{{{{}}}}'
                    OR p.missing_at IS NOT NULL END) AS review_count
         FROM pull_session_order p WHERE p.seller_id = :seller AND p.session_id = s.id
       ) o
 WHERE s.seller_id = :seller AND s.id IN ({{sessions}})
 ORDER BY s.opened_at DESC, s.id DESC

-- name: at_the_desk
INSERT INTO pull_mark (seller_id, session_id, id, link_id, item_id, order_id, sku_id, kind,
       quantity, undoes, device, sequence, person, received_at)
SELECT :seller, :session, 'desk-' || CAST(:stamp AS text) || '-' || open.item_id, 0,
       open.item_id, open.order_id, open.sku_id, :kind,
       CASE WHEN :kind = 'pulled' THEN open.wanted ELSE 1 END, '', 'desk', 0, 'Desk', :now
  FROM (SELECT i.item_id, i.order_id, i.sku_id, coalesce(i.quantity, 1) - coalesce((
               SELECT CAST(sum(m.quantity) AS integer) FROM pull_mark m
                WHERE m.seller_id = :seller AND m.session_id = :session
                  AND m.item_id = i.item_id AND m.kind = 'pulled' AND NOT m.undone), 0)
               AS wanted
          FROM pull_session_item i
          JOIN orders ON orders.seller_id = i.seller_id AND orders.id = i.order_id
         WHERE i.seller_id = :seller AND orders.seller_id = :seller
           AND i.session_id = :session AND i.order_id = :id AND NOT {needs_review}) open
 WHERE open.wanted > 0

-- name: copies
SELECT i.order_id, i.id, i.product_name, i.set_name, i.condition,
       CASE WHEN :restocked THEN i.restocked ELSE coalesce(i.quantity, 1) - i.restocked END,
       card.id, card.box, card.slot
  FROM order_item i LEFT JOIN LATERAL (
       SELECT c.id, {box} AS box, l.slot
         FROM card c LEFT JOIN card_location l ON l.seller_id = :seller AND l.card_id = c.id
              {named}
        WHERE c.seller_id = :seller AND {visible}
          AND (c.marketplace_id = i.sku_id OR (c.custom AND c.listing_id = i.sku_id))
        ORDER BY c.gone, c.id, {way}, l.slot LIMIT 1
  ) AS card ON true
 WHERE i.seller_id = :seller AND i.order_id = ANY (CAST(:orders AS bigint[]))
   AND (:restocked OR coalesce(i.quantity, 1) > i.restocked) ORDER BY i.id

-- name: worst
WITH sold AS (
    SELECT i.sku_id
      FROM orders JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
     WHERE {span})
SELECT c.id, c.product_name, c.set_name, c.condition, c.quantity, c.price * c.quantity,
       CAST(:last AS date) - CAST(c.created_at AS date)
  FROM card c
 WHERE c.seller_id = :seller AND NOT c.gone AND c.contribution IS NULL AND c.price > 0
   AND CAST(c.created_at AS date) <= :first
   AND NOT EXISTS (SELECT FROM sold s WHERE s.sku_id = c.marketplace_id)
 ORDER BY c.price * c.quantity DESC, c.id LIMIT :most

-- name: best
WITH summed AS (
    SELECT sku_id, max(product_name) AS product_name, max(set_name) AS set_name,
           max(condition) AS condition, {counted}
      FROM (SELECT i.sku_id, i.product_name, i.set_name, i.condition, {pieces}
              FROM orders
              JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
             WHERE {span}) sold
     WHERE sku_id IS NOT NULL GROUP BY sku_id ORDER BY gross DESC NULLS LAST, sku_id LIMIT :most
)
SELECT (SELECT c.id FROM card c WHERE c.seller_id = :seller AND {visible}
           AND c.marketplace_id = s.sku_id ORDER BY c.gone, c.id LIMIT 1),
       s.product_name, s.set_name, s.condition, s.pieces, s.gross, s.estimated, s.unpriced
  FROM summed s ORDER BY s.gross DESC NULLS LAST, s.sku_id

-- name: write_skus
INSERT INTO order_item (seller_id, order_id, sku_id, {fields})
SELECT :seller, n.order_id, n.sku_id, {new}
  FROM (SELECT m.row, m.order_id, m.sku_id, m.known,
               {read},
               coalesce(m.unit_price, {price_then}) AS unit_price,
               {old_read}
          FROM (SELECT i.row, i.order_id, i.order_placed_at, i.sku_id, o.id AS known,
                       {merged}
                  FROM found i LEFT JOIN (
                       SELECT * FROM order_item
                        WHERE seller_id = :seller AND sku_id IS NOT NULL
                              {of_items}
                       ) o ON o.order_id = i.order_id AND o.sku_id = i.sku_id
                 WHERE i.sku_id IS NOT NULL) m
          LEFT JOIN (SELECT id, marketplace_id, observed_at, price FROM card
                      WHERE seller_id = :seller {of_cards}) c
            ON c.marketplace_id = m.sku_id) n
 WHERE n.known IS NULL
    OR ({new}, scale(n.unit_price)) IS DISTINCT FROM ({old}, scale(n.old_unit_price))
 ORDER BY n.row
ON CONFLICT (seller_id, order_id, sku_id) WHERE sku_id IS NOT NULL DO UPDATE
   SET {update}

-- name: customer_sums
WITH mine AS MATERIALIZED (
    SELECT orders.id, total_amt, placed_at_given, order_date, {buyer_key} AS name
      FROM {{orders}}
)
SELECT count(*), coalesce(sum(mine.total_amt), 0), max(mine.id), min(mine.name),
       least(min(mine.placed_at_given),
             {first_midnight}),
       greatest(max(mine.placed_at_given),
                {last_midnight}),
       array_agg(mine.id ORDER BY mine.order_date DESC NULLS LAST, mine.id DESC)
  FROM mine

-- name: items_of_order
SELECT {fields}, i.set_name, i.rarity,
       {shared}, card.id, card.price, coalesce(card.places, '[]')
  FROM orders JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
  LEFT JOIN LATERAL (
       SELECT c.id, c.price, (
              SELECT json_agg(json_build_array({box}, l.slot, l.quantity)
                              ORDER BY {way}, l.slot)
                FROM card_location l {named}
               WHERE l.seller_id = :seller AND l.card_id = c.id
              ) AS places
         FROM card c
        WHERE c.seller_id = :seller AND {visible}
          AND (c.marketplace_id = i.sku_id OR (c.custom AND c.listing_id = i.sku_id))
        ORDER BY c.gone, c.id LIMIT 1
  ) AS card ON true
 WHERE orders.seller_id = :seller AND orders.id = :order ORDER BY i.id

-- name: take_orders
WITH taken AS (
    INSERT INTO pull_session_order AS taken
           (seller_id, session_id, order_id, {of_order})
    SELECT orders.seller_id, :session, orders.id, {kept}
      FROM orders WHERE {where} RETURNING taken.order_id
), kept AS (
    INSERT INTO pull_session_item (seller_id, session_id, order_id, item_id, {of_item})
    SELECT i.seller_id, :session, i.order_id, i.id, {now_of_item}
      FROM taken JOIN order_item i ON i.order_id = taken.order_id
     WHERE i.seller_id = :seller
    RETURNING 1
)
SELECT count(*) FROM taken
