-- name: keep_fees
INSERT INTO order_payment AS kept
       (seller_id, order_number, paid_on, amount, fees, received_at)
SELECT CAST(:seller AS bigint), given.number, given.paid_on, given.amount, given.fees, :now
  FROM unnest(CAST(:numbers AS text[]), CAST(:days AS date[]), CAST(:amounts AS numeric[]),
              CAST(:fees AS numeric[])) AS given (number, paid_on, amount, fees)
ON CONFLICT (seller_id, order_number) DO UPDATE
   SET paid_on = excluded.paid_on, amount = excluded.amount, fees = excluded.fees,
       received_at = excluded.received_at
 WHERE (kept.paid_on, kept.amount, kept.fees)
       IS DISTINCT FROM (excluded.paid_on, excluded.amount, excluded.fees)
RETURNING kept.order_number

-- name: wholes
SELECT w.*, sum(weight) OVER (PARTITION BY order_id ORDER BY item_id) AS reached,
       sum(weight) OVER (PARTITION BY order_id) AS whole
  FROM (SELECT v.*, CASE WHEN products > 0 THEN value WHEN copies > 0 THEN pieces ELSE 1 END
               AS weight
          FROM (SELECT l.*, sum(value) OVER of_order AS products,
                       sum(pieces) OVER of_order AS copies,
                       sum(least(value * commission, most * pieces)) OVER of_order AS kept
                  FROM (SELECT p.*, coalesce(gross * CASE
                               WHEN count(*) FILTER (WHERE gross IS NULL) OVER of_order = 0
                               THEN paid / nullif(sum(gross) OVER of_order, 0) END, gross, 0)
                               AS value
                          FROM ({lines}) p WINDOW of_order AS (PARTITION BY order_id)
                       ) l WINDOW of_order AS (PARTITION BY order_id)
               ) v
       ) w

-- name: keep_uses
INSERT INTO card_cost AS kept (seller_id, marketplace_id, copies, known, cost, oldest)
SELECT CAST(:seller AS bigint), l.marketplace_id, sum(l.remaining),
       coalesce(sum(l.remaining) FILTER (WHERE l.cost IS NOT NULL), 0),
       round(sum(l.cost * l.remaining)
             / nullif(sum(l.remaining) FILTER (WHERE l.cost IS NOT NULL), 0), 4),
       min(l.bought_on)
  FROM settling s
  JOIN lot l ON l.seller_id = :seller AND l.marketplace_id = s.card
 WHERE l.remaining > 0 GROUP BY l.marketplace_id
ON CONFLICT (seller_id, marketplace_id) DO UPDATE
   SET copies = excluded.copies, known = excluded.known, cost = excluded.cost,
       oldest = excluded.oldest
 WHERE (kept.copies, kept.known, kept.cost, kept.oldest)
       IS DISTINCT FROM (excluded.copies, excluded.known, excluded.cost, excluded.oldest)

-- name: cost_of_uses
WITH own AS (
    SELECT u.item_id, u.lot_id, {cost} AS cost
      FROM settling_item i
      JOIN lot_use u ON u.seller_id = :seller AND u.item_id = i.id
      JOIN lot l ON l.seller_id = :seller AND l.id = u.lot_id
     WHERE {which}
), priced AS (
    UPDATE lot_use u SET cost = own.cost FROM own
     WHERE u.seller_id = :seller AND u.item_id = own.item_id AND u.lot_id = own.lot_id
       AND u.cost IS DISTINCT FROM own.cost
    RETURNING u.item_id, u.lot_id
)
INSERT INTO settled SELECT item_id, lot_id, 0 FROM priced

-- name: give_back_uses
WITH kept AS (
    SELECT u.item_id, u.lot_id, u.taken - u.given_back AS has,
           greatest(0, least(u.taken - u.given_back,
               i.wanted - coalesce(sum(u.taken - u.given_back) OVER (
                   PARTITION BY u.item_id ORDER BY l.bought_on, l.id
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))) AS keeps
      FROM settling_item i
      JOIN lot_use u ON u.seller_id = :seller AND u.item_id = i.id
      JOIN lot l ON l.seller_id = :seller AND l.id = u.lot_id
     WHERE i.has > i.wanted
), back AS (
    UPDATE lot_use u SET given_back = u.taken - k.keeps
      FROM kept k
     WHERE u.seller_id = :seller AND u.item_id = k.item_id AND u.lot_id = k.lot_id
       AND k.keeps <> k.has
    RETURNING u.item_id, u.lot_id, k.keeps - k.has AS copies
)
INSERT INTO settled SELECT item_id, lot_id, copies FROM back

-- name: lines
SELECT orders.id AS order_id, orders.order_number, orders.order_date AS ordered, {day} AS day,
       orders.placed_at_given, i.id AS item_id, i.sku_id, i.unit_price,
       coalesce(i.product_line, '') AS game, {pieces},
       i.restocked, {in_full} AS returned, coalesce(orders.shipping_amt, 0) AS shipping,
       coalesce(orders.refund_amt, 0) AS refunded,
       coalesce(orders.total_amt, orders.product_amt + coalesce(orders.shipping_amt, 0))
           AS total,
       coalesce(orders.product_amt, orders.total_amt - coalesce(orders.shipping_amt, 0))
           AS paid,
       {commission} AS commission,
       {processing} AS processing, {most} AS most, {a_sale} AS a_sale,
       CASE WHEN orders.shipping_type = 'pwe' THEN CAST(:letter_postage AS numeric)
            ELSE CAST(:parcel_postage AS numeric) END + :supplies AS spent
  FROM orders LEFT JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
 WHERE {sold} {{on}}

-- name: take
WITH stock AS MATERIALIZED ({stock}), {takes}, wanted AS MATERIALIZED ({taken}),
taken AS (
    INSERT INTO lot_use AS u (seller_id, item_id, lot_id, taken, given_back, cost)
    SELECT CAST(:seller AS bigint), t.item_id, t.lot_id, t.copies, 0, t.cost
      FROM wanted t
    ON CONFLICT (seller_id, item_id, lot_id) DO UPDATE
       SET taken = u.taken + greatest(0, excluded.taken - u.given_back),
           given_back = greatest(0, u.given_back - excluded.taken), cost = excluded.cost
    RETURNING 1
)
INSERT INTO settled SELECT item_id, lot_id, copies FROM wanted
 WHERE (SELECT count(*) FROM taken) >= 0

-- name: takes
event AS (
    SELECT card, day, 0 AS kind, id, copies FROM stock
     UNION ALL
    SELECT card, day, 1, id, has - wanted FROM settling_item WHERE wanted > has
), balance AS (
    SELECT card, day, kind, id, copies,
           sum(copies) OVER (PARTITION BY card ORDER BY day, kind, id) AS level
      FROM event
), low AS (
    SELECT card, day, kind, id, copies,
           greatest(0, -min(level) OVER (PARTITION BY card ORDER BY day, kind, id)) AS lost
      FROM balance
), sale AS (
    SELECT card, day, kind, id,
           -copies - (lost - coalesce(lag(lost) OVER (
               PARTITION BY card ORDER BY day, kind, id), 0)) AS copies
      FROM low
), demand AS (
    SELECT card, id, copies,
           sum(copies) OVER (PARTITION BY card ORDER BY day, id) AS until
      FROM sale WHERE kind = 1 AND copies > 0
), supply AS (
    SELECT card, id, cost, copies,
           sum(copies) OVER (PARTITION BY card ORDER BY day, id) AS until
      FROM stock
)

-- name: items
CREATE TEMP TABLE settling_item ON COMMIT DROP AS
SELECT i.id, i.sku_id AS card, {sold_on} AS day, {wanted} AS wanted,
       CAST(coalesce(u.has, 0) AS bigint) AS has
  FROM settling s
  JOIN order_item i ON i.seller_id = :seller AND i.sku_id = s.card
  JOIN orders ON orders.seller_id = :seller AND orders.id = i.order_id
  LEFT JOIN (SELECT x.item_id, sum(x.taken - x.given_back) AS has
               FROM settling t
               JOIN lot l ON l.seller_id = :seller AND l.marketplace_id = t.card
               JOIN lot_use x ON x.seller_id = :seller AND x.lot_id = l.id
              GROUP BY 1) u ON u.item_id = i.id

-- name: with_rule
SELECT line.*, CASE WHEN line.unit_price IS NULL OR c.id IS NULL THEN {unknown_rule}
                    ELSE coalesce(change.rule_id, {no_rule}) END AS rule_id
  FROM ({lines}) line
  LEFT JOIN card c ON c.seller_id = :seller AND c.marketplace_id = line.sku_id
  LEFT JOIN LATERAL (
       SELECT p.rule_id FROM price_change p
         JOIN price_run r ON r.seller_id = :seller AND r.id = p.run_id
        WHERE p.seller_id = :seller AND p.card_id = c.id AND p.new_price = line.unit_price
          AND r.finished_at <= coalesce(line.placed_at_given,
              timezone(:zone, CAST(line.ordered + 1 AS timestamp)))
        ORDER BY p.run_id DESC LIMIT 1) change ON true

-- name: costed
SELECT s.order_id, s.ordered, s.placed_at_given, s.day, s.item_id, s.sku_id, s.unit_price,
       s.game,
       CASE WHEN returned OR s.item_id IS NULL THEN 0
            ELSE greatest(0, s.pieces - s.restocked) END AS pieces,
       CASE WHEN returned OR gross IS NULL THEN 0 ELSE coalesce(u.copies, 0) END AS costed,
       CASE WHEN s.item_id IS NULL AND NOT returned THEN 1 ELSE 0 END AS bare,
       {paid} AS received,
       {fees} AS fees,
       CASE WHEN coalesce(reported, of_month) IS NULL THEN {expected} ELSE 0 END
           AS estimated,
       reported IS NOT NULL AS is_reported,
       {spent} AS postage,
       CASE WHEN returned OR gross IS NULL THEN 0 ELSE round(coalesce(u.cost, 0), 2) END AS cost
  FROM ({{shares}}) s
  LEFT JOIN LATERAL (
       SELECT sum(x.taken - x.given_back) AS copies,
              sum(x.cost * (x.taken - x.given_back)) AS cost
         FROM lot_use x
        WHERE x.seller_id = :seller AND x.item_id = s.item_id AND x.cost IS NOT NULL
       ) u ON true

-- name: profit_of_rules
WITH bought AS (
    SELECT rule_id, sum(quantity) AS bought, coalesce(sum(cost * quantity), 0) AS paid
      FROM lot WHERE seller_id = :seller AND rule_id IS NOT NULL
       AND bought_on BETWEEN :first AND :last GROUP BY 1
), used AS MATERIALIZED (
    SELECT l.rule_id, l.bought_on, u.item_id, u.taken - u.given_back AS copies, u.cost
      FROM lot l JOIN lot_use u ON u.seller_id = :seller AND u.lot_id = l.id
     WHERE l.seller_id = :seller AND l.rule_id IS NOT NULL AND u.taken > u.given_back
       AND l.bought_on BETWEEN :first AND :last
), line AS (
    SELECT * FROM ({lines}) l
), brought AS (
    SELECT u.rule_id, sum(u.copies) AS sold,
           coalesce(sum(u.cost * u.copies), 0) AS cost,
           coalesce(sum((line.received - line.fees - line.postage) * u.copies / line.pieces
                        - u.cost * u.copies) FILTER (WHERE line.pieces > 0), 0) AS profit,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY line.day - u.bought_on) AS days
      FROM used u JOIN line ON line.item_id = u.item_id GROUP BY 1
)
SELECT b.rule_id, b.bought, b.paid, coalesce(s.sold, 0), coalesce(s.cost, 0),
       coalesce(s.profit, 0), s.days
  FROM bought b LEFT JOIN brought s ON s.rule_id = b.rule_id ORDER BY b.paid DESC, b.rule_id
