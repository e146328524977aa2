"""Finds cards that a page offers for choosing, with the search of the page of cards."""

from __future__ import annotations

from typing import Final

from cardsync.access.caller import Caller
from cardsync.dashboard.shell import PageRequest
from cardsync.platform.settings import Settings
from cardsync.stock.cards.card_filter import CardFilter, read_page
from cardsync.stock.cards.queries import search_cards
from cardsync.stock.cards.schemas import CardBody, card_body
from cardsync.web.request import reading

OFFERED: Final = 10


async def offered_cards(
    request: PageRequest, caller: Caller, settings: Settings
) -> tuple[str, list[CardBody]]:
    """Return the search in the address's `find`, and the first cards that match it.

    Raises InvalidQuery.
    """
    find = str(request.query_params.get("find", "")).strip()
    if not find:
        return "", []
    some = read_page({"per_page": [str(OFFERED)]})
    async with reading(request) as reads:
        answer = await search_cards(
            reads, caller, CardFilter(search=find), some, settings.read_seconds
        )
    return find, [card_body(row) for row in answer.found.cards]
