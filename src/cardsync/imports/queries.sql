-- name: discard_older
WITH older AS (
    SELECT id, state FROM upload
     WHERE seller_id = :seller AND id < :id AND stream = 'inventory'
       AND (state = 'awaiting_review' OR (state = 'queued' AND confirmed))
), counted AS (
    UPDATE sync_state SET uploads_open = greatest(
        uploads_open - (SELECT count(*) FROM older WHERE state = 'queued'), 0)
     WHERE seller_id = :seller
), runs AS (
    UPDATE price_run SET state = 'discarded', finished_at = :now
     WHERE seller_id = :seller AND upload_id IN (SELECT id FROM older)
)
UPDATE upload SET state = 'discarded', finished_at = :now WHERE seller_id = :seller
    AND id IN (SELECT id FROM older)

-- name: number_custom_listings
INSERT INTO custom_listing (seller_id, listing_id, title, marketplace_id)
SELECT :seller, listing_id, title,
    -(counted.base + row_number() OVER (ORDER BY listing_id, title))
  FROM unnest(CAST(:ids AS bigint[]), CAST(:titles AS text[]))
       AS new (listing_id, title),
       (SELECT count(*) AS base FROM custom_listing
           WHERE seller_id = :seller) AS counted
 WHERE NOT EXISTS (
       SELECT FROM custom_listing c
        WHERE c.seller_id = :seller AND c.listing_id = new.listing_id
            AND md5(c.title) = md5(new.title))
