"""Connects to the service's own public address like an assistant, step by step, and reports which
step failed.

The test's client may only read, and its access ends with the test. Its requests take the same
network route as those of an assistant in this network, so that the test detects a proxy that drops
a header.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple

import httpx

from cardsync.access.audience import METADATA_PATH, PATH
from cardsync.access.caller import Caller
from cardsync.assistant.oauth import clients, consent, exchange
from cardsync.assistant.oauth.consent import ConsentRequest
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject

CLIENT_NAME: Final = "cardsync self-test"
_SECONDS: Final = 10.0
_SERVER_PATH: Final = "/.well-known/oauth-authorization-server"
_READ: Final = "lists_list"


class Step(NamedTuple):
    """A step of the test. `failure` is a sentence, or empty if the step succeeded."""

    name: str
    failure: str = ""


class _Failed(Exception):
    pass


async def run(
    database: Database,
    settings: Settings,
    caller: Caller,
    origin: str,
) -> list[Step]:
    """Run the steps up to the first that fails, and return them. Raises OwnerRequired,
    PaidPlanRequired.
    """
    consent.may_consent(caller, clock.now())
    timeout = httpx.Timeout(_SECONDS)
    async with httpx.AsyncClient(base_url=origin, timeout=timeout, trust_env=False) as http:
        test = _Test(database, settings, caller, origin, http)
        try:
            return await _steps(
                ("Discovery", test.discover),
                ("Registration", test.register),
                ("Token", test.fetch_token),
                ("List of tools", test.list_tools),
                ("A call", test.call),
            )
        finally:
            await test.give_up()


async def _steps(*steps: tuple[str, Callable[[], Awaitable[None]]]) -> list[Step]:
    done: list[Step] = []
    for name, do in steps:
        try:
            await do()
        except _Failed as failed:
            return [*done, Step(name, str(failed))]
        except httpx.HTTPError as error:
            kind = type(error).__name__
            return [*done, Step(name, f"The address did not answer ({kind}).")]
        except (KeyError, TypeError, IndexError):
            return [*done, Step(name, "The answer lacks what the protocol asks for.")]
        except errors.Problem as problem:
            return [*done, Step(name, f"{problem}.")]
        done.append(Step(name))
    return done


class _Test:
    def __init__(
        self,
        database: Database,
        settings: Settings,
        caller: Caller,
        origin: str,
        http: httpx.AsyncClient,
    ) -> None:
        self._database = database
        self._settings = settings
        self._caller = caller
        self._origin = origin
        self._http = http
        self._redirect = f"{origin}/settings/assistants"
        self._server: JsonObject = {}
        self._client_id = ""
        self._token = ""

    async def discover(self) -> None:
        resource = await self._json("GET", METADATA_PATH + PATH)
        if resource.get("resource") != self._origin + PATH:
            raise _Failed(
                f"The service calls itself {resource.get('resource')}, and not"
                f" {self._origin}{PATH}: check PUBLIC_URL."
            )
        self._server = await self._json("GET", _SERVER_PATH)

    async def register(self) -> None:
        body = {
            "client_name": CLIENT_NAME,
            "redirect_uris": [self._redirect],
            "token_endpoint_auth_method": "none",
        }
        made = await self._json("POST", self._server["registration_endpoint"], json=body)
        self._client_id = made["client_id"]

    async def fetch_token(self) -> None:
        verifier = secrets.token_urlsafe(48)
        digest = sha256(verifier.encode()).digest()
        asked = ConsentRequest(
            self._client_id,
            CLIENT_NAME,
            None,
            self._redirect,
            None,
            self._origin,
            self._origin + PATH,
            urlsafe_b64encode(digest).rstrip(b"=").decode(),
            writes=False,
        )
        async with self._database.tenant(self._caller.seller_id) as session:
            code = await consent.approve(
                session,
                self._caller,
                self._settings,
                asked,
                clock.now(),
                writes=False,
                buyer_data=False,
            )
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "client_id": self._client_id,
            "redirect_uri": self._redirect,
            "resource": self._origin + PATH,
        }
        tokens = await self._json("POST", self._server["token_endpoint"], data=form)
        self._token = tokens["access_token"]

    async def list_tools(self) -> None:
        listed = await self._rpc("tools/list", {})
        if _READ not in {tool["name"] for tool in listed["tools"]}:
            raise _Failed("The list has no tools.")

    async def call(self) -> None:
        called = await self._rpc("tools/call", {"name": _READ, "arguments": {}})
        if called.get("isError"):
            raise _Failed(f"The tool refused: {called['content'][0]['text'][:200]}")

    async def give_up(self) -> None:
        """End the client's access, through the public address if that works, and remove
        the client.
        """
        if self._token:
            form = {"token": self._token, "client_id": self._client_id}
            with suppress(httpx.HTTPError, KeyError):
                await self._http.post(self._server["revocation_endpoint"], data=form)
            async with self._database.shared() as session:
                await exchange.give_up(self._database, {"token": [self._token]}, clock.now())
                await clients.forget(session, self._client_id)

    async def _rpc(self, method: str, params: JsonObject) -> JsonObject:
        answer = await self._json(
            "POST",
            PATH,
            json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2025-06-18",
            },
        )
        if "result" not in answer:
            raise _Failed(f"The service answered {answer.get('error')}.")
        result: JsonObject = answer["result"]
        return result

    async def _json(self, method: str, address: str, **request: Any) -> JsonObject:
        if not self._http.base_url.join(address).host == self._http.base_url.host:
            raise _Failed(f"The service names another one's address: {address}.")
        answer = await self._http.request(method, address, **request)
        if not answer.is_success:
            raise _Failed(f"{address} answered {answer.status_code}: {answer.text[:200]}")
        try:
            found: JsonObject = answer.json()
        except ValueError:
            raise _Failed(f"{address} answered no JSON: {answer.text[:100]}") from None
        return found
