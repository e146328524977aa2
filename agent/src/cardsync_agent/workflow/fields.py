"""Inspects an element before an action: its kind, its target, and whether it asks for a secret,
which the agent never fills in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from cardsync_agent.browser.trouble import ForeignOrigin, PasswordField

if TYPE_CHECKING:
    from playwright.sync_api import Locator as On

_SECRET_NAMES = re.compile(r"passw|passcode|\botp\b|\bpin\b|cvv|cvc|card.?number", re.IGNORECASE)
_SECRET_KINDS = ("current-password", "new-password", "one-time-code")

_LOOK = r"""
(el) => {
  const frames = 'iframe, frame, object, embed, fencedframe, portal';
  const form = el.form || el.closest('form');
  const link = el.closest('a[href]');
  const submits = el.matches('button:not([type=button]):not([type=reset]),input[type=submit],'
    + 'input[type=image]');
  const to = (submits && form) ? (el.getAttribute('formaction') || form.getAttribute('action'))
    : null;
  return {
    tag: el.localName, type: (el.getAttribute('type') || '').toLowerCase(),
    autocomplete: (el.getAttribute('autocomplete') || '').toLowerCase(),
    names: [el.getAttribute('name'), el.id, el.getAttribute('aria-label')].join(' '),
    beside: submits && !!form
      && [...form.querySelectorAll('input')].some((x) => x.type === 'password' && x.value),
    frame: el.matches(frames) || el.querySelector(frames) !== null,
    leads_to: link ? link.href : to === null ? '' : new URL(to, document.baseURI).href,
  };
}
"""


@dataclass(frozen=True)
class Seen:
    """The properties of an element. `leads_to` is the target of its link or form; empty if it
    has neither. `frame` means that the element is or contains an embedded page, `beside` that its
    form has a filled password field.
    """

    tag: str
    type: str
    autocomplete: str
    names: str
    beside: bool
    frame: bool
    leads_to: str


def look(on: On) -> Seen:
    return Seen(**on.evaluate(_LOOK))


def offers(on: On, option: str) -> bool:
    """Return whether a select has an option with this label or value."""
    options = on.evaluate("(el) => Array.from(el.options, (one) => [one.label.trim(), one.value])")
    return any(option.strip() in one for one in options)


def holds(on: On, value: str) -> bool:
    """Return whether a field contains this text or number; also return True if the field has
    vanished.
    """
    held = on.evaluate_all("(all) => all.map((el) => 'value' in el ? el.value : el.innerText)")
    return all(_is_same(str(one).strip(), value.strip()) for one in held)


def _is_same(held: str, value: str) -> bool:
    if held == value:
        return True
    try:
        return Decimal(held) == Decimal(value)
    except InvalidOperation:
        return False


def asks_for_secret(seen: Seen) -> bool:
    """Return whether the field is for a password, a code or a payment card."""
    kinds = seen.autocomplete.split()
    return (
        seen.type == "password"
        or any(kind in _SECRET_KINDS or kind.startswith("cc-") for kind in kinds)
        or _SECRET_NAMES.search(seen.names) is not None
    )


def refuse_secret(seen: Seen, name: str) -> None:
    """Raise PasswordField for a field that the agent must not fill."""
    if asks_for_secret(seen):
        raise PasswordField(
            f"{name.replace('_', ' ')} asks for a password or a code; the sync app never writes one"
        )


def refuse_frame(seen: Seen, name: str) -> None:
    """Raise ForeignOrigin for an element whose click would reach an embedded page."""
    if seen.frame:
        raise ForeignOrigin(
            f"{name.replace('_', ' ')} holds a page of its own; the sync app presses nothing in it"
        )


def refuse_submit(seen: Seen, name: str) -> None:
    """Raise PasswordField for a button that would submit a password."""
    if seen.beside:
        raise PasswordField(
            f"{name.replace('_', ' ')} would send a password that is filled in; sign in yourself"
        )
