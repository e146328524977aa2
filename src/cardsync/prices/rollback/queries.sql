-- name: brought
{moved}, asked AS (
        SELECT DISTINCT ON (p.card_id) p.card_id, p.rule_id
          FROM price_change p
         WHERE p.seller_id = :seller AND p.card_id IN (SELECT id FROM moved)
           AND p.run_id IN (SELECT r.id FROM price_run r WHERE r.seller_id = :seller
                             ORDER BY r.id DESC LIMIT {runs_looked_at})
         ORDER BY p.card_id, p.run_id DESC
    ), moves AS (
        SELECT m.id, m.price AS was, m.imported, m.quantity, a.rule_id,
               (m.imported - coalesce(m.price, 0)) * m.quantity AS worth
          FROM moved m LEFT JOIN asked a ON a.card_id = m.id
         WHERE m.imported IS DISTINCT FROM m.price
    )
    SELECT (SELECT jsonb_agg(jsonb_build_array(rule_id, raised, raised_value, lowered,
                                               lowered_value))
              FROM (SELECT rule_id,
                           count(*) FILTER (WHERE imported > coalesce(was, 0)) AS raised,
                           coalesce(sum(worth) FILTER (WHERE imported > coalesce(was, 0)), 0)
                               AS raised_value,
                           count(*) FILTER (WHERE imported < was) AS lowered,
                           coalesce(-sum(worth) FILTER (WHERE imported < was), 0) AS lowered_value
                      FROM moves GROUP BY rule_id) r),
           (SELECT jsonb_agg(jsonb_build_array(id, was, imported, quantity))
              FROM (SELECT * FROM moves ORDER BY abs(worth) DESC, id LIMIT {largest}) l)

-- name: moved
WITH given AS ({{given}}),
moved AS MATERIALIZED (
    SELECT c.id, g.price AS imported, c.observed_at, c.quantity,
        c.observed_at + interval '1 microsecond' AS later,
        {amounts}
      FROM given g JOIN card c ON c.seller_id = :seller AND c.id = g.id
           LEFT JOIN line_snapshot l ON l.seller_id = :seller
               AND l.product_line = c.product_line
     WHERE NOT c.gone AND (c.price IS DISTINCT FROM g.price OR c.my_store_priced)
       AND (greatest(c.observed_at, l.observed_at) <= CAST(:since AS timestamptz)
            OR ((c.price IS NOT DISTINCT FROM g.old OR c.my_store_priced AND g.old IS NULL)
                AND greatest(c.observed_at, l.observed_at) <= CAST(:nearly AS timestamptz)))
)
