"""The SQL condition over `card c` that a caller may see the card. No other module decides this.
Pure.

A private contribution is visible only to its member until it is published. A retired contribution
is hidden, because its copies are in a live card.
"""

from __future__ import annotations

# An index finds the hidden cards, which are few, and the condition excludes their ids. A condition
# on the columns of each card would slow down every search, also of a seller without hidden cards.
VISIBLE = """c.id NOT IN (
 SELECT h.id FROM card h WHERE h.seller_id = :seller AND h.contribution IN ('private', 'retired')
    AND (h.contribution = 'retired'
         OR h.contributed_by IS DISTINCT FROM CAST(:member AS bigint)))"""
"""`:member` is the caller's member id, or null for a key."""
