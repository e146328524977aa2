"""Sends a mail to the server of MAIL_URL. The password is sent without encryption only if the
server is on this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from cardsync.platform import clock
from cardsync.shop.notices.mail_text import Mail

if TYPE_CHECKING:
    import aiosmtplib

SECONDS: Final = 30.0
_GOODBYE_SECONDS: Final = 2.0
# The maximum number of mails that a process sends at the same time. It is smaller than the
# process's number of slots, so that other notices are not delayed by mails.
AT_ONCE: Final = 8
_BUSY: Final = timedelta(seconds=1)
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_REFUSED: Final = 500
# The codes with which a server refuses the sign-in, not the mail.
_OF_SIGN_IN: Final = frozenset({530, 534, 535, 538})


class NotSent(Exception):
    """The server is unavailable or has refused the mail temporarily. The mail may be sent later."""


class Undeliverable(Exception):
    """The server has refused this mail or its recipient permanently."""


class MailServer(NamedTuple):
    """The address and credentials of a mail server. With `tls`, the connection is encrypted from
    the beginning. `start_tls` is True if STARTTLS is required, and None if it is used when the
    server offers it.
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


@dataclass
class _Relay:
    """The state of a mail server in this process. All shops use the same server. While the server
    does not answer, only one mail at a time is sent to it.
    """

    in_hand: int = 0
    hangs: bool = False
    rests_until: datetime | None = None


_RELAYS: Final[dict[str, _Relay]] = {}


@contextmanager
def turn_at(url: str) -> Iterator[datetime | None]:
    """Take a slot for a mail to the server of `url`, and yield None. If there is no slot, yield the
    time of the next attempt.
    """
    relay, now = _RELAYS.setdefault(url, _Relay()), clock.now()
    if relay.rests_until is not None and now < relay.rests_until:
        yield relay.rests_until
    elif relay.in_hand >= (1 if relay.hangs else AT_ONCE):
        yield now + _BUSY
    else:
        relay.in_hand += 1
        try:
            yield None
        finally:
            relay.in_hand -= 1


async def hand_over(url: str, mail: Mail, seconds: float = SECONDS) -> None:
    """Send a mail to the server within `seconds`. Raises NotSent, Undeliverable."""
    # The import is here, because only few processes send mail.
    import aiosmtplib

    async def send(client: aiosmtplib.SMTP) -> None:
        if not mail.to.isascii() and not client.supports_extension("smtputf8"):
            raise Undeliverable("the mail server only accepts addresses without accents or symbols")
        options = [] if mail.to.isascii() else ["SMTPUTF8"]
        await client.sendmail(mail.sender, [mail.to], mail.content, mail_options=options)

    try:
        await _spoken(url, send, seconds)
    except aiosmtplib.SMTPRecipientsRefused as e:
        if all(each.code >= _REFUSED for each in e.recipients):
            raise Undeliverable("the mail server refused the recipient") from None
        raise NotSent("the mail server asks to try this recipient later") from None
    except aiosmtplib.SMTPResponseException as e:
        if e.code >= _REFUSED and e.code not in _OF_SIGN_IN:
            raise Undeliverable(f"the mail server refused the mail with {e.code}") from None
        raise NotSent(f"the mail server answered {e.code}") from None
    except (aiosmtplib.SMTPException, OSError, ValueError) as e:
        raise NotSent(f"the mail server can't be reached ({type(e).__name__})") from None


async def check(url: str) -> None:
    """Check the server: connect and sign in, without sending a mail. Raises NotSent."""
    import aiosmtplib

    try:
        await _spoken(url, aiosmtplib.SMTP.noop, SECONDS)
    except aiosmtplib.SMTPResponseException as e:
        raise NotSent(f"the mail server answered {e.code}") from None
    except (aiosmtplib.SMTPException, OSError, ValueError) as e:
        raise NotSent(f"the mail server can't be reached ({type(e).__name__})") from None


async def _spoken(
    url: str, say: Callable[[aiosmtplib.SMTP], Awaitable[object]], seconds: float
) -> None:
    """Connect, sign in and call `say` within `seconds`, and note whether the server answered."""
    import aiosmtplib

    client, relay = _client(url, seconds), _RELAYS.setdefault(url, _Relay())
    try:
        async with asyncio.timeout(seconds):
            await client.connect()
            await say(client)
    except TimeoutError:
        relay.hangs, relay.rests_until = True, clock.now() + timedelta(seconds=2 * seconds)
        raise
    else:
        relay.hangs, relay.rests_until = False, None
        with suppress(aiosmtplib.SMTPException, OSError):
            await client.quit(timeout=_GOODBYE_SECONDS)
    finally:
        client.close()


def _client(url: str, seconds: float) -> aiosmtplib.SMTP:
    """Return a client that signs in when it connects."""
    import aiosmtplib

    server = read_mail_url(url)
    return aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        username=server.user,
        password=server.password,
        use_tls=server.tls,
        start_tls=server.start_tls,
        timeout=seconds,
    )
