"""Declares the kinds of notices: the conditions of Today, and events. Each kind has a label for the
settings page, and the ways in which owners and staff get it by mail unless they choose another way.
Pure.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

from cardsync.shop.today.shop_facts import Kind

Way = Literal["at_once", "daily", "never"]
WAYS: Final[tuple[Way, ...]] = get_args(Way)
# Unlike conditions, events do not last.
Event = Literal["orders_new", "sync_done", "sync_failed", "upload_rejected", "webhook_disabled"]
EVENTS: Final[tuple[Event, ...]] = get_args(Event)
# The kind of the message with which an owner tests a webhook. It can't be chosen as a kind.
TEST: Final = "test"
# The conditions of Today that are not reported: a member is already working on an open pull.
LEFT_OUT: Final[frozenset[Kind]] = frozenset({"pull_under_way"})


class NoticeKind(NamedTuple):
    """A kind of notice. `owner` and `staff` are the default ways for the roles. `staff` is None for
    kinds that staff do not get.
    """

    label: str
    group: str
    owner: Way
    staff: Way | None = None


OF_TODAY: Final[dict[Kind, NoticeKind]] = {
    "orders_to_pull": NoticeKind(
        "Orders to pull are due soon or late", "Orders", "at_once", "daily"
    ),
    "orders_to_ship": NoticeKind("Pulled orders are due soon or late", "Orders", "daily", "daily"),
    "cards_missing": NoticeKind("A card is missing from a pull", "Orders", "daily", "daily"),
    "agent_silent": NoticeKind("Sync app offline", "Sync", "at_once", "never"),
    "your_turn": NoticeKind("Sync app needs you", "Sync", "at_once", "never"),
    "sync_failing": NoticeKind("Syncs keep failing", "Sync", "at_once", "never"),
    "task_failed": NoticeKind("A sync app task failed", "Sync", "at_once"),
    "upload_in_review": NoticeKind("An upload needs review", "Sync", "at_once"),
    "run_in_review": NoticeKind("A pricing run needs review", "Prices", "at_once"),
    "prices_to_review": NoticeKind("Prices need review", "Prices", "daily"),
    "price_file_to_approve": NoticeKind("A price file needs approval", "Prices", "daily"),
    "prices_held": NoticeKind("Prices are limited by a cap", "Prices", "daily"),
    "prices_recommended": NoticeKind("Prices are suggested", "Prices", "never"),
    "rules_broken": NoticeKind("A rule isn't working as written", "Prices", "at_once"),
    "rules_never_match": NoticeKind("A rule matches no cards", "Prices", "never"),
    "plans_waiting": NoticeKind("Plans from assistants need approval", "Prices", "daily"),
    "offers_waiting": NoticeKind("Offers to customers need your attention", "Stock", "daily"),
    "offers_expiring": NoticeKind("Offers to customers end within a day", "Stock", "never"),
    "listings_rejected": NoticeKind("New listings were rejected", "Stock", "daily"),
    "listings_unanswered": NoticeKind("New listings unconfirmed", "Stock", "daily"),
    "cards_dropped": NoticeKind("Cards missing without a sale", "Stock", "never", "never"),
    "account_to_be_deleted": NoticeKind("The account will be deleted", "Account", "at_once"),
    "payment_past_due": NoticeKind("A payment is past due", "Account", "at_once"),
    "plan_unpaid": NoticeKind("The account has no paid plan", "Account", "daily"),
    "consent_missing": NoticeKind("Sending prices to TCGplayer is off", "Account", "daily"),
    "backup_wrong": NoticeKind("A backup failed or is too old", "Account", "at_once"),
    "catalog_old": NoticeKind("A card catalog is old", "Account", "at_once"),
    "auto_sync_paused": NoticeKind("Automatic sync is paused", "Account", "never"),
    "automatic_pricing_paused": NoticeKind("Automatic pricing is paused", "Account", "never"),
    "set_up_unfinished": NoticeKind("Setup is not finished", "Account", "never"),
}
OF_EVENTS: Final[dict[Event, NoticeKind]] = {
    "orders_new": NoticeKind("New orders to pull", "Orders", "daily", "daily"),
    "sync_done": NoticeKind("A sync is done", "Sync", "never", "never"),
    "sync_failed": NoticeKind("A sync failed, each time", "Sync", "never", "never"),
    "upload_rejected": NoticeKind("An upload was rejected", "Sync", "at_once"),
    "webhook_disabled": NoticeKind("A webhook was turned off", "Account", "at_once"),
}
GROUPS: Final = ("Orders", "Sync", "Prices", "Stock", "Account")
KINDS: Final[dict[str, NoticeKind]] = {
    kind: each
    for group in GROUPS
    for named in (OF_EVENTS, OF_TODAY)
    for kind, each in named.items()
    if each.group == group
}


def kinds_for(role: str) -> dict[str, NoticeKind]:
    """Return the kinds that members with this role may get, in the order of the settings page."""
    return {kind: each for kind, each in KINDS.items() if role == "owner" or each.staff}


def way_of(
    kind: str,
    role: str,
    chosen: dict[str, str],
) -> Way:
    """Return the way in which a member gets a kind of notice; "never" if the role may not get
    it.
    """
    each = kinds_for(role).get(kind)
    if each is None:
        return "never"
    wanted = chosen.get(kind)
    usual = each.owner if role == "owner" else each.staff or "never"
    return next((way for way in WAYS if way == wanted), usual)
