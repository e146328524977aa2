"""Assistants that ask for access as real ones do: over HTTP, with PKCE, and an owner's consent."""

from __future__ import annotations

import asyncio
import html
import json
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx

from browsers import Browser, signed_in
from builders import Seller, Service

REDIRECT = "https://assistant.example/callback"


@dataclass
class Assistant:
    """A client with its secret of PKCE; `http` carries no credentials."""

    service: Service
    client_id: str
    redirect_uri: str = REDIRECT
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    state: str = "a state of its own"

    @property
    def challenge(self) -> str:
        digest = sha256(self.verifier.encode()).digest()
        return urlsafe_b64encode(digest).rstrip(b"=").decode()

    def request(self, **changed: Any) -> dict[str, Any]:
        """The parameters of its authorization request; None leaves one out."""
        given = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": self.state,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "scope": "mcp:read mcp:write",
            "resource": f"{self.service.settings.origin}/mcp",
        } | changed
        return {name: value for name, value in given.items() if value is not None}

    async def code(self, browser: Browser, *, access: str = "read", **fields: Any) -> str:
        """The code after the owner's consent."""
        answer = await consented(browser, self.request(), access=access, **fields)
        return told_in(answer)["code"]

    async def post(self, path: str, form: dict[str, Any]) -> httpx.Response:
        async with self.service.client() as http:
            return await http.post(path, data=form)

    def exchange(self, fetched: str, **changed: Any) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": fetched,
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
        } | changed
        return {name: value for name, value in form.items() if value is not None}

    async def tokens(self, browser: Browser, **options: Any) -> dict[str, Any]:
        code = await self.code(browser, **options)
        answer = await self.post("/oauth/token", self.exchange(code))
        assert answer.status_code == 200, answer.text
        given: dict[str, Any] = answer.json()
        return given

    async def refresh(self, token: str, **changed: Any) -> httpx.Response:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id}
        return await self.post("/oauth/token", form | changed)

    def bearer(self, tokens: dict[str, Any]) -> httpx.AsyncClient:
        return self.service.client(Authorization=f"Bearer {tokens['access_token']}")


async def registered(
    service: Service, name: str = "A Helper", redirect_uri: str = REDIRECT
) -> Assistant:
    async with service.client() as http:
        answer = await http.post(
            "/oauth/register", json={"client_name": name, "redirect_uris": [redirect_uri]}
        )
    assert answer.status_code == 201, answer.text
    return Assistant(service, answer.json()["client_id"], redirect_uri)


async def connected(seller: Seller, **options: Any) -> tuple[Assistant, dict[str, Any]]:
    """An assistant and its tokens, after the owner's consent."""
    assistant = await registered(seller.service)
    return assistant, await assistant.tokens(await signed_in(seller), **options)


async def consented(
    browser: Browser, request: dict[str, Any], *, word: str = "approve", **fields: Any
) -> httpx.Response:
    """The answer to the consent page's form, sent as a browser without scripts does."""
    page = await browser.get("/oauth/authorize", params=request)
    assert page.status_code == 200, page.text
    return await browser.http.post(
        "/oauth/authorize", data={**hidden_in(page.text), "word": word, **fields}
    )


def hidden_in(page: str) -> dict[str, str]:
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    return {name: html.unescape(value) for name, value in fields}


def told_in(answer: httpx.Response) -> dict[str, str]:
    """What an authorization response says to the client."""
    assert answer.status_code == 303, answer.text
    return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))


def sign_in_leads_to(answer: httpx.Response) -> str:
    where = urlsplit(answer.headers["Location"])
    assert where.path == "/sign-in"
    return parse_qs(where.query)["next"][0]


@dataclass
class Site:
    """A host of this machine that answers every request in one way; `asked` counts them."""

    port: int
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    seconds: float = 0
    asked: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/client.json"

    def shows(self, told: Any) -> None:
        self.body = json.dumps(told).encode()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        await reader.readuntil(b"\r\n\r\n")
        told = {"Content-Length": str(len(self.body)), "Connection": "close", **self.headers}
        lines = [f"HTTP/1.1 {self.status} OK", *(f"{name}: {v}" for name, v in told.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        await writer.drain()
        await asyncio.sleep(self.seconds)
        writer.write(self.body)
        writer.close()


@asynccontextmanager
async def a_site() -> AsyncIterator[Site]:
    site = Site(0)
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site
