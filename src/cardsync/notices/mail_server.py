"""Hands a mail to the server of MAIL_URL. A password is never sent without encryption, but to this
machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from cardsync.notices.mail_text import Mail

if TYPE_CHECKING:
    import aiosmtplib

SECONDS: Final = 30.0
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_REFUSED: Final = 500
# The sign-in, not the mail, is refused with these.
_OF_SIGN_IN: Final = frozenset({530, 534, 535, 538})


class NotSent(Exception):
    """The server is away or refused for now: the mail may be sent later."""


class Undeliverable(Exception):
    """The server refuses this mail or its recipient for good."""


class MailServer(NamedTuple):
    """`tls` is from the first byte; `start_tls` asks for encryption before anything is said, and
    None does where the server offers it.
    """

    host: str
    port: int
    user: str | None
    password: str | None
    tls: bool
    start_tls: bool | None


def read_mail_url(url: str) -> MailServer:
    parts = urlsplit(url)
    host, tls = parts.hostname or "", parts.scheme == "smtps"
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    start_tls = True if user and host not in _HERE else None
    port = parts.port or (465 if tls else 587)
    return MailServer(host, port, user, password, tls, False if tls else start_tls)


async def hand_over(url: str, mail: Mail) -> None:
    """Raises NotSent, Undeliverable."""
    # Few processes send mail.
    import aiosmtplib

    try:
        async with _client(url) as client:
            if not mail.to.isascii() and not client.supports_extension("smtputf8"):
                raise Undeliverable("the mail server takes addresses of plain letters alone")
            options = [] if mail.to.isascii() else ["SMTPUTF8"]
            await client.sendmail(mail.sender, [mail.to], mail.content, mail_options=options)
    except aiosmtplib.SMTPRecipientsRefused as e:
        if all(each.code >= _REFUSED for each in e.recipients):
            raise Undeliverable("the mail server refused the recipient") from None
        raise NotSent("the mail server put the recipient off") from None
    except aiosmtplib.SMTPResponseException as e:
        if e.code >= _REFUSED and e.code not in _OF_SIGN_IN:
            raise Undeliverable(f"the mail server refused the mail with {e.code}") from None
        raise NotSent(f"the mail server answered {e.code}") from None
    except (aiosmtplib.SMTPException, OSError, ValueError) as e:
        raise NotSent(f"the mail server was not reached ({type(e).__name__})") from None


async def check(url: str) -> None:
    """Connect and sign in, and send nothing. Raises NotSent."""
    import aiosmtplib

    try:
        async with _client(url) as client:
            await client.noop()
    except aiosmtplib.SMTPResponseException as e:
        raise NotSent(f"the mail server answered {e.code}") from None
    except (aiosmtplib.SMTPException, OSError, ValueError) as e:
        raise NotSent(f"the mail server was not reached ({type(e).__name__})") from None


def _client(url: str) -> aiosmtplib.SMTP:
    """A client that connects and signs in when it is entered."""
    import aiosmtplib

    server = read_mail_url(url)
    return aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        username=server.user,
        password=server.password,
        use_tls=server.tls,
        start_tls=server.start_tls,
        timeout=SECONDS,
    )
