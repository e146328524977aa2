"""Formats counts, in words that agree with the number. Pure.

The server uses this module by a symbolic link, so that both use the same words.
"""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
