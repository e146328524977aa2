"""The pages, tabs, settings and actions that the palette and `/find` offer, each with the words
that shop owners use for it. Pure.

A new page or tab adds its line here; a test finds pages and tabs without a line.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, NamedTuple

from cardsync import __version__
from cardsync.access.caller import Caller
from cardsync.dashboard.navigation import Place, groups_for, opens

PALETTE: Final = "/find/pages"


class Goal(NamedTuple):
    """A page, tab, setting or action that the palette offers. `where` is shown beside its name;
    `words` are other names for it.
    """

    path: str
    name: str
    where: str
    icon: str
    words: str = ""
    key: str = ""


# Other names for the places of the navigation, by their addresses.
_WORDS: Final = {
    "/today": "home dashboard start to do work list overview",
    "/orders": "ship shipping shipment mark shipped sales buyers purchases to ship packing",
    "/pulls": "pick picking pick list pull list pull sheet",
    "/returns": "return restock put back refund refunded",
    "/customers": "buyers clients contacts notes",
    "/cards": "inventory stock listings singles collection search",
    "/shelves": "boxes location storage bins binder put away",
    "/add-cards": "new card list card create listing quick add scan",
    "/buying": "buy collections shoebox purchase trade-in bulk",
    "/counts": "stocktake audit inventory count cycle count missing",
    "/lists": "tags wishlist groups",
    "/print": "printer labels slips sheets",
    "/pricing": "price rules repricing automatic prices",
    "/pricing/reviews": "approve approval pending prices to check",
    "/recommendations": "advice ideas stale markdown",
    "/pricing/sales": "discount promotion sale promo event coupon percent off weekend markdown",
    "/pricing/runs": "price history past prices log repricing runs",
    "/sales": "revenue income turnover months charts report statistics",
    "/profit": "margin earnings fees earned net cost taxes money",
    "/today#movers": "price changes spikes trending winners losers buyout",
    "/network": "share discovery wanted marketplace partners",
    "/sync": "synchronize upload import sync now tcgplayer connection",
    "/activity": "log audit trail history undo changes who",
    "/settings": "preferences options configuration setup",
    "/operator": "admin server installation sellers plans",
}


class _Beside(NamedTuple):
    goal: Goal
    owner_only: bool = False
    revenue: bool = False
    operator_only: bool = False


def _of(
    path: str,
    name: str,
    where: str,
    icon: str,
    words: str,
    *,
    owner: bool = False,
    revenue: bool = False,
    operator: bool = False,
) -> _Beside:
    return _Beside(Goal(path, name, where, icon, words), owner, revenue, operator)


# The goals that are not in the navigation: tabs, settings and actions.
_BESIDE: Final = (
    _of("/settings/shop", "Shop", "Settings", "settings",
        "store name time zone business days postage supplies address loss budget", owner=True),
    _of("/settings/sync", "Sync settings", "Settings", "refresh-cw",
        "review mode full mode quiet hours interval schedule pause automatic", owner=True),
    _of("/settings/people", "People", "Settings", "users",
        "invite staff employee member team role user permissions", owner=True),
    _of("/settings/keys", "API keys", "Settings", "settings",
        "api key token sync app key developer integration", owner=True),
    _of("/settings/assistants", "Assistants", "Settings", "settings",
        "assistant ai claude chatgpt mcp connect robot", owner=True),
    _of("/settings/data", "Data", "Settings", "download",
        "backup back up restore export download delete account copy of my data", owner=True),
    _of("/settings/webhooks", "Webhooks", "Settings", "globe",
        "webhook callback http integration zapier", owner=True),
    _of("/settings/notices", "Notifications", "Settings", "settings",
        "email notification notify alert digest mail messages"),
    _of("/settings/sign-in", "Sign-in", "Settings", "shield",
        "passkey password security devices sessions sign in log in two factor 2fa"),
    _of("/settings/appearance", "Appearance", "Settings", "sliders-horizontal",
        "dark mode light mode theme color density compact"),
    _of("/account/credits", "Credits", "Settings", "wallet",
        "billing credit plan subscription invoice pay"),
    _of("/account", "Your account", "", "user",
        "profile my name my email change password change email sign out log out logout"),
    _of("/pricing/tests", "Rule tests", "Rules", "tag", "test check expectation", owner=True),
    _of("/pricing/pins", "Pins", "Rules", "pin", "pinned fixed price manual price lock freeze"),
    _of("/pricing/presets", "Presets", "Rules", "tag",
        "strategy competitive premium template compare", owner=True),
    _of("/pricing/settings", "Limits and fees", "Rules", "tag",
        "fee fees cap daily limit floor minimum price ceiling rounding tcgplayer fee level",
        owner=True),
    _of("/pricing/rules/new", "New rule", "Rules", "plus", "create rule add rule", owner=True),
    _of("/pricing/sales/new", "New promotion", "Promotions", "plus",
        "create discount new sale start a sale", owner=True),
    _of("/pricing/rollback", "Rollback", "History", "undo-2",
        "roll back old prices undo prices revert", owner=True),
    _of("/pricing/backtest", "Backtest", "History", "history", "simulate what if test rules on past",
        owner=True),
    _of("/recommendations/outcomes", "Outcomes", "Suggestions", "lightbulb",
        "result of suggestions", owner=True),
    _of("/buying/offers", "Offers", "Buying", "hand", "offer quote buy collection trade in"),
    _of("/buying/offers/new", "New offer", "Buying", "plus", "make an offer quote customer"),
    _of("/buying/customers", "Store credit", "Buying", "wallet", "credit gift balance account"),
    _of("/buying/rules", "Buy rules", "Buying", "hand", "buy price percent pay buying prices",
        owner=True),
    _of("/buying/rules/new", "New buy rule", "Buying", "plus", "create buy rule", owner=True),
    _of("/buying/buylist", "Public buylist", "Buying", "globe", "buylist website wants link",
        owner=True),
    _of("/shelves/put", "Put away", "Shelves", "box", "shelve unshelved no location put away"),
    _of("/print/labels", "Labels", "Print", "printer", "label stickers barcode dymo rollo avery"),
    _of("/print/restock", "Restock sheet", "Print", "printer", "put back list"),
    _of("/add-cards/recover", "Recover drafts", "Add cards", "plus", "failed drafts lost drafts"),
    _of("/sync/uploads", "Uploads", "Sync", "refresh-cw",
        "upload import inventory csv file export from tcgplayer", owner=True),
    _of("/sync/prices", "Price file", "Sync", "download",
        "export prices csv download price file tcgplayer import send prices", owner=True),
    _of("/sync/result", "What the last sync brought", "Sync", "refresh-cw",
        "last sync result raised lowered captured", owner=True),
    _of("/sync/cycles", "Syncs", "Sync", "refresh-cw", "past syncs log",
        owner=True),
    _of("/set-up/prices", "Upload prices", "Set-up", "plus",
        "upload pricing export first import csv", owner=True),
    _of("/set-up/presets", "Your prices", "Set-up", "tag", "first prices preset",
        owner=True),
    _of("/set-up/agent", "Connect the sync app", "Set-up", "refresh-cw",
        "agent sync app install windows mac download computer browser", owner=True),
    _of("/cards/export.csv", "Export cards as CSV", "Cards", "download",
        "export spreadsheet excel inventory download csv"),
    _of("/orders/export.csv", "Export orders as CSV", "Orders", "download",
        "export spreadsheet excel sales download csv"),
    _of("/customers/export.csv", "Export customers as CSV", "Customers", "download",
        "export spreadsheet excel buyers download csv"),
    _of("/operator/installation", "Installation", "Operator", "shield",
        "server version update backup restore back up database", operator=True),
    _of("/operator/catalogs", "Card catalogs", "Operator", "layers",
        "catalog database card data games update install", operator=True),
)  # fmt: skip


def goals_for(caller: Caller) -> list[Goal]:
    """Return the goals that the caller may open. The navigation's places are first, in
    their order.
    """
    places = [
        Goal(place.path, place.name, group.name, place.icon, _WORDS.get(place.path, ""), place.key)
        for group in groups_for(caller)
        for place in group.places
    ]
    beside = [one.goal for one in _BESIDE if opens(_as_place(one), caller)]
    return [*places, *beside]


def palette_of(caller: Caller) -> str:
    """Return the address of the palette's list. Browsers cache the list, so the address differs by
    role and by version.
    """
    told = repr((__version__, goals_for(caller)))
    return f"{PALETTE}?of={blake2b(told.encode(), digest_size=8).hexdigest()}"


def _as_place(one: _Beside) -> Place:
    path, name, _, icon, *_ = one.goal
    return Place(path, name, icon, owner_only=one.owner_only, revenue=one.revenue,
                 operator_only=one.operator_only)  # fmt: skip


def found(words: str, goals: list[Goal]) -> list[Goal]:
    """Return the goals in which each typed word is the beginning of a word, best match first. A
    match of the name is better than a match of other names. The palette's script (`js/app.js`)
    ranks in the same way.
    """
    ranked = [(rank, goal) for goal in goals if (rank := _rank(words.casefold(), goal)) < _NONE]
    return [goal for _, goal in sorted(ranked, key=lambda one: one[0])]


_NONE: Final = 4


def _rank(words: str, goal: Goal) -> int:
    name = goal.name.casefold()
    if name.startswith(words):
        return 0
    if words in name:
        return 1
    if f" {words}" in f" {goal.words}":
        return 2
    known = f"{name} {goal.where} {goal.words}".casefold().split()
    typed = words.split()
    return 3 if all(any(one.startswith(word) for one in known) for word in typed) else _NONE
