-- name: nearby
SELECT 'nearby', w.id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, n.product_name,
       n.set_name, n.set_code, n.number, n.finish, n.id, NULL
  FROM unnest(CAST(:ids AS bigint[])) AS w (id)
  JOIN product p ON p.id = w.id
 CROSS JOIN LATERAL (
       SELECT q.id, q.product_name, q.set_name, q.set_code, q.number, q.finish
         FROM product q
        WHERE q.game = p.game AND q.name_key = p.name_key AND q.id <> p.id AND NOT q.provisional
        ORDER BY q.set_key IS NOT DISTINCT FROM p.set_key DESC,
                 q.number_key IS NOT DISTINCT FROM p.number_key DESC, q.set_name, q.number_key,
                 q.finish_key, q.id
        LIMIT {nearby}) AS n
 WHERE NOT EXISTS (
       SELECT FROM network_offer o JOIN network_seller s ON s.seller_id = o.seller_id
        WHERE o.product_id = w.id AND o.price IS NOT NULL AND {exposed})

-- name: offers
SELECT 'offer' AS kind, w.id AS of, a.least, a.copies, a.as_of, a.callers,
       o.price, o.quantity, o.store_name, o.listing_url_template, p.marketplace_product_id,
       CAST(NULL AS text) AS product_name, CAST(NULL AS text) AS set_name,
       CAST(NULL AS text) AS set_code, CAST(NULL AS text) AS number, CAST(NULL AS text) AS finish,
       CAST(NULL AS bigint) AS id, a.hidden
  FROM unnest(CAST(:ids AS bigint[])) AS w (id)
  JOIN product p ON p.id = w.id
 CROSS JOIN LATERAL (
       SELECT min(o.price) FILTER (WHERE {exposed} AND o.price IS NOT NULL) AS least,
              sum(o.quantity) FILTER (WHERE {exposed} AND o.price IS NOT NULL) AS copies,
              min(s.refreshed_at) FILTER (WHERE {exposed} AND o.price IS NOT NULL) AS as_of,
              coalesce(bool_or(o.seller_id = :caller AND {exposed} AND o.price IS NOT NULL), false)
                  AS callers,
              coalesce(bool_or(o.seller_id <> :caller AND NOT s.exposed AND NOT s.suspended
                  AND (s.paid_until IS NULL OR s.paid_until > :now)), false) AS hidden
         FROM network_offer o JOIN network_seller s ON s.seller_id = o.seller_id
        WHERE o.product_id = w.id) AS a
  LEFT JOIN LATERAL (
       SELECT min(o.price) AS price, CAST(sum(o.quantity) AS integer) AS quantity,
              s.store_name, s.listing_url_template
         FROM network_offer o JOIN network_seller s ON s.seller_id = o.seller_id
        WHERE o.product_id = w.id AND o.price IS NOT NULL AND {exposed}
        GROUP BY s.seller_id
        ORDER BY min(o.price), s.store_name, s.seller_id LIMIT {offers_shown}) AS o ON true

-- name: basket_offers_offers
WITH asked AS (
    SELECT a.line, a.id, a.any_printing,
           string_to_array(nullif(a.conditions, ''), '|') AS conditions,
           p.game, p.name_key, p.back_key,
           sum(a.wanted) OVER (PARTITION BY p.game, p.name_key) AS most
      FROM unnest(CAST(:lines AS int[]), CAST(:ids AS bigint[]), CAST(:wanted AS int[]),
                  CAST(:conditions AS text[]), CAST(:any AS boolean[]))
           AS a (line, id, wanted, conditions, any_printing)
      JOIN product p ON p.id = a.id),
meant AS (
    SELECT line, conditions, most, id FROM asked WHERE NOT any_printing
    UNION ALL
    SELECT a.line, a.conditions, a.most, p.id
      FROM asked a JOIN product p ON p.game = a.game AND p.name_key = a.name_key
       AND (p.id = a.id OR (p.back_key IS NOT DISTINCT FROM a.back_key AND NOT p.sealed))
     WHERE a.any_printing),
offered AS (
    SELECT m.line, m.most, o.product_id, o.seller_id, o.condition, o.price, o.quantity,
           s.store_name, s.listing_url_template, s.postage_steps,
           sum(o.quantity) OVER (PARTITION BY m.line, o.seller_id
               ORDER BY o.price, o.product_id, o.condition) - o.quantity AS cheaper
      FROM meant m
      JOIN network_offer o ON o.product_id = m.id
      JOIN network_seller s ON s.seller_id = o.seller_id
     WHERE o.price IS NOT NULL AND o.quantity > 0 AND {exposed}
       AND (m.conditions IS NULL OR o.condition = ANY (m.conditions))),
ranked AS (
    SELECT o.*, row_number() OVER (PARTITION BY o.line
               ORDER BY o.price, o.seller_id, o.product_id, o.condition) AS place
      FROM offered o WHERE o.cheaper < o.most)
SELECT r.line, r.product_id, r.seller_id, r.condition, r.price, r.quantity, r.store_name,
       r.listing_url_template, r.postage_steps, p.marketplace_product_id
  FROM ranked r JOIN product p ON p.id = r.product_id
 WHERE r.place <= :weighed
 ORDER BY r.line, r.place

-- name: unmet
SELECT p.id, p.product_name, p.set_name, p.number, p.finish, p.game, m.callers, m.asked_on,
       o.quantity IS NOT NULL AS held
  FROM (SELECT coalesce(a.adopted_by, n.product_id) AS product_id, count(*) AS callers,
               max(n.asked_on) AS asked_on
          FROM network_miss n LEFT JOIN product a ON a.id = n.product_id
         WHERE n.asked_on > :since GROUP BY 1
        HAVING count(*) >= {miss_callers}) AS m
  JOIN product p ON p.id = m.product_id
  LEFT JOIN LATERAL (SELECT sum(o.quantity) AS quantity FROM network_offer o
                      WHERE o.product_id = p.id AND o.seller_id = :seller) AS o ON true
 WHERE NOT EXISTS (
       SELECT FROM network_offer o JOIN network_seller s ON s.seller_id = o.seller_id
        WHERE o.product_id = m.product_id AND o.price IS NOT NULL AND {exposed})
 ORDER BY m.callers DESC, m.asked_on DESC, p.product_name, p.id LIMIT {unmet_shown}

-- name: find
WITH asked AS MATERIALIZED (
    SELECT idx, CAST(query AS tsquery) AS query, CAST(probe AS tsquery) AS probe, full_name, sets,
      code, number, total, finish,
           string_to_array(finishes, '|') AS finishes,
           string_to_array(possible, '|') AS possible, free
      FROM unnest(CAST(:idx AS int[]), CAST(:query AS text[]), CAST(:probe AS text[]),
        CAST(:full_name AS text[]),
                  CAST(:sets AS text[]), CAST(:code AS text[]), CAST(:number AS text[]),
                  CAST(:total AS text[]), CAST(:finish AS text[]), CAST(:finishes AS text[]),
                  CAST(:possible AS text[]), CAST(:free AS boolean[]))
           AS a (idx, query, probe, full_name, sets, code, number, total, finish, finishes,
             possible,
               free)),
filtered AS (
    SELECT a.idx, f.* FROM asked a CROSS JOIN LATERAL (
        SELECT {shown}, e.name AS same_name,
               e.name AND e.in_set AND e.number AND e.finish AS exact,
               count(*) OVER () AS total,
               row_number() OVER (ORDER BY e.name DESC, e.in_set DESC, e.number DESC,
                   e.finish DESC, length(p.product_name), p.set_name, p.number_key,
                   p.finish_key, p.id) AS place
          FROM catalog_name n
          JOIN product p ON p.game = n.game AND p.name_key = n.name_key
         CROSS JOIN LATERAL (
               SELECT CASE WHEN a.sets <> '' THEN (
                   SELECT words FROM catalog_set WHERE game = p.game AND set_name = p.set_name)
                   END AS words) AS w
         CROSS JOIN LATERAL (
               SELECT {same_name} OR {same_pattern} AS name,
                      a.sets = '' OR coalesce(w.words = a.sets, false)
                          OR coalesce(lower(p.set_code) = a.code, false) AS in_set,
                      a.total IS NULL OR coalesce(p.number_total = a.total, false) AS number,
                      a.finish = '' OR coalesce(p.finish_key = ANY (a.finishes), false)
                          OR {same_pattern} AS finish) AS e
         WHERE n.game = :game AND {named}
           AND (n.own @@ a.query OR {product_words} @@ a.query)
           AND (a.number = '' OR (p.number_key = a.number
                AND coalesce(p.number_total = a.total, true)))
           AND (a.sets = '' OR strpos(w.words, a.sets) > 0 OR lower(p.set_code) = a.code)
           AND (a.finish = '' OR p.finish_key IS NULL OR p.finish_key = ANY (a.possible)
                OR strpos(' ' || p.variant_key || ' ', ' ' || a.finish || ' ') > 0)
           AND (NOT p.provisional OR (p.adopted_by IS NULL AND {offered}))) AS f
     WHERE NOT a.free AND f.place <= {listed}),
free AS (
    SELECT a.idx, p.* FROM asked a CROSS JOIN LATERAL (
        SELECT n.name_key, n.own @@ a.query AS own
          FROM catalog_name n
         WHERE n.game = :game AND {named} AND n.printings > 0
         ORDER BY n.own @@ a.query DESC, n.name_key = a.full_name DESC, length(n.name_key),
                  n.name_key
         LIMIT {listed_twice}) AS n
     CROSS JOIN LATERAL (
        SELECT {shown}, {same_name} AS same_name, {same_name} AS exact,
               CAST(NULL AS bigint) AS total,
               row_number() OVER (ORDER BY {same_name} DESC, length(p.product_name), p.set_name,
                   p.number_key, p.finish_key, p.id) AS place
          FROM product p
         WHERE p.game = :game AND p.name_key = n.name_key AND NOT p.provisional
           AND (n.own OR {product_words} @@ a.query)) AS p
     WHERE a.free AND p.place <= {listed}),
own_names AS (
    SELECT a.idx, {shown}, {same_name} AS same_name, {same_name} AS exact,
           CAST(NULL AS bigint) AS total, CAST(0 AS bigint) AS place
      FROM asked a
      JOIN catalog_name n ON n.game = :game AND {named} AND n.provisional
      JOIN product p ON p.game = n.game AND p.name_key = n.name_key AND p.provisional
     WHERE a.free AND p.adopted_by IS NULL AND {product_words} @@ a.query AND {offered}),
counted AS (
    SELECT a.idx, CAST(NULL AS bigint) AS id, CAST(NULL AS text) AS product_name,
           CAST(NULL AS text) AS set_name, CAST(NULL AS text) AS set_code,
           CAST(NULL AS text) AS number, CAST(NULL AS text) AS finish, false AS same_name,
           false AS exact, t.total, CAST(0 AS bigint) AS place
      FROM asked a CROSS JOIN LATERAL (
        SELECT coalesce(sum(CASE WHEN n.own @@ a.query THEN n.printings ELSE (
                   SELECT count(*) FROM product p
                    WHERE p.game = :game AND p.name_key = n.name_key AND NOT p.provisional
                      AND {product_words} @@ a.query) END), 0) AS total
          FROM catalog_name n
         WHERE n.game = :game AND {named} AND n.printings > 0) AS t
     WHERE a.free)
SELECT * FROM filtered UNION ALL SELECT * FROM free UNION ALL SELECT * FROM own_names
UNION ALL SELECT * FROM counted
