"""A device that makes passkeys and signs with them, as a browser and its authenticator do together.

Its site is http://localhost: browsers know no passkeys at an address in numbers.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

import cbor2
import httpx
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from browsers import Browser
from builders import Service

HOST = "localhost:8000"
_PRESENT, _VERIFIED, _ATTESTED = 1, 4, 64


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Device:
    """`verifies` says whether it asks its user for a finger or a code."""

    host: str = HOST
    origin: str = f"http://{HOST}"
    verifies: bool = True
    count: int = 0
    id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    @property
    def headers(self) -> dict[str, str]:
        return {"Host": self.host}

    def client_data(self, kind: str, challenge: str) -> bytes:
        told = {"type": f"webauthn.{kind}", "challenge": challenge, "origin": self.origin}
        return json.dumps(told | {"crossOrigin": False}).encode()

    def _data(self, flags: int) -> bytes:
        self.count += 1
        site = hashlib.sha256(self.host.partition(":")[0].encode()).digest()
        flags |= _PRESENT | (_VERIFIED if self.verifies else 0)
        return site + bytes([flags]) + self.count.to_bytes(4, "big")

    def made(self, challenge: str) -> dict[str, Any]:
        """The credential that `navigator.credentials.create` gives."""
        numbers = self.key.public_key().public_numbers()
        x, y = (number.to_bytes(32, "big") for number in (numbers.x, numbers.y))
        public = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        attested = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + public
        data = self._data(_ATTESTED) + attested
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        response = {
            "clientDataJSON": base64url(self.client_data("create", challenge)),
            "attestationObject": base64url(attestation),
        }
        return self._credential(response)

    def signed(self, challenge: str) -> dict[str, Any]:
        """The credential that `navigator.credentials.get` gives."""
        data, client = self._data(0), self.client_data("get", challenge)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": base64url(client),
            "authenticatorData": base64url(data),
            "signature": base64url(signature),
        }
        return self._credential(response)

    def _credential(self, response: dict[str, str]) -> dict[str, Any]:
        id = base64url(self.id)
        return {
            "id": id,
            "rawId": id,
            "type": "public-key",
            "response": response,
            "clientExtensionResults": {},
        }

    async def options(self, browser: Browser) -> dict[str, Any]:
        answer = await browser.post("/api/passkeys/options", headers=self.headers)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()["publicKey"]
        return told

    async def register(self, browser: Browser, name: str = "Telephone") -> httpx.Response:
        challenge = (await self.options(browser))["challenge"]
        return await self.send(browser, self.made(challenge), name)

    async def send(
        self, browser: Browser, credential: dict[str, Any], name: str = "Telephone"
    ) -> httpx.Response:
        body = {"name": name, "credential": credential}
        return await browser.post("/api/passkeys", json=body, headers=self.headers)

    async def challenge(self, http: httpx.AsyncClient) -> str:
        answer = await http.post("/api/session/passkey/options", headers=self.headers)
        assert answer.status_code == 200, answer.text
        told: str = answer.json()["publicKey"]["challenge"]
        return told

    async def sign_in(self, service: Service, challenge: str | None = None) -> httpx.Response:
        http = service.client()
        signed = self.signed(challenge or await self.challenge(http))
        return await self.bring(http, signed)

    async def bring(self, http: httpx.AsyncClient, credential: dict[str, Any]) -> httpx.Response:
        body = {"credential": credential}
        return await http.post("/api/session/passkey", json=body, headers=self.headers)
