"""Reads the offers of the products that references mean, other printings of products that nobody
offers, and words that are similar to mistyped words. One statement reads all of this for all
references.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from rapidfuzz.distance import OSA
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.typos import deletes, distance_of, near
from cardsync.network.limits import NEARBY, OFFERS_SHOWN
from cardsync.network.resolve import EXPOSED, Printing
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.value_types import Row

# The number of similar words that are tried for a mistyped word, the most similar first.
_WORDS_TRIED = 8

_OFFERS = queries_of(__package__)["offers"].format(exposed=EXPOSED, offers_shown=OFFERS_SHOWN)
_NEARBY = queries_of(__package__)["nearby"].format(nearby=NEARBY, exposed=EXPOSED)
_WORDS = """
SELECT DISTINCT 'word' AS kind, CAST(NULL AS bigint) AS of, CAST(NULL AS numeric) AS least,
       CAST(NULL AS bigint) AS copies, CAST(NULL AS timestamptz) AS as_of,
       CAST(NULL AS boolean) AS callers, CAST(NULL AS numeric) AS price,
       CAST(NULL AS integer) AS quantity, CAST(NULL AS text) AS store_name,
       CAST(NULL AS text) AS listing_url_template,
       CAST(NULL AS bigint) AS marketplace_product_id, d.typed AS product_name,
       c.word AS set_name, CAST(NULL AS text) AS set_code, CAST(NULL AS text) AS number,
       CAST(NULL AS text) AS finish, CAST(NULL AS bigint) AS id, CAST(NULL AS boolean) AS hidden
  FROM unnest(CAST(:typed AS text[]), CAST(:deleted AS text[])) AS d (typed, deleted)
  JOIN catalog_typo c ON c.deleted = d.deleted
"""


class Offer(NamedTuple):
    price: Decimal
    quantity: int
    store_name: str | None
    listing_url_template: str | None


class Availability(NamedTuple):
    """The offers of one product. `least` is None if no exposed seller offers the product."""

    least: Decimal | None
    copies: int
    as_of: datetime | None
    callers: bool
    hidden: bool
    marketplace_product_id: int | None
    offers: list[Offer]


class Answers(NamedTuple):
    """The availability and other printings by product, and the similar words by mistyped word."""

    available: dict[int, Availability]
    nearby: dict[int, list[Printing]]
    words: dict[str, list[str]]


async def look_up(
    session: AsyncSession,
    caller_id: int,
    ids: Sequence[int],
    mistyped: Iterable[str],
    now: datetime,
) -> Answers:
    """Read the offers and other printings of the products `ids`, and the words that are similar to
    the words `mistyped`.
    """
    values: dict[str, object] = {"ids": list(ids), "now": now, "caller": caller_id}
    parts = [_OFFERS, _NEARBY] if ids else []
    pairs = [(word, left) for word in sorted(set(mistyped)) for left in sorted(_deletes(word))]
    if pairs:
        parts.append(_WORDS)
        values |= {"typed": [word for word, _ in pairs], "deleted": [left for _, left in pairs]}
    answers = Answers({}, defaultdict(list), defaultdict(list))
    if not parts:
        return answers
    for row in await session.execute(text(" UNION ALL ".join(parts)), values):
        if row.kind == "offer":
            _add_offer(answers.available, row)
        elif row.kind == "nearby":
            shown = (row.product_name, row.set_name, row.set_code, row.number, row.finish)
            answers.nearby[row.of].append(Printing(row.id, *shown, same_name=True, exact=False))
        elif row.kind == "word" and near(row.product_name, row.set_name):
            answers.words[row.product_name].append(row.set_name)
    return answers._replace(
        words={word: _nearest(word, some) for word, some in answers.words.items()}
    )


def _deletes(word: str) -> set[str]:
    return deletes(word) if distance_of(word) else set()


def _nearest(typed: str, words: list[str]) -> list[str]:
    return sorted(words, key=lambda word: (OSA.distance(typed, word), word))[:_WORDS_TRIED]


def _add_offer(available: dict[int, Availability], row: Row) -> None:
    known = available.setdefault(
        row.of,
        Availability(
            row.least,
            int(row.copies or 0),
            row.as_of,
            row.callers,
            row.hidden,
            row.marketplace_product_id,
            [],
        ),
    )
    if row.price is not None:
        known.offers.append(
            Offer(row.price, row.quantity, row.store_name, row.listing_url_template)
        )
