"""Turns the codes in a page's address into sentences about the form that led to it. Pure.

An address can be made by anybody, so no text of it is shown: only sentences of this table, with
numbers and places in them. In a sentence `#` is a number, `@` is a place like 3-12, and
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

_UNDO: Final = "Activity can take it back."
MESSAGES: Final[dict[str, str]] = {
    "saved": "Saved.",
    "saved_network": "Saved. It holds for the next answer.",
    "same": "Nothing was different.",
    "again": "There are more: do it again.",
    # activity
    "undone": "Entry # is undone.",
    # add cards
    "drafts_made": "# [draft is|drafts are] made.",
    "drafts_published": "Published: the agent brings them to the marketplace.",
    "draft_saved": "The draft is saved.",
    "entry_deleted": "The entry is deleted.",
    "entry_settled": "The entry is settled.",
    # cards
    "pinned": "The price is pinned. The next run asks it.",
    "unpinned": "The price is pinned no more; rules price the card again.",
    "pin_removed": f"The price is pinned no more. {_UNDO}",
    "card_published": "Everybody of the shop sees the card now.",
    "match_settled": f"The match is settled, and later imports keep it. {_UNDO}",
    "columns_of_shop": "Everybody sees these columns now.",
    "columns_of_member": "You see these columns from now on.",
    "search_saved": "The search is saved.",
    "search_deleted": f"The saved search is deleted. {_UNDO}",
    "search_moved": "The saved search has its new place.",
    "search_renamed": "The saved search has its new name.",
    "many_pinned": "# of the # selected are pinned at the price that they have.",
    "many_unpinned": "# of the # selected are pinned no more.",
    "many_published": "# of your contributions among the selected are shown to everybody now.",
    # counts and shelves
    "lines_noted": "# [line is|lines are] noted.",
    "count_settled": f"The places are corrected. {_UNDO}",
    "count_cancelled": "The count is cancelled, and nothing is corrected.",
    "copies_put": "# [copy lies|copies lie] in @ now.",
    "card_moved": "The card lies in @ now.",
    "card_taken_out": "The card is taken out of @.",
    "many_put": "# [copy lies|copies lie] in @ to @.",
    "more_to_put": "There are more: put them next.",
    "none_to_put": "Nothing of the selected was left to put.",
    # customers
    "note_kept": f"The note is kept. {_UNDO}",
    "note_gone": f"There is no note any more. {_UNDO}",
    # lists
    "list_made": "The list is made. Now add cards to it.",
    "list_renamed": "The list has its new name.",
    "list_deleted": f"The list is deleted; its cards stay. {_UNDO}",
    "list_added": "# [card is|cards are] new on the list.",
    "list_had": "# of the selected stood there already.",
    "list_full": "It is full now: not all of the # have found room.",
    "list_removed": "# [card is|cards are] off the list.",
    # operator
    "plan_saved": "The plan is saved.",
    "suspended_on": "The account is suspended.",
    "suspended_off": "The suspension is lifted.",
    "past_due_on": "The account is past due.",
    "past_due_off": "The account is not past due any more.",
    # orders
    "order_mark_shipped": "The order is marked as shipped.",
    "order_unmark_shipped": "The order is not marked as shipped any more.",
    "order_dismiss": "The order is set aside: no pull takes it.",
    "order_undismiss": "The order is taken back: a pull can take it.",
    "copies_put_back": "# [copy is|copies are] put back.",
    "items_nowhere": "# of the order's items are unassigned: put them away in Shelves.",
    # pricing
    "rules_moved": f"The rules are in the new order. {_UNDO}",
    "rule_deleted": f"The rule is deleted. {_UNDO}",
    "rule_publish": "The rule is live from the next run on.",
    "rule_draft": "The rule is a draft again and prices nothing.",
    "rule_enable": "The rule is on again.",
    "rule_disable": "The rule is off and prices nothing.",
    "rule_saved": "The rule is saved and live from the next run on.",
    "tests_red": "# of the rule tests would be red with it.",
    "preset_chosen": f"The preset's rule is in force. {_UNDO}",
    "repricing": "Every card is being priced by the live rules.",
    "rollback_asked": "The rollback is being prepared; the agent imports it with its next visit.",
    "rollback_cancelled": "The rollback is cancelled; prices stay.",
    "sale_saved": f"The sale is saved. {_UNDO}",
    "sale_deleted": f"The sale is deleted. {_UNDO}",
    "sale_on": "The sale is on.",
    "sale_off": "The sale is off.",
    "test_made": "The test is made; it is checked now.",
    "test_changed": "The test is changed; it is checked now.",
    "test_deleted": f"The test is deleted. {_UNDO}",
    "run_confirm": "The prices are confirmed, and the run goes on.",
    "run_discard": "The run's prices are discarded; targets stay as they were.",
    "run_confirmed": "The pricing run is confirmed.",
    "run_discarded": "The pricing run is discarded.",
    # reviews and advice
    "none_chosen": "No price was chosen.",
    "prices_accepted": "# [price is|prices are] accepted.",
    "prices_dismissed": "# [price is|prices are] dismissed.",
    "left_changed": "# changed meanwhile and [waits|wait] again.",
    "left": "# could not be decided; the page says what holds [it|them].",
    "left_not_found": "# [waits|wait] no more.",
    "left_revision_conflict": "# [was|were] decided or changed since you looked.",
    "left_market_evidence_changed": "# [has|have] other evidence from the market since you looked.",
    "left_not_eligible": "# cannot be accepted now: rules or holds of the account keep [it|them].",
    "advice_dismissed": "It stays away for thirty days.",
    "advice_snoozed": "It waits for other evidence.",
    # pulls, at the desk and on phones
    "pull_opened": "The pull is open. Print its cover sheet for phones.",
    "pull_completed": "The pull is completed.",
    "pull_cancelled": "The pull is cancelled.",
    "pull_pulled": "The order is pulled.",
    "pull_defer": "The order stands at the end now.",
    "pull_unassign": "The order is out of this pull; another can take it.",
    "link_revoked": "The link is revoked: no phone can use it any more.",
    "phone_pulled": "Pulled.",
    "phone_defer": "Put to the end of the queue.",
    "phone_missing": "Noted as missing; the desk looks into it.",
    "phone_undo": "Taken back.",
    "phone_surplus": "# of it [is|are] not wanted any more: put [it|them] back to [its|their] place.",
    # settings
    "preset_of_set_up": "The rule is chosen, and your cards are being priced by it.",
    "history_asked": "The agent fetches the orders of all years with its next sync.",
    "role_changed": "The role is changed.",
    "member_signed_out": "All sessions of this member are ended.",
    "member_removed": "The member is removed.",
    "assistant_changed": "The permissions are saved.",
    "assistant_revoked": "The assistant is disconnected.",
    "key_revoked": "The key is revoked.",
    "account_stays": "The account stays. Make new keys for your agents.",
    "passkey_kept": "The passkey is kept.",
    "passkey_removed": "The passkey is removed.",
    # sync
    **{f"sync_requested_{kind}": f"Requested: a sync of kind {kind}." for kind in KINDS},
    "start_after": "The agent starts it when the sync under way has ended.",
    "start_without_agent": "No agent has called yet; the sync starts once one runs.",
    "start_offline": "The agent is offline; the sync starts once it is back.",
    "start_soon": "The agent starts it within a minute.",
    "sync_cancelled": "The sync is cancelled.",
    "sync_cancelling": "The sync is being cancelled. It stops at its next boundary.",
    "skip_charged": "One credit is spent, # are left.",
    "skip_replayed": "This credit is spent already.",
    "skip_no_charge_needed": "No credit was needed.",
    "skip_sync_in_flight": "A sync runs already. No credit was spent.",
    "task_made": "The agent has a new task.",
    "task_waits": "Such a task waits for the agent already.",
    "upload_approved": "Approved: the agent uploads the file once.",
    "upload_unapproved": "The approval is taken back.",
    "upload_confirmed": "The upload is confirmed.",
    "upload_discarded": "The upload is discarded.",
    "upload_mended": "The mended rows are sent, with the rest of the file.",
}
_BETWEEN: Final = "~"
_MOST: Final = 6
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_PLACE: Final = re.compile(r"[1-9][0-9]{0,6}-[1-9][0-9]{0,6}")
_PART: Final = re.compile(r"#|@|\[([^|\]]*)\|([^|\]]*)\]")


def message(code: str, *values: int | Place) -> str:
    """Return a message as an address has it: its code, then its values."""
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
    wanted = [sign for sign in message if sign in "#@"]
    forms = {"#": _NUMBER, "@": _PLACE}
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
        return left.pop(0) if part[0] == "@" else part[1 if number == 1 else 2]

    return _PART.sub(put, message)
