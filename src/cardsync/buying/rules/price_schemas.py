"""The JSON structs of the price by which a card was valued, and of the prices that could replace
it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from cardsync.buying.engine.buy_rules import Base
from cardsync.buying.engine.wanted_lines import LineFacts, WantedLine
from cardsync.platform.kit.struct_rows import Reads
from cardsync.platform.money import dollars


class PriceTakenShown(msgspec.Struct):
    """The price by which a card was valued. `condition` is Near Mint, unless the price of a Near
    Mint copy is unknown. `finish` is the card's own finish, unless a person chose another finish.
    """

    source: Base
    """target, market or low"""
    condition: str
    finish: str
    amount: Annotated[str, Reads(dollars)]
    """The price of a copy in this condition and finish, in USD"""


class OtherFinish(msgspec.Struct):
    """Another finish of the card with a known market price, which a person may choose."""

    finish: str
    amount: str
    """The market price of a copy in this finish, in USD"""


def finishes_to_choose(line: WantedLine, facts: LineFacts) -> list[OtherFinish]:
    """Return the other finishes of the card with a known market price, each with the market price
    of its best condition.
    """
    best: dict[str, int] = {}
    for each in facts.others:
        if each.finish != line.finish and each.market is not None:
            best[each.finish] = max(best.get(each.finish, 0), each.market)
    return [OtherFinish(finish, dollars(best[finish])) for finish in sorted(best)]
