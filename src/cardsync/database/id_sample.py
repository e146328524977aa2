"""A sample of a seller's rows by ranges of their ids: parts of SQL go out. Pure.

Ids are close together if they were given at once, and far apart between uploads: the sample starts
at places that divide their whole range, its 64th part and the 64th part of that.
"""

from __future__ import annotations

from typing import Final

_PLACES, _SHIFTS, _AT_EACH = 8, (0, 6, 12), 150
SAMPLED: Final = _PLACES * len(_SHIFTS) * _AT_EACH
# A table of fewer rows is read whole: that is faster than taking a sample.
_FEW: Final = 2 * SAMPLED


def places_of(table: str) -> str:
    """Return the common table expressions of the places where the sample starts. A seller with few
    rows has none.

    The first page of 120,000 cards costs 0.9 x without it; bench/fences.py measures it.
    """
    ids = f"SELECT id FROM {table} WHERE seller_id = :seller ORDER BY id"
    shifts = ", ".join(f"({shift})" for shift in _SHIFTS)
    return f"""
        ends AS MATERIALIZED (
            SELECT ({ids} LIMIT 1) AS first, ({ids} DESC LIMIT 1) AS last,
                   ({ids} OFFSET {_FEW} LIMIT 1) AS many),
        places AS (
            SELECT DISTINCT first + ((last - first) >> shift) / {_PLACES} * number AS id
              FROM ends, generate_series(0, {_PLACES - 1}) AS number,
                   (VALUES {shifts}) AS shifts (shift)
             WHERE many IS NOT NULL)
    """


def rows_at_places(table: str, alias: str) -> str:
    """Return the sampled rows to select FROM, under the name `alias`; a row may come twice."""
    return f"""places, LATERAL (
                SELECT * FROM {table} s WHERE s.seller_id = :seller AND s.id >= places.id
                 ORDER BY s.id LIMIT {_AT_EACH}
            ) AS {alias}"""
