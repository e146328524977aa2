-- name: append_entry
WITH moved AS (
    UPDATE buying_customer SET credit_balance = credit_balance + :amount
     WHERE seller_id = :seller AND id = :customer RETURNING credit_balance
)
INSERT INTO store_credit_entry
       (seller_id, customer_id, kind, amount, balance_after, offer_id, takes_back, reason,
        idempotency_key, created_by, created_at)
SELECT :seller, :customer, :kind, :amount, credit_balance, :offer, :takes_back, :reason, :key,
       :by, :now
  FROM moved
RETURNING id
