"""Processes many ASCII texts joined into one run of bytes: a few passes over it take a twentieth of
the time of Polars expressions. Pure.

A byte that occurs in none of the texts separates them.
"""

from __future__ import annotations

from typing import Final

import polars as pl

_BETWEEN_TEXTS: Final = "\xff"
_BETWEEN: Final = _BETWEEN_TEXTS.encode("latin-1")


def is_ascii(texts: pl.Series) -> pl.Series:
    return texts.str.len_bytes() == texts.str.len_chars()


def together(texts: pl.Series) -> bytes:
    """Join texts, which must be ASCII and not null."""
    return _BETWEEN_TEXTS.join(texts.to_list()).encode("latin-1")


def apart(texts: bytes) -> pl.Series:
    return pl.Series(texts.decode("latin-1").split(_BETWEEN_TEXTS), dtype=pl.String)


def table(of: dict[int, int]) -> bytes:
    """Return the table for `bytes.translate` that replaces these bytes and keeps all other
    bytes.
    """
    return bytes(of.get(byte, byte) for byte in range(256))


def words_table(kept: str = "") -> bytes:
    """Return a table that keeps digits and the `kept` characters, makes letters lower-case, and
    turns every other ASCII character into a space.
    """
    return table(
        {
            byte: ord(chr(byte).lower()) if chr(byte).isalnum() or chr(byte) in kept else 32
            for byte in range(128)
        }
    )


def spaced(texts: bytes) -> bytes:
    """Collapse runs of spaces, and strip them at the ends of a text."""
    while b"  " in texts:
        texts = texts.replace(b"  ", b" ")
    return stripped(texts)


def stripped(texts: bytes) -> bytes:
    texts = texts.strip(b" ")
    for outside in (b" " + _BETWEEN, _BETWEEN + b" "):
        while outside in texts:
            texts = texts.replace(outside, _BETWEEN)
    return texts
