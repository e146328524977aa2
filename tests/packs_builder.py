"""Workflow packs for tests: a small whole one, its changes, and signed files of it."""

from __future__ import annotations

import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cardsync.agents.releases.signing import PACK_DOMAIN, canonical, sign

MARKET, LOCALE, ORIGIN = "test_market", "en", "https://market.example"


def a_pack(version: int = 1, **changes: Any) -> dict[str, Any]:
    """A pack of one workflow; `changes` are fields instead of the usual ones."""
    return {
        "format": 1,
        "marketplace": MARKET,
        "locale": LOCALE,
        "version": version,
        "origins": [ORIGIN],
        "elements": {"export": {"locators": [{"role": "button", "name": "Exporter – tout"}]}},
        "workflows": {"export_inventory": {"steps": [a_step()]}},
    } | changes


def a_step(verb: str = "download", **fields: Any) -> dict[str, Any]:
    step = {"verb": verb, "name": "fetch", "then": {"file": "inventory", "within": 60}}
    usual = {"element": "export", "file": "inventory"} if verb == "download" else {}
    return step | usual | fields


def of_step(step: dict[str, Any], version: int = 1) -> dict[str, Any]:
    """A pack whose only step is this one."""
    return a_pack(version, workflows={"export_inventory": {"steps": [step]}})


def signed(pack: dict[str, Any], key: Ed25519PrivateKey, domain: bytes = PACK_DOMAIN) -> bytes:
    """The signed file of a pack, as an agent keeps it."""
    return json.dumps({"pack": pack, "signature": sign(key, domain + canonical(pack))}).encode()
