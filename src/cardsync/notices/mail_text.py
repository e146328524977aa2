"""Writes the mail of a member: its subject, its text and the headers by which a mail program offers
to unsubscribe with one click (RFC 8058). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final, NamedTuple

from cardsync.money import dollars, to_units

_SUBJECT_MOST: Final = 150
SETTINGS: Final = "/settings/notices"


class Line(NamedTuple):
    """A notice as its reader may see it: without the amount where revenue is not shown."""

    severity: str
    sentence: str
    label: str
    url: str
    money: Decimal | None


class Letter(NamedTuple):
    """`lines` has one notice at least; `shop` is the shop's name."""

    sender: str
    to: str
    shop: str
    lines: Sequence[Line]
    message_id: str
    written_at: datetime
    unsubscribe: str
    settings_url: str


def mail_of(letter: Letter) -> EmailMessage:
    if not letter.lines:
        raise ValueError("a mail has something to say")
    mail = EmailMessage(policy=SMTP)
    mail["From"] = letter.sender
    mail["To"] = letter.to
    mail["Subject"] = _subject(letter)
    mail["Date"] = format_datetime(letter.written_at)
    mail["Message-ID"] = letter.message_id
    mail["Auto-Submitted"] = "auto-generated"
    mail["List-Unsubscribe"] = f"<{letter.unsubscribe}>"
    mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail.set_content(_text(letter))
    return mail


def _subject(letter: Letter) -> str:
    """Return the one sentence, or how many there are. A name may not begin another header."""
    lines = letter.lines
    said = lines[0].sentence if len(lines) == 1 else f"{len(lines)} things to know"
    return _one_line(f"{_one_line(letter.shop)}: {said}")[:_SUBJECT_MOST]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _text(letter: Letter) -> str:
    rank = {"bad": 0, "warn": 1}
    lines = sorted(letter.lines, key=lambda line: rank.get(line.severity, 2))
    end = (
        f"--\nYou get this mail from {_one_line(letter.shop)}."
        f"\nChoose what you get: {letter.settings_url}"
        f"\nGet no more mail: {letter.unsubscribe}\n"
    )
    return "\n\n".join([*(_paragraph(line) for line in lines), end])


def _paragraph(line: Line) -> str:
    money = "" if line.money is None else f" (${dollars(to_units(line.money))})"
    return f"{line.sentence}{money}\n{line.label}: {line.url}"
