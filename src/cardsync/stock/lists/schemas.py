"""The structs of lists for the API and the pages. Pure."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class CardListBody(msgspec.Struct):
    """A list of cards. A search for `query` finds its cards.

    `member` is only in answers to a request with a card's id, `add_cards_url` only in answers to
    members who are signed in.
    """

    id: int
    """The id of the list"""
    name: str
    """The name, which is unique in the shop"""
    slug: str
    position: int
    """The position among the shop's lists"""
    card_count: int
    active_count: int
    gone_count: int
    query: str
    """The search that finds the list's cards: list:<slug>"""
    member: bool | UnsetType = UNSET
    add_cards_url: str | UnsetType = UNSET


class Lists(msgspec.Struct):
    lists: list[CardListBody]
    """The lists, by position"""
    max_cards_per_list: int


class CardsAdded(msgspec.Struct):
    """The result of adding cards. `requested` is the number of selected cards; `added` is the
    number of them that were not on the list before.
    """

    list: CardListBody
    """The list after the change"""
    added: int
    requested: int
    truncated: bool


class CardsRemoved(msgspec.Struct):
    list: CardListBody
    removed: int
    """The number of cards that were removed from the list"""
