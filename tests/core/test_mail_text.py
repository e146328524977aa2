"""The mail of a member: its headers are the known ones, whatever is in a name."""

from __future__ import annotations

import base64
import email
from datetime import UTC, datetime
from email.header import decode_header
from email.message import EmailMessage
from email.policy import SMTP, compat32, default

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedule
from cardsync.shop.notices.mail_text import Letter, Line, Mail, mail_of

NOW = datetime(2026, 11, 26, 15, 30, tzinfo=UTC)


def a_letter(*lines: Line, shop: str = "Bea's Cards") -> Letter:
    return Letter(
        "Bea <notices@shop.example>", "al@shop.example", shop, lines, "<1@shop.example>", NOW,
        "https://shop.example/unsubscribe/1", "https://shop.example/settings/notices",
    )  # fmt: skip


def test_a_letter_says_the_worst_first_and_how_to_end_it():
    mild = Line("info", "2 new orders to pull.", "See the orders", "https://s/orders", None)
    bad = Line("bad", "The sync app isn't responding.", "See when", "https://s/today", None)
    mail = read(mail_of(a_letter(mild, bad)))
    assert mail["Subject"] == "Bea's Cards: 2 things to know"
    assert mail["List-Unsubscribe"] == "<https://shop.example/unsubscribe/1>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text = mail.get_content()
    assert text.index("The sync app isn't responding.") < text.index("2 new orders")
    assert said(read(mail_of(a_letter(bad)))) == "Bea's Cards: The sync app isn't responding."


def test_a_letter_without_anything_to_say_is_none():
    with pytest.raises(ValueError, match="something to say"):
        mail_of(a_letter())


HEADERS = [
    "From",
    "Subject",
    "To",
    "Date",
    "Message-ID",
    "Auto-Submitted",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "Content-Type",
    "Content-Transfer-Encoding",
    "MIME-Version",
]
FORGED = "Bcc: all@shop.example"


def read(mail: Mail) -> EmailMessage:
    """The mail as the programs read it that it goes through: each finds the known headers only,
    and no line of another.
    """
    for policy in (compat32, default, SMTP):
        found = email.message_from_bytes(mail.content, policy=policy)
        assert [name for name, _ in found.raw_items()] == HEADERS
        # Whoever writes it anew does not read more into it.
        again = email.message_from_bytes(found.as_bytes(), policy=policy)
        assert [name for name, _ in again.raw_items()] == HEADERS
    head = mail.content.partition(b"\r\n\r\n")[0]
    assert all(32 <= byte < 127 for byte in head.replace(b"\r\n", b""))
    assert max(map(len, mail.content.split(b"\r\n"))) < 998
    plain = email.message_from_bytes(mail.content, policy=default)
    assert isinstance(plain, EmailMessage)
    assert plain["To"].addresses[0].addr_spec == mail.to
    return plain


def said(mail: EmailMessage) -> str:
    """The subject as a reader sees it."""
    raw = dict(mail.raw_items())["Subject"]
    return "".join(
        part if isinstance(part, str) else part.decode(charset or "ascii")
        for part, charset in decode_header(raw.replace("\r\n", "").replace("\n", ""))
    )


BEGINNINGS = ["", "Bea", "Bea\r\n", "Bea\n ", "\u2028", "\x0b", "\x85", "Bea's Cards, ünï: "]
NAMES = [
    *(f"{begins}{FORGED}" for begins in BEGINNINGS),
    f"=?utf-8?q?=0A{FORGED.replace(' ', '_')}?=",
    f"=?utf-8?b?{base64.b64encode(b'a' + chr(13).encode() + chr(10).encode() + FORGED.encode()).decode()}?=",
    "=?utf-8?q?a?= =?utf-8?q?=0D=0ABcc:_x?=",
    "ünï =?utf-8?q?=0D=0ABcc:_x?=",
    "=?utf-8?q?=3D=3Futf-8=3Fq=3F=3D0ABcc:_x=3F=3D?=",
    "=?unknown?x?=?=",
    "a" * 400,
    "=?utf-8?q?" + "=0ABcc:_x" * 40,
]


@pytest.mark.parametrize("place", ["shop", "sentence", "label"])
@pytest.mark.parametrize("name", NAMES)
def test_a_name_begins_no_header_and_no_line(name, place):
    line = Line("info", "It is so.", "See it", "https://s/today", None)
    inside = f"a{name}"
    if place == "shop":
        mail = read(mail_of(a_letter(line, shop=inside)))
    else:
        mail = read(mail_of(a_letter(line._replace(**{place: inside}))))
    assert not [text for text in mail.get_content().splitlines() if text.startswith("Bcc")]


def test_a_name_is_read_as_it_was_written():
    line = Line("info", "It is so.", "See it", "https://s/today", None)
    for name in ("Bea's Cards", "Karten & Köpfe", "日本語", "=?utf-8?q?=0ABcc:_x?=", 'a\\b "c"'):
        assert said(read(mail_of(a_letter(line, shop=name)))) == f"{name}: It is so."


texts = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(
            ["=?", "?=", "utf-8", "?q?", "?b?", "=0A", "=0D", "Bcc: x", "\r\n", " ", "é"]
        )
    ).map("".join),
)


@schedule.deeper
@settings(max_examples=schedule.examples(100, 3_000), deadline=None)
@given(texts, texts, texts)
def test_any_name_leaves_the_known_headers_only(shop, sentence, label):
    line = Line("info", sentence, label, "https://s/today", None)
    mail = read(mail_of(a_letter(line, shop=shop)))
    assert len(said(mail)) <= 150
    more = read(mail_of(a_letter(line, line, shop=shop)))
    assert said(more).endswith("2 things to know") or len(said(more)) == 150


def test_a_header_of_a_stored_row_is_one_line():
    line = Line("info", "It is so.", "See it", "https://s/today", None)
    with pytest.raises(ValueError, match="one line"):
        mail_of(a_letter(line)._replace(message_id=f"<1@shop.example>\r\n{FORGED}"))


@pytest.mark.parametrize(
    "address",
    [
        "al@shop.example, all@shop.example",
        "al@shop.example\r\nBcc: all@shop.example",
        "=?utf-8?q?all=40shop.example=2C?=@shop.example",
        "<al@shop.example>",
        "al",
        "",
    ],
)
def test_no_mail_is_written_to_an_address_that_is_none(address):
    line = Line("info", "It is so.", "See it", "https://s/today", None)
    with pytest.raises(ValueError, match="no address"):
        mail_of(a_letter(line)._replace(to=address))


@pytest.mark.parametrize(
    ("sender", "name"),
    [
        ("notices@shop.example", ""),
        ("Cards <notices@shop.example>", "Cards"),
        ("Köpfe, Karten <notices@shop.example>", "Köpfe, Karten"),
    ],
)
def test_the_sender_keeps_its_name(sender, name):
    line = Line("info", "It is so.", "See it", "https://s/today", None)
    mail = read(mail_of(a_letter(line)._replace(sender=sender)))
    [shown] = mail["From"].addresses
    assert (shown.display_name, shown.addr_spec) == (name, "notices@shop.example")
