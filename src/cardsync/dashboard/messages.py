"""Turns the codes in a page's address into sentences about the form that led to the page. Pure.

Anybody can make an address, so a page never shows text from it: only sentences of this table, with
numbers and places in them. In a sentence `#` is a number, `@` is a place like 3-12, `&` is an
amount in cents, and `[one|many]` agrees with the number before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from cardsync.agents.seller_state.sync_kinds import KINDS
from cardsync.platform import errors
from cardsync.platform.shelf_place import Place, place_in

MESSAGES: Final[dict[str, str]] = {
    "saved": "Saved.",
    "saved_network": "Saved. It takes effect right away.",
    "same": "Nothing changed.",
    "again": "Not all were changed. Run it again for the rest.",
    # activity
    "undone": "Undone.",
    # add cards
    "drafts_made": "# [draft|drafts] created.",
    "drafts_published": "Published. The next sync lists them on TCGplayer.",
    "draft_saved": "Draft saved.",
    "entry_deleted": "Entry deleted.",
    "entry_settled": "Entry resolved.",
    # buying
    "collection_brought": "File received.",
    "collection_deleted": "Collection deleted.",
    "rows_settled": "# [card|cards] matched.",
    # cards
    "pinned": "Pinned at &. It goes live with the next sync.",
    "unpinned": "Price unpinned. Rules price the card again.",
    "pin_removed": "Price unpinned.",
    "card_published": "Everyone in the shop can now see the card.",
    "match_settled": "Match saved. Future imports keep it.",
    "catalogs_asked": "# [catalog|catalogs] requested. We install [it|them] in a few minutes;"
    " you can leave this page.",
    "catalog_goes_back": "We load the last version in a few minutes; you can leave this page.",
    "catalog_file_added": "File received. We check it and load it in a few minutes;"
    " you can leave this page.",
    "columns_of_shop": "Columns saved as the shop default.",
    "columns_of_member": "Columns saved.",
    "search_saved": "Search saved.",
    "search_deleted": "Saved search deleted.",
    "search_moved": "Saved search moved.",
    "search_renamed": "Saved search renamed.",
    "many_pinned": "# [price|prices] pinned.",
    "many_unpinned": "# [price|prices] unpinned.",
    "many_published": "# custom [listing|listings] published to everyone in the shop.",
    # counts and shelves
    "lines_noted": "# [card|cards] counted.",
    "count_settled": "Locations updated to match your count.",
    "count_cancelled": "Count canceled. Nothing changed.",
    "copies_put": "# [copy is|copies are] now in @.",
    "card_moved": "The card is now in @.",
    "box_renamed": "Box renamed.",
    "card_taken_out": "Card removed from @.",
    "many_put": "# [copy is|copies are] now in @ to @.",
    "more_to_put": "There are more. Put them away next.",
    "none_to_put": "None of the selected cards had copies left to put away.",
    # customers
    "note_kept": "Note saved.",
    "note_gone": "Note deleted.",
    # lists
    "list_made": "List created. Now add cards to it.",
    "list_renamed": "List renamed.",
    "list_deleted": "List deleted. Its cards stay.",
    "list_added": "# [card|cards] added to the list.",
    "list_had": "# of the selected [was|were] already on it.",
    "list_full": "The list is full; some of the # cards didn't fit.",
    "list_removed": "# [card|cards] removed from the list.",
    # lots and profit
    "lot_added": "Lot added.",
    "lot_corrected": "Lot corrected.",
    "lot_removed": "Lot removed.",
    "lots_made": "# [lot|lots] added.",
    "lots_known": "You already imported this file. Its # [lot|lots] didn't change.",
    "payments_kept": "Fees updated for # [order|orders].",
    # offers
    "credit_entered": "Store credit changed.",
    "offer_answered": "Accepted. Now count the cards.",
    "offer_declined": "Offer declined.",
    "offer_deleted": "Draft deleted.",
    "offer_drafted": "Offer drafted.",
    "offer_offered": "Offer sent. Prices are locked.",
    "offer_paid": "Paid. Print the receipt, then add the cards to inventory.",
    "offer_priced": "Cards priced.",
    "offer_received": "Cards counted.",
    "offer_stocked": "Added to inventory. Check the drafts, then publish them.",
    "offer_accepted": "You accepted the offer. Bring the cards to the shop.",
    # operator
    "plan_saved": "Plan saved.",
    "suspended_on": "Account suspended.",
    "suspended_off": "Suspension lifted.",
    "past_due_on": "Account marked as past due.",
    "past_due_off": "Account no longer past due.",
    # orders
    "order_mark_shipped": "Order marked as shipped.",
    "order_unmark_shipped": "Order no longer marked as shipped.",
    "order_dismiss": "Skipped in pulls.",
    "order_undismiss": "Order is back in the pull list.",
    "order_unmark_pulled": "Order is back in the pull list.",
    "orders_shipped": "# [order|orders] marked shipped. TCGplayer gets it with the next sync.",
    "missing_found": "Marked found.",
    "missing_other_copy": "Another copy replaces it.",
    "missing_refund": "Refund recorded. Refund it on TCGplayer, too.",
    "missing_message": "Noted that you sent the message.",
    "not_back": "Noted that the cards didn't come back. Your stock stays as it is.",
    "copies_put_back": "# [copy|copies] restocked.",
    "items_nowhere": (
        "# [item has|items have] no location, so [it stays|they stay] here. Enter a location."
    ),
    # pricing
    "rules_moved": "Rules reordered.",
    "rule_deleted": "Rule deleted.",
    "rule_copied": "The copy is a draft. Change it and publish it.",
    "rule_publish": "Rule published. Live from the next run.",
    "rule_draft": "Rule unpublished. It doesn't price any cards now.",
    "rule_enable": "Rule turned on.",
    "rule_disable": "Rule turned off. It doesn't price any cards now.",
    "rule_saved": "Rule saved. Live from the next run.",
    "tests_red": "# rule [test|tests] would fail with this change.",
    "preset_chosen": "Preset applied.",
    "repricing": "All cards are being repriced.",
    "rollback_asked": "Rollback started. Prices go back at the next sync.",
    "rollback_cancelled": "Rollback canceled. Prices stay as they are.",
    "sale_copied": "The copy is a draft. Change it and schedule it.",
    "sale_draft": "Draft saved. Nothing is live until you schedule it.",
    "sale_scheduled": "Promotion scheduled. Prices change when it starts, and go back when it ends.",
    "sale_started": "Promotion started. Prices change with the next run, and go back when it ends.",
    "sale_deleted": "Promotion deleted.",
    "sale_off": "The promotion is a draft. Its prices go back with the next run.",
    "test_made": "Test created. Checking it now.",
    "test_changed": "Test changed. Checking it now.",
    "test_deleted": "Test deleted.",
    "run_confirm": "Prices confirmed. The run continues.",
    "run_discard": "Prices discarded. Your targets didn't change.",
    # reviews and advice
    "none_chosen": "No prices selected.",
    "none_under": "No prices under & are waiting.",
    "prices_accepted": "# [price|prices] approved.",
    "prices_dismissed": "# [price|prices] dismissed.",
    "prices_snoozed": "# [price|prices] snoozed until the market data changes.",
    "suggestions_dismissed": "# [suggestion|suggestions] dismissed for 30 days.",
    "suggestions_snoozed": "# [suggestion|suggestions] snoozed until the market data changes.",
    "left_changed": "# changed in the meantime and [needs|need] review again.",
    "left": "# [wasn't|weren't] approved. See why below.",
    "left_not_found": "# no longer [needs|need] review.",
    "left_revision_conflict": "# [was|were] decided or changed since you last looked.",
    "left_market_evidence_changed": "# [has|have] new market data since you last looked.",
    "left_not_eligible": "# can't be approved: a rule or hold blocks [it|them].",
    # pulls, at the desk and on phones
    "pull_opened": "Pull started. Scan the code with each phone.",
    "pull_completed": "Pull ended.",
    "pull_cancelled": "Pull canceled.",
    "pull_pulled": "Order pulled.",
    "pull_defer": "Moved to the end.",
    "pull_unassign": "Order removed from this pull. It can go into another one.",
    "link_revoked": "Link revoked. No phone can use it.",
    "phone_pulled": "Pulled.",
    "phone_defer": "Moved to the end of the queue.",
    "phone_missing": "Marked missing.",
    "phone_undo": "Undone.",
    "phone_surplus": "# [is|are] no longer needed: put [it|them] back in [its|their] place.",
    # settings
    "preset_of_set_up": "Rule chosen. Your cards are being priced.",
    "history_asked": "The next sync fetches orders from all years.",
    "own_name": "Name changed.",
    "own_email": "Email changed. Sign in with it from now on.",
    "own_password": "Password changed. You're signed out everywhere else.",
    "role_changed": "Role changed.",
    "member_signed_out": "This member is signed out everywhere.",
    "member_removed": "Member removed.",
    "assistant_changed": "Permissions saved.",
    "assistant_revoked": "Assistant disconnected.",
    "key_revoked": "Key revoked.",
    "key_own_script": "Loss limits no longer apply to this key.",
    "key_limited": "Loss limits apply to this key again.",
    "session_ended": "Signed out there.",
    "account_stays": "Your account stays. Create new keys for your sync apps.",
    "passkey_kept": "Passkey added.",
    "passkey_removed": "Passkey removed.",
    "mail_stopped": "Email is off.",
    "mail_on": "Email is on.",
    "webhook_tested": "Test sent. Refresh to see the result.",
    "webhook_on": "Webhook turned on.",
    "webhook_off": "Webhook turned off.",
    "webhook_deleted": "Webhook deleted.",
    "webhook_replayed": "Sending the message again.",
    # sync
    **{f"sync_requested_{kind}": f"Sync requested: {kind}." for kind in KINDS},
    "sync_requested_full": "Sync requested.",
    "start_after": "The sync app starts it when the current sync ends.",
    "start_without_agent": "No sync app has connected yet. The sync starts once one is running.",
    "start_offline": "It starts when the sync app is back online.",
    "start_soon": "The sync app starts it within a minute.",
    "sync_cancelled": "Sync canceled.",
    "sync_cancelling": "The sync is being canceled. It stops at its next checkpoint.",
    "skip_charged": "One credit spent, # left.",
    "skip_replayed": "This credit was already spent.",
    "skip_no_charge_needed": "No credit was needed.",
    "skip_sync_in_flight": "A sync is already running. No credit was spent.",
    "task_made": "The sync app has a new task.",
    "task_waits": "This task is already waiting for the sync app.",
    "upload_approved_alone": "Approved. The file is sent once a sync app is connected.",
    "upload_approved": "Approved. The sync app sends the file once.",
    "upload_unapproved": "Approval withdrawn.",
    "upload_confirmed": "Upload confirmed.",
    "upload_discarded": "Upload discarded.",
    "upload_mended": "Corrections uploaded.",
}
_BETWEEN: Final = "~"
_MOST: Final = 6
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
# In an address, every other character of a place's code is written as its hexadecimal number: _20_.
_PLACE: Final = re.compile(r"(?:[A-Za-z0-9-]|_[0-9a-f]{2,5}_){3,30}")
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9-]")
_ENCODED: Final = re.compile(r"_([0-9a-f]{2,5})_")
_PART: Final = re.compile(r"#|@|&|\[([^|\]]*)\|([^|\]]*)\]")


def message(code: str, *values: int | str | Place) -> str:
    """Return a message in the form of an address: its code, then its values. A place may be a
    `Place` or its code.
    """
    return ".".join([code, *map(_in_address, values)])


def _in_address(value: int | str | Place) -> str:
    text = value.code if isinstance(value, Place) else str(value)
    return _NOT_PLAIN.sub(lambda sign: f"_{ord(sign[0]):02x}_", text)


def _place(value: str) -> str:
    """Return the code of a place in an address; empty if the text is not a place."""
    with suppress(ValueError):
        return place_in(_ENCODED.sub(lambda sign: chr(int(sign[1], 16)), value)).code
    return ""


def together(*messages: str) -> str:
    """Join several messages into one."""
    return _BETWEEN.join(messages)


def left(problems: Iterable[errors.Problem]) -> list[str]:
    """Return one message for each kind of refusal, with the number of refusals."""
    kinds = Counter(f"left_{problem.code}" for problem in problems)
    known = Counter[str]()
    for kind, count in kinds.items():
        known[kind if kind in MESSAGES else "left"] += count
    return [message(kind, count) for kind, count in known.items()]


def sentences(given: str) -> str:
    """Return the sentences of an address's messages; an empty text if any message is unknown."""
    said = [_sentence(*one.split(".")) for one in given.split(_BETWEEN)[:_MOST]]
    return " ".join(said) if all(said) else ""


def _sentence(code: str, *values: str) -> str:
    message = MESSAGES.get(code, "")
    wanted = [sign for sign in message if sign in "#@&"]
    forms = {"#": _NUMBER, "@": _PLACE, "&": _NUMBER}
    if len(values) != len(wanted) or not all(
        forms[sign].fullmatch(value) for sign, value in zip(wanted, values, strict=True)
    ):
        return ""
    pairs = zip(wanted, values, strict=True)
    left = [_place(value) if sign == "@" else value for sign, value in pairs]
    if not all(left):
        return ""
    number = 0

    def put(part: re.Match[str]) -> str:
        nonlocal number
        if part[0] == "#":
            number = int(left.pop(0))
            return f"{number:,}"
        if part[0] == "&":
            dollars, cents = divmod(int(left.pop(0)), 100)
            return f"${dollars:,}.{cents:02}"
        return left.pop(0) if part[0] == "@" else part[1 if number == 1 else 2]

    return _PART.sub(put, message)
