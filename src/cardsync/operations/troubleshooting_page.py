"""Prints docs/troubleshooting.md from the code: each line of `cardsync doctor` that needs an
action, and each error code with its remedy.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Final

from cardsync.agents import errors as of_agents
from cardsync.imports import errors as of_imports
from cardsync.operations import doctor
from cardsync.platform import errors
from cardsync.prices import errors as of_prices
from cardsync.sales import errors as of_sales
from cardsync.shop import errors as of_shop
from cardsync.stock import errors as of_stock

_HEAD: Final = """\
# Troubleshooting

Begin with `cardsync doctor`: it checks every part and says what to do. This page has all that it can
say, then every error code. Write to us with the `X-Request-Id` of the answer where neither helps.

## When something does not start

| what you see | what to do |
|---|---|
| `cardsync needs Python 3.11 or newer` | install it, and name it: `make setup PYTHON=python3.12` |
| the port is in use | another program, or another `cardsync serve`, has it: `cardsync serve --port 8080` |
| the browser says that the site cannot be reached | `cardsync serve` prints its address; on another computer see [on a phone](phone.md) |
| the set-up link is lost | `cardsync set-up-link` prints it again |
| a password is lost | `cardsync admin member reset-password MEMBER_ID` prints a link for a new one |
| `schema … is newer than this program` | the data is of a newer version: [going back](upgrading.md#going-back) |

## When a file is not read

| what you see | what to do |
|---|---|
| "This isn't a … export" | the first line names no known columns. Export again, and change nothing in the file |
| rejected rows | the upload's page names each line with its reason, and has them as a CSV |
| "not matched" | no catalog knows the card: `cardsync catalog list` says which games have one; [catalogs](catalogs.md) |
| a card that is another card | open the card, *Match*, and choose the right one; it stays |

If a file is read wrongly, that is our bug. Please report it, without names and addresses.

"""

_REMEDIES: Final = {
    "account_ending": "cancel the deletion in Settings, then create the key",
    "account_suspended": "ask the operator of the installation",
    "already_restocked": "nothing; undo it in Activity if it was wrong",
    "already_used": "ask for a new address with `POST /api/v1/sync/upload-request`",
    "bad_request": "send complete JSON, within the time limit",
    "buyers_hidden": "connect the assistant again, with buyer data",
    "card_missing": "choose what to do about the card, or send it again with `confirm=true`",
    "changed_since": "read it again, then decide",
    "claim_expired": "claim the task again",
    "confirmation_needed": "look at the figures; if they are right, send it again with `confirm: true`",
    "cooldown": "wait as `Retry-After` says, or skip the wait with a credit",
    "correction_disabled": "send another selector",
    "count_not_open": "start a new count",
    "count_open": "finish or cancel that count first",
    "csrf_failed": "load the page again; a script sends `X-CSRF-Token` from `GET /api/session`",
    "csv_processing_failed": "look at the upload's reason, and send the file again",
    "decompressed_too_large": "send it in parts",
    "empty_payload": "send at least one row",
    "idempotency_key_required": "send a new UUID as `X-Idempotency-Key`",
    "insufficient_balance": "wait, or ask the operator for credits",
    "insufficient_scope": "create a token with that scope",
    "internal_server_error": "report it with the `X-Request-Id`; the log has the reason",
    "invalid_credentials": "try again, or ask an owner for a link for a new password",
    "invalid_csv": "export the file again, and send it unchanged",
    "invalid_gzip": "compress the whole file again, or send it plain",
    "invalid_json": "fix the JSON",
    "invalid_name": "choose another name",
    "invalid_object_key": "send the `key` that the upload address came with, after the file is there",
    "invalid_payload": "fix the field that the message names",
    "invalid_product_line": "add the line in Settings → Shop, or leave it out",
    "invalid_query": "fix the search at the offset; [the search language](search.md)",
    "invalid_rule": "fix the field that the message names",
    "invalid_signature": "use the address exactly as you got it",
    "key_required": "send an API key",
    "list_full": "create another list, or remove cards",
    "list_limit_reached": "delete a list",
    "listing_in_hand": "wait 30 minutes after it was sent",
    "market_evidence_changed": "read the suggestion again, and decide about the new revision",
    "method_not_allowed": "the header `Allow` names the methods",
    "misdirected_request": "use the address that `CARDSYNC_PUBLIC_URL` names",
    "missing_settled": "undo it in Activity first",
    "mutex_held": "wait as `Retry-After` says",
    "name_taken": "choose another name",
    "name_too_short": "send two characters or more",
    "needs_review": "open `confirm_url`, and let a member decide",
    "no_sync_in_progress": "nothing; the sync has ended",
    "not_a_draft": "read the entry again",
    "not_awaiting_review": "read the upload again",
    "not_cancellable": "start another rollback to undo it",
    "not_eligible": "the sentence says why; read the suggestion again",
    "not_found": "check the id; it may belong to another shop, or have been deleted",
    "not_pending": "read the entry again",
    "not_the_newest": "fix the newest upload",
    "not_undoable": "change it by hand",
    "object_store_pipeline_disabled": "send the CSV itself, or ask the operator",
    "offer_link_ended": "ask the shop for a new link",
    "offer_state_wrong": "read the offer again",
    "operator_required": "ask the operator of the installation",
    "overlapping_rule_transitions": "send the two actions in separate plans",
    "owner_required": "ask an owner of the shop",
    "public_demo": "install cardsync yourself; a public demo shows it, and keeps nothing",
    "paid_plan_required": "ask the operator for a plan that includes it",
    "payload_too_large": "send it in parts",
    "plan_not_waiting": "send the plan again",
    "pull_link_ended": "ask at the desk for a new code",
    "pull_session_not_open": "start a new pull",
    "pull_session_open": "end or cancel the open pull first",
    "range_not_satisfiable": "ask for the file from its beginning",
    "rate_limited": "wait as `Retry-After` says",
    "refused_by_grant": "let the owner change what the assistant can do in Settings → Assistants",
    "restore_under_way": "wait until it has ended",
    "revision_conflict": "read the suggestion again",
    "rollback_open": "wait for the rollback, or cancel it",
    "rule_tests_failed": "fix the rule or the test, or let the owner override it with a reason",
    "saved_search_limit_reached": "delete a saved search",
    "service_unavailable": "wait as `Retry-After` says, and repeat the request; then `cardsync doctor`",
    "session_required": "sign in, and do it on the page",
    "stock_promoted_reload": "load the cards again, and choose the listed one",
    "store_credit_too_low": "use less credit, or pay the rest another way",
    "too_many_observations": "send fewer in one request",
    "too_many_references": "send fewer in one request",
    "too_many_rows": "send the rows in parts",
    "transition_matrix_too_large": "send the other actions in another plan",
    "unauthorized": "send `Authorization: Bearer` and a key that was not revoked",
    "unsupported_media_type": "send `Content-Type: application/json`",
    "url_expired": "ask for a new address with `POST /api/v1/sync/upload-request`",
}


def troubleshooting_page() -> str:
    """Return the page as Markdown."""
    lines = [
        "## What `cardsync doctor` reports",
        "",
        "`bad` ends the command with exit status 1; `note` is good to know. `…` is a name or a number.",
        "",
        "| | part | sentence |",
        "|---|---|---|",
    ]
    lines += [f"| {state} | {part} | {sentence} |" for state, part, sentence in doctor_sentences()]
    lines += [
        "",
        "## Error codes",
        "",
        "| code | status | what it means | what to do |",
        "|---|---|---|---|",
    ]
    for code, (statuses, meaning) in sorted(error_codes().items()):
        said = " or ".join(map(str, sorted(statuses)))
        lines.append(f"| `{code}` | {said} | {meaning} | {_REMEDIES[code]} |")
    return _HEAD + "\n".join(lines) + "\n"


# The modules are imported here, because their error classes exist only after the import.
_REFUSALS: Final = (errors, of_agents, of_imports, of_prices, of_sales, of_shop, of_stock)


def error_codes() -> dict[str, tuple[set[int], str]]:
    """Return each code with its statuses and its meaning."""
    found = {"internal_server_error": ({500}, "An unhandled failure on our side.")}
    kinds = (kind for module in _REFUSALS for kind in vars(module).values())
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, errors.Problem) and hasattr(kind, "status"):
            meaning = " ".join((kind.__doc__ or "").split()).replace("|", r"\|")
            statuses, _ = found.setdefault(kind.code, (set(), meaning))
            statuses.add(kind.status)
    return found


def doctor_sentences() -> Iterator[tuple[str, str, str]]:
    """Yield state, part and sentence of each line of the doctor that is not `ok`."""
    constants = vars(doctor)
    for function in ast.parse(inspect.getsource(doctor)).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        said: dict[str, str] = {}
        # Nodes are read in the order of the source, because each sentence precedes its line.
        for node in sorted(ast.walk(function), key=lambda one: getattr(one, "lineno", 0)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                said[node.targets[0].id] = _text(node.value, said)
            if isinstance(node, ast.Call) and _is_line(node):
                state, part, sentence = (_text(it, said, constants) for it in node.args)
                if state in ("bad", "note"):
                    yield state, part, sentence.replace("|", r"\|")


def _is_line(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "Line"


def _text(node: ast.expr, said: dict[str, str], constants: dict[str, object] | None = None) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, said) for part in parts)
        case ast.FormattedValue(value=ast.Name(id=name)) if said.get(name, "…") != "…":
            return said[name]
        case ast.Name(id=name) if name in said:
            return said[name]
        case ast.Name(id=name) if isinstance((constants or {}).get(name), str):
            return str((constants or {})[name])
        case ast.IfExp(body=one, orelse=other):
            return _text(one, said) or _text(other, said)
    return "…"
