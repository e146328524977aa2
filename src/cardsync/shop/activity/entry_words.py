"""Converts an entry's actor, action and summary to plain English for pages. Pure.

Entries are stored in the words of the API (`member 1`, `account.changed`, `sync_mode=full`) and
converted only when a page shows them, so that old entries also get today's words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cardsync.access.models import SETTINGS
from cardsync.platform.money import percent

Names = Mapping[str, str]
WHO: Final = re.compile(r"\b(member|key|token|grant|buying customer) (\d{1,18})\b")
_QUOTED: Final = re.compile(r"(“[^”]*”|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
# A changed field with its value. The value of `postage_steps`, such as `0:1.27,20:4.50`, contains
# commas; other values end at a comma.
_SET: Final = re.compile(r"\b([a-z][a-z_]*)=([^,]*(?:,[\d.]+:[\d.]+)*)")
_SNAKE: Final = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")

ACTIONS: Final[Mapping[str, str]] = {
    "account.arrived": "Shop moved here",
    "account.changed": "Account settings changed",
    "account.deletion_asked": "Account deletion requested",
    "account.deletion_taken_back": "Account deletion canceled",
    "account.made": "Account created",
    "activity.undone": "Change undone",
    "assistant.connected": "Assistant connected",
    "assistant.revoked": "Assistant disconnected",
    "buying.collection_brought": "Collection uploaded",
    "buying.collection_deleted": "Collection deleted",
    "buying.columns_named": "Collection columns matched",
    "buying.preset_applied": "Buying preset applied",
    "buying.rows_chosen": "Collection cards matched",
    "buying.rule_changed": "Buy rule changed",
    "buying.rule_created": "Buy rule created",
    "buying.rule_deleted": "Buy rule deleted",
    "buying.rule_test_created": "Buy rule test created",
    "buying.rule_test_deleted": "Buy rule test deleted",
    "buying_customer.added": "Customer added",
    "buying_customer.changed": "Customer changed",
    "buylist.changed": "Public buylist changed",
    "card.match_settled": "Card matched to a product",
    "cards.columns": "Card table columns changed",
    "catalog.cards_matched": "Cards matched to a catalog",
    "catalog.rows_matched": "Collection cards matched to a catalog",
    "contribution.added": "Custom listing added",
    "contribution.published": "Custom listing published",
    "credits.spent": "Credit spent",
    "customer.noted": "Customer note saved",
    "feedback.received": "Feedback received",
    "inventory.imported": "Inventory imported",
    "key.made": "API key created",
    "key.replaced": "API key replaced",
    "key.revoked": "API key revoked",
    "key.own_script": "API key marked as my own script",
    "key.limited": "API key put back under the loss limits",
    "list.cards_added": "Cards added to a list",
    "list.cards_removed": "Cards removed from a list",
    "list.created": "List created",
    "list.deleted": "List deleted",
    "list.made": "List created",
    "list.renamed": "List renamed",
    "lots.added": "Lots added",
    "lots.corrected": "Lot corrected",
    "lots.imported": "Lots imported",
    "lots.removed": "Lot removed",
    "member.changed": "Member role changed",
    "member.invited": "Member invited",
    "member.joined": "Member joined",
    "member.link_made": "Password link created",
    "member.removed": "Member removed",
    "member.self_changed": "Own account changed",
    "member.signed_out": "Member signed out",
    "notices.chosen": "Notifications chosen",
    "notices.unsubscribed": "Email turned off",
    "offer.accepted": "Offer accepted",
    "offer.changed": "Offer changed",
    "offer.declined": "Offer declined",
    "offer.deleted": "Offer deleted",
    "offer.drafted": "Offer drafted",
    "offer.expired": "Offer expired",
    "offer.link_made": "Customer's link created",
    "offer.offered": "Offer sent",
    "offer.paid": "Offer paid",
    "offer.received": "Offered cards counted",
    "offer.stocked": "Offered cards added to inventory",
    "operator.backup_asked": "Backup requested",
    "operator.catalog_back_asked": "Last catalog version requested",
    "operator.catalog_file_added": "Catalog file added",
    "operator.catalog_updates_changed": "Catalog updates changed",
    "operator.catalogs_asked": "Catalogs requested",
    "operator.seller_changed": "Account changed by the administrator",
    "order.dismissed": "Order skipped in pulls",
    "order.marked_shipped": "Order marked shipped",
    "order.restocked": "Returned cards restocked",
    "order.many_marked_shipped": "Orders marked shipped",
    "order.missing_settled": "Missing card resolved",
    "order.undismissed": "Order returned to pulls",
    "order.unmarked_pulled": "Order returned to pulls",
    "order.unmarked_shipped": "Shipped mark removed",
    "passkey.added": "Passkey added",
    "passkey.removed": "Passkey removed",
    "payments.received": "Payments report received",
    "plan.applied": "Plan applied",
    "plan.declined": "Plan declined",
    "plan.drifted": "Plan outdated",
    "plan.expired": "Plan expired",
    "plan.pending_review": "Plan sent for review",
    "plan.permission_changed": "Assistant permissions changed",
    "plan.previewed": "Plan previewed",
    "plan.refused_by_grant": "Plan blocked by a permission",
    "plan.refused_by_limit": "Plan blocked by a limit",
    "pricing.cancelled": "Pricing run canceled",
    "pricing.failed": "Price import failed",
    "pricing.imported": "Prices imported",
    "pricing.pinned": "Price pinned",
    "pricing.pinned_many": "Prices pinned",
    "pricing.preset_applied": "Preset applied",
    "pricing.repriced": "Cards priced",
    "pricing.reprice_requested": "Pricing run requested",
    "pricing.review_accepted": "Prices approved",
    "pricing.review_dismissed": "Prices dismissed",
    "pricing.review_snoozed": "Prices snoozed",
    "pricing.rollback_cancelled": "Rollback canceled",
    "pricing.rollback": "Rollback prepared",
    "pricing.rollback_requested": "Rollback requested",
    "pricing.rule_changed": "Rule changed",
    "pricing.rule_created": "Rule created",
    "pricing.rule_deleted": "Rule deleted",
    "pricing.rule_test_changed": "Rule test changed",
    "pricing.rule_test_created": "Rule test created",
    "pricing.rule_test_deleted": "Rule test deleted",
    "pricing.rule_tests_overridden": "Rule checks overridden",
    "pricing.rules_reordered": "Rules reordered",
    "pricing.run_confirmed": "Pricing run confirmed",
    "pricing.run_discarded": "Pricing run discarded",
    "pricing.sale_changed": "Promotion changed",
    "pricing.sale_created": "Promotion created",
    "pricing.sale_deleted": "Promotion deleted",
    "pricing.settings_changed": "Limits and fees changed",
    "pricing.unpinned": "Price unpinned",
    "pricing.unpinned_many": "Prices unpinned",
    "pull_link.made": "Phone links created",
    "pull_link.revoked": "Phone link revoked",
    "pull_queue.marked": "Cards pulled on a phone",
    "pull_session.cancelled": "Pull canceled",
    "pull_session.completed": "Pull completed",
    "pull_session.deferred": "Order moved to the end",
    "pull_session.found": "Missing card found",
    "pull_session.missing": "Card missing in a pull",
    "pull_session.opened": "Pull started",
    "pull_session.pulled": "Order pulled",
    "pull_session.unassigned": "Order removed from a pull",
    "pull_session.unpulled": "Pulled mark removed",
    "quick_add.changed": "New listing changed",
    "quick_add.deleted": "New listing deleted",
    "quick_add.drafted": "New listings drafted",
    "quick_add.listed": "New listings live on TCGplayer",
    "quick_add.published": "New listings published",
    "quick_add.rejected": "New listings rejected",
    "quick_add.returned": "New listings sent again",
    "quick_add.settled": "New listing resolved",
    "recommendations.accepted": "Suggestion approved",
    "recommendations.auto_applied": "Suggestions applied automatically",
    "recommendations.dismissed": "Suggestion dismissed",
    "recommendations.snoozed": "Suggestion snoozed",
    "repair.asked": "Sync app repair requested",
    "repair.disabled": "Sync app repair turned off",
    "repair.failed": "Sync app repair failed",
    "repair.verified": "Sync app repair verified",
    "sales_report.received": "Sales report received",
    "search.changed": "Saved search changed",
    "search.deleted": "Saved search deleted",
    "search.saved": "Search saved",
    "shelf.count_begun": "Count started",
    "shelf.count_cancelled": "Count canceled",
    "shelf.count_seen": "Locations counted",
    "shelf.count_settled": "Count finished",
    "shelf.box_renamed": "Box renamed",
    "shelf.moved": "Cards moved",
    "shelf.put": "Cards put on a shelf",
    "shelf.put_many": "Cards put on shelves",
    "shelf.removed": "Cards taken off a shelf",
    "store_credit.added": "Store credit added",
    "store_credit.spent": "Store credit redeemed",
    "sync.cancel_requested": "Sync cancellation requested",
    "sync.cancelled": "Sync canceled",
    "sync.requested": "Sync requested",
    "task.completed": "Sync app task completed",
    "task.failed": "Sync app task failed",
    "task.requested": "Sync app task requested",
    "upload.accepted": "Upload accepted",
    "upload.confirmed": "Upload confirmed",
    "upload.discarded": "Upload discarded",
    "upload.mended": "Upload corrected",
    "webhook.changed": "Webhook changed",
    "webhook.deleted": "Webhook deleted",
    "webhook.made": "Webhook created",
    "webhook.replayed": "Webhook message sent again",
    "webhook.rotated": "Webhook secret rotated",
    "webhook.tested": "Webhook tested",
}
# The names of the filter's groups of actions, by the first part of an action.
AREAS: Final[Mapping[str, str]] = {
    "account": "Account",
    "assistant": "Assistants",
    "key": "API keys",
    "buying": "Buying",
    "buying_customer": "Buying: customers",
    "buylist": "Buying: public buylist",
    "card": "Cards: product chosen",
    "cards": "Cards: table columns",
    "catalog": "Catalogs",
    "contribution": "Custom listings",
    "credits": "Credits",
    "customer": "Customers",
    "feedback": "Feedback",
    "inventory": "Inventory",
    "list": "Lists",
    "lots": "Lots",
    "member": "Members",
    "notices": "Notifications",
    "quick_add": "New listings",
    "offer": "Buying: offers",
    "operator": "Operator",
    "order": "Orders",
    "passkey": "Passkeys",
    "pull_link": "Phone links",
    "pull_queue": "Pulling on phones",
    "payments": "Payments",
    "plan": "Plans",
    "pricing": "Pricing",
    "pull_session": "Pulls",
    "recommendations": "Suggestions",
    "repair": "Sync app repairs",
    "sales_report": "Sales reports",
    "search": "Saved searches",
    "shelf": "Shelves",
    "store_credit": "Store credit",
    "sync": "Sync",
    "task": "Sync app tasks",
    "activity": "Undone changes",
    "upload": "Uploads",
    "webhook": "Webhooks",
}
_OTHERS: Final[Mapping[str, str]] = {
    "customer": "The customer",
    "visitor": "Someone on your buylist",
    "operator": "Administrator",
    "agent": "Sync app",
    "sync": "Sync",
    "pricing": "Pricing",
    "recommendations": "Automatic suggestions",
    "sweep": "cardsync",
    "key": "An API key",
}
_FIELDS: Final[Mapping[str, str]] = {
    "id": "number",
    **{name: setting.field.feed for name, setting in SETTINGS.items() if setting.field.feed},
}
_VALUES: Final[Mapping[str, str]] = {
    "": "none",
    "true": "on",
    "false": "off",
    "read_only": "Review Mode",
}


def action_words(action: str) -> str:
    """Return the name of an action."""
    return ACTIONS.get(action) or _sentence(action.replace("_", " ").replace(".", ": "))


def actor_words(actor: str, names: Names) -> str:
    """Return the actor's name, or the kind of actor if the name is unknown."""
    kind, _, number = actor.partition(" ")
    name = names.get(actor)
    match kind if number else "":
        case "member":
            return name or "A former member"
        case "key":
            return f"API key “{name}”" if name else "An API key"
        case "token":
            return f"Token “{name}”" if name else "A token"
        case "grant":
            return f"Assistant “{name}”" if name else "An assistant"
        case "link":
            return "A phone"
    return _OTHERS.get(actor, actor)


def summary_words(summary: str, names: Names) -> str:
    """Return a summary without the API's words. Texts in quotes are names and do not change."""
    parts = _QUOTED.split(summary)
    parts[::2] = [_plain(part, names) for part in parts[::2]]
    return _sentence("".join(parts))


def _plain(text: str, names: Names) -> str:
    text = _SET.sub(lambda it: f"{field_words(it[1])}: {value_words(it[1], it[2])}", text)
    text = WHO.sub(lambda it: names.get(it[0], it[0]), text)
    return _SNAKE.sub(lambda it: field_words(it[0]), text)


def field_words(name: str) -> str:
    return _FIELDS.get(name) or name.removesuffix("_bp").replace("_", " ")


def value_words(name: str, value: object) -> str:
    """Return a field's value as text. The value of a field whose name ends in `_bp` is in
    hundredths of a percent, and is returned in percent.
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and name.endswith("_bp"):
        return percent(value)
    if isinstance(value, Mapping):
        pairs = (f"{field_words(key)}: {value_words(key, one)}" for key, one in value.items())
        return ", ".join(pairs) or "none"
    if isinstance(value, list):
        return ", ".join(value_words(name, one) for one in value) or "none"
    text = str(value)
    if name == "postage_steps" and text:
        return _postage(text)
    return _VALUES.get(text) or (text.replace("_", " ") if _SNAKE.fullmatch(text) else text)


def _postage(text: str) -> str:
    """Return the steps of postage as text: `0:1.27,20:4.50` becomes `$1.27, $4.50 from $20`."""
    steps = (step.partition(":") for step in text.split(","))
    return ", ".join(
        f"${cost}" if start == "0" else f"${cost} from ${start}" for start, _, cost in steps
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
