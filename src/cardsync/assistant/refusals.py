"""Explains to an assistant what to do after an error: a table from the API's error codes to the
next step, and the text for an error. docs/assistants.md shows the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from cardsync.assistant.own_api import Answer
from cardsync.platform import errors
from cardsync.platform.value_types import JsonObject

_READ_AGAIN: Final = "Read it again, show what changed, and ask before trying once more."
NEXT: Final[Mapping[str, str]] = {
    "account_suspended": "Tell the seller; only support lifts this.",
    "bad_request": "Send the arguments as the tool describes them.",
    "buyers_hidden": "Leave customers out; the owner decides whether you see buyers.",
    "confirmation_needed": "Tell the figures to the seller, who confirms on the page.",
    "cooldown": "Wait the seconds that it names; do not repeat before.",
    "csrf_failed": "Send no Origin of another site.",
    "decompressed_too_large": "Send less at once.",
    "insufficient_balance": "Tell the seller that credits are used up.",
    "insufficient_scope": "This session only reads. Ask the seller to connect with writing allowed.",
    "internal_server_error": "Try once more later; tell the seller the request id if it stays.",
    "invalid_name": "Use a name of 1 to 100 characters.",
    "invalid_payload": "Correct the argument that it names, and call again.",
    "invalid_query": "Correct the search as the sentence says, and call again.",
    "invalid_rule": "Correct the field of the rule that it names.",
    "key_required": "This is the agent's own work; use another tool.",
    "list_full": "Take cards off the list, or use another list.",
    "list_limit_reached": "Use a list that exists, or ask which one may go.",
    "market_evidence_changed": _READ_AGAIN,
    "method_not_allowed": "Use a tool of the table instead.",
    "mutex_held": "Prices are being written; wait a few seconds and try again.",
    "name_taken": "Use another name, or the list that has it.",
    "name_too_short": "Give at least 2 characters of the card's name.",
    "needs_review": "Nothing has changed. Give the seller confirm_url; activity.list has the outcome.",
    "not_eligible": "Leave this one; it cannot be decided now.",
    "not_found": "Look the id up again; it may be gone.",
    "overlapping_rule_transitions": "Split the plan, so that no two actions touch the same cards.",
    "owner_required": "Only the shop's owner may do this.",
    "paid_plan_required": "Tell the seller that assistants need a paid plan.",
    "payload_too_large": "Send less at once.",
    "plan_not_waiting": "Read the plan; it has ended already.",
    "rate_limited": "Wait the seconds that it names, then go on.",
    "refused_by_grant": "The owner does not let you do this; say so, and do not try another way.",
    "revision_conflict": _READ_AGAIN,
    "rule_tests_failed": "Tell the seller which tests fail; do not go around them.",
    "service_unavailable": "Wait a few seconds and try again.",
    "session_required": "Only a person on the website does this; give the seller its page.",
    "stock_promoted_reload": "Search the cards again and use their new ids.",
    "too_many_references": "Ask for at most 25 cards at once.",
    "transition_matrix_too_large": "Split the plan into several with fewer actions.",
    "unauthorized": "The credential ended; connect again.",
    "unprocessable_content": "Send the arguments as the tool describes them.",
    "unsupported_media_type": "Send the arguments as the tool describes them.",
}
OTHERWISE: Final = "Tell the seller what it says; do not repeat the same call."
PENDING: Final = "needs_review"


class Refusal(Exception):
    """A refused call. `code` is the API's error code, and the text is for the assistant."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def is_pending(self) -> bool:
        """Return whether the call only needs a member's confirmation."""
        return self.code == PENDING


def of_answer(answer: Answer) -> Refusal:
    """Return the error in an answer of the API. A redirect means that only a member's session may
    do this.
    """
    if answer.status < 400:
        moved = f"moved to a page: {answer.headers.get('location', '')}"
        return _refusal(errors.SessionRequired.code, moved, "")
    try:
        body = msgspec.json.decode(answer.body, type=JsonObject)
    except msgspec.MsgspecError:
        body = {}
    code = str(body.pop("code", None) or body.get("status") or "internal_server_error")
    sentence = str(body.pop("error", None) or f"refused with status {answer.status}")
    wait = answer.headers.get("retry-after")
    figures = f" {msgspec.json.encode(body).decode()}" if body else ""
    return _refusal(code, f"{sentence.rstrip('.')}{f' (wait {wait} s)' if wait else ''}", figures)


def of_problem(problem: errors.Problem) -> Refusal:
    return _refusal(problem.code, str(problem).rstrip("."), "")


def _refusal(code: str, sentence: str, figures: str) -> Refusal:
    told = "Pending" if code == PENDING else "Refused"
    return Refusal(code, f"{told}: {code}: {sentence}.{figures} Next: {NEXT.get(code, OTHERWISE)}")
