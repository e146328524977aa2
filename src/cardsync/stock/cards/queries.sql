-- name: observed_prices
SELECT DISTINCT ON (card_id, day) card_id, day, market FROM (
    SELECT card_id, observed_at, market,
           CAST(floor(extract(epoch FROM CAST(:now AS timestamptz) - observed_at) / 86400)
                AS int) AS day
      FROM (SELECT card_id, observed_at, market FROM price_observation
             WHERE seller_id = :seller AND card_id = ANY (CAST(:ids AS bigint[]))
               AND observed_at > :since
             UNION ALL
            SELECT id, observed_at, market FROM card
             WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))) AS known
) AS aged
 ORDER BY card_id, day DESC, observed_at DESC
