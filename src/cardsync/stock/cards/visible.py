"""The only module that decides which cards a caller may see, as an SQL condition over `card c`.
Pure.

A private contribution is visible only to its member until it is published. A retired contribution
is hidden: its copies are visible as a live card.
"""

from __future__ import annotations

# The condition excludes the hidden cards, which an index finds. A test of each card's columns would
# slow down every search of a seller without hidden cards.
VISIBLE = """c.id NOT IN (
 SELECT h.id FROM card h WHERE h.seller_id = :seller AND h.contribution IN ('private', 'retired')
    AND (h.contribution = 'retired'
         OR h.contributed_by IS DISTINCT FROM CAST(:member AS bigint)))"""
"""`:member` is null for a key."""
