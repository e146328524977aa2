-- name: of_products
WITH own AS (
    SELECT c.product_id, max({worth}) AS worth FROM card c
     WHERE c.seller_id = :seller AND NOT c.gone GROUP BY c.product_id
), found AS (
    SELECT {of_product} AS address, own.worth
      FROM own JOIN product p ON p.id = own.product_id
      LEFT JOIN product q ON q.id = p.adopted_by
    UNION ALL
    SELECT {of_marketplace}, {worth} FROM card c
     WHERE c.seller_id = :seller AND NOT c.gone AND c.photo_url <> ''
), lacking AS (
    SELECT address, max(worth) AS worth FROM found
     WHERE {host} = ANY(:hosts) AND length(address) <= {longest}
       AND NOT EXISTS (SELECT FROM picture known WHERE known.address = found.address)
     GROUP BY address
)
INSERT INTO picture (address, host, next_at)
SELECT address, {host},
       CAST(:now AS timestamptz)
       + row_number() OVER (ORDER BY worth DESC, address) * interval '1 microsecond'
  FROM lacking
ON CONFLICT (address) DO NOTHING
