"""Suggests products of the catalog for a text as it is typed.

A product matches if each typed word is the beginning of a word of its name, of its set's code, or
of its number (with or without leading zeros). An index over these words finds up to `_LOOKED_AT`
products, of which the best are returned.
"""

from __future__ import annotations

import re
import unicodedata

from cardsync.access.caller import Caller
from cardsync.catalog.collector_number import read_collector_number
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.database.room_sql import queries_of
from cardsync.stock.quick_add.schemas import Product

_LOOKED_AT = 2_000
# The database function `catalog_words` must split words at the same separators.
_BETWEEN = re.compile(r"""[\s!"#$%&()*+,./:;<=>?@\\^_`{|}~\[\]-]+""")
_FOLDED = str.maketrans("áàâäãåéèêëíìîïóòôöõúùûüñç", "aaaaaaeeeeiiiiooooouuuunc", "’'")
# Pasted names have these characters around or between their words.
_PASTED = "–—“”„"
_FOUND = queries_of(__package__)["found"].format(looked_at=_LOOKED_AT)


async def products_like(
    source: Source,
    caller: Caller,
    typed: str,
    game: str | None,
    most: int,
) -> list[Product]:
    """Return up to `most` products that match the typed text; a single character that is not a
    digit matches no product.
    """
    typed = typed.replace("\0", " ")
    found = words(typed)
    games = [line for line in caller.account.product_lines if game in (None, line)]
    if not found or not games or (len("".join(found)) < 2 and not found[0].isdigit()):
        return []
    numbers = {read_collector_number(word).key.lower() for word in (*found, *typed.split())}
    beginning = re.sub(r"([\\%_])", r"\\\1", " ".join(typed.lower().split())) + "%"
    values = {
        "words": " & ".join(f"'{word}':*" for word in found),
        "games": games,
        "numbers": sorted(numbers),
        "beginning": beginning,
        "most": most,
    }
    return [Product(*row) for row in await rows_of(source)(_FOUND, values)]


def words(typed: str) -> list[str]:
    """Split a text into words as the index of products does. Pure."""
    folded = unicodedata.normalize("NFC", typed).lower().translate(_FOLDED)
    found = (word.strip(_PASTED) for word in _BETWEEN.split(folded))
    return [word for word in found if word][:12]
