-- name: flush_last_seen
INSERT INTO agent_seen (seller_id, last_seen_at, version, platform,
       your_turn, your_turn_host, your_turn_since)
SELECT noted.*, noted.last_seen_at
  FROM unnest(CAST(:sellers AS bigint[]), CAST(:moments AS timestamptz[]),
              CAST(:versions AS text[]), CAST(:platforms AS text[]),
              CAST(:turns AS text[]), CAST(:hosts AS text[]))
       AS noted (seller_id, last_seen_at, version, platform, your_turn, your_turn_host)
  JOIN seller ON seller.id = noted.seller_id  -- skip sellers erased in the meantime
 ORDER BY noted.seller_id
ON CONFLICT (seller_id) DO UPDATE
   SET last_seen_at = excluded.last_seen_at,
       version = coalesce(excluded.version, agent_seen.version),
       platform = coalesce(excluded.platform, agent_seen.platform),
       your_turn = coalesce(excluded.your_turn, agent_seen.your_turn),
       your_turn_host = coalesce(excluded.your_turn_host, agent_seen.your_turn_host),
       your_turn_since = CASE
           WHEN excluded.your_turn IS NULL OR excluded.your_turn = agent_seen.your_turn
           THEN agent_seen.your_turn_since ELSE excluded.your_turn_since END
 WHERE agent_seen.last_seen_at < excluded.last_seen_at
