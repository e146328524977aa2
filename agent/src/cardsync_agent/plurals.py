"""Formats a count with its noun, singular or plural. Pure.

The server uses this module by a symbolic link, so that it uses the same words as the sync app.
"""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
