"""Reads a client's metadata from its registration (RFC 7591) or from its metadata
document. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cardsync.assistant.oauth import redirects
from cardsync.assistant.oauth.refused import Refused
from cardsync.platform.value_types import Json

NAME_CHARACTERS: Final = 100
REDIRECTS_MOST: Final = 20
_NAMELESS: Final = "An assistant without a name"
GRANT_TYPES: Final = ("authorization_code", "refresh_token")


class Metadata(NamedTuple):
    name: str
    redirect_uris: list[str]


def read_metadata(told: object) -> Metadata:
    """Parse and check the metadata. Raises Refused."""
    if not isinstance(told, dict):
        raise Refused("invalid_client_metadata", "the metadata must be a JSON object")
    uris = told.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= REDIRECTS_MOST:
        raise Refused(
            "invalid_redirect_uri", f"redirect_uris: must have 1 to {REDIRECTS_MOST} addresses"
        )
    for place, uri in enumerate(uris):
        if wrong := redirects.problem(uri):
            raise Refused("invalid_redirect_uri", f"redirect_uris[{place}]: {wrong}")
    _has(told, "grant_types", "authorization_code")
    _has(told, "response_types", "code")
    return Metadata(_name(told.get("client_name")), uris)


def _has(told: Mapping[str, object], field: str, needed: str) -> None:
    given = told.get(field, [needed])
    if not isinstance(given, list) or needed not in given:
        raise Refused("invalid_client_metadata", f"{field}: must have {needed}")


def _name(given: object) -> str:
    if given is None:
        return _NAMELESS
    if not isinstance(given, str):
        raise Refused("invalid_client_metadata", "client_name: must be a text")
    # The name is shown on the consent page, so it must not contain characters that reverse or hide
    # the text around it.
    name = " ".join("".join(c if c.isprintable() else " " for c in given).split())
    return name[:NAME_CHARACTERS].strip() or _NAMELESS


def must_be_public(told: Json) -> None:
    """Refuse the metadata document of a client that authenticates by a secret or a key, which this
    server cannot check. Raises Refused.
    """
    method = told.get("token_endpoint_auth_method", "none")
    if method != "none" or "client_secret" in told:
        raise Refused(
            "invalid_client_metadata", "token_endpoint_auth_method: must be none, without a secret"
        )
