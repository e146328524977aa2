"""Builds the mail to a member: its subject, its text, and the headers with which mail programs
offer to unsubscribe with one click (RFC 8058). Pure.

Mails contain texts that people typed, such as names. This module encodes headers itself, because a
library would decode encoded words in a name, and the decoded text could add header lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final, NamedTuple

from cardsync.platform.money import usd

_SUBJECT_MOST: Final = 150
SETTINGS: Final = "/settings/notices"
_ADDRESS: Final = re.compile(r"[^\s\x00-\x20\x7f()<>\[\],;:\\\"@]+@[^\s\x00-\x20\x7f()<>,;\\\"@]+")
# The beginning of an encoded word.
_ENCODED: Final = "=?"
# Characters that a mail program may treat as a line break, and control characters.
_BREAKS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Line(NamedTuple):
    """A notice in a mail. The amount is missing if the reader may not see revenue."""

    severity: str
    sentence: str
    label: str
    url: str
    money: Decimal | None


class Letter(NamedTuple):
    """The content of a mail. `lines` has at least one notice; `shop` is the shop's name. `brought`
    is the result of the last sync, which follows the notices.
    """

    sender: str
    to: str
    shop: str
    lines: Sequence[Line]
    message_id: str
    written_at: datetime
    unsubscribe: str
    settings_url: str
    brought: Line | None = None


class Mail(NamedTuple):
    """A mail to send. Both addresses are without a name."""

    sender: str
    to: str
    content: bytes


def mail_of(letter: Letter) -> Mail:
    """Return the mail of a letter. Raises ValueError if the recipient's address is invalid."""
    if not letter.lines:
        raise ValueError("a mail has something to say")
    name, sender = sender_of(letter.sender)
    if not _ADDRESS.fullmatch(letter.to) or _ENCODED in letter.to:
        raise ValueError("this is no address")
    plain = {
        "To": letter.to,
        "Date": format_datetime(letter.written_at),
        "Message-ID": letter.message_id,
        "Auto-Submitted": "auto-generated",
        "List-Unsubscribe": f"<{letter.unsubscribe}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }
    if any(_BREAKS.search(value) for value in plain.values()):
        raise ValueError("a header is one line")
    encoded = {
        "From": f"{_encoded('From', name)} <{sender}>" if name else sender,
        "Subject": _encoded("Subject", _subject(letter)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in (encoded | plain).items())
    return Mail(sender, letter.to, head.encode() + _body(letter))


def sender_of(text: str) -> tuple[str, str]:
    """Return the name (or an empty text) and the address in MAIL_FROM."""
    name, _, address = text.rpartition("<")
    return _one_line(name).strip('"'), address.removesuffix(">")


def _encoded(header: str, text: str) -> str:
    """Return the value of a header. Text with other characters than plain ASCII is written as
    encoded words (RFC 2047).
    """
    plain = text.isascii() and _ENCODED not in text and (header == "Subject" or text.isalnum())
    return Header(text, "us-ascii" if plain else "utf-8", header_name=header).encode(linesep="\r\n")


def _body(letter: Letter) -> bytes:
    """Return the text of the mail, with the headers for its encoding."""
    body = EmailMessage(policy=SMTP.clone(cte_type="7bit"))
    body.set_content(_text(letter))
    return body.as_bytes()


def _subject(letter: Letter) -> str:
    """Return the subject: the sentence of the only notice, or the number of notices."""
    lines = letter.lines
    said = lines[0].sentence if len(lines) == 1 else f"{len(lines)} things to know"
    return _one_line(f"{_one_line(letter.shop)}: {said}")[:_SUBJECT_MOST]


def _one_line(text: str) -> str:
    return " ".join(_BREAKS.sub(" ", text).split())


def _text(letter: Letter) -> str:
    rank = {"bad": 0, "warn": 1}
    lines = sorted(letter.lines, key=lambda line: rank.get(line.severity, 2))
    end = (
        f"--\nThis email is from {_one_line(letter.shop)}."
        f"\nChoose your emails: {letter.settings_url}"
        f"\nStop all email: {letter.unsubscribe}\n"
    )
    beside = [] if letter.brought is None else [letter.brought]
    return "\n\n".join([*(_paragraph(line) for line in (*lines, *beside)), end])


def _paragraph(line: Line) -> str:
    money = "" if line.money is None else f" (${usd(line.money)})"
    return f"{_one_line(line.sentence)}{money}\n{_one_line(line.label)}: {line.url}"
