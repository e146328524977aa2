"""Lists the orders of a part of a shop by each three adjacent characters of their search texts, and
finds the orders whose texts contain all grams of a searched text. Pure.

A gram is a number for three adjacent characters. Few different characters share a number, so a text
that lacks the searched one may be found, but none that contains it is missed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

# The orders of a part: their places are numbers of 16 bits.
PART: Final = 2**16
GRAM: Final = 3
# A part has at most so many grams of a searched text: further ones hardly ever exclude an order.
GRAMS_SEARCHED: Final = 8
_BITMAP_BYTES: Final = PART // 8
_BETWEEN: Final = "\0"
# These characters are not searched: the end of a text, and the end of the order's number in it.
_LAST_END: Final = 1
_FACTOR: Final = np.uint64(1_000_003)
_GRAMS: Final = np.uint64(2**31)

Places = NDArray[np.uint16]


def searched_grams(folded: str) -> list[int]:
    """Return grams of a searched text, spread over it; none if it is too short."""
    grams = list(dict.fromkeys(_grams(_codes(folded)).tolist()))
    return grams[:: -(-len(grams) // GRAMS_SEARCHED) or 1]


def orders_by_gram(texts: Sequence[str]) -> tuple[list[int], list[bytes]]:
    """Return the grams of a part's texts, and for each gram the places of its texts."""
    codes = _codes(_BETWEEN.join(texts))
    ends = codes <= _LAST_END
    whole = ~(ends[:-2] | ends[1:-1] | ends[2:])
    places = np.cumsum(codes == 0)[:-2]
    # numpy.unique is a hundred times as slow, because it does not sort first.
    found = np.sort(_grams(codes)[whole] * PART + places[whole])
    found = found[np.flatnonzero(np.diff(found, prepend=-1))]
    grams = found // PART
    begins = np.flatnonzero(np.diff(grams, prepend=-1))
    lists = np.split((found % PART).astype("<u2"), begins[1:])
    return grams[begins].tolist(), [_packed(one) for one in lists] if len(begins) else []


def places_of_all(lists: Sequence[bytes]) -> Places:
    """Return the places that all of the lists contain."""
    first, *others = sorted(lists, key=len)
    found = np.flatnonzero(_bits(first)) if _is_bitmap(first) else np.frombuffer(first, "<u2")
    for other in others:
        found = found[_bits(other)[found]]
    return found.astype(np.uint16)


def packed_ids(ids: Sequence[int]) -> bytes:
    """Return the rising ids of a part in few bytes: most are one more than the id before."""
    return zlib.compress(np.diff(np.array(ids, "<i8"), prepend=0).tobytes(), level=1)


def ids_at(packed: bytes, places: Places) -> list[int]:
    """Return the ids of the places from the part's packed ids."""
    ids = np.cumsum(np.frombuffer(zlib.decompress(packed), "<i8"))
    return [int(order) for order in ids[places]]


def _codes(text: str) -> NDArray[np.uint64]:
    return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint64)


def _grams(codes: NDArray[np.uint64]) -> NDArray[np.int64]:
    if len(codes) < GRAM:
        return np.zeros(0, np.int64)
    mixed = (codes[:-2] * _FACTOR + codes[1:-1]) * _FACTOR + codes[2:]
    return (mixed % _GRAMS).astype(np.int64)


def _is_bitmap(places: bytes) -> bool:
    return len(places) == _BITMAP_BYTES


def _packed(places: Places) -> bytes:
    """Return the places as numbers, or as a bitmap if that is smaller."""
    if places.nbytes < _BITMAP_BYTES:
        return places.tobytes()
    return np.packbits(_marked(places)).tobytes()


def _bits(places: bytes) -> NDArray[np.bool_]:
    if _is_bitmap(places):
        return np.unpackbits(np.frombuffer(places, np.uint8)).astype(bool)
    return _marked(np.frombuffer(places, "<u2"))


def _marked(places: Places) -> NDArray[np.bool_]:
    bits = np.zeros(PART, bool)
    bits[places] = True
    return bits
