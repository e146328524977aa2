"""The pages of members, and of failures: values in, HTML out, and the headers that every page
goes out with. Every value is escaped; texts of ours that are HTML already are `Html`. Pure.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import NamedTuple

from cardsync import limits

# No script, no frame, no other site; and what a page says of a member stays in no cache. The
# referrer policy keeps an invitation's token to ourselves, and lets our own forms say their
# origin.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FOLDER = files(__package__) / "html"
ROLES = {"owner": "Owner", "staff": "Staff"}


class Html(str):
    """Escaped already."""


NOTHING = Html("")
_INVALID = Html(' aria-invalid="true" aria-describedby="problem"')


@cache
def asset(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


def _part(part: str, /, **values: str) -> Html:
    escaped = {
        key: value if isinstance(value, Html) else html.escape(value)
        for key, value in values.items()
    }
    return Html(Template(asset(f"{part}.html")).substitute(escaped))


def _page(heading: str, content: Html, *, failed: bool = False) -> Html:
    # The title is what a screen reader reads first.
    return _part(
        "frame", title=f"Error: {heading}" if failed else heading, heading=heading, content=content
    )


def _notice(problem: str | None, done: str | None = None) -> Html:
    if problem:
        return _part("problem", message=problem)
    return _part("done", message=done) if done else NOTHING


def sign_in(email: str = "", problem: str | None = None, done: str | None = None) -> Html:
    state = _INVALID if problem else NOTHING
    parts = {"notice": _notice(problem, done), "email_state": state, "password_state": state}
    return _page("Sign in", _part("sign_in", email=email, **parts), failed=bool(problem))


def invitation(
    seller: str, role: str, email: str, *, joined: bool, name: str = "", problem: str | None = None
) -> Html:
    """Who has joined already chooses a new password."""
    lead = (
        f"For {seller}. Afterwards you are signed out on all other devices."
        if joined
        else _invites(seller, role)
    )
    # Of two fields that may be wrong, the message says which.
    about_name = bool(problem) and str(problem).lower().startswith("name")
    name_state = _INVALID if about_name else NOTHING
    password_state = Html(' aria-invalid="true"') if problem and not about_name else NOTHING
    heading = "Choose a new password" if joined else f"Join {seller}"
    content = _part(
        "invitation",
        lead=lead,
        notice=_notice(problem),
        email=email,
        name_field=NOTHING if joined else _part("name_field", name=name, name_state=name_state),
        password_label="New password" if joined else "Choose a password",
        password_state=password_state,
        problem=" problem" if problem and not about_name else "",
        least=str(limits.PASSWORD_CHARACTERS),
        most=str(limits.PASSWORD_CHARACTERS_MOST),
        action="Save and sign in" if joined else "Join",
    )
    return _page(heading, content, failed=bool(problem))


def _invites(seller: str, role: str) -> str:
    return f"You are invited to help run {seller} as {ROLES[role].lower()}."


def account(seller: str, name: str, email: str, role: str, csrf_token: str) -> Html:
    return _page(
        seller, _part("account", name=name, email=email, role=ROLES[role], csrf_token=csrf_token)
    )


class LedgerLine(NamedTuple):
    moment: str
    kind: str
    reason: str
    amount: int
    balance: int


_KINDS = {"grant": "Credits given", "skip_wait": "A wait skipped"}
_ADDRESSES = ("https://", "http://", "mailto:")


def credits(balance: int, lines: Sequence[LedgerLine], top_up: str, *, complete: bool) -> Html:
    """`top_up` is the operator's text, or the address where credits are to be had.

    Without `complete`, older lines were left out.
    """
    has = f"You have {balance:,} credit{'' if balance == 1 else 's'}."
    rows = [
        _part(
            "ledger_row",
            moment=line.moment,
            what=": ".join(filter(None, (_KINDS.get(line.kind, line.kind), line.reason))),
            amount=f"{line.amount:+,}",
            balance=f"{line.balance:,}",
        )
        for line in lines
    ]
    more = NOTHING if complete else _part("paragraph", text=f"These are the newest {len(lines):,}.")
    ledger = _part("ledger", rows=Html("".join(rows)), more=more) if rows else NOTHING
    return _page("Credits", _part("credits", balance=has, top_up=_top_up(top_up), ledger=ledger))


def _top_up(text: str) -> Html:
    if text.lower().startswith(_ADDRESSES):
        return _part("link", address=text)
    return _part("paragraph", text=text or "Whoever runs this service gives out credits.")


def message(heading: str, text: str) -> Html:
    return _page(heading, _part("message", message=text), failed=True)


def failure(status: int, title: str, advice: str, request_id: str) -> Html:
    """What a browser gets for an unknown address or a failure on our side."""
    return _page(
        title,
        _part("failure", status=str(status), advice=advice, request_id=request_id),
        failed=True,
    )
