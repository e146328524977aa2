-- name: offered_pack
WITH killed AS (
    SELECT version FROM workflow_pack_kill
     WHERE marketplace = :marketplace AND locale = :locale
), newest AS (
    SELECT version, pack, signature FROM workflow_pack
     WHERE marketplace = :marketplace AND locale = :locale
       AND version NOT IN (SELECT version FROM killed)
     ORDER BY version DESC LIMIT 1
)
SELECT newest.version, CASE WHEN newest.version > :have THEN newest.pack END AS pack,
       newest.signature, ARRAY(SELECT version FROM killed ORDER BY version) AS killed
  FROM (VALUES (1)) AS one LEFT JOIN newest ON true
