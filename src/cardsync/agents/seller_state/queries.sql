-- name: importable
NOT c.gone AND c.contribution IS NULL
AND c.product_line = ANY (CAST(
    (SELECT a.product_lines FROM account a WHERE a.seller_id = {seller_id}) AS text[]))
AND c.listing_id NOT IN (
    SELECT c.listing_id
      FROM card c JOIN card d
        ON d.seller_id = c.seller_id AND d.marketplace_id = c.listing_id
     WHERE c.seller_id = {seller_id} AND c.custom AND NOT c.gone AND NOT d.gone
     UNION ALL
    SELECT listing_id FROM card WHERE seller_id = {seller_id} AND custom AND NOT gone
     GROUP BY listing_id HAVING count(*) > 1)
