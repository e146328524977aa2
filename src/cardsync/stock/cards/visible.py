"""Decides which cards a caller may see, in SQL over `card c`; no other module does. Pure.

A member's own contribution is visible to that member alone until it is published; a retired one has
become live stock and is visible there.
"""

from __future__ import annotations

# The condition excludes hidden cards, which an index holds: testing each card's own columns would
# slow down every search of a seller who has no hidden cards.
VISIBLE = """c.id NOT IN (
 SELECT h.id FROM card h WHERE h.seller_id = :seller AND h.contribution IN ('private', 'retired')
    AND (h.contribution = 'retired'
         OR h.contributed_by IS DISTINCT FROM CAST(:member AS bigint)))"""
"""`:member` is null for a key."""
