"""Says how many there are, in words that agree with the number. Pure.

The server has this module by a symbolic link: both say the same.
"""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
