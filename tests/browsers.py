"""Browsers of members: signed in over HTTP, with their cookie jar and their CSRF token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from builders import Seller, Service
from cardsync.platform import clock
from cardsync.platform.database.session import Database
from cardsync.shop.accounts import invitations, roster
from cardsync.shop.operators import appoint

A_PASSWORD = "correct horse battery"


@dataclass
class Browser:
    """`await browser.post(…)` carries cookie and CSRF token, as a page of ours would."""

    service: Service
    http: httpx.AsyncClient = field(repr=False)
    session: dict[str, Any]

    @property
    def cookie(self) -> str:
        return self.http.cookies["cardsync_session"]

    @property
    def member_id(self) -> int:
        return int(self.session["member"]["id"])

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.http.get(path, **options)

    async def send(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any
    ):
        told = {"X-CSRF-Token": self.session["csrf_token"], **(headers or {})}
        return await self.http.request(method, path, headers=told, **options)

    async def post(self, path: str, **options: Any) -> httpx.Response:
        return await self.send("POST", path, **options)

    async def form(self, path: str, **fields: Any) -> httpx.Response:
        """A form sent without a script: no header of ours, the token in a field."""
        data = {"csrf_token": self.session["csrf_token"], **fields}
        return await self.http.post(path, data=data)

    async def sign_out(self, **query: Any) -> httpx.Response:
        return await self.send("DELETE", "/api/session", params=query)

    async def is_in(self) -> bool:
        return (await self.get("/api/session")).status_code == 200


async def signed_in(
    seller: Seller, email: str | None = None, password: str | None = None
) -> Browser:
    """The owner, or whoever has that address and password."""
    http = seller.service.client()
    credentials = {"email": email or seller.email, "password": password or seller.password}
    answer = await http.post("/api/session", json=credentials)
    assert answer.status_code == 200, answer.text
    return Browser(seller.service, http, answer.json())


async def invited(seller: Seller, email: str, role: str = "staff") -> tuple[int, str]:
    """(member id, token), as `cardsync admin member add` makes them."""
    async with seller.service.database.shared() as session:
        member_id, link = await invitations.invite(
            session, seller.service.settings, seller.id, email, role
        )
    return member_id, link.removeprefix("/invitations/")


async def reset(seller: Seller, member_id: int) -> str:
    """The token, as `cardsync admin member reset-password` makes it."""
    async with seller.service.database.shared() as session:
        link = await roster.reset_password(session, seller.service.settings, member_id)
    return link.removeprefix("/invitations/")


async def accept(
    service: Service, token: str, **body: Any
) -> tuple[httpx.Response, Browser | None]:
    http = service.client()
    answer = await http.post(f"/api/invitations/{token}", json=body)
    return answer, Browser(service, http, answer.json()) if answer.status_code == 201 else None


async def joined(seller: Seller, email: str, role: str = "staff", name: str = "Bea") -> Browser:
    _, token = await invited(seller, email, role)
    answer, browser = await accept(seller.service, token, name=name, password=A_PASSWORD)
    assert browser, answer.text
    return browser


async def operates(seller: Seller, email: str | None = None) -> None:
    """Make the owner, or whoever has that address, an operator of the installation."""
    url = seller.service.settings.migration_database_url
    async with (
        Database.open(url, pool=1, hot_pool=1, role=None) as database,
        database.shared() as session,
    ):
        await appoint.add(session, email or seller.email, clock.now())
