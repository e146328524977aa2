"""Defines the navigation as data: its groups of places, and the place of a path. Pure.

A new page adds its line to `NAVIGATION`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cardsync.access.caller import Caller


class Place(NamedTuple):
    """An entry of the navigation: the keys `g` and then `key` open it.

    An everyday entry is always visible, the others only while their group is open. `waits` names
    the field of `WaitingCounts` whose count is shown beside the entry. `also` holds the beginnings
    of other paths that belong to the entry.
    """

    path: str
    name: str
    icon: str
    key: str = ""
    everyday: bool = False
    waits: str = ""
    also: tuple[str, ...] = ()
    owner_only: bool = False
    revenue: bool = False
    operator_only: bool = False


class Group(NamedTuple):
    name: str
    places: tuple[Place, ...]


NAVIGATION: Final = (
    Group("", (Place("/today", "Today", "home", "t", everyday=True),)),
    Group(
        "Sell",
        (
            Place("/orders", "Orders", "package", "o", everyday=True, waits="to_pull"),
            Place("/pulls", "Pulls", "list-checks", "p", everyday=True, waits="pulls"),
            Place("/returns", "Returns", "undo-2", "u", waits="returns", also=("/print/restock",)),
            Place("/customers", "Customers", "users", "k"),
        ),
    ),
    Group(
        "Stock",
        (
            Place("/cards", "Cards", "layers", "c", everyday=True),
            Place("/shelves", "Shelves", "box", "h", everyday=True),
            Place("/add-cards", "Add cards", "plus", "n"),
            Place("/buying", "Buying", "hand", "x", also=("/print/offers",)),
            Place("/counts", "Counts", "clipboard-check", "y"),
            Place("/lists", "Lists", "list", "l"),
            Place("/print", "Print", "printer", "i"),
        ),
    ),
    Group(
        "Price",
        (
            Place("/pricing", "Rules", "tag", "r", everyday=True),
            Place("/pricing/reviews", "Reviews", "eye", "q", everyday=True, waits="reviews"),
            Place("/recommendations", "Suggestions", "lightbulb", "m", everyday=True,
                  waits="suggestions"),
            Place("/pricing/sales", "Promotions", "percent", "d"),
            Place("/pricing/runs", "History", "history", "z",
                  also=("/pricing/rollback", "/pricing/backtest")),
        ),
    ),
    Group(
        "Numbers",
        (
            Place("/sales", "Sales", "chart-column", "v", everyday=True, revenue=True),
            Place("/profit", "Profit", "wallet", "j", revenue=True),
            Place("/today#movers", "Movers", "trending-up", "f"),
            Place("/network", "Network", "globe", "w", owner_only=True),
        ),
    ),
    Group(
        "Shop",
        (
            Place("/sync", "Sync", "refresh-cw", "s"),
            Place("/activity", "Activity", "activity", "a"),
            Place("/settings", "Settings", "settings", "e", owner_only=True),
            Place("/operator", "Operator", "shield", "b", operator_only=True),
        ),
    ),
)  # fmt: skip
# The places at the bottom of a phone's screen, in this order; the button More opens all others.
ON_PHONES: Final = ("/today", "/cards", "/orders", "/pulls")


def groups_for(caller: Caller) -> list[Group]:
    """Return the navigation's groups, with only the places that the caller may open."""
    allowed = (
        Group(group.name, tuple(place for place in group.places if opens(place, caller)))
        for group in NAVIGATION
    )
    return [group for group in allowed if group.places]


def on_phones(groups: Iterable[Group]) -> list[Place]:
    """Return the places at the bottom of a phone's screen, in their order."""
    places = (place for group in groups for place in group.places if place.path in ON_PHONES)
    return sorted(places, key=lambda place: ON_PHONES.index(place.path))


def opens(place: Place, caller: Caller) -> bool:
    """Return whether the caller may open the place."""
    if place.operator_only:
        return caller.identity.operator
    if place.revenue:
        return caller.sees_revenue
    return caller.role == "owner" or not place.owner_only


def place_of(path: str, groups: Iterable[Group]) -> Place | None:
    """Return the place whose path, or one of its `also`, is the longest beginning of this path;
    None if there is none.
    """
    named = (
        (len(start), place)
        for group in groups
        for place in group.places
        for start in (place.path, *place.also)
        if path == start or path.startswith(f"{start}/")
    )
    return max(named, key=lambda one: one[0], default=(0, None))[1]
