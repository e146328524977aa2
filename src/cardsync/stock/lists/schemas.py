"""The structs of lists for the API and the pages. Pure."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class CardListBody(msgspec.Struct):
    """`query` finds its cards in a search.

    `member` is there when a card was asked for, `add_cards_url` for members who are signed in.
    """

    id: int
    """The id of the list"""
    name: str
    """Unique in the shop"""
    slug: str
    position: int
    """The place among the lists"""
    card_count: int
    active_count: int
    gone_count: int
    query: str
    """The search of its members: list:<slug>"""
    member: bool | UnsetType = UNSET
    add_cards_url: str | UnsetType = UNSET


class Lists(msgspec.Struct):
    lists: list[CardListBody]
    """The lists, by position"""
    max_cards_per_list: int


class CardsAdded(msgspec.Struct):
    """`requested`: how many of the caller's cards the selection has; of those `added` were not on
    the list before.
    """

    list: CardListBody
    """The list as it is now"""
    added: int
    requested: int
    truncated: bool


class CardsRemoved(msgspec.Struct):
    list: CardListBody
    removed: int
    """How many cards left the list"""
