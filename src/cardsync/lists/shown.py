"""The JSON structs of lists, and the functions that fill them from rows. Pure."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.access.caller import Caller
from cardsync.lists.lists import ListRow


class CardListBody(msgspec.Struct):
    """`query` finds its cards in a search.

    `member` is there when a card was asked for, `add_cards_url` for members who are signed in.
    """

    id: int
    name: str
    slug: str
    position: int
    card_count: int
    active_count: int
    gone_count: int
    query: str
    member: bool | UnsetType = UNSET
    add_cards_url: str | UnsetType = UNSET


class Lists(msgspec.Struct):
    lists: list[CardListBody]
    max_cards_per_list: int


class CardsAdded(msgspec.Struct):
    """`requested`: how many of the caller's cards the selection has; of those `added` were not on
    the list before.
    """

    list: CardListBody
    added: int
    requested: int
    truncated: bool


class CardsRemoved(msgspec.Struct):
    list: CardListBody
    removed: int


def list_body(caller: Caller, row: ListRow, *, member: bool = False) -> CardListBody:
    told = {name: value for name, value in row._asdict().items() if name != "member"}
    return CardListBody(
        **told,
        query=f"list:{row.slug}",
        member=row.member if member else UNSET,
        add_cards_url=UNSET if caller.member_id is None else f"/api/lists/{row.id}/cards",
    )
