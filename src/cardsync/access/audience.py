"""Defines the OAuth audience of this service: the resource for which tokens of grants are valid
(RFC 8707), the address of its metadata (RFC 9728), and the scopes for reading and for writing.
Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cardsync.platform.settings import Settings


PATH: Final = "/mcp"
METADATA_PATH: Final = "/.well-known/oauth-protected-resource"


def audience(settings: Settings, host: str | None) -> str:
    """Return the resource that a client must name if it reached this service as `host`."""
    return settings.origin_for(host) + PATH


def metadata_url(settings: Settings, host: str | None) -> str:
    """Return the address of the resource's metadata."""
    return settings.origin_for(host) + METADATA_PATH + PATH


READ: Final = "mcp:read"
WRITE: Final = "mcp:write"
SCOPES: Final = (READ, WRITE)
