"""Builders of notices: a receiver of webhooks and a mail server on this machine, a service that may
reach both, and shops in which something is to be reported.
"""

from __future__ import annotations

import asyncio
import email
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope
from aiosmtpd.smtp import Session as SmtpSession
from standardwebhooks import Webhook

from browsers import Browser, signed_in
from builders import Seller, Service
from cardsync.asgi import create_app
from cardsync.platform import clock
from cardsync.platform.work.jobs import mark_due_by
from cardsync.shop.notices.look import LOOK, look
from inline_jobs import InlineJobs

SOON = timedelta(seconds=6)


@dataclass(frozen=True)
class Post:
    """One request that the receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def data(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    @property
    def type(self) -> str:
        return str(self.data["type"])

    def verified_by(self, secret: str) -> dict[str, Any]:
        """Return what the official reader says; it raises where the signature is wrong."""
        return dict(Webhook(secret).verify(self.body, self.headers))


@dataclass
class Receiver:
    """Answers with `status`, or not for `seconds`; a status of a redirect leads to `elsewhere`."""

    port: int = 0
    status: int = 200
    seconds: float = 0
    elsewhere: str = ""
    got: list[Post] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def types(self) -> list[str]:
        return [post.type for post in self.got]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in headers.items()}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.got.append(Post(head[0].split(" ")[1], headers, body))
        await asyncio.sleep(self.seconds)
        location = f"Location: {self.elsewhere}\r\n" if self.elsewhere else ""
        answer = f"HTTP/1.1 {self.status} It\r\n{location}Content-Length: 0\r\n\r\n"
        writer.write(answer.encode())
        writer.close()


@asynccontextmanager
async def a_receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.answer, "127.0.0.1")
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


@dataclass
class MailBox:
    """Keeps what it gets; with `answer` it refuses each recipient by that line."""

    port: int = 0
    answer: str = ""
    got: list[tuple[str, EmailMessage]] = field(default_factory=list)

    def of(self, address: str) -> list[EmailMessage]:
        return [mail for to, mail in self.got if to == address]

    async def handle_RCPT(
        self, server: SMTP, session: SmtpSession, envelope: Envelope, address: str, _: list[str]
    ) -> str:
        if self.answer:
            return self.answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: SmtpSession, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        mail = email.message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        self.got += [(to, mail) for to in envelope.rcpt_tos]
        return "250 OK"


@asynccontextmanager
async def a_mail_server() -> AsyncIterator[MailBox]:
    box = MailBox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(box, loop=loop), "127.0.0.1")
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()


@asynccontextmanager
async def reaching(service: Service, alive: Any, **settings: Any) -> AsyncIterator[Service]:
    """The service with other settings: its routes and its jobs."""
    changed = service.settings.model_copy(update={"development_clients": True, **settings})
    app = create_app(changed)
    work = replace(service.work, settings=changed)
    async with alive(app), InlineJobs.open(work) as jobs:
        yield replace(service, settings=changed, app=app, work=work, jobs=jobs)


def of_service(seller: Seller, service: Service) -> Seller:
    http = service.client(Authorization=f"Bearer {seller.api_key}")
    return replace(seller, service=service, http=http)


async def looked_at(seller: Seller) -> None:
    """Let a worker look at the shop now."""
    async with seller.service.database.tenant(seller.id) as session:
        await mark_due_by(session, seller.id, LOOK, clock.now())
    await look(seller.service.work, seller.id)


async def sent(seller: Seller, turns: int = 1) -> None:
    """Let the sweep find what is due, and the jobs run."""
    for _ in range(turns):
        clock.shift(SOON)
        await seller.sweep()
        await seller.service.run_jobs()


async def reported(seller: Seller) -> None:
    await looked_at(seller)
    await sent(seller)


async def a_webhook(
    seller: Seller, url: str, *kinds: str, browser: Browser | None = None
) -> tuple[Browser, int, str]:
    """Make a webhook, and return the owner's browser, its id and its secret. Without kinds it gets
    what hardly occurs, and tests.
    """
    owner = browser or await signed_in(seller)
    wanted = list(kinds) or ["webhook_disabled"]
    answer = await owner.post("/api/webhooks", json={"url": url, "kinds": wanted})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    return owner, made["webhook"]["id"], made["secret"]


async def deliveries(owner: Browser, webhook_id: int) -> list[dict[str, Any]]:
    answer = await owner.get(f"/api/webhooks/{webhook_id}/deliveries")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["deliveries"])


async def calls(seller: Seller) -> None:
    """The agent calls."""
    assert (await seller.post("/api/v1/heartbeat", json={})).status_code == 200
    await seller.service.app.state.last_seen.flush()
