"""Declares the type of a value for openapi.json, if the code itself parses the value, or if the
value's type allows more than occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from cardsync.platform.value_types import Annotation

# A decimal number in an answer.
DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"
# The attribute, of a struct made from a declaration, with the descriptions of its fields.
WORDS_OF_FIELDS = "words_of_fields"
# An amount in a body, in US dollars.
Dollars = (
    Annotated[str, msgspec.Meta(pattern=r"^[+-]?[0-9]{1,8}(\.[0-9]{1,4})?$")]
    | Annotated[float, msgspec.Meta(ge=-99_999_999, le=99_999_999)]
)


@dataclass(frozen=True)
class Like:
    """A described type: `Annotated[JsonObject, Like(RuleFields, "name")]` appears as RuleFields
    with `name` required. A field that is `needed` is required although it has a default.
    """

    type: Annotation
    needs: tuple[str, ...]
    needed: bool

    def __init__(self, type: object, *needs: str, needed: bool = False) -> None:
        for name, value in (("type", type), ("needs", needs), ("needed", needed)):
            object.__setattr__(self, name, value)
