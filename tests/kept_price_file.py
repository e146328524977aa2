"""The kept figures of the price file against the cards of the same moment."""

from __future__ import annotations

from typing import Final

from cardsync.agents.seller_state.exported import EXPORTED
from cardsync.prices.files import kept_file

_NAMES: Final = ", ".join(kept_file._FIELDS)
_OF_FIGURE, _OF_CARDS = (
    ", ".join(f"{at}.{name}" for name in kept_file._FIELDS[1:]) for at in ("f", "cards")
)


def compared(seller_id: int) -> str:
    """The query, with `:seller`, whose row says whether the figures `hold`, and whether they are
    `exact`: those of the cards. Without figures it has no row.
    """
    cards = kept_file._READ.format(which=EXPORTED.format(seller_id=int(seller_id)))
    return f"""
        WITH cards ({_NAMES}) AS ({cards})
        SELECT coalesce(f.stamp = cards.stamp, false) AS hold,
               coalesce(({_OF_FIGURE}) = ({_OF_CARDS}), false) AS exact
          FROM price_file_figure f LEFT JOIN cards ON true WHERE f.seller_id = :seller
    """
