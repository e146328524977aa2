"""Says how many there are, in words that agree with the number. Pure."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
