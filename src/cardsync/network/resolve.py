"""Finds the printings that each reference may mean, the best first, their number, and the printing
that is certainly meant, if any.

One statement looks up all references. It searches the names first, by the prefixes of their words,
because there are far fewer names than printings. A provisional product is found only while an
exposed seller offers it, so that answers reveal nothing about the stock of other sellers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.network.limits import CANDIDATES
from cardsync.network.reference import CardReference
from cardsync.platform.database.room_sql import queries_of

# The condition that the stock of a seller `s` is part of the network's answers.
EXPOSED = "s.exposed AND NOT s.suspended AND (s.paid_until IS NULL OR s.paid_until > :now)"
_OFFERED = f"""
    EXISTS (SELECT FROM network_offer o JOIN network_seller s ON s.seller_id = o.seller_id
             WHERE o.product_id = p.id AND o.price IS NOT NULL AND {EXPOSED})
"""
_PRODUCT_WORDS = (
    "array_to_tsvector(array_remove(string_to_array("
    "concat_ws(' ', p.name_key, p.back_key, p.variant_key), ' '), ''))"
)
# The condition that the product `p` has the name of the reference `a`. A card with two faces also
# has the name of its front and, unless another card has that name, the name of its back.
_SAME_NAME = """
    (concat_ws(' ', p.name_key, p.back_key, nullif(p.variant_key, '')) = a.full_name
     OR (p.variant_key = '' AND p.name_key = a.full_name)
     OR (p.variant_key = '' AND coalesce(p.back_key = a.full_name, false) AND NOT EXISTS (
            SELECT FROM catalog_name o
             WHERE o.game = p.game AND o.name_key = a.full_name AND o.printings > 0)))
"""
# The condition that the reference's finish is the variant in the product's name: the name "Pikachu"
# with the finish "Master Ball Pattern" means "Pikachu (Master Ball Pattern)".
_SAME_PATTERN = """
    (a.finish <> '' AND p.variant_key <> '' AND
     concat_ws(' ', p.name_key, p.back_key, p.variant_key) = a.full_name || ' ' || a.finish)
"""
_SHOWN = "p.id, p.product_name, p.set_name, p.set_code, p.number, p.finish"
_LISTED = CANDIDATES + 1

# The index finds names by `probe`. The concatenation with '' keeps PostgreSQL from using the index
# for the whole query.
_NAMED = "n.words @@ a.probe AND (n.words || '') @@ a.query"

_FIND = queries_of(__package__)["find"].format(
    shown=_SHOWN,
    same_name=_SAME_NAME,
    same_pattern=_SAME_PATTERN,
    named=_NAMED,
    product_words=_PRODUCT_WORDS,
    offered=_OFFERED,
    listed=_LISTED,
    listed_twice=2 * _LISTED,
)


class Printing(NamedTuple):
    """A product that a reference may mean. `exact` is true if the name and all parts of the
    reference agree with the product.
    """

    id: int
    product_name: str
    set_name: str
    set_code: str | None
    number: str | None
    finish: str | None
    same_name: bool
    exact: bool


class Resolved(NamedTuple):
    """The printings that a reference may mean, best first. `meant` is the id of the printing that
    it certainly means, or None.
    """

    printings: list[Printing]
    total: int
    meant: int | None


async def resolve(
    session: AsyncSession,
    game: str,
    asked: Sequence[CardReference],
    now: datetime,
) -> list[Resolved]:
    """Look up all references in one statement, and return the results in their order. A name of two
    faces that matches no printing as a whole is looked up by the name of the front.
    """
    fronts = [one.front for one in asked if one.front is not None]
    found = await _resolve(session, game, [*asked, *fronts], now)
    by_front = iter(found[len(asked) :])
    return [
        found[at] if one.front is None else _of_faces(found[at], next(by_front))
        for at, one in enumerate(asked)
    ]


def _of_faces(whole: Resolved, front: Resolved) -> Resolved:
    """Return the result of the front if only the front's name matches, else the result of the whole
    name. Pure.
    """
    named = (any(one.same_name for one in found.printings) for found in (whole, front))
    return front if tuple(named) == (False, True) else whole


async def _resolve(
    session: AsyncSession,
    game: str,
    asked: Sequence[CardReference],
    now: datetime,
) -> list[Resolved]:
    rows = await session.execute(text(_FIND), _values(game, asked, now))
    found: dict[int, list[Printing]] = defaultdict(list)
    totals: dict[int, int] = defaultdict(int)
    provisional: dict[int, int] = defaultdict(int)
    for idx, id, *shown, total, place in rows:
        if id is None:
            totals[idx] = int(total)
            continue
        found[idx].append(Printing(id, *shown))
        if total is not None:
            totals[idx] = total
        elif place == 0:
            provisional[idx] += 1
    return [_judged(one, found[at], totals[at] + provisional[at]) for at, one in enumerate(asked)]


def _values(game: str, asked: Sequence[CardReference], now: datetime) -> dict[str, object]:
    return {
        "game": game,
        "now": now,
        "idx": list(range(len(asked))),
        "query": [one.query_text() for one in asked],
        "probe": [one.probe_text() for one in asked],
        "full_name": [one.full for one in asked],
        "sets": [one.sets for one in asked],
        "code": [one.code for one in asked],
        "number": [one.number for one in asked],
        "total": [one.total for one in asked],
        "finish": [one.finish for one in asked],
        "finishes": ["|".join(one.finishes.named) for one in asked],
        "possible": ["|".join(one.finishes.possible) for one in asked],
        "free": [one.is_free for one in asked],
    }


def _judged(asked: CardReference, found: list[Printing], total: int) -> Resolved:
    """Return the result with the printing that is certainly meant, if any. Pure."""
    if asked.is_free:
        found = sorted(
            found,
            key=lambda one: (
                not one.exact,
                len(one.product_name),
                one.set_name,
                one.number or "",
                one.finish or "",
                one.id,
            ),
        )
    exact = [one for one in found if one.exact]
    meant = found[0].id if total == 1 else exact[0].id if len(exact) == 1 else None
    return Resolved(found, total, meant)
