"""Saves the account's settings from a form. Only the fields that the member changed in the form are
set, and only if nobody else has changed one of them meanwhile.

Other fields are not written, so that two tabs with the same form do not undo each other's changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import SETTINGS, Account
from cardsync.platform import errors
from cardsync.platform.declared_fields import from_text
from cardsync.platform.money import usd
from cardsync.platform.value_types import Values
from cardsync.shop.accounts import account_settings, sellers
from cardsync.shop.accounts.schemas import line_switches

LINE: Final = "line:"


class Conflict(NamedTuple):
    """A field that the member changed in the form and that somebody else changed meanwhile."""

    name: str
    current: str
    wanted: str


class ChangedMeanwhile(Exception):
    """Somebody else has changed a field, so no field was set. `current` has the current values."""

    def __init__(self, conflicts: list[Conflict], current: Mapping[str, str]) -> None:
        super().__init__("settings have changed in the meantime")
        self.conflicts = conflicts
        self.current = current


class Unreadable(Exception):
    """A field has an invalid value, so no field was set. `problems` has a message by field."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("settings could not be read")
        self.problems = problems


def as_texts(account: Account) -> dict[str, str]:
    """Return the settings and the product lines as the form shows them. Pure."""
    texts = {
        name: _text(getattr(account, name))
        for name, setting in SETTINGS.items()
        if setting.field.section
    }
    lines = line_switches(account)
    return texts | {f"{LINE}{name}": _text(enabled) for name, enabled in lines}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return usd(value)
    return "" if value is None else str(value)


async def change_shown(
    session: AsyncSession,
    caller: Caller,
    shown: Mapping[str, str],
    wanted: Mapping[str, str],
    now: datetime,
) -> list[str]:
    """Set the fields whose text in the form differs from the text that the page showed, and return
    their names. If one field can't be set, no field is set. Raises OwnerRequired, ChangedMeanwhile,
    Unreadable, InvalidPayload.
    """
    caller.must_be_owner()
    current = as_texts(await sellers.locked_account(session, caller.seller_id))
    touched = [
        name for name, text in wanted.items() if name in current and text != shown.get(name, text)
    ]
    conflicts = [
        Conflict(name, current[name], wanted[name])
        for name in touched
        if current[name] not in (shown[name], wanted[name])
    ]
    if conflicts:
        raise ChangedMeanwhile(conflicts, current)
    changed = [name for name in touched if current[name] != wanted[name]]
    values, problems = _read({name: wanted[name] for name in changed})
    if problems:
        raise Unreadable(problems)
    lines = {
        name.removeprefix(LINE): wanted[name] == "true" for name in changed if name.startswith(LINE)
    }
    if changed:
        try:
            await account_settings.change(session, caller, values, lines, now)
        except errors.InvalidPayload as e:
            name, colon, what = str(e).partition(": ")
            if colon and name in values:
                raise Unreadable({name: what}) from e
            raise
    return changed


def _read(texts: Mapping[str, str]) -> tuple[Values, dict[str, str]]:
    values, problems = Values(), dict[str, str]()
    for name, text in texts.items():
        if name.startswith(LINE):
            continue
        try:
            values[name] = from_text(SETTINGS[name], text)
        except ValueError as e:
            problems[name] = f"Must be {e}."
    return values, problems
