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
