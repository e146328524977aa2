"""Writes the mail of a member: its subject, its text and the headers by which a mail program offers
to unsubscribe with one click (RFC 8058). Pure.

The mail contains texts that people wrote. Headers are encoded here, character by character: a
library would first decode an encoded word in a name, whose text could then add header lines.
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
# Characters that some program may read as the end of a line, and others without a glyph.
_BREAKS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Line(NamedTuple):
    """A notice as its reader may see it: without the amount where revenue is not shown."""

    severity: str
    sentence: str
    label: str
    url: str
    money: Decimal | None


class Letter(NamedTuple):
    """`lines` has one notice at least; `shop` is the shop's name. `brought` is the last sync's
    result, under them.
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
    """A mail as it is sent; both addresses are without a name."""

    sender: str
    to: str
    content: bytes


def mail_of(letter: Letter) -> Mail:
    """Raises ValueError for a recipient to whom no mail can be written."""
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
    """Return the name, if any, and the address in MAIL_FROM."""
    name, _, address = text.rpartition("<")
    return _one_line(name).strip('"'), address.removesuffix(">")


def _encoded(header: str, text: str) -> str:
    """Return the text for a header: text that is not plain becomes encoded words (RFC 2047)."""
    plain = text.isascii() and _ENCODED not in text and (header == "Subject" or text.isalnum())
    return Header(text, "us-ascii" if plain else "utf-8", header_name=header).encode(linesep="\r\n")


def _body(letter: Letter) -> bytes:
    """Return the text, with the headers of its encoding."""
    body = EmailMessage(policy=SMTP.clone(cte_type="7bit"))
    body.set_content(_text(letter))
    return body.as_bytes()


def _subject(letter: Letter) -> str:
    """Return the only sentence, or the number of sentences."""
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
