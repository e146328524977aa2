"""Turns the codes in a page's address into sentences about the form that led to it. Pure.

An address can be made by anybody, so no text of it is shown: only sentences of this table, with
numbers and places in them. In a sentence `#` is a number, `@` is a place like 3-12, `&` is an amount in cents, and
`[one|many]` agrees with the number before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from cardsync import errors
from cardsync.seller_state.sync_kinds import KINDS
from cardsync.shelving.place import Place

_UNDO: Final = "You can undo it in Activity."
MESSAGES: Final[dict[str, str]] = {
    "saved": "Saved.",
    "saved_network": "Saved. It takes effect right away.",
    "same": "Nothing changed.",
    "again": "There are more. Do it again to continue.",
    # activity
    "undone": "Undone.",
    # add cards
    "drafts_made": "# [draft|drafts] created.",
    "drafts_published": "Published. The agent will list them on the marketplace.",
    "draft_saved": "Draft saved.",
    "entry_deleted": "Entry deleted.",
    "entry_settled": "Entry resolved.",
    # buying
    "collection_brought": "File received.",
    "collection_deleted": "Collection deleted.",
    "rows_settled": "# [row|rows] settled.",
    # cards
    "pinned": "Pinned at &. It goes live with the next sync.",
    "unpinned": "Price unpinned. Rules price the card again.",
    "pin_removed": f"Price unpinned. {_UNDO}",
    "card_published": "Everyone in the shop can now see the card.",
    "match_settled": f"Match saved. Later imports keep it. {_UNDO}",
    "catalogs_asked": "# [catalog|catalogs] requested. A worker installs [it|them] within the next"
    " minutes; you can leave this page.",
    "catalog_goes_back": "A worker loads the last version within the next minutes; you can leave this"
    " page.",
    "catalog_file_added": "File received. A worker checks it and loads it within the next minutes; you"
    " can leave this page.",
    "columns_of_shop": "Everyone sees these columns now.",
    "columns_of_member": "You see these columns from now on.",
    "search_saved": "Search saved.",
    "search_deleted": f"Saved search deleted. {_UNDO}",
    "search_moved": "Saved search moved.",
    "search_renamed": "Saved search renamed.",
    "many_pinned": "# [price|prices] pinned.",
    "many_unpinned": "# [price|prices] unpinned.",
    "many_published": "# of your selected contributions are now visible to everyone.",
    # counts and shelves
    "lines_noted": "# [line|lines] recorded.",
    "count_settled": f"Places corrected. {_UNDO}",
    "count_cancelled": "Count canceled. Nothing was corrected.",
    "copies_put": "# [copy is|copies are] now in @.",
    "card_moved": "The card is now in @.",
    "card_taken_out": "Card removed from @.",
    "many_put": "# [copy is|copies are] now in @ to @.",
    "more_to_put": "There are more. Put them away next.",
    "none_to_put": "None of the selected cards had copies left to put away.",
    # customers
    "note_kept": f"Note saved. {_UNDO}",
    "note_gone": f"Note deleted. {_UNDO}",
    # lists
    "list_made": "List created. Now add cards to it.",
    "list_renamed": "List renamed.",
    "list_deleted": f"List deleted. Its cards stay. {_UNDO}",
    "list_added": "# [card|cards] added to the list.",
    "list_had": "# of the selected [was|were] already on it.",
    "list_full": "It is full now: not all of the # fit.",
    "list_removed": "# [card|cards] removed from the list.",
    # lots and profit
    "lot_added": "Lot added.",
    "lot_corrected": "Lot corrected.",
    "lot_removed": "Lot removed.",
    "lots_made": "# [lot|lots] added.",
    "lots_known": "This file was here before. Its # [lot stays as it is|lots stay as they are].",
    "payments_kept": "The fees of # [order|orders] are new or changed.",
    # offers
    "credit_entered": f"Store credit changed. {_UNDO}",
    "offer_answered": "Accepted. Now count the cards.",
    "offer_declined": "Offer declined.",
    "offer_deleted": f"Draft deleted. {_UNDO}",
    "offer_drafted": "Offer drafted.",
    "offer_offered": "Offer sent. Prices are locked.",
    "offer_paid": "Paid. Print the receipt, and take the cards into stock.",
    "offer_priced": "Cards priced.",
    "offer_received": "Cards counted.",
    "offer_stocked": "In stock. Publish the drafts when they are right.",
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
    "missing_other_copy": "Another copy is in its place.",
    "missing_refund": "Refund recorded. Refund it on TCGplayer, too.",
    "missing_message": "Noted that you sent the message.",
    "copies_put_back": "# [copy|copies] restocked.",
    "items_nowhere": "# [item has|items have] no location, so [it stays|they stay] here. Enter one.",
    # pricing
    "rules_moved": f"Rules reordered. {_UNDO}",
    "rule_deleted": f"Rule deleted. {_UNDO}",
    "rule_copied": "The copy is a draft. Change it and publish it.",
    "rule_publish": "The rule is live from the next run on.",
    "rule_draft": "The rule is a draft again and prices nothing.",
    "rule_enable": "Rule switched on.",
    "rule_disable": "Rule switched off. It prices nothing.",
    "rule_saved": "Rule saved. It is live from the next run on.",
    "tests_red": "# of the rule tests would fail with it.",
    "preset_chosen": f"The preset's rule is in use. {_UNDO}",
    "repricing": "The live rules are pricing every card.",
    "rollback_asked": "Preparing the rollback. The agent imports it on its next visit.",
    "rollback_cancelled": "Rollback canceled. Prices stay as they are.",
    "sale_draft": f"Draft saved. Nothing is live until you schedule it. {_UNDO}",
    "sale_scheduled": "Promotion scheduled. Prices change when it starts, and go back when it ends.",
    "sale_started": "Promotion started. Prices change with the next run, and go back when it ends.",
    "sale_deleted": f"Promotion deleted. {_UNDO}",
    "sale_off": "The promotion is a draft. Its prices go back with the next run.",
    "test_made": "Test created. Checking it now.",
    "test_changed": "Test changed. Checking it now.",
    "test_deleted": f"Test deleted. {_UNDO}",
    "run_confirm": "Prices confirmed. The run continues.",
    "run_discard": "Prices discarded. Targets stay as they were.",
    # reviews and advice
    "none_chosen": "No prices selected.",
    "none_under": "No price that low waits.",
    "prices_accepted": "# [price|prices] approved.",
    "prices_dismissed": "# [price|prices] dismissed.",
    "prices_snoozed": "# [price|prices] snoozed until the evidence changes.",
    "suggestions_dismissed": "# [suggestion|suggestions] dismissed for 30 days.",
    "suggestions_snoozed": "# [suggestion|suggestions] snoozed until the evidence changes.",
    "left_changed": "# changed in the meantime and [needs|need] review again.",
    "left": "# could not be decided. The page shows what is holding [it|them].",
    "left_not_found": "# no longer [needs|need] review.",
    "left_revision_conflict": "# [was|were] decided or changed since you looked.",
    "left_market_evidence_changed": "# [has|have] new market evidence since you looked.",
    "left_not_eligible": "# cannot be approved now: your rules or account holds block [it|them].",
    # pulls, at the desk and on phones
    "pull_opened": "Pull started. Scan the code with each phone.",
    "pull_completed": "Pull ended.",
    "pull_cancelled": "Pull canceled.",
    "pull_pulled": "Order pulled.",
    "pull_defer": "Moved to the end.",
    "pull_unassign": "Order removed from this pull. It can go into another one.",
    "link_revoked": "Link revoked. No phone can use it anymore.",
    "phone_pulled": "Pulled.",
    "phone_defer": "Moved to the end of the queue.",
    "phone_missing": "Marked missing.",
    "phone_undo": "Undone.",
    "phone_surplus": "# [is|are] no longer needed: put [it|them] back in [its|their] place.",
    # settings
    "preset_of_set_up": "Rule chosen. Your cards are being priced.",
    "history_asked": "The agent will fetch orders from all years on its next sync.",
    "own_name": "Name changed.",
    "own_email": "Email changed. Sign in with it from now on.",
    "own_password": "Password changed. You're signed out everywhere else.",
    "role_changed": "Role changed.",
    "member_signed_out": "This member is signed out everywhere.",
    "member_removed": "Member removed.",
    "assistant_changed": "Permissions saved.",
    "assistant_revoked": "Assistant disconnected.",
    "key_revoked": "Key revoked.",
    "key_own_script": "No loss limits hold this key now.",
    "key_limited": "The loss limits hold this key again.",
    "session_ended": "Signed out there.",
    "account_stays": "The account stays. Create new keys for your agents.",
    "passkey_kept": "Passkey added.",
    "passkey_removed": "Passkey removed.",
    "mail_stopped": "You get no more email.",
    "mail_on": "You get email again.",
    "webhook_tested": "Test on its way. Reload the page to see what became of it.",
    "webhook_on": "Webhook switched on.",
    "webhook_off": "Webhook switched off.",
    "webhook_deleted": "Webhook deleted.",
    "webhook_replayed": "Message on its way again.",
    # sync
    **{f"sync_requested_{kind}": f"Sync requested: {kind}." for kind in KINDS},
    "start_after": "The sync app starts it when the current sync ends.",
    "start_without_agent": "No sync app has connected yet. The sync starts once one is running.",
    "start_offline": "The sync app is offline. The sync starts once it is back.",
    "start_soon": "The sync app starts it within a minute.",
    "sync_cancelled": "Sync canceled.",
    "sync_cancelling": "The sync is being canceled. It stops at its next checkpoint.",
    "skip_charged": "One credit spent, # left.",
    "skip_replayed": "This credit was already spent.",
    "skip_no_charge_needed": "No credit was needed.",
    "skip_sync_in_flight": "A sync is already running. No credit was spent.",
    "task_made": "The sync app has a new task.",
    "task_waits": "This task is already waiting for the sync app.",
    "upload_approved": "Approved. The sync app sends the file once.",
    "upload_unapproved": "Approval withdrawn.",
    "upload_confirmed": "Upload confirmed.",
    "upload_discarded": "Upload discarded.",
    "upload_mended": "Corrected rows sent with the rest of the file.",
}
_BETWEEN: Final = "~"
_MOST: Final = 6
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_PLACE: Final = re.compile(r"[1-9][0-9]{0,6}-[1-9][0-9]{0,6}")
_PART: Final = re.compile(r"#|@|&|\[([^|\]]*)\|([^|\]]*)\]")


def message(code: str, *values: int | str | Place) -> str:
    """Return a message as an address has it: its code, then its values; places may be codes."""
    return ".".join([code, *(v.code if isinstance(v, Place) else str(v) for v in values)])


def together(*messages: str) -> str:
    """Return several messages as one."""
    return _BETWEEN.join(messages)


def left(problems: Iterable[errors.Problem]) -> list[str]:
    """Return one message for each kind of refusal, with how many there were."""
    kinds = Counter(f"left_{problem.code}" for problem in problems)
    known = Counter[str]()
    for kind, count in kinds.items():
        known[kind if kind in MESSAGES else "left"] += count
    return [message(kind, count) for kind, count in known.items()]


def sentences(given: str) -> str:
    """Return what an address's messages say; nothing where one of them is none of ours."""
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
    left = list(values)
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
