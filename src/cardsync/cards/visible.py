"""Which cards a caller may see at all, in SQL over `card c`. Pure: the one place that says so.

A member's own contribution is seen by that member alone until it is published; a retired one has
become live stock and is seen there.
"""

from __future__ import annotations

# By what is hidden, which an index knows: looking at each card's own columns would cost every
# search of a seller who has none of these.
VISIBLE = """c.id NOT IN (
 SELECT h.id FROM card h WHERE h.seller_id = :seller AND h.contribution IN ('private', 'retired')
    AND (h.contribution = 'retired' OR h.contributed_by IS DISTINCT FROM CAST(:member AS bigint)))"""
"""`:member` is null for a key."""
