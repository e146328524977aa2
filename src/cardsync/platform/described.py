"""Says of which type a value is, for openapi.json, where the code reads it by hand or where its
type allows more than is ever there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

# A decimal number in an answer.
DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"
# An amount in a body, in US dollars.
Dollars = (
    Annotated[str, msgspec.Meta(pattern=r"^[+-]?[0-9]{1,8}(\.[0-9]{1,4})?$")]
    | Annotated[float, msgspec.Meta(ge=-99_999_999, le=99_999_999)]
)


@dataclass(frozen=True)
class Like:
    """`Annotated[dict[str, Any], Like(RuleFields, "name")]` is described as RuleFields of which
    `name` must be given. A field that is `needed` must be given though it has a default.
    """

    type: Any
    needs: tuple[str, ...]
    needed: bool

    def __init__(self, type: Any, *needs: str, needed: bool = False) -> None:
        for name, value in (("type", type), ("needs", needs), ("needed", needed)):
            object.__setattr__(self, name, value)
