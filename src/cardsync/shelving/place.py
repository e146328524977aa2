"""A place on the shelves: a box and a slot, with their code. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    box: int
    slot: int

    @property
    def code(self) -> str:
        return f"{self.box}-{self.slot}"
